"""The pages of the manual: committed as they are made, clean, installed, and true."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

from rmqlb.engine.allocate.rules import NAMES
from rmqlb.model.snapshot import Wanted
from rmqlb.sources.dump import DumpSource
from rmqlb.sources.user_files.config_file import read_user_file
from tools.manual.__main__ import write
from tools.manual.config_page import USER_EXAMPLE
from tools.manual.files import all_files
from tools.manual.help_text import Listing, parse_help
from tools.manual.roff import Page, escaped
from tools.manual.snapshot_page import EXAMPLE, keys
from tools.manual.strategies_page import CASES, picture
from tools.manual.tree import command_tree

from .run import ROOT

FILES = all_files()
PAGES = [path for path in FILES if path.startswith("man/")]


def need(tool: str) -> str:
    """The tool's path."""
    path = shutil.which(tool)
    if path is None:
        pytest.skip(f"{tool} is not installed")
    return path


def printed(page: str, width: int = 300) -> str:
    """What `man` shows of it."""
    done = subprocess.run(
        [need("groff"), "-man", "-ww", "-Tutf8", "-P-cbou", f"-rLL={width}n"],
        input=page,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    return done.stdout


def test_what_is_committed_is_what_is_made() -> None:
    committed = {
        str(path.relative_to(ROOT)): path.read_text(encoding="utf-8")
        for folder in ("man", "completions")
        for path in (ROOT / folder).rglob("*")
        if path.is_file()
    }
    assert committed == FILES, "run python -m tools.manual"


def test_pages_of_commands_that_are_gone_go_and_pages_of_others_stay(tmp_path: Path) -> None:
    gone, other = tmp_path / "man/man1/rmqlb-gone.1", tmp_path / "man/man1/other.1"
    gone.parent.mkdir(parents=True)
    gone.write_text("")
    other.write_text("")
    write(tmp_path)
    there = {str(path.relative_to(tmp_path)): path.read_text() for path in tmp_path.rglob("*") if path.is_file()}
    assert there == {**FILES, "man/man1/other.1": ""}


def test_every_command_has_a_page() -> None:
    assert {path for path in PAGES if path.startswith("man/man1/")} == {
        f"man/man1/{command.page}.1" for command in command_tree().all()
    }


def test_every_variable_of_the_environment_is_told() -> None:
    variables = {
        name
        for path in (ROOT / "rmqlb").rglob("*.py")
        for name in re.findall(r"\bRMQLB_[A-Z][A-Z_]*[A-Z]\b", path.read_text(encoding="utf-8"))
    }
    variables.discard("RMQLB_NAME")  # it stands for all of them in a docstring
    page = FILES["man/man1/rmqlb.1"]
    assert variables >= {"RMQLB_SOURCE", "RMQLB_PAGER"}
    assert [name for name in sorted(variables) if f"\\fB{name}\\fR" not in page] == []


def test_groff_has_no_warning() -> None:
    for path in PAGES:
        printed(FILES[path])


def test_man_has_no_warning() -> None:
    man = need("man")
    for path in PAGES:
        command = [man, "--warnings", "-E", "UTF-8", "-P", "cat", "-l", str(ROOT / path)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        assert done.stderr == "", path
        assert done.stdout.count("\n") > 20, path


def test_man_finds_a_page_by_its_name() -> None:
    done = subprocess.run(
        [need("man"), "-M", str(ROOT / "man"), "-P", "cat", "rmqlb-plan-rebalance"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "RMQLB-PLAN-REBALANCE(1)" in done.stdout


def test_mandoc_finds_nothing() -> None:
    done = subprocess.run(
        [need("mandoc"), "-T", "lint", "-W", "all", *(str(ROOT / path) for path in PAGES)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("", "")


@pytest.mark.parametrize(
    "text",
    [
        ".SH INJECTED",
        "'br",
        r"\fBbold\fR \n(.H \e",
        "a - b -- --option 'x' `y` ^ ~ \" # %",
        ".",
        "\\",
        "[x] {y} $(touch z) & | ; <>",
        '.\\" a comment',
    ],
)
def test_text_comes_out_as_it_went_in(text: str) -> None:
    page = Page("x", 1, "nothing")
    page.heading("Here")
    page.verbatim([text])
    page.paragraph(escaped(text))
    page.item(escaped(text), escaped(text))
    lines = [line.strip() for line in printed(page.text()).splitlines()]
    beside = [f"{text} {text}"] if len(text) < 7 else [text, text]  # a short term has its text on the same line
    found = [" ".join(line.split()) for line in lines if line.startswith(text)]
    assert found == [" ".join(line.split()) for line in (text, text, *beside)]


def test_a_character_that_no_page_can_show_is_refused() -> None:
    with pytest.raises(ValueError, match="no roff"):
        escaped("\u202e")


def test_every_strategy_is_drawn_as_the_engine_deals() -> None:
    assert sorted(CASES) == sorted(NAMES)
    page = FILES["man/man7/rmqlb-strategies.7"]
    assert all(f'.SS "{name}"' in page for name in NAMES)
    assert picture("AVG_BY_CIRCLE") == [
        "            broker-a   broker-b      broker-a   broker-b",
        "            0 1 2 3 4  0 1 2 3 4     0 1 2 3 4  0 1 2 3 4",
        "10.0.0.1@g  # . . # .  . # . . #     # . . . #  . . . # .",
        "10.0.0.2@g  . # . . #  . . # . .     . # . . .  # . . . #",
        "10.0.0.3@g  . . # . .  # . . # .     . . # . .  . # . . .",
        "10.0.0.4@g                           . . . # .  . . # . .",
        "",
        "7 of 10 queues move",
    ]
    assert any(line.startswith("(unassigned)") for line in picture("MACHINE_ROOM"))


def test_the_snapshot_of_the_page_is_read(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(EXAMPLE)
    snapshot = DumpSource(str(tmp_path / "s.yaml")).fetch(Wanted(group="pay-svc"))
    assert snapshot.group("pay-svc").client_ids == ("10.0.1.7@4711", "10.0.1.8@4711")
    assert len(snapshot.route("Payments").subscribe_queues()) == 8


def test_every_key_of_a_snapshot_is_told_once() -> None:
    paths = [path for path, _, _ in keys()]
    assert len(paths) == len(set(paths))
    assert {"data.topics[].route.queueDatas[].perm", "data.groups[].clientIds", "source.takenAt"} <= set(paths)
    assert all(kind not in ("", "value") for _, kind, _ in keys())


def test_the_configuration_of_the_page_is_read(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(USER_EXAMPLE)
    (tmp_path / "config.yaml").chmod(0o600)
    assert list(read_user_file(str(tmp_path / "config.yaml")).contexts) == ["prod", "staging"]


def test_all_files_go_where_man_and_the_shells_look() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["hatch"]["build"]
    data = project["targets"]["wheel"]["shared-data"]
    assert data == {
        "man": "share/man",
        "completions/rmqlb.bash": "share/bash-completion/completions/rmqlb",
        "completions/_rmqlb": "share/zsh/site-functions/_rmqlb",
        "completions/rmqlb.fish": "share/fish/vendor_completions.d/rmqlb.fish",
    }
    assert all(path in data or path.startswith("man/") for path in FILES)
    assert {"man", "completions", "docs"} <= set(project["targets"]["sdist"]["include"])


def test_help_is_taken_apart() -> None:
    text = (
        "Do it.\n\nMore of\nthat.\n\nExamples:\n  rmqlb do\n  --it\n\n  rmqlb do 'a  b'\n\nVerbs:\n  one\n  two\n\n"
        "Exit codes: 0 done, 3 a --fail-on condition is met, 4 group, topic or members\nare not there, 5 no."
    )
    parsed = parse_help(text)
    assert parsed.summary == "Do it."
    assert parsed.details == ("More of that.", Listing("Verbs:", ("one", "two")))
    assert parsed.examples == ("rmqlb do --it", "rmqlb do 'a  b'")
    assert parsed.exit_codes == (
        (0, "done"),
        (3, "a --fail-on condition is met"),
        (4, "group, topic or members are not there"),
        (5, "no"),
    )
