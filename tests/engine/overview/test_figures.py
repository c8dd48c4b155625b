"""What `--fail-on` can ask of groups: what is certain decides, and only then what is not known."""

from __future__ import annotations

import pytest

from rmqlb.engine.allocate.strategy import Settings
from rmqlb.engine.fail_on_figures.conditions import parse_condition
from rmqlb.engine.fail_on_figures.of_groups import GROUPS_FIGURES, try_on_groups
from rmqlb.engine.overview.groups import all_groups, overview
from rmqlb.errors import UsageError
from rmqlb.model.group import ConsumerGroup
from tests.engine.check.clusters import cluster, members

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


@pytest.mark.parametrize(
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


def test_what_is_not_known_can_only_add() -> None:
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
