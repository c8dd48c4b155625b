import csv
import io
import json
import re
import unicodedata
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
import yaml

from rmqlb.engine.record.follow import Follower
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.recording import GroupSample
from rmqlb.model.result import Finding
from rmqlb.model.snapshot import ClusterSnapshot
from rmqlb.views.formats.machine import as_json, envelope
from rmqlb.views.record import recording_report
from tests.cli.run import Ran, run
from tests.cli.terminals import OnTerminal
from tests.hardening import walk
from tests.hardening.hostile import DIRECTIONS, INVISIBLE, MARKUP, SNAPSHOTS, Names, as_text, snapshot
from tests.support.mismatches import every_case
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
ERRORS = """
    show-route -s FILE -t EVIL
    show-owners -s FILE -g EVIL
    plan-rebalance -s FILE --remove EVIL
    plan-rebalance -s FILE --read-queues EVIL=x
    plan-rebalance -s FILE --strategy EVIL
    plan-rebalance -s FILE --fail-on EVIL
    plan-rebalance -s FILE --strategy CONFIG --strategy-option queues=LISTS --add 0
    plan-rebalance -s FILE --consumers @/nonexistent/EVIL
    plan-rebalance -s MODEL --add 0
    simulate-rebalance -s FILE --event EVIL
    simulate-rebalance -s FILE --event 'join 1@5s' --strategy AVG --svg /nonexistent/EVIL
    simulate-send -s FILE -t TOPIC --fail *:EVIL
    simulate-send -s ORDER -t TOPIC
    show-owners -s FILE --section EVIL
    show-route -s FILE --EVIL
    EVIL
    show-route -s FILE EVIL
    show-route -s /nonexistent/EVIL
    show-route -s x-EVIL://h -t T
    show-route -s http://EVIL:1 -t T --source-retries 0
    show-route -s rocketmq://EVIL -t T --source-retries 0
    show-route -s FILE --source-timeout EVIL
    show-route -s BAD
    show-route -s YAML
    check -s FILE --policy POLICY --today 2026-11-21
    show-route -t T --context EVIL
    context add EVIL -s x
    explain EVIL
""".strip().splitlines()


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
