"""The pages that people read: their blocks of code, and what their commands print when they are typed."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path
from unittest.mock import patch

from tests.cli.run import ROOT, Ran, environment, run
from tests.support.replay_remoting import cluster

DOCS = ROOT / "docs"
PAGES = (ROOT / "README.md", *sorted(DOCS.rglob("*.md")))
LIVE = "rocketmq://127.0.0.1:9876"
"""A cluster on loopback that answers what a real one answered."""
RECORDED = ROOT / "tests" / "golden" / "pipeline"
"""What stages of the pipeline printed on Spark; `tests/test_golden.py` and `tests/pipeline` hold them."""
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_COMMAND = re.compile(r"^\$ (.*\n(?:(?<=\\\n).*\n)*)", re.MULTILINE)


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def blocks(page: Path, language: str) -> list[str]:
    return [text for named, text in _BLOCK.findall(page.read_text(encoding="utf-8")) if named == language]


def languages(page: Path) -> set[str]:
    return {named for named, _ in _BLOCK.findall(page.read_text(encoding="utf-8"))}


def transcripts(page: Path) -> Iterator[tuple[str, str]]:
    """What its console blocks say is typed, with what they show below it."""
    for block in blocks(page, "console"):
        _, *parts = _COMMAND.split(block)
        yield from ((command.removesuffix("\n"), shown) for command, shown in zip(parts[::2], parts[1::2], strict=True))


def commands(page: Path) -> Iterator[str]:
    yield from (command for command, _ in transcripts(page))


class Terminal:
    """A folder with the examples, in which the commands of a page are typed one after the other."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._code: int | None = 0
        (folder / "examples").symlink_to(ROOT / "examples")
        program = folder / "bin" / "rmqlb"
        program.parent.mkdir()
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m rmqlb "$@"\n')
        program.chmod(0o755)
        home = {"HOME": str(folder / "home"), "XDG_CONFIG_HOME": str(folder / "home" / ".config")}
        path = f"{program.parent}:{os.environ['PATH']}"
        self._environment = environment({**home, "PATH": path, "PYTHONPATH": str(ROOT)})

    def run(self, command: str) -> Ran:
        """Run it, in this process unless it takes a shell; a live cluster answers as a real one did."""
        if LIVE in command:
            with cluster() as (a, b):
                at = f"rocketmq://{a.address} --map-address '{a.mapped}' --map-address '{b.mapped}'"
                ran = self.run(command.replace(LIVE, at))
            stdout, stderr = (text.replace(f"rocketmq://{a.address}", LIVE) for text in ran[:2])
            return Ran(stdout, stderr, ran.code)
        if command.startswith("rmqlb ") and not re.search("[|<>&;$]", command):
            with chdir(self._folder), patch.dict(os.environ, self._environment, clear=True):
                ran = run(*shlex.split(command.replace("\\\n", ""))[1:])
        else:
            line = ["bash", "-o", "pipefail", "-c", f"(exit {self._code}); {command}"]
            done = subprocess.run(
                line, capture_output=True, text=True, cwd=self._folder, env=self._environment, check=False
            )
            ran = Ran(done.stdout, done.stderr, done.returncode)
        self._code = ran.code
        return ran

    def typed(self, command: str) -> str:
        if command.startswith("rmqlb pipeline run "):
            return recorded(command)
        printed = "".join(self.run(command)[:2]).replace(f"{self._folder}/", "")
        return "".join(f"{line.rstrip()}\n" for line in printed.splitlines())


def recorded(command: str) -> str:
    for path in sorted(RECORDED.glob("*.plain.txt")):
        first, _, rest = path.read_text(encoding="utf-8").partition("\n")
        if first == f"$ {command} -o plain":
            stdout, _, stderr = rest.rpartition("\n--- exit 0")[0].partition("\n--- stderr")
            return f"{stdout}\n{stderr.lstrip()}\n"
    raise AssertionError(f"no transcript of {command}")


def as_typed(page: Path, terminal: Terminal) -> str:
    def block(found: re.Match[str]) -> str:
        return f"```console\n{''.join(_lines(found[2], terminal))}```" if found[1] == "console" else found[0]

    return _BLOCK.sub(block, page.read_text(encoding="utf-8"))


def _lines(block: str, terminal: Terminal) -> Iterator[str]:
    for found in _COMMAND.finditer(block):
        yield f"$ {found[1]}"
        yield terminal.typed(found[1].removesuffix("\n"))
