import gzip
import json
import os
import re
import shlex
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest

from rmqlb.cli.exit_codes import ExitCode
from rmqlb.views.explanations import explanations
from tests.support.mismatches import every_case
from tests.support.replay_dashboard import Replay, dashboard, endless, giving, reset, silent
from tests.support.schemas import must_fit

from .recorded_lines import Line, lines_of, write_files
from .run import EXAMPLE, ROOT, Ran, error_of, run, start

EXPLANATIONS = explanations()
USAGE, DATA, ENDPOINT = ExitCode.USAGE, ExitCode.DATA, ExitCode.ENDPOINT
SOURCE_HINT = "-s takes HOST:9876, a URL, a file, or - for stdin"
SHOW, PLAN = "show-route", "plan-rebalance"

FILES = {
    "empty": b"",
    "blank": b"\n \t\n",
    "truncated": b'{\n  "queueDatas": [\n    {"brokerName": "a"',
    "junk": bytes(range(256)) * 10,
    "deep": b"[" * 100_000,
    "cut.gz": gzip.compress(b"{}")[:-4],
    "ids.txt": b"\xff\xfe",
    "config-binary.yaml": b"\xff\xfe",
    "latin.py": b"# \xff\n",
    "nul.py": b"x = 1\0\n",
}
"""Files that no text can be; `bad_input.txt` has the others."""


class Bad(NamedTuple):
    """A command line and how it ends; `{}` in its texts is the folder of FILES."""

    line: Line
    code: int
    error: str
    hint: str | None
    error_code: str | None


def bad(line: Line) -> Bad:
    end, *hints = line.expected
    found = re.fullmatch(r"(\d) (.*?)(?: \[([a-z-]+)\])?", end)
    assert found, line
    return Bad(line, int(found[1]), found[2], hints[0].removeprefix("hint: ") if hints else None, found[3])


ALL = [*map(bad, lines_of("bad_input.txt"))]
WITHOUT_FORMAT = [bad for bad in ALL if " -o " not in bad.line.text and "_OUTPUT=" not in bad.line.text]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The files, which bad input leaves as they are."""
    folder = tmp_path_factory.mktemp("bad")
    for name, body in FILES.items():
        (folder / name).write_bytes(body)
    write_files("bad_input.txt", folder)
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    with (folder / "large").open("wb") as file:
        file.truncate(100 * 1024 * 1024)
    yield folder
    (folder / "large").unlink()
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


def goes_on(found: str | None, text: str | None) -> bool:
    return found == text or (
        found is not None and text is not None and text[-1:] == "…" and found.startswith(text[:-1])
    )


def must_end(ran: Ran, bad: Bad, folder: Path) -> None:
    assert (ran.code, ran.stdout) == (bad.code, "")
    failed = error_of(ran.stderr.replace(str(folder), "{}"))
    assert goes_on(failed.message, bad.error), failed
    assert goes_on(failed.hint, bad.hint), failed
    assert failed.code == (bad.error_code or failed.code)
    assert EXPLANATIONS[failed.code].exit_code == bad.code


@every_case("bad", ALL, ids=lambda bad: bad.line.text[:90])
def test_bad_input_ends_in_one_line_and_the_documented_code(bad: Bad, folder: Path) -> None:
    must_end(bad.line.run(folder), bad, folder)
    if "s3cret" in bad.line.text or "/secret" in bad.line.text:
        ran = bad.line.run(folder, "--debug")
        assert "s3cret" not in ran.stdout + ran.stderr


@every_case("bad", WITHOUT_FORMAT[::20], ids=lambda bad: bad.line.text[:90])
def test_in_json_bad_input_is_one_object_on_stderr(bad: Bad, folder: Path) -> None:
    plain = bad.line.run(folder)
    ran = bad.line.run(folder, RMQLB_OUTPUT="json")
    assert (ran.stdout, ran.code, ran.stderr.count("\n")) == ("", bad.code, 1)
    value = json.loads(ran.stderr)
    assert (value["schema"], value["error"]["exitCode"]) == ("rmqlb/error", bad.code)
    assert error_of(plain.stderr) == (value["error"]["message"], value["error"]["code"], value["error"]["hint"])
    must_fit(value)


def test_a_process_ends_the_same_way_and_says_that_an_argument_is_no_text(folder: Path) -> None:
    must_end(start(*ALL[0].line.words(folder)), ALL[0], folder)
    assert error_of(start(PLAN, b"--group", b"a\xff\xfe").stderr) == (
        "an argument is not UTF-8 text: a\\udcff\\udcfe", "usage", None,
    )  # fmt: skip


@every_case("flags", [("-o", "json"), ("-ojson",), ("--output", "json"), ("--output=json",)])
@every_case("wrong", ["--bogus", "--add=-1"])
def test_json_is_asked_for_in_every_spelling_even_of_a_line_that_is_wrong(flags: tuple[str, ...], wrong: str) -> None:
    ran = run(PLAN, "-s", EXAMPLE, wrong, *flags)
    assert json.loads(ran.stderr)["error"]["exitCode"] == ran.code == USAGE


def test_a_file_that_may_not_be_read_is_told(tmp_path: Path) -> None:
    path = tmp_path / "secret.json"
    path.write_bytes(b"{}")
    path.chmod(0)
    if os.access(path, os.R_OK):  # to root everything is readable, but for what leads nowhere
        path.unlink()
        path.symlink_to(path)
    ran = run(SHOW, "-s", str(path))
    assert (ran.code, ran.stdout) == (DATA, "")
    assert ran.stderr.startswith(f"error: cannot read {path}: ")
    assert ran.stderr.endswith(f"\nhint: {SOURCE_HINT}\n")


class Asked(NamedTuple):
    """Options for a Dashboard that misbehaves, and how the command ends; `{}` is its URL."""

    options: tuple[str, ...]
    replay: Replay
    code: ExitCode
    error: str


LOGIN = ("admin", "right-one")
NOWHERE = "/nonexistent"
LISTING = "GET {}/topic/list.query"
LIVE = {
    "an unknown topic": Asked(("--topic", "Skewd"), Replay(), DATA, "topic Skewd has no route at {}"),
    "an HTML page": Asked((), Replay(faults={"*": giving(b"<html>")}), ENDPOINT, f"{LISTING}: an HTML page instead of JSON"),
    "HTTP 503": Asked((), Replay(faults={"*": giving(b"", 503)}), ENDPOINT, f"{LISTING}: HTTP 503"),
    "HTTP 401": Asked((), Replay(faults={"*": giving(b"", 401)}), ENDPOINT, f"{LISTING}: refused (HTTP 401)"),
    "a reset": Asked((), Replay(faults={"*": reset}), ENDPOINT, f"{LISTING}: the connection broke: "),
    "silence": Asked(("--source-timeout", "200ms"), Replay(faults={"*": silent}), ENDPOINT, f"{LISTING}: no complete answer within 0.2 s"),
    "too much": Asked(("--max-size", "100KB"), Replay(faults={"*": endless}), ENDPOINT, f"{LISTING}: larger than 100 KB"),
    "a login that is not given": Asked((), Replay(login=LOGIN), ENDPOINT, "{} needs a login"),
    "a user without a password": Asked(("--user", "admin"), Replay(login=LOGIN), USAGE, "no password for admin"),
    "no password file": Asked(("--user", "admin", "--password-file", NOWHERE), Replay(login=LOGIN), USAGE, f"--password-file {NOWHERE}: No such file or directory"),
    "no CA file": Asked(("--ca-file", NOWHERE), Replay(), USAGE, f"cannot read the CA file {NOWHERE}: No such file or directory"),
}  # fmt: skip


@every_case("case", LIVE)
def test_a_live_source_that_misbehaves_ends_in_one_line(case: str) -> None:
    options, fields, code, error = LIVE[case]
    with dashboard(replace(fields, stop=threading.Event(), asked=[])) as replay:
        ran = run(SHOW, "-s", replay.url, "--source-retries", "0", *options)
    assert (ran.code, ran.stdout) == (code, "")
    assert ran.stderr.startswith(f"error: {error.format(replay.url)}")
    assert len(ran.stderr.splitlines()) <= 2


MISTAKES = (ROOT / "tests/data/mistakes.txt").read_text(encoding="utf-8").partition("\n\n")[2].splitlines()


@every_case("row", MISTAKES)
def test_a_mistake_is_answered_with_what_to_type(row: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    code, typed, answer = re.fullmatch(r"(\d) (.*) => (.*)", row).groups()  # type: ignore[union-attr]
    ran = run(*shlex.split(re.sub(r" S\b", " -s examples/cluster.json", typed, count=1)))
    assert ran.code == int(code), ran.stderr
    assert answer == "(works)" or goes_on(error_of(ran.stderr).hint or error_of(ran.stderr).message, answer)
