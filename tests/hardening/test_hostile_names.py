"""Hostile names reach nobody raw: every command, every format, stdout and stderr, and the errors too."""

from __future__ import annotations

import csv
import io
import json
import os
import pty
import re
import subprocess
import unicodedata
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
import yaml

from rmqlb.engine.record.follow import Follower
from rmqlb.model.finding import Finding
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.pipeline_result import PipelineResult, RejectedFile
from rmqlb.model.recording import Look
from rmqlb.model.snapshot import ClusterSnapshot
from rmqlb.views.formats.machine import as_csv, as_json, as_yaml, envelope
from rmqlb.views.formats.people import as_markdown, as_plain
from rmqlb.views.pipeline_view import pipeline_report
from rmqlb.views.record import recording_report
from rmqlb.views.report import FORMATS
from tests.cli.run import ROOT, Ran, command, environment, run
from tests.hardening import walk
from tests.hardening.hostile import (
    CONTROLS,
    DIRECTIONS,
    INVISIBLE,
    MARKUP,
    SNAPSHOTS,
    TERMINAL,
    Names,
    as_text,
    snapshot,
)
from tests.support.mismatches import every_case, first_by_default
from tests.support.openmetrics import read_metrics

_HARMLESS = frozenset({"\n"})
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_BAD = frozenset(DIRECTIONS + INVISIBLE)


def raw(text: str, more: frozenset[str] = frozenset()) -> set[str]:
    """The characters that must not be there: judged by Unicode, not by rmqlb's own list."""
    return {
        char
        for char in set(text) - _HARMLESS - more
        if char in _BAD or unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp", "Cn", "Co")
    }


def allowed(output: str) -> frozenset[str]:
    """What a format itself is made of."""
    return frozenset("\r" if output == "csv" else "")


FORMATS_AT_RISK = {
    "invisible": ("plain",),
    "markup": ("markdown", "yaml", "-"),
    "formulas": ("csv",),
    "long": ("table",),
}
"""Kind of names → where they could do harm; in all other formats they are what `controls` are: text that is escaped."""
IN_ALL_FORMATS = ("show-owners", "simulate-rebalance")
RUNS = [
    (kind, arguments)
    for kind, names in SNAPSHOTS.items()
    for arguments in walk.runs(names.topics[0])
    if arguments[0] in IN_ALL_FORMATS or arguments[-1] in FORMATS_AT_RISK.get(kind, arguments)
]


def ran(kind: str, arguments: tuple[str, ...]) -> Ran:
    source = () if arguments[0] in walk.ON_TWO_SNAPSHOTS else ("-s", "-")
    done = run(*arguments, *source, stdin=as_text(snapshot(SNAPSHOTS[kind], differ=arguments[0] in walk.LOOKING)))
    assert done.code == walk.CODES.get(arguments[0], 0), done.stderr[:500]
    return done


def case(value: object) -> str:
    return " ".join([value[0], *value[-2:]]) if isinstance(value, tuple) else str(value)


@every_case(("kind", "arguments"), RUNS, ids=case)
def test_nothing_raw_is_written(kind: str, arguments: tuple[str, ...]) -> None:
    done = ran(kind, arguments)
    assert raw(done.stdout, allowed(arguments[-1])) == set()
    assert raw(done.stderr) == set()
    if arguments[-1] in ("json", "yaml"):
        value = (
            json.loads(done.stdout)
            if arguments[-1] == "json"
            else yaml.load(done.stdout, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        )
        assert value["command"] == arguments[0]
    elif arguments[-1] == "csv":
        rows = list(csv.reader(io.StringIO(done.stdout, newline=""), strict=True))
        assert len({len(row) for row in rows}) == 1
        assert [cell for row in rows for cell in row if is_formula(cell)] == []
    elif arguments[-1] == "jsonl":
        assert all(isinstance(json.loads(line), dict) for line in done.stdout.splitlines())
    elif arguments[-1] == "sarif":
        assert json.loads(done.stdout)["version"] == "2.1.0"
    elif arguments[-1] == "prometheus":
        assert read_metrics(done.stdout)
    elif arguments[-1] == "junit":
        assert {element.tag for element in ET.fromstring(done.stdout).iter()} <= _JUNIT


_JUNIT = {"testsuites", "testsuite", "testcase", "failure", "skipped", "error", "system-out", "properties", "property"}


def is_formula(cell: str) -> bool:
    """A spreadsheet would run it: OWASP's first characters, and no number."""
    return cell.lstrip(" ").startswith(tuple("=+-@\t\r\n＝＋－＠")) and not re.fullmatch(r"[-+]?[0-9.e+-]+", cell)


@pytest.mark.parametrize("name", first_by_default(["show-owners", "simulate-rebalance"]))
@pytest.mark.parametrize("kind", first_by_default(["controls", "markup"]))
def test_a_terminal_gets_colours_and_nothing_else(name: str, kind: str, tmp_path: Path) -> None:
    (tmp_path / "evil.json").write_text(as_text(snapshot(SNAPSHOTS[kind])))
    seen = on_a_terminal(name, *walk.READING[name], "-s", str(tmp_path / "evil.json"))
    assert "\x1b[1m" in seen
    assert raw(_COLOUR.sub("", seen), frozenset("\r")) == set()


def on_a_terminal(*arguments: str) -> str:
    """What a process writes when both its streams are a terminal."""
    ours, theirs = pty.openpty()
    child = subprocess.Popen(
        command(*arguments),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        cwd=ROOT,
        env=environment({"TERM": "xterm", "RMQLB_PAGER": "cat"}),
    )
    os.close(theirs)
    parts = []
    try:
        while part := os.read(ours, 1 << 16):
            parts.append(part)
    except OSError:  # Linux says EIO when the far side is closed
        pass
    os.close(ours)
    assert child.wait(timeout=60) == 0
    return b"".join(parts).decode()


def test_the_question_for_a_password_has_nothing_raw() -> None:
    from tests.support.replay_dashboard import Replay, dashboard

    with dashboard(Replay(login=("admin", "pw"))) as replay:
        ours, theirs = pty.openpty()
        line = command("show-route", "-s", replay.url, "-t", "T", "--user", EVIL, "--source-retries", "0")
        child = subprocess.Popen(
            line, stdin=theirs, stdout=theirs, stderr=theirs, cwd=ROOT, env=environment(), start_new_session=True
        )
        os.close(theirs)
        seen = b""
        while not re.search(rb"assword for .*: $", seen, re.DOTALL):
            seen += os.read(ours, 1 << 16)
        os.write(ours, b"pw\n")
        try:
            while part := os.read(ours, 1 << 16):
                seen += part
        except OSError:
            pass
        os.close(ours)
        assert child.wait(timeout=60) == 5
    assert raw(seen.decode(), frozenset("\r")) == set()


class _Seen(HTMLParser):
    """The tags and attributes of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += [(name, value or "") for name, value in attrs]


_SVG = {"svg", "g", "rect", "text", "title", "desc", "line", "path", "pattern", "defs", "style", "tspan", "clippath"}
_HTML = {"html", "head", "meta", "title", "body", "h1", "h2", "ul", "li", "div", "table", "thead", "tbody", "tr", "th", "td", "p"}  # fmt: skip


def require_inert(tags: set[str], attributes: list[tuple[str, str]]) -> None:
    assert tags <= _SVG | _HTML
    for name, value in attributes:
        assert not name.lower().startswith("on"), name
        assert name not in ("href", "src", "action", "formaction", "xlink:href"), name
        assert "javascript:" not in value
        assert "url(" not in value.replace("url(#", "")


@every_case("kind", SNAPSHOTS)
def test_pictures_are_well_formed_and_inert(kind: str) -> None:
    arguments = ("simulate-rebalance", *walk.ON_A_GROUP["simulate-rebalance"])
    svg, html = (ran(kind, (*arguments, option, "-")).stdout for option in ("--svg", "--html"))
    root = ET.fromstring(svg)
    tags = {element.tag.rpartition("}")[2].lower() for element in root.iter()}
    require_inert(tags, [pair for element in root.iter() for pair in element.attrib.items()])
    page = _Seen()
    page.feed(html)
    page.close()
    require_inert(page.tags, page.attributes)
    assert any(name == "content" and value.startswith("default-src 'none'") for name, value in page.attributes)
    if kind == "markup":
        assert MARKUP.split("]]")[0] in "".join(root.itertext())
        assert "<script" not in svg + html


def test_markdown_has_no_tag_no_link_and_no_code_of_a_name() -> None:
    for name in ("show-owners", "plan-rebalance", "plan-rollout"):
        shown = ran("markup", (name, *walk.READING[name], "-o", "markdown")).stdout
        assert not re.search(r"(?<!\\)[<\[]", shown)


@every_case("fmt", [as_plain, as_markdown, lambda report: as_csv(report.table), lambda report: as_json(report.data), lambda report: as_yaml(report.data)])  # fmt: skip
def test_a_pipelines_summary_has_nothing_raw(fmt: object) -> None:
    assert callable(fmt)
    evil = CONTROLS + DIRECTIONS + INVISIBLE
    result = PipelineResult(evil, page=evil, quarantined=(RejectedFile(evil, evil),))
    assert raw(fmt(pipeline_report(result)), frozenset("\r")) == set()


EVIL = "\x1b]0;x\x07\x1b[31m\x9b\u202e\u200bevil[/red]<script>"
"""As on a command line: without NUL, which no argument can hold."""
ERRORS = {
    "a topic": "show-route -s FILE -t EVIL",
    "a group": "show-owners -s FILE -g EVIL",
    "a group's topic": "plan-rebalance -s FILE -t EVIL",
    "a consumer": "plan-rebalance -s FILE --remove EVIL",
    "a consumer twice": "plan-rebalance -s FILE --add EVIL --remove EVIL",
    "a broker": "plan-rebalance -s FILE --remove-broker EVIL",
    "queues": "plan-rebalance -s FILE --read-queues EVIL=x",
    "a strategy": "plan-rebalance -s FILE --strategy EVIL",
    "a client's release": "simulate-rebalance -s FILE --event 'join 1@5s' --client EVIL",
    "an event": "simulate-rebalance -s FILE --event EVIL",
    "an event's member": "simulate-rebalance -s FILE --event 'leave EVIL@5s'",
    "a picture": "simulate-rebalance -s FILE --event 'join 1@5s' --strategy AVG --svg /nonexistent/EVIL",
    "a failure": "simulate-send -s FILE -t TOPIC --fail EVIL",
    "a failure's kind": "simulate-send -s FILE -t TOPIC --fail *:EVIL",
    "a rollout's order": "plan-rollout -s FILE --strategy AVG --order EVIL",
    "a condition": "plan-rebalance -s FILE --fail-on EVIL",
    "a format": "show-route -s FILE --output=EVIL",
    "a section": "show-owners -s FILE --section EVIL",
    "an option": "show-route -s FILE --EVIL",
    "a command": "EVIL",
    "an argument": "show-route -s FILE EVIL",
    "a file": "show-route -s /nonexistent/EVIL",
    "a scheme": "show-route -s x-EVIL://h -t T",
    "a host": "show-route -s http://EVIL:1 -t T --source-retries 0",
    "a NameServer": "show-route -s rocketmq://EVIL -t T --source-retries 0",
    "a time": "show-route -s FILE --source-timeout EVIL",
    "a size": "show-route -s FILE --max-size EVIL",
    "a list of queues": "plan-rebalance -s FILE --strategy CONFIG --strategy-option queues=LISTS",
    "a list of members": "plan-rebalance -s FILE --consumers @/nonexistent/EVIL",
    "a target": "fetch-routes -s FILE --to /nonexistent/EVIL",
    "a zone": "plan-rebalance -s FILE --strategy MACHINE_ROOM_NEARBY --strategy-option broker-zone=(EVIL",
    "a password's file": "show-route -s http://u@127.0.0.1:1 -t T --password-file /nonexistent/EVIL",
    "a model": "plan-rebalance -s MODEL",
    "an order": "simulate-send -s ORDER -t TOPIC",
    "a document": "show-route -s BAD",
    "YAML": "show-route -s YAML",
    "a policy": "check -s FILE --policy POLICY --today 2026-11-21",
    "a policy's file": "check -s FILE --policy /nonexistent/EVIL",
    "a day": "check -s FILE --policy POLICY --today EVIL",
    "a context": "show-route -t T --context EVIL",
    "a context to show": "context show EVIL",
    "a context to use": "context use EVIL",
    "a context to remove": "context remove EVIL",
    "a context's name": "context add EVIL -s x",
    "a context's secret": "context add a -s x --secret EVIL",
    "a schema": "schema EVIL",
    "a code": "explain EVIL",
    "a pause": "show-route -s FILE --watch EVIL",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files with hostile content."""
    made = tmp_path_factory.mktemp("evil")
    names = SNAPSHOTS["controls"]
    (made / "FILE").write_text(as_text(snapshot(names)))
    (made / "MODEL").write_text(as_text(snapshot(names, messageModel=EVIL, topics=None)))
    (made / "ORDER").write_text(as_text(snapshot(names, order=f"{EVIL}:x;{EVIL}")))
    (made / "LISTS").write_text(json.dumps({EVIL: [EVIL]}))
    (made / "BAD").write_text(as_text({"schema": "rmqlb/snapshot", "formatVersion": EVIL, "data": {}}))
    (made / "POLICY").write_text(json.dumps({"rules": [{"name": EVIL, "groups": [EVIL], "limits": {EVIL: EVIL}}]}))
    (made / "YAML").write_text(f"- 'a': {MARKUP}\n{EVIL}: [\n")
    return made


@every_case("more", [(), ("-o", "json"), ("--debug",)], ids=["plain", "json", "debug"])
@every_case("what", ERRORS)
def test_errors_hold_nothing_raw(what: str, more: tuple[str, ...], folder: Path) -> None:
    topic = SNAPSHOTS["controls"].topics[0]
    arguments = []
    for quoted, bare in re.findall(r"'([^']*)'|(\S+)", ERRORS[what]):
        word = (quoted or bare).replace("EVIL", EVIL).replace("TOPIC", topic)
        arguments.append(str(folder / word) if word.isupper() and (folder / word).exists() else word)
    done = run(*arguments, *(() if what == "a format" else more))
    assert done.code not in (0, 1), done.stderr
    assert done.stdout == ""
    assert raw(done.stderr) == set()
    if more == ("-o", "json") and what != "a format":
        assert json.loads(done.stderr)["schema"] == "rmqlb/error"
    elif more == ():
        assert [line.split(":")[0] for line in done.stderr.splitlines()] in (["error"], ["error", "hint"])


def test_an_unexpected_failures_trace_holds_nothing_raw(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object, **__: object) -> None:
        raise RuntimeError(TERMINAL + DIRECTIONS)

    monkeypatch.setattr("rmqlb.sources.dump.read_pieces", fails)
    for more in ((), ("-o", "json"), ("--debug",)):
        done = run("show-route", "-s", "-", *more, stdin="queueDatas: []")
        assert done.code == 1
        assert raw(done.stderr) == set()
        assert "RuntimeError" in done.stderr
        assert ("Traceback" in done.stderr) == (more == ("--debug",))


def recording(names: Names) -> str:
    """A recording of a group whose every name is hostile, with a consumer that comes and one that does not answer."""
    some = [MessageQueue(topic, broker, 0) for topic in names.topics for broker in names.brokers]
    first, second, *_ = names.client_ids
    follower = Follower(names.group, 1000)
    routes = {topic: tuple(queue for queue in some if queue.topic == topic) for topic in names.topics}
    for at, held, silent in (
        (0, {first: some}, {}),
        (1000, {first: some[1:], second: some[:1]}, {}),
        (2000, {second: some[:1]}, {first: names.text}),
    ):
        owned = {client_id: frozenset(queues) for client_id, queues in held.items()}
        listed = frozenset({*held, *silent})
        follower.add(Look(10_000 + at, 10_050 + at, owned, silent, listed, routes, strategy=names.text))
    report = recording_report(follower.recording("time"))
    finding = Finding("duplicate-client-id", names.text, names.group)
    return as_json(envelope(report, "record", ClusterSnapshot("nameserver", names.text), (finding,)))


@every_case("output", [*(("-o", name) for name in (*FORMATS, "jsonl")), ("--svg", "-"), ("--html", "-")])
@every_case("kind", SNAPSHOTS)
def test_a_recording_of_hostile_names_writes_nothing_raw(kind: str, output: tuple[str, str], tmp_path: Path) -> None:
    path = tmp_path / "recording.json"
    path.write_text(recording(SNAPSHOTS[kind]), encoding="utf-8")
    done = run("record", "--replay", str(path), *output)
    assert done.code == 0, done.stderr[:500]
    assert done.stdout
    assert raw(done.stdout, allowed(output[-1])) == set()
    assert raw(done.stderr) == set()
    if output[0] != "-o":
        assert "<script" not in done.stdout
    again = run("record", "--replay", str(path), "--against", str(path))
    assert (again.code, raw(again.stderr)) == (2, set())
