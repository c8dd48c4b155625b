"""Tests that need what the others do without are collected with a switch only: Spark, a browser, a spreadsheet."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parent
NEEDS = {
    ROOT / "rmqlb" / "pipeline": "--spark",
    ROOT / "tests" / "pipeline": "--spark",
    ROOT / "tests" / "browser": "--browser",
}
"""Folder → the switch that collects it."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """The switches, known wherever pytest is started."""
    parser.addoption("--spark", action="store_true", help="also run the tests that start Spark")
    parser.addoption("--browser", action="store_true", help="also run the tests that start Chromium and LibreOffice")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out what has not been asked for."""
    switch = NEEDS.get(collection_path)
    return True if switch is not None and not config.getoption(switch) else None
