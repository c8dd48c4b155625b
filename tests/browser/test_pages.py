"""Pages and pictures of hostile names in a real browser: they request nothing, run nothing and cause no complaint."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from rmqlb.pipeline.report.figures import verdict_of
from rmqlb.pipeline.report.page import cluster_page, fleet_page
from tests.browser.devtools import Chromium, Loaded
from tests.cli.run import run
from tests.hardening import walk
from tests.hardening.hostile import MARKUP, SNAPSHOTS, as_text, snapshot
from tests.pipeline.report_fleet import HOSTILE, by_duckdb, fleet, hostile_rows, write_warehouse
from tests.support.mismatches import every_case

pytestmark = pytest.mark.browser

CONTROL = """<!DOCTYPE html><title>control</title><link rel="icon" href="data:,"><img src="http://elsewhere.test/pixel">
<script>alert("hello"); console.error("oh")</script>"""


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    with Chromium(tmp_path_factory.mktemp("profile")) as running:
        yield running


def loaded(chromium: Chromium, page: Path, text: str, width: int = 1200) -> Loaded:
    page.write_text(text, "utf-8")
    return chromium.load(page.as_uri(), width)


def must_do_nothing(seen: Loaded, page: Path) -> None:
    assert (seen.requests, seen.dialogs, seen.complaints, seen.scripts) == ([page.as_uri()], [], [], 0)


def test_what_a_page_does_is_seen(chromium: Chromium, tmp_path: Path) -> None:
    seen = loaded(chromium, page := tmp_path / "control.html", CONTROL)
    assert {page.as_uri(), "http://elsewhere.test/pixel"} <= set(seen.requests)
    assert (seen.dialogs, seen.scripts) == (["hello"], 1)
    assert any('"oh"' in complaint for complaint in seen.complaints)


def written(command: str, option: str, kind: str) -> str:
    source = () if command in walk.ON_TWO_SNAPSHOTS else ("-s", "-")
    arguments = {**walk.READING, **walk.ON_TWO_SNAPSHOTS}[command]
    done = run(command, *arguments, option, "-", *source, stdin=as_text(snapshot(SNAPSHOTS[kind])))
    assert done.code == 0, done.stderr
    return done.stdout


@every_case("kind", SNAPSHOTS)
def test_a_picture_does_nothing(kind: str, tmp_path: Path, chromium: Chromium) -> None:
    seen = loaded(chromium, page := tmp_path / "picture.svg", written("simulate-rebalance", "--svg", kind))
    must_do_nothing(seen, page)
    if kind == "markup":
        assert MARKUP.split("</title>")[0] in seen.text


@every_case("command", walk.PAGES)
@every_case("kind", SNAPSHOTS)
def test_a_page_fits_its_window_and_does_nothing(kind: str, command: str, tmp_path: Path, chromium: Chromium) -> None:
    text = written(command, "--html", kind)
    for width in (1200, 400):
        seen = loaded(chromium, page := tmp_path / "page.html", text, width)
        must_do_nothing(seen, page)
        assert seen.width <= width
        assert (
            seen.outside == [] or width == 1200 or command == "simulate-rebalance"
        )  # wide tables and timelines scroll
    if kind == "markup":
        assert MARKUP.split("</title>")[0] in seen.text


@every_case("kind", ["fleet", "hostile"])
def test_a_page_of_a_fleet_fits_its_window_and_does_nothing(kind: str, tmp_path: Path, chromium: Chromium) -> None:
    found = by_duckdb(write_warehouse(tmp_path / "warehouse", fleet() if kind == "fleet" else hostile_rows()))
    verdict = verdict_of(found, "index.html")
    first = fleet_page(found, verdict)
    for text in (first, *(cluster_page(found, one) for one in verdict.clusters)):
        for width in (1200, 400):
            seen = loaded(chromium, page := tmp_path / "page.html", text, width)
            assert seen.width <= width, seen.text[:200]
            assert seen.outside == [], seen.text[:200]
            must_do_nothing(seen, page)
    if kind == "hostile":
        assert HOSTILE[0] in loaded(chromium, tmp_path / "page.html", first).text
