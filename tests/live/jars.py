"""RocketMQ's own jars, brought once per version by Maven and kept in the user's cache.

Rule of this file: it names artifacts, never a place to get them from. Where Maven looks is the machine's business.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from xml.sax.saxutils import escape

GROUP = "org.apache.rocketmq"
ARTIFACTS = ("rocketmq-namesrv", "rocketmq-broker", "rocketmq-tools", "rocketmq-client")
PROGRAMS = Path(__file__).parent / "programs"


class MissingToolError(Exception):
    """Java or Maven is not here. A live run fails then: a skipped test would look like a passed one."""


def tool(name: str) -> str:
    """The full path of a program."""
    found = shutil.which(name)
    if found is None:
        raise MissingToolError(
            f"{name} is not on the PATH; the live tests need Java 17 or newer, Maven, Go, g++ and git"
        )
    return found


def jars(version: str, artifacts: tuple[str, ...] = ARTIFACTS, cache: str = "rocketmq") -> Path:
    """The folder with the jars of a RocketMQ version, filled on the first call; each choice has its own cache."""
    folder = _cache() / cache / version / "lib"
    if not any(folder.glob(f"{artifacts[-1]}-*.jar")):
        _bring(version, artifacts, folder)
    return folder


def compiled_programs(version: str, into: Path) -> Path:
    """Our Java programs, compiled against a version: 4.9.7 and 5.5.0 agree in source, not in byte code."""
    return compiled(PROGRAMS, jars(version), into)


def compiled(programs: Path, library: Path, into: Path) -> Path:
    """The Java programs of a folder, compiled against a folder of jars."""
    sources = sorted(str(source) for source in programs.glob("*.java"))
    _run([tool("javac"), "-nowarn", "-XDsuppressNotes", "-d", str(into), "-cp", f"{library}/*", *sources])
    return into


def go_program(folder: Path, into: Path) -> Path:
    """The Go program of a folder, built; its modules are brought once."""
    done = subprocess.run(
        [tool("go"), "build", "-o", str(into), "."], cwd=folder, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise RuntimeError(f"go build ended with {done.returncode}:\n{done.stderr[-4000:]}")
    return into


def _cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "rmqlb"


def _bring(version: str, artifacts: tuple[str, ...], folder: Path) -> None:
    """Download beside the final place and rename, so that a run cut short never leaves half a class path."""
    maven = tool("mvn")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        pom, got = Path(scratch, "pom.xml"), Path(scratch, "lib")
        pom.write_text(_pom(version, artifacts), encoding="utf-8")
        goal = ["dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={got}"]
        _run([maven, "-q", "-B", "-f", str(pom), *goal])
        shutil.rmtree(folder, ignore_errors=True)
        got.rename(folder)


def _pom(version: str, artifacts: tuple[str, ...]) -> str:
    dependencies = "".join(
        f"<dependency><groupId>{GROUP}</groupId><artifactId>{artifact}</artifactId>"
        f"<version>{escape(version)}</version></dependency>"
        for artifact in artifacts
    )
    return (
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        "<groupId>local</groupId><artifactId>live-jars</artifactId><version>1</version><packaging>pom</packaging>"
        f"<dependencies>{dependencies}</dependencies></project>"
    )


def _run(command: list[str]) -> None:
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{Path(command[0]).name} ended with {done.returncode}:\n{done.stdout[-4000:]}")
