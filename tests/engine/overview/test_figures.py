"""What `--fail-on` can ask of groups: what is certain decides, and only then what is not known."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from rmqlb.engine.allocate.strategy import Settings
from rmqlb.engine.fail_on_figures.conditions import parse_condition
from rmqlb.engine.group import all_groups
from rmqlb.engine.show_groups import GROUPS_FIGURES, overview, try_on_groups
from rmqlb.errors import UsageError
from rmqlb.model.group import ConsumerGroup
from rmqlb.model.groups import GroupLine
from tests.engine.check.clusters import cluster, members
from tests.support.mismatches import every_case

FINE = members("x y", name="fine", owners="x x y y", lag={0: 5, 1: 0, 2: 0, 3: 0})
BAD = members("x x", name="bad", owners="x x - -", lag={0: 1, 1: 0, 2: 0, 3: 0})
POP = members("x", name="pop", consume_type="CONSUME_POP", lag={0: 2, 1: 0, 2: 0, 3: 0})
GONE = members("", name="gone", owners="- - - -", lag={0: 0, 1: 0, 2: 0, 3: 0})
PULLS = members("x", name="pulls", consume_type="CONSUME_ACTIVELY")


def tried(text: str, *groups: ConsumerGroup) -> tuple[float | None, bool | None]:
    snapshot = cluster(*groups)
    lines = overview(snapshot, all_groups(snapshot), Settings()).groups
    found = try_on_groups(parse_condition(text, GROUPS_FIGURES), lines)
    return found.value, found.met


@every_case(
    ("text", "value", "met"),
    [
        ("groups-with-errors>0", 1, True),
        ("groups-with-errors>=25%", 25, True),
        ("groups-with-warnings>0", 0, False),
        ("groups-unknown==1", 1, True),
        ("groups-offline>1", 1, False),
        ("unassigned>1", 2, True),
        ("duplicateClientIds=1", 1, True),
        ("lag<8", 8, False),
        ("lag[pop]>1", 2, True),
        ("unassigned[pop]>0", None, None),
        ("consumers[bad]<2", 1, True),
        ("processes[bad]<2", 2, False),
        ("imbalance>1", 1, False),
    ],
)
def test_figures_of_all_and_of_one(text: str, value: float | None, met: bool | None) -> None:
    assert tried(text, FINE, BAD, POP, GONE) == (value, met)


ONE = GroupLine(
    "one",
    "error",
    consumers=3,
    processes=4,
    queues=5,
    lag=6,
    lag_at_least=60,
    unassigned=7,
    duplicate_owners=8,
    idle=9,
    basis="observed",
    duplicate_client_ids=10,
    mismatches=11,
    imbalance=1.5,
)
TWO = GroupLine(
    "two",
    "warning",
    lag=600,
    unassigned=700,
    duplicate_owners=800,
    idle=900,
    basis="observed",
    duplicate_client_ids=1000,
    mismatches=1100,
    imbalance=1.25,
)


@every_case(
    ("name", "of_one", "of_both"),
    [
        ("consumers", 3, None),
        ("processes", 4, None),
        ("queues", 5, None),
        ("lag", 6, 606),
        ("unassigned", 7, 707),
        ("duplicate-owners", 8, 808),
        ("idle", 9, 909),
        ("duplicate-client-ids", 10, 1010),
        ("mismatches", 11, 1111),
        ("imbalance", 1.5, 1.5),
    ],
)
def test_each_figure_of_groups_is_its_own(name: str, of_one: float, of_both: float | None) -> None:
    assert try_on_groups(parse_condition(f"{name}[one]>0", GROUPS_FIGURES), (TWO, ONE)).value == of_one
    if of_both is not None:
        assert try_on_groups(parse_condition(f"{name}>0", GROUPS_FIGURES), (TWO, ONE)).value == of_both


@every_case(
    ("name", "broadcasting", "pop", "proxy", "offline"),
    [
        ("lag", 600, 606, 606, 606),
        ("unassigned", 700, 700, 700, 700),
        ("duplicate-owners", 800, 800, 800, 808),
        ("idle", 909, 900, 900, 909),
        ("duplicate-client-ids", 1010, 1010, 1010, 1010),
        ("mismatches", 1100, 1100, 1100, 1111),
        ("imbalance", 1.25, 1.25, 1.25, 1.5),
    ],
)
def test_a_group_adds_only_to_figures_that_it_can_have(
    name: str, broadcasting: float, pop: float, proxy: float, offline: float
) -> None:
    """Each consumer of a broadcasting group owns every queue; nobody owns those that are consumed by POP or a Proxy."""
    ones = (
        replace(ONE, message_model="BROADCASTING"),
        replace(ONE, shares_queues=False),
        replace(ONE, shares_queues=False, basis=None),
        replace(ONE, status="offline"),
    )
    condition = parse_condition(f"{name}>0", GROUPS_FIGURES)
    assert [try_on_groups(condition, (one, TWO)).value for one in ones] == [broadcasting, pop, proxy, offline]


def test_queues_that_nobody_reads_are_even_and_those_not_known_are_unknown() -> None:
    idle, unknown = replace(ONE, imbalance=None), replace(ONE, imbalance=None, basis=None)
    for text, lines, value, met in (
        ("imbalance[one]>0", (idle,), 0, False),
        ("imbalance[one]>0", (unknown,), None, None),
        ("imbalance>1", (unknown, TWO), 1.25, True),
        ("imbalance>2", (unknown, TWO), None, None),
        ("imbalance>=1", (), None, None),
        ("lag>=0", (), 0, True),
    ):
        found = try_on_groups(parse_condition(text, GROUPS_FIGURES), lines)
        assert (found.value, found.met) == (value, met)


def test_what_is_not_known_can_only_add() -> None:
    assert tried("unassigned>=2", BAD, PULLS) == (2, True)
    assert tried("unassigned<=1", BAD, PULLS) == (2, False)
    assert tried("unassigned<=2", BAD, PULLS) == (None, None)
    assert tried("unassigned>1", BAD, PULLS) == (2, True)
    assert tried("unassigned<2", BAD, PULLS) == (2, False)
    assert tried("unassigned>2", BAD, PULLS) == (None, None)
    assert tried("unassigned=2", BAD, PULLS) == (None, None)
    assert tried("unassigned!=2", BAD, PULLS) == (None, None)
    assert tried("lag>0", FINE, PULLS) == (5, True)


def test_a_group_that_is_not_there() -> None:
    with pytest.raises(UsageError) as raised:
        tried("lag[fines]>0", FINE)
    assert (raised.value.message, raised.value.hint) == (
        "--fail-on 'lag[fines]>0': group fines is not looked at",
        "did you mean fine?",
    )


def test_a_group_without_a_visible_consumer_adds_nothing_to_figures_of_owners() -> None:
    """It may be behind a Proxy: its queues are unknown, and the figures of the others stand."""
    nobody = replace(
        ONE, consumers=0, unassigned=None, idle=None, mismatches=None, duplicate_owners=None, imbalance=None
    )
    nobody = replace(nobody, basis=None)
    for name in ("unassigned", "idle", "mismatches", "duplicate-owners", "imbalance"):
        condition = parse_condition(f"{name}>0", GROUPS_FIGURES)
        assert try_on_groups(condition, (nobody, TWO)).value == try_on_groups(condition, (TWO,)).value
        assert try_on_groups(parse_condition(f"{name}[one]>0", GROUPS_FIGURES), (nobody,)).value == 0
    asked = replace(nobody, unassigned=4)
    both = try_on_groups(parse_condition("unassigned>0", GROUPS_FIGURES), (asked, TWO)).value
    assert both == 4 + (TWO.unassigned or 0)
