import ast
import re
import shlex
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from rmqlb.cli.completion import script
from rmqlb.cli.exit_codes import ExitCode
from rmqlb.cli.help_text import SAME_AS, SHARED_PANELS, brief_text, command_help, headline, known_values
from rmqlb.cli.results import ALIASES, COMMANDS, PANELS, RESULTS, SECTIONS
from rmqlb.engine.allocate.rules import NAMES
from rmqlb.views.report import FORMATS
from tests.support.mismatches import every_case
from tests.support.pages import LIVE, Terminal
from tests.test_golden import BASIC
from tools.manual.tree import CommandPage, command_tree

from .run import ROOT, environment, error_of, instead, may_end_with, run, start

TREE = command_tree()
ALL = list(TREE.all())
BEFORE = {"config": ("context",)}
"""Group of commands → the groups whose examples run before its own."""


def flat(text: str) -> str:
    return " ".join(re.sub(r"[│╭╮╰╯─]", " ", text).split())


@every_case("command", ALL, ids=lambda command: command.typed)
def test_help_has_one_form_and_is_one_screen(command: CommandPage) -> None:
    assert re.fullmatch(r"[A-Z][^.!?]*(?:\.[a-z][^.!?]*)*\.", command.help.summary)
    assert len(command.help.summary) <= 140
    texts = [
        command.help.summary,
        *command.help.examples[:2],
        *(headline(each.help.summary) for each in command.commands),
    ]
    for option in (*command.options, *command.arguments):
        assert re.match(r"[A-Z0-9%\w]", option.help), option
        assert option.metavar is None or option.metavar.strip(), option
        is_shown = option.panel not in SHARED_PANELS and not option.help.startswith(SAME_AS)
        if is_shown and option.names[-1:] != ("--help",) and not command.commands:
            texts += [*option.names, brief_text(option.help).partition(";")[0]]
    help_text = run(*command.path, "--help", env={"COLUMNS": "100"}).stdout
    assert len(help_text.splitlines()) <= 50
    shown = flat(run(*command.path, "--help", env={"COLUMNS": "1000"}).stdout)
    assert [text for text in texts if " ".join(text.split()).removesuffix(".") not in shown] == []
    if command.commands or command.name == "completion":
        return
    codes = [code for code, _ in command.help.exit_codes]
    assert codes == sorted(set(codes))
    assert {ExitCode.OK, ExitCode.USAGE} <= set(codes) <= set(ExitCode)
    assert (ExitCode.CONDITION in codes) == (
        command.name in ("check", "judge", "report", "run")
        or any({"--fail-on", "--check-step"} & {*option.names} for option in command.options)
    )
    assert command.help.examples
    assert all(example.startswith(command.typed) or "|" in example for example in command.help.examples)


def test_help_is_no_markup_in_colour_on_request_and_in_the_order_of_panels() -> None:
    assert command_help("Take [red]a[/red] or [ID=]b.\n\nMore.") == r"Take \[red]a\[/red] or [ID=]b."
    panels = re.findall(r"^╭─ ([^─]+) ─", run("plan-rebalance", "--help").stdout, re.MULTILINE)
    assert (panels[:2], panels[-2:]) == (["Options", "Connection"], ["Connection", "Output"])
    assert "\x1b" not in start("show-route", "--help").stdout
    assert "\x1b" in start("show-route", "--help", env={"FORCE_COLOR": "1"}).stdout


def test_the_program_lists_its_commands_in_panels() -> None:
    shown = run("--help", env={"COLUMNS": "100"}).stdout
    panels = [name for name in PANELS if f"╭─ {name} ─" in shown]
    assert panels == [*PANELS]
    assert {name.split()[0] for result in RESULTS for name in result.commands} <= {*COMMANDS}
    listed = [line.split()[1].rstrip(",") for line in shown.splitlines() if re.match(r"│ [a-z]", line)]
    assert listed == [name for name in COMMANDS if name != "options"]
    assert ALIASES == {"snapshot": "fetch-routes"}
    assert "│ fetch-routes, snapshot " in shown
    line = ("-s", str(ROOT / "examples/cluster.json"))
    assert run("snapshot", *line) == run("fetch-routes", *line)


def test_the_shared_options_are_listed_whole() -> None:
    shown = flat(run("options", env={"COLUMNS": "1000"}).stdout)
    (command,) = (each for each in ALL if each.path == ("show-route",))
    shared = [option for option in command.options if option.panel in SHARED_PANELS]
    texts = [text for option in shared for text in (*option.names, option.help, option.variable or "")]
    assert len(shared) > 20
    assert [text for text in texts if text not in shown] == []


FAMILIES = [command.name for command in TREE.commands if command.name != "pipeline"]
"""The commands right below the program; those of the pipeline run where Spark does (tests/pipeline)."""


@pytest.mark.parametrize("family", FAMILIES)
def test_every_example_runs(family: str, tmp_path: Path) -> None:
    terminal = Terminal(tmp_path)
    for name in (*BEFORE.get(family, ()), family):
        command = next(command for command in TREE.commands if command.name == name)
        single = [each for each in command.all() if not each.commands]
        for each in single if name == family else single[:1]:
            for example in each.help.examples:
                # One has no end, one needs contexts: tests/cli/test_fetch_routes.py.
                if family != "fetch-routes" or not {"--every", "--all-contexts"} & {*shlex.split(example)}:
                    must_run(each, example, terminal)


SAID = {"warning", "info", "condition met", "failed"}


def must_run(command: CommandPage, example: str, terminal: Terminal) -> None:
    if LIVE not in example:
        ran = terminal.run(example)
        assert ran.code in may_end_with(example, command), (example, ran.stderr)
        assert ran.stdout, example
        said = Counter(line.partition(":")[0] for line in ran.stderr.splitlines())
        assert said.keys() <= SAID, ran.stderr
        assert (ran.code == ExitCode.CONDITION) == bool(said["condition met"] + said["failed"]), ran.stderr
        return
    if example.startswith("rmqlb record "):  # the live group never changes
        example = re.sub(r" --for \w+", "", example) + " --for 1s"
    ran = terminal.run(example)
    # The replayed brokers know a part only.
    assert ran.code == 0 or (ran.code == ExitCode.DATA and "incomplete" in ran.stderr), (example, ran.stderr)


@every_case("name", [name for name in (*BASIC, "check", "fetch-routes") if name in FAMILIES])
def test_the_offered_formats_are_those_of_the_command(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    (command,) = (each for each in ALL if each.path == (name,))
    option = next(option for option in command.options if "--output" in option.names)
    line = shlex.split(BASIC.get(name) or command.help.examples[0].removeprefix("rmqlb "))
    if any("--source" in each.names for each in command.options):
        line = instead(line, "-s", "/nonexistent")
    formats = (*FORMATS, "jsonl", "junit", "sarif", "prometheus")
    written = {each for each in formats if run(*line, "-o", each).code != ExitCode.USAGE}
    assert set(known_values(name, "--output", "FORMAT", option.help)) <= written | {"jsonl", "prometheus"}


@every_case("name", [name for name in BASIC if name in SECTIONS])
def test_the_sections_of_a_result_are_those_of_its_command(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The hint for a table that the result does not have lists those that there are, eight at the most."""
    offered = SECTIONS[name]
    monkeypatch.setattr("rmqlb.cli.results.SECTIONS", {**SECTIONS, name: (*offered, "no-such-table")})
    monkeypatch.chdir(ROOT)
    ran = run(*shlex.split(BASIC[name]), "--section", "no-such-table", "-q")
    listed = ran.stderr.splitlines()[-1].removeprefix("hint: known sections: ").removesuffix(", …").split(", ")
    assert listed
    assert set(listed) <= set(offered)


COMPLETED = {
    "": {command.name for command in TREE.commands},
    "pipeline j": {"judge"},
    "show-route --sec": {"--section", "--secret-key-file"},
    "plan-rebalance --strategy MACHINE": {name for name in NAMES if name.startswith("MACHINE")},
    "plan-rebalance --section qu": {"queues"},
    "plan-rebalance --fail-on mo": {"moved"},
    "show-route -o t": {"table"},
    "fetch-routes -o js": {"json", "jsonl"},
    "simulate-send --latency-fault o": {"on", "off"},
    "explain no-m": {"no-master"},
    "schema sch": {"schema"},
    "show-route --context p": {"prod"},
    "context use ": {"prod", "staging"},
    "plan-rebalance --add ": set(),
    "completion z": {"zsh"},
}


@every_case("line", COMPLETED)
def test_words_are_offered_by_how_they_begin(line: str, tmp_path: Path) -> None:
    file = tmp_path / "rmqlb" / "config.yaml"
    file.parent.mkdir()
    file.write_text("contexts:\n  prod: {source: http://h}\n  staging: {source: http://h}\n")
    file.chmod(0o600)
    words = f"rmqlb {line}"
    env = {"COMP_WORDS": words, "COMP_CWORD": str(words.count(" ")), "_RMQLB_COMPLETE": "complete_bash"}
    ran = run(env={**env, "XDG_CONFIG_HOME": str(tmp_path)})
    assert (set(ran.stdout.split()), ran.stderr, ran.code) == (COMPLETED[line], "", 0)


def test_a_shell_asks_the_program_with_the_printed_script(tmp_path: Path) -> None:
    for shell in ("bash", "zsh", "fish"):
        assert run("completion", shell).stdout == f"{script(shell)}\n"
    assert error_of(run("completion", "zhs").stderr).hint == "did you mean zsh?"
    program = tmp_path / "rmqlb"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m rmqlb "$@"\n')
    program.chmod(0o755)
    line = f"COMP_WORDS=(rmqlb show-rou); COMP_CWORD=1; _rmqlb_completion {program}; echo ${{COMPREPLY[@]}}"
    ask = ["bash", "-c", f"{script('bash')}\n{line}"]
    done = subprocess.run(ask, cwd=ROOT, env=environment(), capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("show-route\n", "")


def private_imports(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
    return {name for name in found if re.search(r"\._(?!_)", name) and not name.startswith("rmqlb.")}


def test_one_file_imports_what_is_private_in_typer() -> None:
    files = [path for name in ("rmqlb", "tests", "tools", "fuzz", "benchmarks") for path in (ROOT / name).rglob("*.py")]
    assert len(files) > 300
    assert {path.relative_to(ROOT).as_posix() for path in files if private_imports(path)} == {"rmqlb/cli/click.py"}
