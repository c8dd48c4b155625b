"""Which tests are collected, those that need Spark, a browser or Java with a switch only; and on how many cores."""

from __future__ import annotations

import signal
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


def pytest_configure() -> None:
    """Have no program of a test ignore Ctrl-C, as it would inherit from a pytest that a shell put in the background."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """All cores for the default tests; what is chosen runs in this process, one after the other."""
    chosen = config.args_source is not pytest.Config.ArgsSource.TESTPATHS
    asked = any(config.getoption(switch, default=False) for switch in ("--spark", "--browser", "--live", "--figures"))
    return 0 if chosen or asked else None


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out what has not been asked for."""
    switch = NEEDS.get(collection_path)
    return True if switch is not None and not config.getoption(switch) else None
