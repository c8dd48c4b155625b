"""The tests and doctests that need Spark are collected with `--spark` only: they import what the others do without."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parent
NEEDS_SPARK = (ROOT / "rmqlb" / "pipeline", ROOT / "tests" / "pipeline")


def pytest_addoption(parser: pytest.Parser) -> None:
    """The switch, known wherever pytest is started."""
    parser.addoption("--spark", action="store_true", help="also run the tests that start Spark")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out what cannot be imported without Spark, unless it is asked for."""
    if collection_path in NEEDS_SPARK and not config.getoption("--spark"):
        return True
    return None
