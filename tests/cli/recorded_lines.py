"""The command lines of a file in `tests/data/`: `$ NAME=VALUE command words < file`, what is expected below each.

`{}` is the folder of the files of the test. `= name` begins a file that ends at an empty line, `= name T,U 3` a snapshot of
group g on topics with 3 queues, whose keys are below, `= name by command` what a command prints, `= name of EXAMPLE` that
file with other values at the paths below. EXAMPLE, LATER, … are files of examples/. `_` alone is an empty argument, and
`<x*300>` a character so many times. CLUSTER, LEGACY and DASHBOARD are servers (`run_live`).
"""

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import Mock, patch

import yaml

from rmqlb.remoting.codes import RequestCode
from tests.support import replay_dashboard, replay_remoting
from tests.support.builders import snapshot_text

from .run import EXAMPLE, RECORDING, ROOT, SKEWED, Ran, run

EXAMPLES = {
    "EXAMPLE": EXAMPLE, "SKEWED": SKEWED, "RECORDING": RECORDING, "POLICY": str(ROOT / "examples" / "policy.yaml"),
    "LATER": str(ROOT / "examples" / "cluster-later.json"), "FOUR_GROUPS": str(ROOT / "examples" / "four-groups.yaml"),
    "FAULTS": str(ROOT / "examples" / "faults.json"),
    "NIGHT": str(ROOT / "examples" / "fleet" / "cluster=fleet-a" / "date=2026-11-21" / "snapshot.json"),
    "NIGHT_BEFORE": str(ROOT / "examples" / "fleet" / "cluster=fleet-a" / "date=2026-11-20" / "snapshot.json"),
    "FAULTS_BEFORE": str(ROOT / "examples" / "faults-before.json"),
}  # fmt: skip


class Line(NamedTuple):
    text: str
    expected: tuple[str, ...]

    @property
    def command(self) -> str:
        return next(word for word in self.text.split() if "=" not in word)

    def words(self, folder: Path) -> list[str]:
        return ["" if word == "_" else word for word in shlex.split(self.text.replace("{}", str(folder)))]

    def run(self, folder: Path, *more: str, **env: str) -> Ran:
        words, stdin = self.words(folder), None
        while re.match(r"[A-Z_]+=", words[0]):
            name, _, env[name] = words.pop(0).partition("=")
        if "<" in words:
            *words, _, file = words
            stdin = Path(file).read_bytes()
        return run_live([*words, *more], stdin, env)


LIVE = re.compile(r"\b(CLUSTER|LEGACY|DASHBOARD)\b")
CAPTURED = datetime(2026, 11, 21, 2, 2, 7, tzinfo=UTC)


def _misbehave(server: Any, what: object, how: str) -> None:
    """How is `/OLD/NEW` in each body, a body, a number to refuse with, or the name of a fault."""
    http = isinstance(server, replay_dashboard.Replay)
    if how[0] == "/":
        old, new = how[1:].encode().split(b"/")
        bodies = {
            asked: each if http else each.body or b"" for asked, each in server.answers.items() if asked[0] == what
        }
        assert any(old in body for body in bodies.values()), how
        for asked, body in bodies.items():
            told = body.replace(old, new)
            server.answers[asked] = told if http else replace(server.answers[asked], body=told)
    elif how[0] == "{":
        answer = replay_remoting.success(how.encode())
        given = replay_dashboard.giving(how.encode())
        server.faults[what] = given if http else lambda turn: turn.write(turn.framed(answer))
    elif how.isdigit():
        server.faults[what] = replay_dashboard.giving(b"", int(how)) if http else replay_remoting.refusing(int(how))
    else:
        server.faults[what] = getattr(replay_dashboard if http else replay_remoting, how)


def run_live(words: Sequence[str], stdin: bytes | None = None, env: Mapping[str, str] | None = None) -> Ran:
    """As `run`, where CLUSTER, LEGACY (4.9.7) or DASHBOARD are servers that answer as captured, and at that time.

    `|REQUEST=HOW` after them is what this request, or this path of a Dashboard, meets; `|1.REQUEST` at broker-b alone.
    """
    live = next(filter(LIVE.match, words), None)
    if live is None:
        return run(*words, stdin=stdin, env=env)
    kind, maps = live.partition("|")[0], ["--source-retries", "0"] if "|" in live else []
    servers: tuple[Any, ...]
    with patch("rmqlb.sources.source.datetime", Mock(now=lambda _: CAPTURED)), ExitStack() as stack:
        if kind == "DASHBOARD":
            servers = (stack.enter_context(replay_dashboard.dashboard()),)
            source, addresses = servers[0].url, [servers[0].url.removeprefix("http://")]
        else:
            legacy = (replay_remoting.Replay(version="4.9.7"),) if kind == "LEGACY" else ()
            servers = stack.enter_context(replay_remoting.cluster(*legacy))
            _, source, *more = replay_remoting.at(servers)
            maps, addresses = maps + more, [server.address for server in servers]
        for where, what, how in re.findall(r"\|(?:(\d)\.)?([^=|]+)=([^|]+)", live):
            for server in servers[int(where or 0) :]:
                _misbehave(server, what if kind == "DASHBOARD" else RequestCode[what], how)
        ran = run(*(source if word == live else word for word in words), *maps, stdin=stdin, env=env)
    names = {address: f"127.0.0.1:1000{number}" for number, address in enumerate(addresses)}
    out, err = (re.sub("|".join(names), lambda found: names[found[0]], text) for text in ran[:2])
    return Ran(out, err, ran.code)


def _text(name: str) -> str:
    text = (ROOT / "tests" / "data" / name).read_text(encoding="utf-8")
    for word, path in EXAMPLES.items():
        text = re.sub(rf"\b{word}\b", path, text)
    return re.sub(r"<(.)\*(\d+)>", lambda found: found[1] * int(found[2]), text)


def lines_of(name: str) -> list[Line]:
    found = re.findall(r"^\$ (.*)\n((?:[^\n$#=].*\n)*)", _text(name), re.MULTILINE)
    return [Line(text, tuple(expected.splitlines())) for text, expected in found]


def steps_of(path: str) -> list[str]:
    """`.a[].b[0]` as `.a`, `[]`, `.b`, `[0]`."""
    return re.findall(r"\[[-+\d]*\]|\.[^.\[]+", path)


def _put(whole: Any, steps: list[str], value: object) -> None:
    first, *rest = steps
    if first == "[]":
        for each in whole:
            _put(each, rest, value)
    elif first == "[+]":
        whole.append(value)
    else:
        key = int(first[1:-1]) if first[0] == "[" else first[1:]
        if rest:
            _put(whole[key], rest, value)
        else:
            whole[key] = value


def write_files(name: str, folder: Path) -> None:
    whole_text = _text(name)
    for file, source, changes in re.findall(r"^= (\S+) of (\S+)\n((?:\..+\n)+)", whole_text, re.MULTILINE):
        document = json.loads(Path(source).read_text(encoding="utf-8"))
        for path, value in (change.split(" = ", 1) for change in changes.splitlines()):
            _put(document, steps_of(path), json.loads(value))
        (folder / file).write_text(json.dumps(document), encoding="utf-8")
    for file, text in re.findall(r"^= (\S+) by (.+)", whole_text, re.MULTILINE):
        (folder / file).write_text(Line(text, ()).run(folder).stdout, encoding="utf-8")
    for file, topics, number, text in re.findall(r"^= (\S+)(?: (\S+) (\d+))?\n((?:.+\n)+)", whole_text, re.MULTILINE):
        group = yaml.safe_load(text) if topics else {}
        whole = snapshot_text(*topics.split(","), number=int(number), **group) if topics else text
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text(whole.replace("{}", str(folder)), encoding="utf-8")
        (folder / file).chmod(0o600)
