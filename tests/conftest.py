"""What every test gets: no settings of the developer's own, and one switch to rewrite golden files."""

import os
from datetime import datetime
from pathlib import Path
from unittest.mock import Mock

import pytest
from hypothesis import settings

from tests.support.mismatches import FIGURES

# In CI the same examples every time: a change that lands must not depend on the dice.
settings.register_profile("ci", derandomize=True, deadline=None)
settings.register_profile("desk", deadline=None)
settings.load_profile("ci" if os.environ.get("CI") else "desk")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="rewrite the files in tests/golden")
    parser.addoption("--figures", action="store_true", help="show at the end what the tests counted")


def pytest_terminal_summary(config: pytest.Config) -> None:
    if config.getoption("--figures"):
        for what, number in FIGURES.items():
            config.get_terminal_writer().line(f"{number:,} {what}")


@pytest.fixture(scope="session")
def empty_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch, empty_home: Path) -> None:
    for name in list(os.environ):
        if name.startswith("RMQLB_") or name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES"):
            monkeypatch.delenv(name)
    caches = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    monkeypatch.setenv("XDG_CACHE_HOME", caches)  # what others make once is not made anew
    monkeypatch.setenv("HOME", str(empty_home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(empty_home / ".config"))


@pytest.fixture
def on_a_known_day(monkeypatch: pytest.MonkeyPatch) -> None:
    for verb in ("check", "sweep_failures"):
        monkeypatch.setattr(f"rmqlb.verbs.{verb}.datetime", Mock(now=lambda: datetime(2026, 11, 21)))  # noqa: DTZ001
