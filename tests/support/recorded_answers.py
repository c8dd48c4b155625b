"""Texts that a file next to a test records by name; `--update-golden` writes the file again."""

from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest


def assert_recorded(file: Path, answers: Mapping[str, Iterable[str]], request: pytest.FixtureRequest) -> None:
    said = {name: "\n".join(lines) for name, lines in answers.items()}
    if request.config.getoption("--update-golden"):
        file.write_text("\n\n".join(f"# {name}\n{text}" for name, text in said.items()) + "\n", encoding="utf-8")
    recorded = dict(each.split("\n", 1) for each in file.read_text(encoding="utf-8")[2:].strip().split("\n\n# "))
    assert {name: text for name, text in said.items() if recorded.get(name) != text} == {}
    assert recorded.keys() == said.keys()
