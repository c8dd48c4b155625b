"""Values → page and pictures, without Spark."""

from __future__ import annotations

import datetime as dt
import os
import subprocess
import sys
from unicodedata import category
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmqlb.pipeline.report.charts import Picture, Series, bars, days, histograms, lines, steps
from rmqlb.pipeline.report.contents import Cluster, Figures, facts, sections, subtitle
from rmqlb.pipeline.report.page import Grid, Section, cell, page, said
from rmqlb.pipeline.report.subject_history import MovesDay, TrendDay
from rmqlb.pipeline.report.subject_sends import Scenario
from tests.pipeline.report_rows import DAY, HOSTILE

pytestmark = pytest.mark.spark

PICTURE = Picture("one", "A title & more", "What is <seen>.")


def one_page(*sections: Section) -> str:
    return page("Title", said("subtitle"), (), sections)


def test_an_unknown_value_is_a_question_mark() -> None:
    assert [cell(None, kind) for kind in ("name", "count", "share", "ms")] == ["?"] * 4


def test_cells_are_shown_by_their_kind() -> None:
    assert cell(1234567, "count") == "1,234,567"
    assert cell(1234.5678, "count") == "1,235"
    assert cell(1.005, "figure") == "1.00"
    assert cell(2.5, "signed") == "+2.50"
    assert cell(0.123, "share") == "12.3%"
    assert cell(3004.0, "ms") == "3.004s"
    assert cell("1e5", "name") == "<bdi>1e5</bdi>"


def test_a_long_name_is_cut_and_whole_in_its_tooltip() -> None:
    whole = "a" * 9_000 + "z" * 1_000
    shown = cell(whole, "name")
    assert f'title="{whole}"' in shown
    assert len(ET.fromstring(shown).text or "") == 48


def test_an_empty_grid_is_left_out() -> None:
    shown = one_page(Section("a", "A", (said("Nothing."),), grids=(Grid("of none", (("x", "count"),), ()),)))
    assert "of none" not in shown


def test_what_to_do_is_said_only_where_there_is_something_to_do() -> None:
    assert "What to do:" not in one_page(Section("a", "A", (said("Nothing."),)))
    assert "What to do:" in one_page(Section("a", "A", (said("Much."),), "mend it"))


@given(st.text())
def test_no_text_from_the_data_becomes_markup(text: str) -> None:
    shown = ET.fromstring(f"<p>{said('a {} b', text)}</p>")
    assert [element.tag for element in shown.iter()] == ["p", "bdi"]
    steering = set("\u200e\u200f\u061c\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
    assert not [char for char in "".join(shown.itertext()) if char in steering or category(char) == "Cc"]


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_names_are_text_in_every_picture(name: str) -> None:
    series = [Series(name, [1.0, None]), Series("other", [2, 3])]
    when = [dt.date(2026, 1, 1), dt.date(2026, 1, 2)]
    for drawn in (
        bars(PICTURE, [name, name], series, "queues"),
        histograms(PICTURE, ["1–2", "2+"], series, "imbalance", "groups"),
        days(PICTURE, when, series, [], "queues"),
        lines(PICTURE, [(name, [(DAY, 1.0)]), ("other", [(DAY, 2.0)])], "imbalance"),
        steps(PICTURE, [name, "+1"], series, ("change", "moved")),
    ):
        svg = ET.fromstring(drawn)
        assert {element.tag for element in svg.iter()} <= {
            "svg", "title", "desc", "g", "path", "text", "defs", "clipPath", "rect", "use", "pattern",
        }  # fmt: skip
        words = [element.text or "" for element in svg.iter("text")]
        assert max(len(word) for word in words) <= 30
        assert all(char.isprintable() or char == "\u202f" for word in words for char in word)


def test_names_in_a_picture_are_written_as_they_are() -> None:
    drawn = ET.fromstring(bars(PICTURE, ["$x_1^2$", "<b>", "a\\nb", "%s"], [Series("n", [1, 2, 3, 4])], "n"))
    assert {"$x_1^2$", "<b>", "a\\nb", "%s"} <= {element.text for element in drawn.iter("text")}


def test_a_legend_names_every_series() -> None:
    drawn = ET.fromstring(lines(PICTURE, [(name, [(DAY, 1.0)]) for name in ("_east", "west", "")], "imbalance"))
    assert {" _east", "west"} <= {element.text for element in drawn.iter("text")}


def test_equal_labels_have_a_bar_each() -> None:
    drawn = bars(PICTURE, ["same", "same", "same"], [Series("n", [1, 2, 3])], "n")
    assert drawn.count(">same</text>") == 3


def test_a_picture_has_no_namespace_no_link_and_only_ids_of_its_own() -> None:
    drawn = bars(PICTURE, ["a", "b"], [Series("n", [1, 2]), Series("m", [2, 3])], "n")
    assert "xmlns" not in drawn
    assert "http" not in drawn
    ids = [element.get("id") for element in ET.fromstring(drawn).iter() if element.get("id")]
    assert all((one or "").startswith("one-") for one in ids)
    assert len(ids) == len(set(ids))
    assert all(f"#{one}" in drawn for one in ids if one not in ("one-title", "one-desc"))


def test_series_differ_by_more_than_colour() -> None:
    two = bars(PICTURE, ["a"], [Series("n", [1]), Series("m", [2])], "n")
    assert "<pattern" in two
    assert "<pattern" not in bars(PICTURE, ["a"], [Series("n", [1])], "n")


@pytest.mark.parametrize("values", [[0, 0], [None, None], [1e12, 1], [0.001, 0.002]])
def test_odd_numbers_are_drawn(values: list[float | None]) -> None:
    assert bars(PICTURE, ["a", "b"], [Series("n", values)], "n").startswith("<svg")
    assert bars(PICTURE, ["a", "b"], [Series("n", values)], "n", start=1).startswith("<svg")


def test_pictures_do_not_depend_on_the_hash_seed_the_settings_or_the_time_zone(tmp_path: os.PathLike[str]) -> None:
    code = (
        "import datetime as dt\n"
        "from rmqlb.pipeline.report.charts import *\n"
        "one = Picture('one', 'title', 'description')\n"
        "day = dt.date(2026, 3, 29)\n"
        "print(bars(one, ['a', '订单'], [Series('n', [1, 2]), Series('m', [3, 4])], 'n'))\n"
        "print(days(one, [day, day + dt.timedelta(1)], [Series('n', [1, 2])], [Series('m', [3, 4])], 'n'))\n"
    )
    with open(os.path.join(tmp_path, "matplotlibrc"), "w") as settings:
        settings.write("font.size: 20\nsvg.fonttype: path\naxes.facecolor: red\n")
    outputs = []
    for more in (
        {"PYTHONHASHSEED": "1", "TZ": "UTC"},
        {"PYTHONHASHSEED": "2", "TZ": "America/New_York", "MATPLOTLIBRC": str(tmp_path), "MPLBACKEND": "svg"},
    ):
        done = subprocess.run(
            [sys.executable, "-c", code], env={**os.environ, **more}, capture_output=True, text=True, check=True
        )
        assert done.stderr == ""
        outputs.append(done.stdout)
    assert outputs[0] == outputs[1]


def test_one_day_alone_is_a_picture() -> None:
    shown = sections(Figures(moves=(MovesDay(DAY, 1, 0, 0, 8),)))
    assert [one.name for one in shown] == ["moves", "tables"]
    assert "2026" in shown[0].pictures[0]


def test_a_trend_of_unknown_imbalance_is_a_table_without_a_picture() -> None:
    (trend, _) = sections(Figures(trend=(TrendDay("c", DAY, 3, None, None, None, 2),)))
    assert (trend.name, trend.pictures) == ("trend", ())
    assert [grid.rows[0][0] for grid in trend.grids] == ["c"]


def test_producers_that_could_not_be_simulated_are_not_said_to_lose_nothing() -> None:
    (sends, _) = sections(Figures(scenarios=(Scenario("a", False, 3, 0, None, None, None, None),)))
    assert sends.seen == ("Nothing: no topic has a producer that can be simulated.",)
    assert sends.pictures == ()


def test_the_subtitle_says_which_days() -> None:
    def cluster(first: dt.date | None, last: dt.date | None) -> Cluster:
        return Cluster("c", 1, first, last, None, None, None, None, None)

    def shown(*clusters: Cluster) -> str:
        return subtitle(Figures(clusters=clusters))

    assert shown() == "No cluster was read."
    assert shown(cluster(None, None)) == "1 cluster, snapshots of unknown date"
    assert shown(cluster(DAY, DAY)) == "1 cluster, snapshots of 2026-03-02"
    later = DAY + dt.timedelta(days=3)
    assert shown(cluster(DAY, DAY), cluster(None, later)) == "2 clusters, snapshots of 2026-03-02 to 2026-03-05"


def test_figures_of_tables_that_are_not_there_are_not_at_the_top() -> None:
    assert facts(Figures()) == (("clusters", 0),)
