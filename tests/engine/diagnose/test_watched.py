"""Faults that show in what consumers report, and in several looks: each is named first, and what comes of it is not."""

from __future__ import annotations

from rmqlb.engine.diagnose.diagnose import wants_another
from tests.engine.diagnose.consuming import Reporting, earlier, watched
from tests.engine.diagnose.running import diagnosed, evidence_of, grave
from tests.engine.diagnose.watched_faults import ORDERLY, PAIR, WATCHED_FAULTS, WATCHED_PAIRS, Looks
from tests.support.mismatches import every_case

CONSEQUENCES = {
    "frozen-consumer": {"lag-stalled"},
    "consume-failing": {"head-blocked", "lag-stalled"},
    "blocked-consumer": {"head-blocked", "lag-stalled"},
    "head-blocked": {"lag-stalled"},
    "pull-stopped": {"lag-stalled"},
    "lock-lost": {"head-blocked", "lag-stalled"},
    "dropped-but-consuming": set[str](),
    "hot-queue": {"lag-growing", "flow-control"},
    "slow-consumer": {"lag-growing"},
    "flow-control": {"lag-growing"},
    "lag-growing": set[str](),
    "lag-stalled": set[str](),
}


@every_case("code", WATCHED_FAULTS)
def test_a_fault_is_named_alone_and_what_comes_of_it_is_not_a_cause(code: str) -> None:
    looks = WATCHED_FAULTS[code]
    found = diagnosed(looks[-1], earlier=earlier(looks))
    assert grave(found) == [code]
    assert [each.code for each in found.findings] == [code]
    assert {each.code: each.causes for each in found.consequences} == dict.fromkeys(CONSEQUENCES[code], (code,))


@every_case("name", WATCHED_PAIRS)
def test_two_faults_at_once_are_both_named(name: str) -> None:
    looks, codes = WATCHED_PAIRS[name]
    assert set(grave(diagnosed(looks[-1], earlier=earlier(looks)))) == codes


HEALTHY = {
    "concurrent": watched(PAIR),
    "orderly": watched(PAIR, reporting=ORDERLY),
    "a clock 5 minutes behind": watched(PAIR, reporting={"x": Reporting(skew_s=-300)}),
    "a clock 5 minutes ahead": watched(PAIR, reporting={"x": Reporting(skew_s=300)}),
}


@every_case("name", HEALTHY)
def test_a_healthy_group_is_in_order_after_two_looks(name: str) -> None:
    looks = HEALTHY[name]
    for some in (looks, looks[1:]):
        found = diagnosed(some[-1], earlier=earlier(some))
        assert (found.outcome, found.findings, found.unknown) == ("inOrder", (), ())


@every_case("name", HEALTHY)
def test_one_look_finds_nothing_and_wants_another(name: str) -> None:
    last = HEALTHY[name][-1]
    assert grave(diagnosed(last)) == []
    assert diagnosed(last).outcome == "unknown"
    assert wants_another(evidence_of(last))


def test_looks_are_wanted_until_growth_and_stall_show() -> None:
    def wanted(looks: Looks) -> list[bool]:
        return [
            wants_another(evidence_of(looks[number], earlier=earlier(looks[: number + 1])))
            for number in range(len(looks))
        ]

    assert wanted(HEALTHY["concurrent"]) == [True, False, False]
    assert wanted(WATCHED_FAULTS["lag-growing"]) == [True, True, False]
    assert wanted(WATCHED_FAULTS["lag-stalled"]) == [True, True, False]
