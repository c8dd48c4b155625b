from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

from tools.manual.tree import CommandPage

from .run import ROOT, Ran, environment, run

_OF_A_SHELL = ("|", ">", "<", "&&", ";")


def run_example(example: str, folder: Path) -> Ran:
    """Run an example of the help in the current directory, by a shell when it needs one."""
    words = shlex.split(example)
    if not any(word in _OF_A_SHELL for word in words):
        assert words[0] == "rmqlb", example
        return run(*words[1:])
    program = folder / "bin" / "rmqlb"
    if not program.exists():
        program.parent.mkdir(parents=True)
        program.write_text(f'#!/bin/sh\nPYTHONPATH="{ROOT}" exec "{sys.executable}" -m rmqlb "$@"\n')
        program.chmod(0o755)
    env = environment({"PATH": f"{program.parent}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)})
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", example], capture_output=True, text=True, env=env, check=False
    )
    return Ran(done.stdout, done.stderr, done.returncode)


def may_end_with(example: str, command: CommandPage) -> set[int]:
    """0, or 3 where the example asks to be told so; a limit of the policy of the examples failed."""
    if command.name == "check":
        return {3} if "examples/policy.yaml" in example else {0}
    return {0, 3} if "--fail-on" in example else {0}
