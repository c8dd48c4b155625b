"""What a new strategy, source, view or command must bring: each test names the place that was forgotten.

`CONTRIBUTING.md` has the steps. Other tests of the tree of commands: `cli/test_command_tree.py`, `cli/test_bad_options.py`;
of codes: `test_explanations.py`; of results: `test_schemas.py`.
"""

import re
import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from inspect import signature
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import asdict, fields
from typer.main import get_command

from rmqlb import EndpointError, UsageError, __version__
from rmqlb.cli.common import reading
from rmqlb.cli.common.options import OutputOptions, SourceOptions
from rmqlb.cli.common.terminal import Terminal
from rmqlb.cli.main import app
from rmqlb.cli.results import RESULTS, result_of
from rmqlb.engine.allocate import StrategySettings, allocate, allocate_for
from rmqlb.engine.allocate.rules import NAMES, RULES, WITHOUT_SETTINGS
from rmqlb.engine.allocate.strategy import Settings
from rmqlb.model.snapshot import Wanted
from rmqlb.sources.opening import OPENERS, open_source
from rmqlb.sources.source import Access
from rmqlb.sources.source_text import LIVE, LIVE_SCHEMES, check_source
from rmqlb.verbs.strategies import KEYS, Strategies
from rmqlb.views.report import FORMATS
from tests.cli.test_bad_input import ALL
from tests.support import replay_dashboard, replay_remoting
from tests.support.mismatches import every_case, refusal
from tests.test_golden import GOLDEN
from tools.manual.roff import escaped
from tools.manual.tree import CommandPage, command_tree

ROOT = Path(__file__).parent.parent
CHANGELOG = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
TREE = command_tree()


def page(name: str) -> str:
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


def option(name: str) -> str:
    """The help of an option, of the command that says most of it."""
    return max((each.help for command in TREE.all() for each in command.options if name in each.names), key=len)


def changed(value: Any, default: Any) -> set[str]:
    return {key for key, each in asdict(value).items() if each != getattr(default, key)}


GIVEN = {
    "virtual-nodes": "7", "idc": "r1", "queues": "", "inner": "AVG_BY_CIRCLE", "broker-zone": "*=z", "client-zone": "*=z",
    "host": "10.0.0.1", "pin": "T=10.0.0.1",
}  # fmt: skip
"""Key of `--strategy-option` → another value than its default; that of `queues` is a file of the test."""


def test_every_option_of_strategies_sets_what_they_are_constructed_with(tmp_path: Path) -> None:
    (tmp_path / "lists.yaml").write_text("a: [broker-a:0]\n")
    given = {**GIVEN, "queues": str(tmp_path / "lists.yaml")}
    assert given.keys() == KEYS.keys(), "give it a value in GIVEN"
    made = Strategies([f"{key}={value}" for key, value in given.items()]).settings_for(["T"], "g")
    assert changed(made, Settings()) == {field.name for field in fields(Settings)} - {"custom"}, (
        "a key of --strategy-option for each field of Settings, and its line in Strategies.settings_for()"
    )


def test_every_setting_is_an_argument_an_option_and_used() -> None:
    for function in (allocate, allocate_for):
        assert signature(function).parameters["settings"].annotation == "Unpack[StrategySettings]"
        names = set(StrategySettings.__annotations__) | signature(function).parameters.keys()
        assert {field.name for field in fields(Settings)} - {"custom"} <= names
    needed = {key for rule in RULES.values() if rule.needs for key in re.findall(r"([\w-]+)=", rule.needs.options)}
    assert needed - {"TOPIC"} <= KEYS.keys()
    assert {name for key in KEYS.values() for name in key.strategies} | set(WITHOUT_SETTINGS) == set(NAMES)


def test_every_scheme_is_opened_and_known_without_opening() -> None:
    assert OPENERS.keys() == set(LIVE_SCHEMES), "rmqlb/sources/opening.py, OPENERS, and source_text.py, LIVE"


def hint_of(call: Callable[[], object]) -> str:
    raised = refusal(UsageError, call)
    assert raised.hint is not None
    return raised.hint


def places() -> Iterator[tuple[str, str]]:
    """Where users are told which sources there are → what stands there."""
    quiet = Terminal("show-route", OutputOptions())
    yield "rmqlb/sources/opening.py: the hint", hint_of(lambda: open_source("ftp://h", Access()))
    yield "rmqlb/sources/source_text.py: the hint", hint_of(lambda: check_source("ftp://h", "x"))
    yield "rmqlb/cli/common/reading.py: the hint", hint_of(lambda: reading.Reading(SourceOptions(), quiet))
    yield "rmqlb/cli/common/options.py: the help of -s", option("--source")
    yield "rmqlb/cli/main.py: the help", get_command(app).help or ""
    yield "docs/sources.md", page("sources.md")
    yield "CHANGELOG.md", CHANGELOG


@every_case("kind", LIVE)
def test_every_kind_of_source_is_told_of(kind: str) -> None:
    words = (kind, *(f"{scheme}://" for scheme in LIVE[kind]))
    silent = [place for place, text in places() if not any(word in text for word in words)]
    assert silent == [], f"{kind} is not told of in " + "; ".join(silent)


REACHED: dict[str, Any] = {
    "user": "u", "password_file": "f", "ca_file": "f", "source_timeout": "1s", "source_retries": 9, "max_size": "1MB",
    "proxy": ["p:1"], "map_address": ["a:1=b:1"], "access_key": "k", "secret_key_file": "f", "client_cert": "f",
    "client_key": "f", "tls_name": "n", "deadline": "9s",
}  # fmt: skip
"""Option of sources → another value than its default."""


def test_every_option_of_sources_says_how_they_are_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RMQLB_SECURITY_TOKEN", "t")
    options = set(SourceOptions.fields)
    not_reaching = {"source", "namesrv_addr", "context", "active_context", "ignored_context_note"}
    assert options - not_reaching == REACHED.keys(), "give it a value in REACHED"
    access = reading.access(SourceOptions(**REACHED), Terminal("show-route", OutputOptions()))
    assert changed(access, Access()) == set(Access.__struct_fields__) - {"pace", "deadline", "silent", "clock"}, (
        "an option of SourceOptions for each field of Access, and its line in rmqlb/cli/common/reading.py, access()"
    )


@contextmanager
def served(kind: str, *, broken: bool) -> Iterator[str]:
    if kind == "NameServers":
        with replay_remoting.remoting() as server:
            server.faults |= {"*": replay_remoting.reset} if broken else {}
            yield f"rocketmq://{server.address}"
    else:
        with replay_dashboard.dashboard() as site:
            site.faults |= {"*": replay_dashboard.reset} if broken else {}
            yield site.url


@every_case("kind", LIVE)
def test_a_server_of_every_kind_is_read_and_its_faults_end_in_an_error(kind: str) -> None:
    with served(kind, broken=False) as url:
        assert open_source(url, Access()).fetch(Wanted(topics=("OrderEvents",))).route("OrderEvents")
    with served(kind, broken=True) as url, pytest.raises(EndpointError):
        open_source(url, Access(retries=0)).fetch(Wanted(topics=("OrderEvents",))).route("OrderEvents")


def test_every_strategy_and_format_is_in_the_help_and_the_changelog() -> None:
    assert [name for name in FORMATS if not re.search(rf"\b{name}\b", option("--output"))] == []
    assert [name for name in (*NAMES, *FORMATS) if not re.search(rf"\b{name}\b", CHANGELOG)] == []


def test_every_file_that_browsers_open_is_opened_by_one() -> None:
    opened = (ROOT / "tests" / "browser" / "test_pages.py").read_text(encoding="utf-8")
    options = {name for command in TREE.all() for each in command.options for name in each.names}
    pages = {name for name in options if re.search(r"--(svg|html|xml|pdf)", name)}
    assert pages
    assert [name for name in pages if f'"{name}"' not in opened] == [], "tests/browser/test_pages.py"


@every_case("command", TREE.commands, ids=lambda command: command.name)
def test_every_command_has_bad_input_of_its_own_and_a_line_in_the_changelog(command: CommandPage) -> None:
    assert [bad for bad in ALL if bad.line.command == command.name], "tests/cli/test_bad_input.py: a line of ALL"
    assert f"rmqlb {command.name}" in CHANGELOG, "a line in CHANGELOG.md"


SINGLE = [command for command in TREE.all() if not command.commands and command.name != "completion"]


def recorded() -> dict[str, set[str]]:
    found: dict[str, set[str]] = {command.typed: set() for command in SINGLE}
    for path in GOLDEN.rglob("*.txt"):
        first, _, rest = path.read_text(encoding="utf-8").partition("\n")
        words = shlex.split(first.removeprefix("$ "))
        name = next((name for name in found if words[: len(name.split())] == name.split()), None)
        if name is not None and "-o" in words and rest.split("\n--- stderr")[0].strip():
            found[name].add(words[words.index("-o") + 1])
    return found


RECORDED = recorded()
SMALL = {"config-show", "context-list", "doctor", "explain", "fetch-routes", "pipeline-run", "schema"}
"""Commands whose other formats other commands show."""
HELD_BY_TESTS = ("context-add", "context-use", "context-show", "context-remove")
"""Commands whose output `tests/cli/test_contexts.py` reads."""


@every_case("command", SINGLE, ids=lambda command: command.typed)
def test_every_command_has_transcripts_a_page_and_a_schema(command: CommandPage) -> None:
    name = "-".join(command.path)
    # The other stages of the pipeline print the same result.
    if (command.path[0] != "pipeline" or command.name == "run") and name not in HELD_BY_TESTS:
        formats = {"json"} if name in SMALL else {"table", "plain", "json"}
        assert formats - RECORDED[command.typed] == set(), "add them to tests/golden"
    path = ROOT / "man" / "man1" / f"{command.page}.1"
    assert path.exists(), "run python -m tools.manual"
    page = path.read_text(encoding="utf-8")
    assert all(escaped(name) in page for option in command.options for name in option.names)
    assert all(escaped(example.split()[-1]) in page for example in command.help.examples)
    assert result_of(" ".join(command.path)) is not None, "give it a line in rmqlb/cli/results.py"


def test_every_result_is_of_commands_and_the_changelog_begins_with_the_version() -> None:
    assert {name for result in RESULTS for name in result.commands} <= {" ".join(each.path) for each in SINGLE}
    versions = re.findall(r"^## (\S+)", CHANGELOG, re.MULTILINE)
    assert versions[0] in (__version__, "Unreleased")
    assert __version__ in versions[:2]
    assert len(versions) == len(set(versions))
