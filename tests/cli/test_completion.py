"""Completion in the real shells: everything of the command tree, and names of contexts."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from rmqlb.engine.allocate.rules import NAMES
from rmqlb.model.group_scenario import TIMER_NAMES
from rmqlb.verbs.rebalance_events import VERBS
from rmqlb.views.report import FORMATS
from tools.manual.tree import CommandPage, command_tree
from tools.manual.values import value_of

from .run import ROOT
from .shells import SCRIPTS, SHELLS, environment, need, offered, program, typed_in_bash

TREE = command_tree()
HOSTILE = (
    "Evil$(touch${IFS}canary)",
    "Evil`touch${IFS}canary`",
    "Evil';touch${IFS}canary;'",
    'Evil";touch${IFS}canary;"',
)

each_shell = pytest.mark.parametrize("shell", SHELLS)


def quoted(shell: str, words: set[str]) -> set[str]:
    """As the shell offers them: bash inserts what it is given, so that is quoted already."""
    if shell != "bash":
        return words
    done = subprocess.run(
        ["bash", "-c", "printf '%q\\n' \"$@\"", "bash", *words], capture_output=True, text=True, check=True
    )
    return set(done.stdout.splitlines()) if words else set()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with two contexts."""
    (tmp_path / "config" / "rmqlb").mkdir(parents=True)
    contexts = "contexts:\n  prod: {source: http://h}\n  staging: {source: http://h}\n"
    (tmp_path / "config" / "rmqlb" / "config.yaml").write_text(contexts)
    (tmp_path / "config" / "rmqlb" / "config.yaml").chmod(0o600)
    return tmp_path


@pytest.mark.parametrize("shell", SHELLS)
def test_the_shell_can_read_its_script(shell: str) -> None:
    subprocess.run([need(shell), "-n", str(ROOT / "completions" / SCRIPTS[shell])], check=True)


@each_shell
def test_every_command_is_offered(shell: str, home: Path) -> None:
    groups = [command for command in TREE.all() if command.commands]
    answers = offered(shell, [f"{command.typed} " for command in groups], home)
    assert answers == [{below.name for below in command.commands} for command in groups]


@each_shell
def test_every_option_is_offered(shell: str, home: Path) -> None:
    commands = list(TREE.all())
    answers = offered(shell, [f"{command.typed} --" for command in commands], home)
    for command, answer in zip(commands, answers, strict=True):
        assert answer == long_options(command), command.typed


def long_options(command: CommandPage) -> set[str]:
    names = (name for option in command.options for name in (*option.names, *option.negations))
    return {name for name in names if name.startswith("--")}


@each_shell
def test_every_value_that_is_known_is_offered(shell: str, home: Path) -> None:
    asked: dict[tuple[str, tuple[str, ...]], str] = {}
    for command in TREE.all():
        for option in command.options:
            value = value_of(command, option)
            if value.kind in ("words", "beginnings"):
                asked.setdefault((option.names[-1], value.words), f"{command.typed} {option.names[-1]} ")
    answers = offered(shell, list(asked.values()), home)
    for ((_, words), line), answer in zip(asked.items(), answers, strict=True):
        assert {word.replace("\\", "") for word in answer} == set(words), line


@each_shell
def test_values_are_offered_by_how_they_begin(shell: str, home: Path) -> None:
    cases = {
        "rmqlb plan-rebalance --strategy MACHINE": {name for name in NAMES if name.startswith("MACHINE")},
        "rmqlb show-route -o t": {name for name in FORMATS if name.startswith("t")},
        "rmqlb simulate-rebalance --timer pull": {f"{name}=" for name in TIMER_NAMES if name.startswith("pull")},
        "rmqlb plan-rollout --ids n": {"new"},
        "rmqlb simulate-send --latency-fault o": {"on", "off"},
        "rmqlb plan-rebalance --section qu": {"queues"},
        "rmqlb plan-rebalance -s x --group y plan": set(),
        "rmqlb pipeline j": {"judge"},
        "rmqlb plan-rebalance --add ": set(),
        "rmqlb context use ": {"prod", "staging"},
        "rmqlb show-route --context p": {"prod"},
        "rmqlb show-owners -g ": set(),
        "rmqlb show-owners --topic Ord": set(),
    }
    assert dict(zip(cases, offered(shell, list(cases), home), strict=True)) == cases


@each_shell
def test_a_value_behind_an_equals_sign_is_offered(shell: str, home: Path) -> None:
    (answer,) = offered(shell, ["rmqlb show-route --output=ma"], home)
    assert {word.removeprefix("--output=") for word in answer} == {"markdown"}


@pytest.mark.parametrize(
    ("typed", "becomes"),
    [
        ("simulate-rebalance --timer heartbeat=", None),
        ("simulate-rebalance --timer=heartbeat=", None),
        ("simulate-rebalance --timer heartb", "simulate-rebalance --timer heartbeat="),
        ("pipeline run --master spark:", None),
        ("show-route --map-address a:", None),
        ("fetch-routes --to=con", "fetch-routes --to=config/"),
    ],
)
def test_behind_signs_that_cut_words_bash_offers_nothing_of_something_else(
    typed: str, becomes: str | None, home: Path
) -> None:
    assert typed_in_bash(f"rmqlb {typed}", home) == f"rmqlb {becomes or typed}"


@each_shell
@pytest.mark.parametrize("there", [True, False])
def test_contexts_are_offered_to_a_program_of_the_home_folder(shell: str, there: bool, home: Path) -> None:
    (answer,) = offered(shell, [f"~/{'bin' if there else 'elsewhere'}/rmqlb context use p"], home)
    assert answer == ({"prod"} if there else set())


@each_shell
def test_an_event_begins_with_a_verb(shell: str, home: Path) -> None:
    (answer,) = offered(shell, ["rmqlb simulate-rebalance --event ro"], home)
    assert answer == quoted(shell, {f"{verb} " for verb in VERBS if verb.startswith("ro")})


@each_shell
def test_files_are_offered_where_a_file_goes(shell: str, home: Path) -> None:
    (home / "cluster.json").touch()
    if shell == "bash":
        assert "-s|--source|--password-file" in (ROOT / "completions" / "rmqlb.bash").read_text()
        return  # readline adds them by itself: compopt -o default
    answer, folders = offered(shell, ["rmqlb show-route -s clus", "rmqlb pipeline judge -w c"], home)
    assert answer == {"cluster.json"}
    assert {name.rstrip("/") for name in folders} == {"config"}


@each_shell
def test_what_the_program_prints_is_never_evaluated(shell: str, home: Path) -> None:
    printed = "".join(f",{name},\n" for name in ("context", *HOSTILE))
    (home / "printed").write_text(printed)
    (program(home) / "rmqlb").write_text(f"#!/bin/sh\ncat {home / 'printed'}\n")
    (answer,) = offered(shell, ["rmqlb context use E"], home)
    assert answer == quoted(shell, set(HOSTILE))
    assert not list(home.rglob("canary"))


def test_bash_starts_no_program_for_commands_and_values(home: Path) -> None:
    (program(home) / "rmqlb").write_text("#!/bin/sh\ntouch started\n")
    answers = offered("bash", ["rmqlb plan-re", "rmqlb show-route -o ma"], home)
    assert answers == [{"plan-rebalance"}, {"markdown"}]
    assert not (home / "started").exists()


WATCHER = """
import sys

def watch(event, args):
    if event.startswith("socket."):
        open({canary!r}, "w").close()

sys.addaudithook(watch)
"""


def watched(home: Path) -> Path:
    """Rmqlb at this home leaves a file behind when it so much as makes a socket: the file, not there yet."""
    canary = home / "socket-was-made"
    (home / "sitecustomize.py").write_text(WATCHER.format(canary=str(canary)))
    script = program(home) / "rmqlb"
    script.write_text(script.read_text().replace('PYTHONPATH="', f'PYTHONPATH="{home}:'))
    return canary


@each_shell
def test_no_socket_is_made_for_what_is_offered(shell: str, home: Path) -> None:
    canary = watched(home)
    config = home / "config" / "rmqlb" / "config.yaml"
    config.write_text("context: prod\n" + config.read_text().replace("http://h", "rocketmq://127.0.0.1:1"))
    contexts, again = offered(shell, ["rmqlb show-route --context ", "rmqlb context use "], home)
    assert contexts == again == {"prod", "staging"}
    assert not canary.exists()
    env = environment(home) | {"RMQLB_SOURCE_RETRIES": "0"}
    read = subprocess.run([program(home) / "rmqlb", "show-route"], env=env, cwd=home, capture_output=True, check=False)
    assert (read.returncode, canary.exists()) == (5, True)
