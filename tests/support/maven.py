"""Jars by Maven, brought once and kept in the user's cache.

Rule of this file: it names artifacts, never a place to get them from. Where Maven looks is the machine's business.
"""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path
from xml.sax.saxutils import escape


class MissingToolError(Exception):
    """Java or Maven is not here. A test fails then: a skipped one would look like one that passed."""


def tool(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise MissingToolError(
            f"{name} is not on the PATH; these tests need Java 17 or newer, Maven, and the live ones Go, g++ and git"
        )
    return found


def cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "rmqlb"


def bring(coordinates: Iterable[str], folder: Path) -> Path:
    """The jars of artifacts (`group:artifact:version`) and of all that they need, in a folder, which is then there.

    They are downloaded beside the final place, which is a rename: a run cut short never leaves half a class path.
    """
    if folder.is_dir():
        return folder
    maven = tool("mvn")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        pom, got = Path(scratch, "pom.xml"), Path(scratch, "lib")
        pom.write_text(_pom(coordinates), encoding="utf-8")
        goal = ["dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={got}"]
        run([maven, "-q", "-B", "-f", str(pom), *goal])
        got.rename(folder)
    return folder


def run(command: list[str]) -> None:
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{Path(command[0]).name} ended with {done.returncode}:\n{done.stdout[-4000:]}")


def _pom(coordinates: Iterable[str]) -> str:
    dependencies = "".join(
        f"<dependency><groupId>{escape(group)}</groupId><artifactId>{escape(artifact)}</artifactId>"
        f"<version>{escape(version)}</version></dependency>"
        for group, artifact, version in (each.split(":") for each in coordinates)
    )
    return (
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        "<groupId>local</groupId><artifactId>jars</artifactId><version>1</version><packaging>pom</packaging>"
        f"<dependencies>{dependencies}</dependencies></project>"
    )
