"""Values → page and pictures, without Spark."""

from __future__ import annotations

import datetime as dt
import os
import re
import subprocess
import sys
from typing import Any
from unicodedata import category
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from rmqlb.pipeline.report.charts import Picture, Series, bars, days, histograms, lines, steps
from rmqlb.pipeline.report.contents import Figures, Quarantined, facts, sections, subtitle, to_do, verdict
from rmqlb.pipeline.report.page import Grid, Section, cell, page, said
from rmqlb.pipeline.report.subject_clusters import Cluster
from rmqlb.pipeline.report.subject_groups import GroupScore, Totals, Worst
from rmqlb.pipeline.report.subject_history import Flapping, MovesDay, TrendDay
from rmqlb.pipeline.report.subject_overview import LeftOut, codes_of, status_of
from rmqlb.pipeline.report.subject_pop import PopGroup
from rmqlb.pipeline.report.subject_sends import Scenario
from rmqlb.pipeline.report.subject_sizes import GroupLosses, GroupSizeRow, LossTotals, SizeTotals
from rmqlb.views.explanations import explanations
from tests.pipeline.report_rows import DAY, HOSTILE

pytestmark = pytest.mark.spark

CATALOGUE = explanations()
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
    (trend, _) = sections(Figures(trend=(TrendDay("c", DAY, "s", None, 3, None, None, None, 2),)))
    assert (trend.name, trend.pictures) == ("trend", ())
    assert [grid.rows[0][0] for grid in trend.grids] == ["c"]


def test_producers_that_could_not_be_simulated_are_not_said_to_lose_nothing() -> None:
    (sends, _) = sections(Figures(scenarios=(Scenario("c", "a", False, 3, 0, None, None, None, None),)))
    assert sends.seen == ("Nothing: no topic has a producer that can be simulated.",)
    assert sends.pictures == ()


def test_the_subtitle_says_which_days() -> None:
    def cluster(last: dt.date | None, judged: dt.date | None) -> Cluster:
        return Cluster("c", 1, None, last, judged, None, None, None, None, None)

    def shown(*clusters: Cluster) -> str:
        return subtitle(Figures(clusters=clusters))

    assert shown() == "No cluster was read."
    assert shown(cluster(None, None)) == "1 cluster, each by its last snapshot, of unknown date"
    assert shown(cluster(DAY, DAY)) == "1 cluster, each by its last snapshot, of 2026-03-02"
    later = DAY + dt.timedelta(days=3)
    span = "2026-03-02 to 2026-03-05"
    assert shown(cluster(later, DAY), cluster(later, None)) == f"2 clusters, each by its last snapshot, of {span}"


def test_clusters_that_are_out_of_date_are_no_calm() -> None:
    def cluster(name: str, age: int | None, judged: int | None) -> Cluster:
        last, of_judged = (None if days is None else DAY - dt.timedelta(days=days) for days in (age, judged))
        return Cluster(name, 1, None, last, of_judged, None, None, None, None, None)

    of_two = Figures(clusters=(cluster("a", 0, 0), cluster("b", 1, None), cluster("c", None, None)))
    assert {fact.what: fact.value for fact in facts(of_two)} == {"clusters": 3}
    old = Figures(clusters=(cluster("a", 0, 1), cluster("b", 2, 2), cluster("c", 0, 0)))
    assert [(fact.what, fact.value, fact.status) for fact in facts(old)][1:] == [("clusters out of date", 2, "warning")]
    section = next(one for one in sections(old) if one.name == "clusters")
    assert [row[:2] for row in section.grids[0].rows] == [("warning", "a"), ("warning", "b"), ("", "c")]
    assert "2 clusters out of date" in section.seen[0]
    assert "Also: clusters out of date 2." in " ".join(verdict(old).sentences)


def test_the_verdict_is_no_wrong_calm() -> None:
    def said_of(left_out: int = 0, **more: int) -> tuple[str, str]:
        sample = found().worst
        assert sample is not None
        totals = replace(sample.totals, **{"groups": 5, "observed": 9, "wrong": 0, **more})
        its = verdict(Figures(worst=replace(sample, totals=totals), number_left_out=left_out))
        return its.status, " ".join(its.sentences)

    quiet = dict.fromkeys(("idle", "imbalanced", "mismatches"), 0)
    assert said_of(**quiet) == ("inOrder", "Each queue of 5 groups has one owner.")
    assert said_of(**quiet, wrong=1) == (
        "error",
        "In 1 group of 5 there are queues unassigned or with duplicate owners.",
    )
    assert said_of(**{**quiet, "idle": 3}) == (
        "warning",
        "Each queue of 5 groups has one owner. Also: idle consumers 3.",
    )
    assert "That is predicted" in said_of(**quiet, observed=0)[1]
    assert said_of(2, **quiet)[1].endswith("Of 2 groups left out nothing is said.")
    assert said_of(**quiet, groups=0)[0] == verdict(Figures()).status == "warning"


def test_figures_of_tables_that_are_not_there_are_not_at_the_top() -> None:
    assert [(fact.what, fact.value) for fact in facts(Figures())] == [("clusters", 0)]


def group(name: str, **figures: Any) -> GroupScore:
    """A group of cluster east with 4 consumers and 8 queues; what is not named is unknown."""
    known = {"consumers": 4, "queues": 8, "strategy": "AVG", **figures}
    fields: dict[str, Any] = {field: known.get(field) for field in GroupScore.__struct_fields__}
    return GroupScore(**{**fields, "cluster": "east", "group": name})


def found(*groups: GroupScore, files: dict[str, str] | None = None, **lists: tuple[GroupScore, ...]) -> Figures:
    """The figures of these groups, each in the lists that are named."""
    numbers = dict.fromkeys(Totals.__struct_fields__, 0)
    every = {name: lists.get(name, ()) for name in Worst.__struct_fields__ if name not in ("totals", "groups")}
    worst = Worst(Totals(**{**numbers, "groups": 30}), **every, groups=groups)
    return Figures(worst=worst, files=files or {})


STUCK = group("stuck", observed=8, observed_unassigned=3, unassigned=2, lag=90)
SPLIT = group("split", observed=8, observed_duplicate_owners=2, mismatches=2)
SLOW = group("slow; rm -rf", lag=100, max_lag_per_consumer=80, lag_share=0.8)
LAZY = group("lazy", consumers=9, idle=1, most_queues=8)


def test_the_first_things_to_do_are_the_worst_findings_each_group_once_with_its_command() -> None:
    shown = found(
        files={"east": "dumps/a b.json"},
        mismatches=(STUCK, SPLIT), unassigned=(STUCK,), one_consumer=(SLOW,), idle=(LAZY,), imbalanced=(group("even", imbalance=1.2),),
    )  # fmt: skip
    assert [(one.status, one.code, re.sub("<.*?>", "", one.what), one.command) for one in to_do(shown)] == [
        ("error", "unassigned-queues", "stuck in east: 3 of 8 observed queues have no owner.", "rmqlb show-consumers -s 'dumps/a b.json' -g stuck"),
        ("error", "duplicate-owners", "split in east: 2 of 8 observed queues have duplicate owners.", "rmqlb show-consumers -s 'dumps/a b.json' -g split"),
        ("warning", "uneven-lag", "slow; rm -rf in east: 80 of 100 unread messages wait for one of 4 consumers.", "rmqlb show-consumers -s 'dumps/a b.json' -g 'slow; rm -rf'"),
    ]  # fmt: skip


def test_what_costs_comes_last_and_what_could_not_be_read_is_to_do_too() -> None:
    uneven = group("uneven", imbalance=2.5)
    shown = found(idle=(LAZY,), imbalanced=(uneven, group("even", imbalance=1.2)))
    assert [(one.code, one.command) for one in to_do(shown)] == [
        ("more-consumers-than-queues", "rmqlb show-owners -s SOURCE -g lazy"),
        ("imbalanced", "rmqlb show-owners -s SOURCE -g uneven"),
    ]
    unread = replace(shown, quarantine=(Quarantined("x.json", 1, 9, "no JSON"), Quarantined("x.json", 2, 9, "no JSON")))
    assert [(one.code, one.command) for one in to_do(unread)][2:] == [("quarantined", "rmqlb show-groups -s x.json")]
    assert to_do(found()) == to_do(Figures()) == ()


@pytest.mark.parametrize(
    ("figures", "codes"),
    [
        ({}, []),
        ({"has_duplicate_client_ids": True, "unassigned": 1}, ["duplicate-client-id", "unassigned-queues"]),
        ({"has_split_view": True, "observed_duplicate_owners": 1}, ["split-consumer-view", "duplicate-owners"]),
        ({"mixed_strategies": True, "duplicate_owners": 1}, ["mixed-strategies", "duplicate-owners"]),
        ({"mixed_subscriptions": True, "observed_unassigned": 1}, ["subscription-mismatch", "unassigned-queues"]),
        ({"mismatches": 1}, ["mismatch"]),
        ({"lag_share": 0.51}, ["uneven-lag"]),
        ({"lag_share": 0.5}, []),
        ({"lag_share": 1.0, "consumers": 1}, []),
        ({"idle": 1, "consumers": 9, "most_queues": 8, "imbalance": 2.0}, ["more-consumers-than-queues"]),
        ({"idle": 1, "consumers": 8, "most_queues": 8, "imbalance": 2.0}, ["idle-by-strategy"]),
        ({"idle": 1}, []),  # which of the two is unknown
        ({"imbalance": 2.0}, ["imbalanced"]),
        ({"imbalance": 1.99}, []),
        ({"consumers": 0, "unassigned": 8, "queues": 8, "most_queues": 8}, ["no-consumer-online"]),
    ],
)
def test_what_is_the_case_in_a_group_has_the_codes_of_a_diagnosis(figures: dict[str, Any], codes: list[str]) -> None:
    one = group("g", **figures)
    assert list(codes_of(one)) == codes
    assert (status_of(one) == "inOrder") == (not codes and not one.idle)
    assert {*codes} <= CATALOGUE.keys()


def test_several_client_libraries_alone_are_nothing_bad() -> None:
    mixed = group("g", mixed_sdks=True)
    assert (list(codes_of(mixed)), status_of(mixed)) == (["mixed-sdks"], "inOrder")
    assert status_of(replace(mixed, unassigned=1)) == "error"
    assert status_of(replace(mixed, mismatches=1)) == "warning"


def test_what_is_consumed_by_pop_has_a_section_of_its_own() -> None:
    one = PopGroup("east", "g", "T", "AVG", "1", 3, 2, 0)
    (section,) = [each for each in sections(Figures(by_pop=(one,))) if each.name == "pop"]
    assert section.codes == ("pop-consumption",)
    assert {*section.codes} <= CATALOGUE.keys()
    assert not [each for each in sections(Figures()) if each.name == "pop"]


def test_a_group_without_a_consumer_is_said_to_have_none() -> None:
    nobody = group("gone", consumers=0, queues=8, unassigned=8)
    (one,) = to_do(found(unassigned=(nobody,)))
    text = "gone in east: no broker lists a consumer; 8 of 8 queues unassigned."
    assert (one.status, one.code, re.sub("<.*?>", "", one.what)) == ("error", "no-consumer-online", text)
    (one,) = to_do(found(mismatches=(group("gone", consumers=0, observed=8, observed_unassigned=8),)))
    assert one.code == "no-consumer-online"


def test_sections_and_things_to_do_show_codes_that_can_be_looked_up() -> None:
    shown = found(
        STUCK, mismatches=(STUCK,), unassigned=(STUCK,), one_consumer=(SLOW,), idle=(LAZY,), imbalanced=(SLOW,)
    )
    assert shown.worst is not None
    totals = replace(shown.worst.totals, unassigned=2, imbalanced=1, observed=8, observed_unassigned=3, mismatches=0)
    flaps = Flapping("east", "g", 1, 1, 1, 1, 1.0)
    whole = replace(
        shown,
        worst=replace(shown.worst, totals=totals),
        flapping=(flaps,), flaps=1, quarantine=(Quarantined("x", 1, 9, "no JSON"),), quarantined=1,
    )  # fmt: skip
    by_name = {section.name: section.codes for section in sections(whole) if section.codes}
    assert by_name == {
        "unassigned": ("unassigned-queues",),
        "mismatches": ("unassigned-queues",),
        "imbalanced": ("imbalanced",),
        "idle": ("more-consumers-than-queues",),
        "lag": ("uneven-lag",),
        "flapping": ("flapping",),
        "quarantine": ("quarantined",),
    }
    html = page("T", said("s"), (), sections(whole), to_do(whole))
    assert set(re.findall(r"<small> ?\[(.*?)\]</small>", html)) <= CATALOGUE.keys()
    assert (html.count("<small>[uneven-lag]"), html.count("<small> [uneven-lag]")) == (1, 1)
    assert "rmqlb explain CODE" in html
    assert not {code for section in sections(found()) for code in section.codes}


def test_what_to_do_stands_above_all_sections() -> None:
    shown = found(mismatches=(STUCK,))
    html = page("T", said("s"), facts(shown), sections(shown), to_do(shown))
    assert html.index("First thing to do") < html.index("<nav")
    assert "First thing" not in page("T", said("s"), (), ())


def test_a_group_has_one_row_that_links_to_each_section_that_lists_it() -> None:
    shown = found(STUCK, LAZY, mismatches=(STUCK,), unassigned=(STUCK,), idle=(LAZY,))
    by_name = {section.name: section for section in sections(shown)}
    (grid,) = by_name["groups"].grids
    assert [row[:1] + row[2:] for row in grid.rows] == [
        (
            "error",
            "stuck",
            "unassigned-queues",
            (("unassigned", "unassigned"), ("mismatches", "mismatches")),
            4,
            8,
            90,
            3,
            None,
            None,
            None,
        ),
        ("warning", "lazy", "more-consumers-than-queues", (("idle", "idle"),), 9, 8, None, None, None, 1, None),
    ]
    html = one_page(*sections(shown))
    links = set(re.findall('href="#(.*?)"', html))
    assert links <= set(re.findall('id="(.*?)"', html))
    assert "the first 2" in by_name["groups"].seen[0]


def test_groups_left_out_are_named_with_their_reason() -> None:
    left = (LeftOut("east", "b<r>oadcast", "it is BROADCASTING", "broadcasting-group"),)
    shown = replace(found(), left_out=left, number_left_out=8)
    section = next(one for one in sections(shown) if one.name == "left-out")
    assert section.seen == ("8 groups of the snapshots in no figure of this page. The list has the first 1.",)
    assert section.grids[0].rows == (("east", "b<r>oadcast", "it is BROADCASTING", "broadcasting-group"),)
    assert ("groups left out", 8) in [(fact.what, fact.value) for fact in facts(shown)]
    assert "left-out" not in {one.name for one in sections(found())}
    nothing = replace(found(), left_out=())
    assert "Nothing: every group" in next(one for one in sections(nothing) if one.name == "left-out").seen[0]


def test_a_figure_that_ought_to_be_nothing_and_is_not_has_a_sign() -> None:
    totals = dict.fromkeys(Totals.__struct_fields__, 1)
    sample = found().worst
    assert sample is not None
    worst = replace(sample, totals=Totals(**totals))
    bad = Figures(worst=worst, left_out=(), number_left_out=1, flapping=(), flaps=1, quarantine=(), quarantined=1)
    neutral = {"clusters", "groups", "groups left out"}
    assert {fact.what for fact in facts(bad) if not fact.status} == neutral
    assert {fact.status for fact in facts(bad) if fact.what not in neutral} == {"error", "warning"}
    assert 'aria-label="error">✗</span> 1' in page("T", said("s"), [replace(fact, query="") for fact in facts(bad)], ())
    good = Figures(worst=found().worst, flapping=(), quarantine=())
    assert {fact.status for fact in facts(good) if fact.what not in neutral} == {"inOrder"}


def test_a_figure_that_no_loss_makes_worse_is_not_unknown() -> None:
    lost = GroupLosses("east", "g", "AVG", 5, 1, 8, 1.0, None, 0, 0, None)
    shown = sections(Figures(loss_totals=LossTotals(3, 1, 1), losses=(lost,)))[0]
    assert shown.seen == ("In 1 group of 3 a limit is broken as soon as one consumer, broker, master or host is lost.",)
    assert shown.grids[0].rows[0][6:] == (1.0, "no loss", 0, 0, "no loss")


def test_what_is_said_of_sizes_agrees_with_their_number() -> None:
    row = GroupSizeRow("east", "g", "AVG", "java", 8, 0, None, 1, None, 1)
    (shown, _) = sections(Figures(size_totals=SizeTotals(9, 2, 0), sizes=(row,)))
    assert shown.seen == ("2 groups of 9 should have another number of consumers.",)
    assert shown.grids[0].rows[0][-1] == "no consumer"
    (shown, _) = sections(Figures(size_totals=SizeTotals(9, 2, 1), sizes=(row,)))
    assert shown.seen[0].endswith("; in 1 group any number up to the queues of the largest topic breaks a limit.")
    (shown, _) = sections(Figures(size_totals=SizeTotals(9, 0, 0)))
    assert shown.seen == ("Nothing: every group&#39;s number of consumers keeps the limits.",)
