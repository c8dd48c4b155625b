"""Small programs that use a Spark session, each run in a process of its own.

What a session says in the terminal, and what it leaves behind, can only be seen from outside.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import rmqlb

ROOT = Path(rmqlb.__file__).parent.parent
_DEADLINE = 180.0
_START = """\
import json, os, sys, time
from rmqlb.errors import RmqlbError
from rmqlb.pipeline.spark import SparkSettings, spark_session
settings = SparkSettings(sys.argv[1], json.loads(sys.argv[2]), "spark.log")
def say(**values):
    with open("said.json", "w") as file:
        json.dump(values, file)
"""
_BODY = """\
try:
    with spark_session(settings) as spark:
{body}
except RmqlbError as error:
    say(kind=type(error).__name__, message=error.message, hint=error.hint)
"""


@dataclass(frozen=True)
class Ended:
    code: int
    terminal: str
    said: dict[str, Any]
    folder: Path

    @property
    def log(self) -> str:
        return (self.folder / "spark.log").read_text(encoding="utf-8")

    @property
    def left(self) -> list[str]:
        return sorted(os.listdir(self.folder / "tmp"))


def command(folder: Path, body: str, master: str, conf: Mapping[str, str] | None = None) -> list[str]:
    """The command line of a program that runs this body with `spark` at hand."""
    indented = "".join(f"        {line}\n" for line in body.splitlines())
    (folder / "tmp").mkdir()
    (folder / "program.py").write_text(_START + _BODY.format(body=indented), encoding="utf-8")
    small = {"spark.driver.memory": "600m", **(conf or {})}
    return [sys.executable, str(folder / "program.py"), master, json.dumps(small)]


def environ(folder: Path, changes: Mapping[str, str] | None = None) -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(ROOT), "TMPDIR": str(folder / "tmp"), **(changes or {})}


def run(
    folder: Path,
    body: str,
    master: str = "local[2]",
    *,
    conf: Mapping[str, str] | None = None,
    changes: Mapping[str, str] | None = None,
) -> Ended:
    done = subprocess.run(
        command(folder, body, master, conf),
        capture_output=True,
        text=True,
        cwd=folder,
        env=environ(folder, changes),
        stdin=subprocess.DEVNULL,
        timeout=_DEADLINE,
        check=False,
    )
    return ended(folder, done.returncode, done.stdout + done.stderr)


def ended(folder: Path, code: int, terminal: str) -> Ended:
    said = folder / "said.json"
    return Ended(code, terminal, json.loads(said.read_text()) if said.exists() else {}, folder)
