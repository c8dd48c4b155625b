"""Pages, pictures and CSV of hostile names, opened by a real browser and spreadsheet: nothing is requested, run or evaluated."""

import csv
import io
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from msgspec import Struct

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


_PATIENCE_S = 300
"""After so long a test has failed; none of them waits for it."""
_EVALUATING = "CSV:44,34,76,1,,0,false,true,false,false,false,-1,true"
"""UTF-8, numbers and dates recognised, formulas evaluated: LibreOffice at its most eager."""
_TABLE, _OFFICE = (f"{{urn:oasis:names:tc:opendocument:xmlns:{name}:1.0}}" for name in ("table", "office"))
_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?")


class Cell(Struct, frozen=True):
    """A cell as the spreadsheet has it: a formula, a number, or neither."""

    formula: str | None
    number: float | None


def opened(folder: Path) -> dict[str, list[list[Cell]]]:
    """File → rows, of all files in the folder that a spreadsheet has opened."""
    program = shutil.which("soffice") or shutil.which("libreoffice")
    assert program, "this needs LibreOffice: apt-get install libreoffice-calc"
    profile = f"-env:UserInstallation={(folder / 'profile').as_uri()}"
    reading = f"--infilter={_EVALUATING}"
    files = sorted(str(file) for file in folder.glob("*.csv"))
    line = [program, profile, "--headless", reading, "--convert-to", "fods", "--outdir", str(folder), *files]
    subprocess.run(line, check=True, capture_output=True, timeout=_PATIENCE_S)
    return {file.stem: list(_rows(file)) for file in folder.glob("*.fods")}


def _rows(file: Path) -> Iterator[list[Cell]]:
    for row in ET.parse(file).iter(f"{_TABLE}table-row"):
        cells: list[Cell] = []
        for cell in row.iter(f"{_TABLE}table-cell"):
            value = cell.get(f"{_OFFICE}value") if cell.get(f"{_OFFICE}value-type") == "float" else None
            one = Cell(cell.get(f"{_TABLE}formula"), None if value is None else float(value))
            cells += [one] * int(cell.get(f"{_TABLE}number-columns-repeated", "1"))
        yield from [cells] * int(row.get(f"{_TABLE}number-rows-repeated", "1"))


def test_a_formula_would_be_seen(tmp_path: Path) -> None:
    (tmp_path / "control.csv").write_text("name,number\n=1+1,2\n")
    ((_, _), (formula, number)) = opened(tmp_path)["control"]
    assert (formula.formula, formula.number) == ("of:=1+1", 2)
    assert number == Cell(None, 2)


def test_hostile_names_are_no_formulas_and_numbers_are_numbers(tmp_path: Path) -> None:
    written: dict[str, list[list[str]]] = {}
    for kind, names in SNAPSHOTS.items():
        for arguments in (one for one in walk.runs(names.topics[0]) if one[-1] == "csv"):
            done = run(*arguments, "-s", "-", stdin=as_text(snapshot(names)))
            name = f"{arguments[0]}-{kind}"
            (tmp_path / f"{name}.csv").write_text(done.stdout, newline="")
            written[name] = list(csv.reader(io.StringIO(done.stdout, newline="")))
    seen = opened(tmp_path)
    assert seen.keys() == written.keys()
    numbers = 0
    for name, rows in written.items():
        assert len(seen[name]) >= len(rows)
        assert [cell for row in seen[name] for cell in row if cell.formula is not None] == [], name
        for text, cell in (pair for rows_ in zip(rows, seen[name], strict=False) for pair in zip(*rows_, strict=False)):
            if _NUMBER.fullmatch(text):
                assert cell.number == float(text), (name, text)
                numbers += 1
    assert numbers > 100
