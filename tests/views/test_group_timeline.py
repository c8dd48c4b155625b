"""The picture in characters says what the intervals say, and fits."""

from __future__ import annotations

import re
from itertools import pairwise
from string import ascii_letters

from hypothesis import given
from hypothesis import strategies as st

from rmqlb.model.group_scenario import SECOND_US, Event, GroupScenario
from rmqlb.model.simulate_rebalance import RebalanceResult
from rmqlb.views.report import Section
from rmqlb.views.simulate_rebalance import group_report
from rmqlb.views.timeline import (
    AnyInterval,
    begin_of,
    round_edges,
    strips,
    ticks,
    timeline_section,
)
from tests.support.builders import queues
from tests.support.group_builders import interval as spell
from tests.support.group_builders import measured, simulated, timeline
from tests.support.mismatches import every_case
from tests.views.shown import on_a_terminal

BADNESS = {"one": 0, "gone": 1, "outage": 2, "unassigned": 3, "duplicate-owners": 4}
EARLY = Event("leave", 0, "b", "leave b@0s")


def drawn(report: RebalanceResult, length: int = 72) -> Section:
    section = timeline_section(report)
    assert section.draw is not None
    return section.draw(length)


def strip_of(section: Section, place: int = -1) -> str:
    shown = section.rows[place][3]
    assert isinstance(shown, str)
    assert shown[0] == shown[-1] == "|"
    return shown[1:-1]


def test_a_letter_a_member_blank_for_none_and_marks_for_several_and_gone() -> None:
    report = simulated({"broker-a 0": "aa  b!!b..a"}, events=[EARLY])
    assert strip_of(drawn(report, 13)) == "aa  b!!b..a"


@every_case(
    ("strip", "shown"),
    [("a!aa", "!"), ("a aa", " "), ("a! a", "!"), (" .aa", " "), ("a.aa", "."), ("aaab", "b"), ("aa  ", " ")],
)
def test_a_slice_shows_the_worst_that_is_in_it(strip: str, shown: str) -> None:
    edges = (0, 4 * SECOND_US)
    (only,) = strips(simulated({"broker-a 0": strip}), edges, fold=False)
    assert sign(only.slices[0]) == shown


def test_the_picture_begins_shortly_before_the_first_event() -> None:
    report = simulated({"broker-a 0": "a" * 30 + "  bbb"}, events=[Event("leave", 30 * SECOND_US, "a")])
    assert 29 * SECOND_US < begin_of(report) < 30 * SECOND_US
    assert drawn(report).title.startswith("timeline from 29.")


@given(st.integers(0, 10**10), st.integers(1, 10**10), st.integers(1, 40))
def test_ticks_are_between_the_ends_and_not_too_many(begin: int, length: int, most: int) -> None:
    found = ticks(begin, begin + length, most)
    assert all(begin <= tick <= begin + length for tick in found)
    assert len(found) <= most + 1
    assert len({after - before for before, after in pairwise(found)}) <= 1


@given(st.integers(0, 10**11), st.integers(0, 10**11), st.integers(2, 200))
def test_round_slices_cover_the_time_and_are_not_too_many(begin: int, length: int, most: int) -> None:
    edges = round_edges(begin, begin + length, most)
    assert edges[0] <= begin
    assert edges[-1] == begin + length
    assert len(edges) - 1 <= most
    assert len(set(edges)) == len(edges)
    whole = {after - before for before, after in pairwise(edges[:-1])}
    assert len(whole) <= 1
    if len(edges) > 2:
        assert edges[-1] - edges[-2] <= edges[1] - edges[0]
        assert len(edges) - 1 >= min(most, length) * 0.4


STRIPS = st.text("ab !.", min_size=1, max_size=60)


@given(st.lists(STRIPS, min_size=1, max_size=40), st.integers(12, 90), st.integers(0, 60))
def test_every_character_agrees_with_the_intervals_that_it_covers(drawn_: list[str], length: int, at: int) -> None:
    longest = max(map(len, drawn_))
    lines = [timeline(strip.ljust(longest, "a"), queue) for queue, strip in zip(queues(40), drawn_, strict=False)]
    report = simulated(lines, events=[Event("join", at * SECOND_US, "b")])
    edges = round_edges(begin_of(report), report.end_us, length - 2)
    rows = [row for row in drawn(report, length).rows if row[1] == "broker-a"]
    shown: dict[int, str] = {}
    for row in rows:
        first, _, last = str(row[2]).partition("-")
        for queue_id in range(int(first), int(last or first) + 1):
            shown[queue_id] = str(row[3])[1:-1]
    assert sorted(shown) == list(range(len(lines)))
    for line in lines:
        strip = shown[line.queue.queue_id]
        assert len(strip) == len(edges) - 1
        for place, character in enumerate(strip):
            covered = [i for i in line.intervals if i.from_us < edges[place + 1] and i.to_us > edges[place]]
            worst = max(BADNESS[interval.state] for interval in covered)
            fits = [interval for interval in covered if BADNESS[interval.state] == worst]
            assert character in {sign(interval, tuple(report.client_ids)) for interval in fits}


def sign(interval: AnyInterval, members: tuple[str, ...] = ("a", "b")) -> str:
    letters = dict(zip(members, ascii_letters, strict=False))
    return {"duplicate-owners": "!", "unassigned": " ", "gone": "."}.get(interval.state) or letters[interval.owners[0]]


def test_of_many_rows_the_worst_are_shown_and_the_others_on_demand() -> None:
    lines = [
        timeline("a" * 9 + "b" * (place % 2) + " " * (place == 90), queue) for place, queue in enumerate(queues(100))
    ]
    lines = [
        measured(line.queue, [*line.intervals, spell(line.intervals[-1].to_us, 12 * SECOND_US, "one", ("c",))])
        for line in lines
    ]
    report = group_report(simulated(lines))
    text = on_a_terminal(report, 80)
    assert re.search(r"broker-a +90 +\|", text)
    assert not re.search(r"broker-a +89 +\|", text)
    assert "and 99 more: --section timeline shows all" in text
    assert len(re.findall(r"broker-a +\d+ +\|", on_a_terminal(report, 80, "timeline"))) == 100


def test_broadcasting_counts_its_readers_and_shows_the_fewest_of_a_slice() -> None:
    scenario = GroupScenario(broadcasting=True)
    report = simulated({"broker-a 0": "222 3313.99"}, scenario=scenario, events=[EARLY])
    assert strip_of(drawn(report, 13)) == "222 3313.99"
    (coarse,) = strips(report, (0, 4 * SECOND_US, 8 * SECOND_US, 11 * SECOND_US), fold=False)
    assert [(one.state, len(one.owners)) for one in coarse.slices] == [("unassigned", 0), ("one", 1), ("gone", 0)]


@every_case("width", [12, 20, 31, 40, 60, 80, 133, 250])
@every_case("broker", ["b", "broker-with-a-rather-long-name", "经纪人" * 5])
def test_the_picture_fits_its_terminal_and_uses_it(width: int, broker: str) -> None:
    report = group_report(simulated({f"{broker} 0": "aa  bbbb!b" * 20, f"{broker} 10": "b" * 200}))
    text = on_a_terminal(report, width, "timeline")
    from rich.cells import cell_len

    assert max(map(cell_len, text.splitlines()[1:])) <= width
    longest = max(len(strip) for strip in re.findall(r"\|[^|\n]*\|", text))
    assert longest >= min(width - 4, 162) * (0.3 if cell_len(broker) > 10 else 0.5)
