"""Over the whole command tree: every command has help in one form, examples that run, and what completion needs."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from pathlib import Path

import pytest

from rmqlb.cli.exit_codes import ExitCode
from rmqlb.cli.help_text import known_values
from rmqlb.cli.results import SECTIONS
from rmqlb.views.report import FORMATS
from tests.support.mismatches import every_case
from tests.support.replay_remoting import cluster
from tests.test_golden import BASIC
from tools.manual.tree import CommandPage, command_tree

from .examples import may_end_with, run_example
from .run import ROOT, instead, run

TREE = command_tree()
ALL = list(TREE.all())
SINGLE = [command for command in ALL if not command.commands and command.name != "completion"]
"""Those with a result to print."""
BEFORE = {"config": ("context",)}
"""Group of commands → those whose examples its own take as done."""
LIVE = "rocketmq://127.0.0.1:9876"

each_command = every_case("command", ALL, ids=lambda command: command.typed)
each_single_command = every_case("command", SINGLE, ids=lambda command: command.typed)


@each_command
def test_a_summary_is_one_sentence(command: CommandPage) -> None:
    assert re.fullmatch(r"[A-Z][^.!?]*(?:\.[a-z][^.!?]*)*\.", command.help.summary)
    assert len(command.help.summary) <= 140


@each_command
def test_every_option_and_argument_says_what_it_does(command: CommandPage) -> None:
    for option in (*command.options, *command.arguments):
        assert re.match(r"[A-Z0-9%\w]", option.help), option
        assert option.metavar is None or option.metavar.strip(), option


@each_single_command
def test_the_exit_codes_are_told_and_are_those_of_the_table(command: CommandPage) -> None:
    codes = [code for code, _ in command.help.exit_codes]
    assert codes == sorted(set(codes))
    assert {ExitCode.OK, ExitCode.USAGE} <= set(codes) <= set(ExitCode)
    assert (ExitCode.CONDITION in codes) == (
        command.name in ("check", "judge", "report", "run")
        or any({"--fail-on", "--check-step"} & {*option.names} for option in command.options)
    )


@each_single_command
def test_every_command_has_examples_of_its_own(command: CommandPage) -> None:
    assert command.help.examples
    assert all(example.startswith(command.typed) or "|" in example for example in command.help.examples)


FAMILIES = [command.name for command in TREE.commands if command.name != "pipeline"]
"""The commands right below the program; those of the pipeline run where Spark does (tests/pipeline)."""


@pytest.mark.parametrize("family", FAMILIES)
def test_every_example_runs(family: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home" / ".config"))
    for name in (*BEFORE.get(family, ()), family):
        command = next(command for command in TREE.commands if command.name == name)
        single = [each for each in command.all() if not each.commands]
        if name != family:
            single = single[:1]
        for each in single:
            for example in each.help.examples:
                # One has no end, one needs contexts: tests/cli/test_fetch_routes.py.
                if family != "fetch-routes" or not {"--every", "--all-contexts"} & {*shlex.split(example)}:
                    must_run(each, example, tmp_path)


def shortened(example: str) -> str:
    """Of a live group that never changes, only so long as a test may take."""
    return re.sub(r" --for \w+", "", example) + " --for 1s" if example.startswith("rmqlb record ") else example


SAID = {"warning", "info", "condition met", "failed"}
"""What an example may say on stderr."""


def must_run(command: CommandPage, example: str, folder: Path) -> None:
    if LIVE not in example:
        ran = run_example(example, folder)
        assert ran.code in may_end_with(example, command), (example, ran.stderr)
        assert ran.stdout, example
        said = Counter(line.partition(":")[0] for line in ran.stderr.splitlines())
        assert said.keys() <= SAID, ran.stderr
        assert (ran.code == ExitCode.CONDITION) == bool(said["condition met"] + said["failed"]), ran.stderr
        return
    with cluster() as (a, b):
        at = f"rocketmq://{a.address} --map-address '{a.mapped}' --map-address '{b.mapped}'"
        ran = run_example(shortened(example).replace(LIVE, at), folder)
    # The replayed brokers know a part only.
    assert ran.code == 0 or (ran.code == ExitCode.DATA and "incomplete" in ran.stderr), (example, ran.stderr)


EVERY_FORMAT = (*FORMATS, "jsonl", "junit", "sarif", "prometheus")


@every_case("name", [name for name in (*BASIC, "check", "fetch-routes") if name in FAMILIES])
def test_the_formats_offered_are_those_that_the_command_takes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The format is looked at before the source is."""
    monkeypatch.chdir(ROOT)
    (command,) = (each for each in ALL if each.path == (name,))
    option = next(option for option in command.options if "--output" in option.names)
    line = shlex.split(BASIC.get(name) or command.help.examples[0].removeprefix("rmqlb "))
    if any("--source" in each.names for each in command.options):
        line = instead(line, "-s", "/nonexistent")
    taken = set()
    for each in EVERY_FORMAT:
        ran = run(*line, "-o", each)
        if ran.code != ExitCode.USAGE:
            taken.add(each)
    assert set(known_values(name, "--output", "FORMAT", option.help)) <= taken | {"jsonl", "prometheus"}


@every_case("name", [name for name in BASIC if name in SECTIONS])
def test_the_sections_of_a_result_are_those_of_its_command(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The hint for a table that the result does not have lists those that there are, eight at the most."""
    offered = SECTIONS[name]
    monkeypatch.setattr("rmqlb.cli.results.SECTIONS", {**SECTIONS, name: (*offered, "no-such-table")})
    monkeypatch.chdir(ROOT)
    ran = run(*shlex.split(BASIC[name]), "--section", "no-such-table", "-q")
    listed = ran.stderr.splitlines()[-1].removeprefix("hint: there are the sections ").removesuffix(", …").split(", ")
    assert listed
    assert set(listed) <= set(offered)
