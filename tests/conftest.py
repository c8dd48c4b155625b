"""What every test gets: no settings of the developer's own, and one switch to rewrite golden files."""

from __future__ import annotations

import os

import pytest
from hypothesis import settings

# In CI the same examples every time: a change that lands must not depend on the dice.
settings.register_profile("ci", derandomize=True, deadline=None)
settings.register_profile("desk", deadline=None)
settings.load_profile("ci" if os.environ.get("CI") else "desk")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="rewrite the files in tests/golden")
    parser.addoption("--live", action="store_true", help="also run the tests that start a real RocketMQ")


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("RMQLB_") or name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS"):
            monkeypatch.delenv(name)
