"""Several groups in one simulation, as people and machines are told."""

from __future__ import annotations

import json

import yaml
from msgspec.structs import replace

from rmqlb.engine.send.scenarios import failures_of, producers_of
from rmqlb.model.group_scenario import SECOND_US, Event
from rmqlb.model.send_scenario import SendScenario
from rmqlb.model.simulate_rebalance import RebalanceResult, RebalanceResults
from rmqlb.model.simulate_send import SendReport, SendResult, printed_part
from rmqlb.verbs.simulate_rebalance import summary_of
from rmqlb.views.formats.machine import as_csv, as_json, as_yaml
from rmqlb.views.formats.people import as_markdown, as_plain
from rmqlb.views.formats.text import visible
from rmqlb.views.report import Report
from rmqlb.views.simulate_rebalance import group_report, rebalance_report
from tests.support.builders import route
from tests.support.group_builders import simulated
from tests.support.mismatches import every_case
from tests.views.shown import on_a_terminal

EVIL = "e\x1b]0;x\x07\x1b[31m\u202evil|=[/red]"
CALM = simulated({"broker-a 0": "aaaa"}, group="calm", settled_us=0, events=())
GAP = simulated({"broker-a 0": "aa  bb", "broker-a 1": "aaaaaa"}, group="gap")
OUTAGE = simulated({"broker-a 0": "aa####bb", "broker-a 1": "aa##  bb"}, group="outage")
STAYS = simulated({"broker-a 0": "aa    "}, group="stays", settled_us=None)


def producers(topic: str = "T", broker: str = "b", **brokers: int) -> tuple[SendReport, ...]:
    failures = failures_of([Event("broker-down", 30 * SECOND_US, broker)])
    on = brokers or {broker: 2, "a": 2}
    return producers_of([route(topic, **on)], failures, SendScenario(), {}).reports  # type: ignore[arg-type]


def shown(*groups: RebalanceResult, sends: tuple[SendReport, ...] = ()) -> Report:
    producers = tuple(printed_part(each, SendResult) for each in sends)
    return rebalance_report(RebalanceResults(groups, producers, summary_of(groups, sends)))


def groups_in_order(report: Report) -> list[object]:
    (section,) = report.only(("groups",), screen=True).sections
    return [row[1] for row in section.rows]


def test_the_worst_is_first_and_colours_the_verdict() -> None:
    report = shown(CALM, GAP, STAYS, OUTAGE)
    assert groups_in_order(report) == ["stays", "outage", "gap", "calm"]
    assert report.grave == "error"
    assert (shown(CALM, GAP).grave, shown(CALM).grave) == ("warning", "inOrder")


def test_the_first_line_sums_up_everything() -> None:
    assert shown(CALM, GAP, OUTAGE, STAYS, sends=producers(b=2)).facts[0] == (
        "join b@3s: 3 of 4 groups affected; 2 of 6 queues cannot be read for up to 4.0 s; 1 of 6 queues not read at the "
        "end; 600 of 900 messages lost (66.7%)"
    )
    assert shown(CALM, GAP, sends=producers()).facts[0] == (
        "join b@3s: 1 of 2 groups affected; producers of 1 topic lose no message"
    )
    assert shown(CALM).facts == (
        "no event: 0 of 1 group affected",
        "  consumers: no gap · no overlap · at most 0 messages redelivered · no queue gets a new owner",
    )


def test_what_was_bad_before_is_told_apart() -> None:
    before = simulated(
        {"broker-a 0": "   ", "broker-a 1": "!!!", "broker-a 2": "a  ", "broker-a 3": " aa"}, group="before"
    )
    first, _ = shown(CALM, before).facts
    assert first.endswith(
        "; 2 of 5 queues not read at the end; 2 of 5 queues without one owner from the start to the end"
    )
    assert json.loads(as_json(shown(before).data))["summary"]["queuesMisassignedThroughout"] == 2
    everybody = replace(before, scenario=replace(before.scenario, broadcasting=True))
    assert json.loads(as_json(shown(everybody).data))["summary"]["queuesMisassignedThroughout"] == 1
    assert (
        ": 2 of 4 queues unassigned and 1 of 4 queues with duplicate owners at the end, 2 of them from the start; "
        in (group_report(before).facts[0])
    )


def test_lost_messages_are_red_although_the_groups_are_well() -> None:
    report = shown(CALM, sends=producers(b=2))
    assert report.grave == "error"
    assert report.facts[2].startswith("  producers: 600 of 900 messages retried (66.7%), the last at ")
    assert report.facts[2].endswith(" · longest send 3 ms")
    assert "producers" not in "".join(shown(CALM).facts)


@every_case("width", [20, 40, 60, 80, 100, 200])
def test_tables_fit_their_terminal(width: int) -> None:
    report = shown(CALM, GAP, OUTAGE, STAYS, sends=producers()).only((), screen=True)
    assert max(map(len, on_a_terminal(report, width).splitlines())) <= width


def test_hostile_names_reach_no_format_raw() -> None:
    report = shown(replace(OUTAGE, group=EVIL), GAP, sends=producers(EVIL, EVIL))
    texts = [as_plain(report), as_markdown(report), on_a_terminal(report, 80), as_json(report.data)]
    texts += [as_csv(section).replace("\r\n", "\n") for section in report.tables or ()]
    for text in texts:
        assert visible(text.replace("\n", "")) == text.replace("\n", "")
    assert json.loads(as_json(report.data)) == yaml.safe_load(as_yaml(report.data))
