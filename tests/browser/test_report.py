"""The pages of a fleet's report in a real browser: they do nothing, fit their window, and lose no text."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rmqlb.pipeline.report.figures import verdict_of
from rmqlb.pipeline.report.page import cluster_page, fleet_page
from tests.browser.devtools import Chromium
from tests.pipeline.report_fleet import HOSTILE, by_duckdb, fleet, hostile_rows, write_warehouse

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    with Chromium(tmp_path_factory.mktemp("profile"), "127.0.0.1:9") as running:
        yield running


@pytest.fixture(scope="module", params=["fleet", "hostile"])
def pages(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The page of the fleet and of one cluster."""
    folder = tmp_path_factory.mktemp(request.param)
    found = by_duckdb(write_warehouse(folder / "warehouse", fleet() if request.param == "fleet" else hostile_rows()))
    verdict = verdict_of(found, "index.html")
    made = {"index.html": fleet_page(found, verdict)}
    made |= {f"{number}.html": cluster_page(found, one) for number, one in enumerate(verdict.clusters)}
    for name, text in made.items():
        (folder / name).write_text(text, "utf-8")
    return [folder / name for name in made]


@pytest.mark.parametrize("width", [1200, 400])
def test_a_page_fits_its_window_and_does_nothing(pages: list[Path], width: int, chromium: Chromium) -> None:
    for page in pages:
        seen = chromium.load(page.as_uri(), width)
        assert seen.width <= width, page.name
        assert seen.outside == [], page.name
        assert (seen.requests, seen.dialogs, seen.complaints, seen.scripts) == ([page.as_uri()], [], [], 0)
    if len(pages) > len(HOSTILE):
        assert HOSTILE[0] in chromium.load(pages[0].as_uri(), width).text
