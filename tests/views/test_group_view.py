import csv
import io
import json
from typing import Any

from msgspec.structs import replace

from rmqlb.engine.send.scenarios import failures_of, producers_of
from rmqlb.model.group_scenario import SECOND_US, Event, GroupScenario, Timers
from rmqlb.model.send_scenario import SendScenario
from rmqlb.model.simulate_rebalance import RebalanceResult, RebalanceResults, Step
from rmqlb.model.simulate_send import SendResult, printed_part
from rmqlb.verbs.simulate_rebalance import summary_of
from rmqlb.views.formats.machine import as_csv, as_json
from rmqlb.views.formats.people import as_plain
from rmqlb.views.report import Report
from rmqlb.views.simulate_rebalance import FIGURES, group_report, rebalance_report
from tests.support.builders import queues, route
from tests.support.group_builders import simulated, takeover, timeline, trials
from tests.support.mismatches import every_case

Q0, Q1 = queues(2)
TWO = {"broker-a 0": "aaa  bbb", "broker-a 1": "bbb!!!bb"}
EVERYBODY = GroupScenario(broadcasting=True)


def event(kind: Any, at_s: int, subject: str = "b", text: str = "") -> Event:
    return Event(kind, at_s * SECOND_US, subject, text)


def data_of(report: Report) -> Any:
    return json.loads(as_json(report.data))


def rows(report: Report, name: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(as_csv(report.only((name,)).table), newline="")))


RESTART = [event("leave", 1, "a", "restart a@1s, down 2s"), event("join", 3, "a", "restart a@1s, down 2s")]
STALLS = [event("pull-stall", at, "b", f"pull-stall b@{at}s") for at in (4, 5, 6, 7)]


@every_case(("strips", "changes", "start", "end"), [
    (TWO, {}, "g, join b@3s: longest gap 2.0 s (1 of 2 queues); longest overlap 3.0 s (1 of 2 queues); ", "converged 1.0 s after the event"),
    # the figure counts from the first event; a person waits from the last one on
    (TWO, {"events": [event("broker-down", 1), event("broker-up", 4)], "settled_us": 5 * SECOND_US}, "g, broker-down b at 1 s, broker-up b at 4 s: ", "; converged 2.0 s after b is back"),
    (TWO, {"events": [event("broker-down", 1), event("broker-up", 4)], "settled_us": 3 * SECOND_US}, "", "; converged 3.0 s after the first event"),
    (TWO, {"events": [event("broker-down", 1), event("join", 4, "c")], "settled_us": 5 * SECOND_US}, "", "; converged 2.0 s after the last event"),
    (TWO, {"events": [*RESTART, *STALLS]}, "g, restart a@1s, down 2s, pull-stall b@4s, pull-stall b@5s and 2 more: ", "; converged 1.0 s after the first event"),
    # what stays bad is said before what passes
    ({"broker-a 0": "aaa!!!", "broker-a 1": "aaa   ", "broker-a 2": "aaaaaa"}, {}, "g, join b@3s: 1 of 3 queues unassigned and 1 of 3 queues with duplicate owners at the end; longest gap", ""),
    ({"broker-a 0": "a!!!"}, {"scenario": EVERYBODY}, "g, join b@3s: no gap; ", ""),
    # an outage is told apart from gaps, which the second line has
    ({"broker-a 0": "aa####  bb", "broker-a 1": "bbbbbbbbbb"}, {}, "g, join b@3s: 1 of 2 queues cannot be read for up to 4.0 s; converged", "1.0 s after the event"),
    ({"broker-a 0": "aa##"}, {"settled_us": None}, "g, join b@3s: 1 of 1 queue cannot be read for up to 2.0 s; it still cannot be read at the end; ", "not converged 1.0 s after the event, when the simulation ends"),
    ({"broker-a 0": "aaaa"}, {"settled_us": 0, "events": ()}, "g, no event: no gap; no overlap; ", "no queue changes its owner"),
])  # fmt: skip
def test_the_first_line_of_one_group(strips: dict[str, str], changes: dict[str, Any], start: str, end: str) -> None:
    found = group_report(simulated(strips, **changes)).facts[0]
    assert found.startswith(start), found
    assert found.endswith(end), found


@every_case(("again", "seconds", "told"), [
    (12, 2.0, "  at most 12 messages redelivered · a message waits up to 500 ms"),
    (1, 2.0, "at most 1 message redelivered · "),
    (None, 2.0, "redelivered: up to the last 2.0 s of each queue (add --rate for a message count) · "),
    (0, 0.0, "at most 0 messages redelivered · "),
])  # fmt: skip
def test_the_bound_of_messages_delivered_again_is_called_one(again: int | None, seconds: float, told: str) -> None:
    line = timeline("aaa  bbb", Q0, [takeover(Q0, "b", 5, again=again, again_s=seconds)])
    assert told in group_report(simulated([line])).facts[1]


@every_case(("strip", "settled_us", "grave"), [
    ("aaaa", 0, "inOrder"),
    *((f"aa{bad}bb", SECOND_US, "warning") for bad in ("  ", "!!", "##")),
    *((f"aa{bad}", SECOND_US, "error") for bad in ("  ", "!!", "##")),
    ("aa  bb", None, "error"),
])  # fmt: skip
def test_what_passes_is_a_warning_and_what_stays_an_error(strip: str, settled_us: int | None, grave: str) -> None:
    assert group_report(simulated({"broker-a 0": strip}, settled_us=settled_us)).grave == grave
    if "!" in strip:
        assert group_report(simulated({"broker-a 0": strip}, scenario=EVERYBODY)).grave == "inOrder"


def test_rules_and_changed_settings_are_shown() -> None:
    scenario = GroupScenario(
        client_version="4.9.7", orderly=True, consume_us=2000, consume_from="CONSUME_FROM_FIRST_OFFSET",
        timers=Timers(heartbeat_us=10 * SECOND_US, pull_delay_us=0), seed=9,
    )  # fmt: skip
    assert group_report(simulated(TWO, scenario=scenario)).closing == (
        "2 consumers, 2 queues of T; strategy AVG, orderly; client 4.9.7 (rules of 5.5.0 and newer)",
        "seed 9, trial 0; a request takes about 1 ms; the listener takes 2 ms per message; CONSUME_FROM_FIRST_OFFSET",
        "timers: heartbeat 10 s instead of 30 s, pull-delay 0 s instead of the default of the client version",
    )


def test_several_owners_are_no_news_with_broadcasting() -> None:
    report = group_report(simulated({"broker-a 0": "223  3"}, scenario=EVERYBODY))
    assert ("BROADCASTING" in report.closing[0], "overlap" in "".join(report.facts)) == (True, False)
    assert [row["state"] for row in rows(report, "windows")] == ["unassigned"]


def test_windows_come_by_time_and_adjoining_ones_are_one() -> None:
    found = rows(group_report(simulated([timeline("aaa!cc  ", Q0), timeline("a  22333", Q1)])), "windows")
    keys = ("queueId", "state", "fromMs", "toMs", "lengthMs", "ownersBefore", "owners", "ownersAfter")
    assert [tuple(row[key] for key in keys) for row in found] == [
        ("1", "unassigned", "1000", "3000", "2000", "a", "", "a b"),
        ("0", "duplicate-owners", "3000", "4000", "1000", "a", "a b", "c"),
        ("1", "duplicate-owners", "3000", "8000", "5000", "", "a b c", "'-"),
        ("0", "unassigned", "6000", "8000", "2000", "c", "", "'-"),
    ]


def test_steps_are_there_when_they_are_explained() -> None:
    without = group_report(simulated(TWO))
    assert (data_of(without)["steps"], "steps" in [section.name for section in without.sections]) == (None, False)
    explained = group_report(simulated(TWO, steps=[Step(3000.5, "b", "take", "takes 1 queue", (Q0,))]))
    step = {"atMs": "3000.5", "who": "b", "what": "take", "text": "takes 1 queue", "queues": "T broker-a 0"}
    assert rows(explained, "steps") == [step]


def test_trials_have_median_p95_and_worst() -> None:
    spread = trials(20, 19, convergence_ms=(1000, 2000, 3000), longest_gap_ms=(1, 1.5, 2500), redelivered=(0, 1, 7))
    report = group_report(simulated(TWO, found=spread))
    assert (report.grave, *report.facts[2:]) == (
        "error",
        "  19 of 20 trials converged: p50 1.0 s, p95 2.0 s, max 3.0 s (trial 3)",
        "  longest in a trial: gap p95 2 ms, max 2.5 s; overlap p95 0 ms, max 0 ms",
    )
    outages = group_report(simulated(TWO, found=trials(longest_outage_ms=(1000, 2000, 3000)))).facts[-1]
    assert outages.startswith("  longest in a trial: outage p95 2.0 s, max 3.0 s; gap p95 0 ms")
    first, second, *_ = rows(report, "trials")
    assert (first["name"], second["name"], first["p95"], first["p95Value"]) == (
        "convergenceMs", "longestGapMs", "2 s", "2000",
    )  # fmt: skip
    assert "20 trials, 1 of which did not converge" in as_plain(report.only(()))


def test_every_figure_is_in_the_summary_and_in_json() -> None:
    report = group_report(simulated(TWO, settled_us=None))
    summary = rows(report, "summary")
    assert [row["name"] for row in summary] == list(data_of(report)["figures"])
    assert (len(summary), summary[0]["shown"]) == (len(FIGURES), "not converged")


CALM = simulated({"broker-a 0": "aaaa"}, group="calm", settled_us=0, events=())
GAP = simulated({"broker-a 0": "aa  bb", "broker-a 1": "aaaaaa"}, group="gap")
OUTAGE = simulated({"broker-a 0": "aa####bb", "broker-a 1": "aa##  bb"}, group="outage")
STAYS = simulated({"broker-a 0": "aa    "}, group="stays", settled_us=None)


def shown(*groups: RebalanceResult, **brokers: int) -> Report:
    """The report of groups and, with brokers, of a producer to their queues that loses broker b after 30 s."""
    failures = failures_of([event("broker-down", 30)])
    sends = producers_of([route(**brokers)] if brokers else [], failures, SendScenario(), {}).reports  # type: ignore[arg-type]
    sent = tuple(printed_part(each, SendResult) for each in sends)
    return rebalance_report(RebalanceResults(groups, sent, summary_of(groups, sends)))


def test_the_worst_group_is_first_and_colours_the_verdict() -> None:
    (section,) = shown(CALM, GAP, STAYS, OUTAGE).only(("groups",), screen=True).sections
    assert [row[1] for row in section.rows] == ["stays", "outage", "gap", "calm"]
    graves = [shown(*each).grave for each in ((CALM, STAYS), (CALM, GAP), (CALM,))]
    assert graves == ["error", "warning", "inOrder"]


def test_the_first_line_sums_up_all_groups() -> None:
    assert shown(CALM, GAP, OUTAGE, STAYS, b=2).facts[0] == (
        "join b@3s: 3 of 4 groups affected; 2 of 6 queues cannot be read for up to 4.0 s; 1 of 6 queues not read at the "
        "end; 600 of 900 messages lost (66.7%)"
    )
    assert shown(CALM, GAP, a=2, b=2).facts[0] == (
        "join b@3s: 1 of 2 groups affected; producers of 1 topic lose no message"
    )
    assert shown(CALM).facts == (
        "no event: 0 of 1 group affected",
        "  consumers: no gap · no overlap · at most 0 messages redelivered · no queue gets a new owner",
    )
    lost = shown(CALM, b=2)
    assert lost.grave == "error"
    assert lost.facts[2].startswith("  producers: 600 of 900 messages retried (66.7%), the last at ")
    assert lost.facts[2].endswith(" · longest send 3 ms")


def test_what_was_bad_before_is_counted_separately() -> None:
    strips = {"broker-a 0": "   ", "broker-a 1": "!!!", "broker-a 2": "a  ", "broker-a 3": " aa"}
    before = simulated(strips, group="before")
    throughout = "; 2 of 5 queues not read at the end; 2 of 5 queues without one owner from the start to the end"
    assert shown(CALM, before).facts[0].endswith(throughout)
    everybody = replace(before, scenario=replace(before.scenario, broadcasting=True))
    assert [data_of(shown(each))["summary"]["queuesMisassignedThroughout"] for each in (before, everybody)] == [2, 1]
    bad = ": 2 of 4 queues unassigned and 1 of 4 queues with duplicate owners at the end, 2 of them from the start; "
    assert bad in group_report(simulated(strips)).facts[0]
