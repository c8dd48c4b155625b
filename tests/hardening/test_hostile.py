import csv
import gzip
import io
import json
import re
import subprocess
import sys
import threading
import unicodedata
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree as ET

import pytest
import yaml

from rmqlb.cli.exit_codes import ExitCode
from rmqlb.engine.record.follow import Follower
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.recording import GroupSample
from rmqlb.model.result import Finding
from rmqlb.model.snapshot import ClusterSnapshot
from rmqlb.views.formats.machine import as_json, envelope
from rmqlb.views.record import recording_report
from tests.cli.run import ROOT, Ran, command, environment, run
from tests.cli.terminals import OnTerminal
from tests.hardening import walk
from tests.hardening.hostile import DIRECTIONS, INVISIBLE, MARKUP, SNAPSHOTS, Names, as_text, snapshot
from tests.support.mismatches import every_case, first_by_default
from tests.support.openmetrics import read_metrics
from tests.support.replay_dashboard import Replay, dashboard, giving

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


EVERY_FORMAT = ("show-owners", "simulate-rebalance", "check")
RUNS = [
    (kind, arguments)
    for kind, names in SNAPSHOTS.items()
    for arguments in walk.runs(names.topics[0])
    if arguments[0] in EVERY_FORMAT[:1]
    or (kind == "controls" and (arguments[0] in EVERY_FORMAT or arguments[-1] in ("table", "yaml")))
]
"""One command in every format with every kind of names, and every command with controls, which all formats escape alike."""


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
    assert raw(done.stdout, frozenset("\r" if arguments[-1] == "csv" else "")) == set()
    assert raw(done.stderr) == set()
    if arguments[-1] in ("json", "yaml"):
        value = json.loads(done.stdout) if arguments[-1] == "json" else yaml.load(done.stdout, Loader=yaml.CSafeLoader)
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


def test_a_terminal_gets_colours_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "evil.json").write_text(as_text(snapshot(SNAPSHOTS["controls"])))
    with OnTerminal("show-owners", "--explain", "--no-pager", "-s", str(tmp_path / "evil.json")) as terminal:
        assert terminal.end() == 0
    seen = terminal.raw.decode()
    assert "\x1b[1m" in seen
    assert raw(_COLOUR.sub("", seen), frozenset("\r")) == set()


class _Seen(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += [(name, value or "") for name, value in attrs]


_SVG = {"svg", "g", "rect", "circle", "text", "defs", "style", "clippath"}
_HTML = {
    *("html", "head", "meta", "title", "body", "header", "main", "footer", "section", "details", "summary", "div"),
    *("h1", "h2", "h3", "p", "ul", "li", "dl", "dt", "dd", "b", "span", "code"),
    *("table", "thead", "tbody", "tr", "th", "td"),
}


def require_inert(tags: set[str], attributes: list[tuple[str, str]]) -> None:
    assert tags <= _SVG | _HTML
    for name, value in attributes:
        assert not name.lower().startswith("on"), name
        assert name not in ("href", "src", "action", "formaction", "xlink:href"), name
        assert "javascript:" not in value
        assert "url(" not in value.replace("url(#", "")


@every_case("kind", SNAPSHOTS)
def test_a_picture_is_well_formed_and_inert(kind: str) -> None:
    svg = ran(kind, ("simulate-rebalance", *walk.ON_A_GROUP["simulate-rebalance"], "--svg", "-")).stdout
    root = ET.fromstring(svg)
    tags = {element.tag.rpartition("}")[2].lower() for element in root.iter()}
    require_inert(tags, [pair for element in root.iter() for pair in element.attrib.items()])
    if kind == "markup":
        assert MARKUP.split("]]")[0] in "".join(root.itertext())
        assert "<script" not in svg


@every_case("command", walk.PAGES)
@every_case("kind", ["controls", "markup"])
def test_a_page_is_inert(kind: str, command: str) -> None:
    html = ran(kind, (command, *{**walk.READING, **walk.ON_TWO_SNAPSHOTS}[command], "--html", "-")).stdout
    page = _Seen()
    page.feed(html)
    page.close()
    require_inert(page.tags, page.attributes)
    assert any(name == "content" and value.startswith("default-src 'none'") for name, value in page.attributes)
    assert raw(html) == set()
    assert "<script" not in html


def test_markdown_has_no_tag_no_link_and_no_code_of_a_name() -> None:
    for name in ("show-owners", "plan-rebalance", "plan-rollout"):
        shown = ran("markup", (name, *walk.READING[name], "-o", "markdown")).stdout
        assert not re.search(r"(?<!\\)[<\[]", shown)


EVIL = "\x1b]0;x\x07\x1b[31m\x9b\u202e\u200bevil[/red]<script>"
"""As on a command line: without NUL, which no argument can hold."""
ERRORS = (ROOT / "tests" / "data" / "evil.txt").read_text(encoding="utf-8").splitlines()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
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


@every_case("line", ERRORS)
def test_errors_hold_nothing_raw(line: str, folder: Path) -> None:
    topic = SNAPSHOTS["controls"].topics[0]
    arguments = []
    for quoted, bare in re.findall(r"'([^']*)'|(\S+)", line):
        word = (quoted or bare).replace("EVIL", EVIL).replace("TOPIC", topic)
        arguments.append(str(folder / word) if word.isupper() and (folder / word).exists() else word)
    for more in ((), ("-o", "json"), ("--debug",)):
        done = run(*arguments, *more)
        assert (done.code in (0, 1), done.stdout, raw(done.stderr)) == (False, "", set()), done.stderr
        if more == ("-o", "json"):
            assert json.loads(done.stderr)["schema"] == "rmqlb/error"


def recording(names: Names) -> str:
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
        follower.add(GroupSample(10_000 + at, 10_050 + at, owned, silent, listed, routes, strategy=names.text))
    report = recording_report(follower.recording("time"))
    finding = Finding("duplicate-client-id", names.text, names.group)
    return as_json(envelope(report, "record", ClusterSnapshot("nameserver", names.text), (finding,)))


@every_case("output", ("table", "plain", "json", "yaml", "csv", "markdown", "jsonl"))
def test_a_recording_holds_nothing_raw(output: str) -> None:
    done = run("record", "--replay", "-", "-o", output, stdin=recording(SNAPSHOTS["controls"]))
    shown = raw(done.stdout, frozenset("\r" if output == "csv" else ""))
    assert (done.code, shown, raw(done.stderr)) == (0, set(), set())


MB = 1 << 20
GB = 1 << 30
HOLD_MB = 200
SNAPSHOT = b'{"schema":"rmqlb/snapshot","formatVersion":"1.0","data":{'
TOO_LARGE = "larger than 64 MB"
TOO_MANY = "more than 2097152 values"
HALF = "larger than 32 MB, because it is not one whole snapshot in JSON"
TOO_MANY_OF_ANY = "more than 1048576 values"
TOO_MANY_LOOSE = "more than 500000 values in text that is not strict JSON"
NO_YAML = "not JSON, and larger than the 12 MB for YAML"
TOO_MANY_NODES = "more than 1000000 YAML nodes"
UNKNOWN = "not recognised"
Pieces = Callable[[], Iterator[bytes]]


class Ended(NamedTuple):
    code: int
    stdout: bytes
    stderr: str
    peak_mb: float


def repeated(start: bytes, unit: bytes, end: bytes, size: int) -> Pieces:
    def pieces() -> Iterator[bytes]:
        block = unit * (MB // len(unit) + 1)
        yield start
        for _ in range(size // len(block)):
            yield block
        yield end

    return pieces


def counted(start: bytes, unit: bytes, end: bytes, number: int) -> Pieces:
    def pieces() -> Iterator[bytes]:
        yield start
        for first in range(0, number, 50_000):
            yield b"".join(unit % place for place in range(first, first + 50_000))
        yield end

    return pieces


def colliding(number: int) -> Pieces:
    return lambda: iter([b"0: x\n", *(b"%d: x\n" % (place * sys.hash_info.modulus) for place in range(1, number))])


def read(pieces: Pieces, scratch: Path, *more: str, source: str = "-") -> Ended:
    peak = scratch / "peak"
    line = [
        *(sys.executable, str(Path(__file__).parent / "measured.py"), str(peak)),
        *map(str, command("show-route", "-s", source, *more)),
    ]
    with subprocess.Popen(
        line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT, env=environment()
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        assert child.stderr is not None
        feeder = threading.Thread(target=feed, args=(child.stdin, pieces), daemon=True)
        feeder.start()
        stderr, stdout = child.stderr.read(), child.stdout.read()
        code = child.wait(timeout=60)
        feeder.join(timeout=60)
    return Ended(code, stdout, stderr.decode(), int(peak.read_text()) / 1024)


def feed(pipe: object, pieces: Pieces) -> None:
    try:
        with pipe as file:  # type: ignore[attr-defined]
            for piece in pieces():
                file.write(piece)
    except BrokenPipeError:
        pass


HOSTILE: dict[str, tuple[Pieces, str]] = {
    "1 GB in one string": (repeated(b'{"queueDatas":"', b"x", b'"}', GB), TOO_LARGE),
    "1 GB in one list": (repeated(b'{"queueDatas":[1', b",1", b"]}", GB), TOO_LARGE),
    "1 GB of keys": (repeated(b"{", b'"key":1,', b'"z":1}', GB), TOO_LARGE),
    "1 GB of nothing": (repeated(b"", b"\0", b"", GB), TOO_LARGE),
    "a string": (repeated(b'{"a":"', b"x", b'"}', 60 * MB), HALF),
    "a string, just within": (repeated(b'{"a":"', b"x", b'"}', 31 * MB), UNKNOWN),
    "a string in the dialect": (repeated(b"{'a':'", b"x", b"'}", 31 * MB), UNKNOWN),
    "empty lists": (repeated(b'{"a":[[]', b",[]", b"]}", 60 * MB), TOO_MANY),
    "empty objects": (repeated(b'{"queueDatas":[{}', b",{}", b"]}", 60 * MB), TOO_MANY),
    "numbers": (repeated(b"{a:[1", b",1", b"]}", 60 * MB), TOO_MANY),
    "documents": (repeated(b"", b"{}", b"", 60 * MB), TOO_MANY),
    "topics": (repeated(SNAPSHOT + b'"topics":[{}', b',{"topic":"T","route":{}}', b"]}}", 60 * MB), TOO_MANY),
    "what is passed over": (repeated(SNAPSHOT + b'"x":[[]', b",[]", b"]}}", 60 * MB), TOO_MANY),
    "escapes": (repeated(b"{a:'", b"\\n", b"'}", 31 * MB), "more than 2000000 escapes"),
    "line ends": (repeated(b"{", b"\n", b"", 31 * MB), "the text ends too early"),
    "wide characters": (repeated("{a:'\U0001f600".encode(), b"x", b"'}", 31 * MB), "characters beyond U+FFFF"),
    "text": (repeated(b"", b"hello world\n", b"", 31 * MB), NO_YAML),
    "text behind a warning": (repeated(b"OpenJDK 64-Bit Server VM warning: x\n", b"hello world\n", b"", 31 * MB), NO_YAML),
    "a table": (repeated(b"#ClusterName\n", b"c b {} 4 4 6\n", b"", 8 * MB), "more than 20000 brokers"),
    "many keys": (counted(b"{", b'"k%d":1,', b'"z":1}', 1_500_000), TOO_MANY_OF_ANY),
    "keys, just within": (counted(b"{", b'"kkkkkkkkkkkkkkkkk%d":1,', b'"z":1}', 1_000_000), UNKNOWN),
    "lists, just within": (repeated(b'{"a":[[]', b",[]", b"]}", 3 * MB // 2), UNKNOWN),
    "objects, just within": (repeated(b'{"a":[{"a":1}', b',{"a":1}', b"]}", 4_000_000), UNKNOWN),
    "keys in the dialect": (counted(b"{", b"k%d:1,", b"z:1}", 550_000), TOO_MANY_LOOSE),
    "keys in the dialect, just within": (counted(b"{", b"k%050d:1,", b"z:1}", 450_000), UNKNOWN),
    "brokers": (repeated(SNAPSHOT + b'"topics":[{"topic":"T","route":{"queueDatas":[{"brokerName":"a"}', b',{"brokerName":"a"}', b"]}}]}}", 18 * MB), "brokers in one route, more than 20000"),
    "YAML keys, just within": (counted(b"", b"kkkkkk%06d: 'vvv'\n", b"", 450_000), UNKNOWN),
    "YAML keys with one hash": (colliding(20_000), "line 2, column 1: a number too large for a key"),
    "YAML items": (repeated(b"a:\n", b"- 1.5\n", b"", 8 * MB), TOO_MANY_NODES),
    "YAML text": (repeated(b"a: |\n", b" xxxxxxxx\n", b"", 31 * MB), NO_YAML),
    "YAML text, just within": (repeated("a: '\U0001f600".encode(), b"x", b"'", 11 * MB), UNKNOWN),
    "depth": (repeated(b"", b"[   ", b"", 2 * MB), "nested deeper than 256 levels"),
    "YAML depth": (repeated(b"- ", b"- ", b"", 4 * MB), "nested deeper than 256 levels"),
}  # fmt: skip


@pytest.mark.parametrize("what", first_by_default(HOSTILE))
def test_a_hostile_file_is_one_line_within_bounded_memory(what: str, tmp_path: Path) -> None:
    pieces, problem = HOSTILE[what]
    ended = read(pieces, tmp_path)
    assert (ended.code, ended.stdout) == (ExitCode.DATA, b"")
    first, *hints = ended.stderr.splitlines()
    assert first.startswith("error: stdin")
    assert problem in first
    assert [hint.partition(": ")[0] for hint in hints] in ([], ["hint"])
    assert ended.peak_mb < HOLD_MB


@pytest.mark.parametrize(("size", "problem"), [(GB, TOO_LARGE), (60 * MB, TOO_MANY)])
def test_a_packed_bomb_is_one_line_within_bounded_memory(size: int, problem: str, tmp_path: Path) -> None:
    with gzip.open(tmp_path / "bomb.gz", "wb", compresslevel=1) as file:
        for piece in repeated(b'{"a":[[]', b",[]", b"]}", size)():
            file.write(piece)
    assert (tmp_path / "bomb.gz").stat().st_size < size / 100
    ended = read(repeated(b"", b"x", b"", 0), tmp_path, source=str(tmp_path / "bomb.gz"))
    assert ended.code == ExitCode.DATA
    assert problem in ended.stderr
    assert ended.peak_mb < HOLD_MB


def test_a_bomb_from_a_server_is_one_line_within_bounded_memory(tmp_path: Path) -> None:
    packed = gzip.compress(bytes(300 * MB), compresslevel=9)
    assert len(packed) < 310_000
    with dashboard(Replay(faults={"*": giving(packed, headers={"Content-Encoding": "gzip"})})) as replay:
        ended = read(repeated(b"", b"x", b"", 0), tmp_path, "-t", "T", source=replay.url)
    assert ended.code == ExitCode.ENDPOINT
    assert TOO_LARGE in ended.stderr
    assert ended.peak_mb < 60
