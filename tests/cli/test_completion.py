"""Completion: Typer's scripts, and the values that rmqlb knows for its options."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from rmqlb.cli.completion import script
from rmqlb.engine.allocate.rules import NAMES
from tests.support.mismatches import every_case
from tools.manual.tree import command_tree

from .run import ROOT, environment, error_of, run

CASES = {
    "": {command.name for command in command_tree().commands},
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


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with two contexts."""
    file = tmp_path / "rmqlb" / "config.yaml"
    file.parent.mkdir(parents=True)
    file.write_text("contexts:\n  prod: {source: http://h}\n  staging: {source: http://h}\n")
    file.chmod(0o600)
    return tmp_path


@every_case("line", CASES)
def test_words_are_offered_by_how_they_begin(line: str, home: Path) -> None:
    words = f"rmqlb {line}"
    env = {"COMP_WORDS": words, "COMP_CWORD": str(words.count(" ")), "_RMQLB_COMPLETE": "complete_bash"}
    ran = run(env={**env, "XDG_CONFIG_HOME": str(home)})
    assert (set(ran.stdout.split()), ran.stderr, ran.code) == (CASES[line], "", 0)


def test_bash_asks_the_program(tmp_path: Path) -> None:
    program = tmp_path / "rmqlb"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m rmqlb "$@"\n')
    program.chmod(0o755)
    ask = f"{script('bash')}\nCOMP_WORDS=(rmqlb show-rou); COMP_CWORD=1; _rmqlb_completion {program}; echo ${{COMPREPLY[@]}}"
    done = subprocess.run(["bash", "-c", ask], cwd=ROOT, env=environment(), capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("show-route\n", "")


def test_the_script_of_a_shell_is_printed() -> None:
    for shell in ("bash", "zsh", "fish"):
        assert run("completion", shell).stdout == f"{script(shell)}\n"
    assert error_of(run("completion", "zhs").stderr).hint == "did you mean zsh?"
