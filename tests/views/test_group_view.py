"""What a group goes through, as people and machines are told."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

from rmqlb.model.group_scenario import SECOND_US, Event, EventKind, GroupScenario, Timers
from rmqlb.model.simulate_rebalance import Step
from rmqlb.views.formats.machine import as_csv, as_json
from rmqlb.views.formats.people import as_plain
from rmqlb.views.report import Report
from rmqlb.views.simulate_rebalance import FIGURES, group_report
from tests.support.builders import queues
from tests.support.group_builders import simulated, takeover, timeline, trials
from tests.support.mismatches import every_case
from tests.views.shown import on_a_terminal

Q0, Q1 = queues(2)
TWO = {"broker-a 0": "aaa  bbb", "broker-a 1": "bbb!!!bb"}
LEAVE_AND_JOIN: tuple[EventKind, EventKind] = ("leave", "join")


def facts(**changes: object) -> str:
    return "\n".join(group_report(simulated(TWO, **changes)).facts)  # type: ignore[arg-type]


def data_of(report: Report) -> Any:
    """As JSON has it."""
    return json.loads(as_json(report.data))


def rows(report: Report, name: str) -> list[dict[str, str]]:
    """A section as CSV has it."""
    return list(csv.DictReader(io.StringIO(as_csv(report.only((name,)).table), newline="")))


def test_the_first_line_says_what_happened_and_when_it_was_over() -> None:
    assert facts().splitlines()[0] == (
        "g, join b@3s: longest gap 2.0 s (1 of 2 queues); longest overlap 3.0 s (1 of 2 queues); "
        "converged 1.0 s after it"
    )


def test_what_comes_last_is_what_it_converges_after() -> None:
    """The figure counts from the first event; a person waits from the last one on."""
    down, up = (Event(kind, at * SECOND_US, "b1") for kind, at in (("broker-down", 1), ("broker-up", 4)))  # type: ignore[arg-type]
    told = ("; converged 2.0 s after b1 is back", "; converged 3.0 s after the first event")
    assert [
        facts(events=[down, up], settled_us=us * SECOND_US).splitlines()[0][-len(text) :]
        for us, text in zip((5, 3), told, strict=True)
    ] == list(told)
    join = Event("join", 4 * SECOND_US, "c", "join c@4s")
    assert (
        facts(events=[down, join], settled_us=5 * SECOND_US)
        .splitlines()[0]
        .endswith("; converged 2.0 s after the last event")
    )


def test_events_with_the_same_words_are_told_once_and_many_are_counted() -> None:
    restart = [
        Event(kind, at * SECOND_US, "a", "restart a@1s, down 2s")
        for kind, at in zip(LEAVE_AND_JOIN, (1, 3), strict=True)
    ]
    others = [Event("pull-stall", at * SECOND_US, "b", f"pull-stall b@{at}s") for at in (4, 5, 6, 7)]
    first = facts(events=[*restart, *others]).splitlines()[0]
    assert first.startswith("g, restart a@1s, down 2s, pull-stall b@4s, pull-stall b@5s and 2 more: ")
    assert first.endswith("; converged 1.0 s after the first event")


@every_case(
    ("strips", "settled_us", "grave"),
    [
        ({"broker-a 0": "aaaa"}, 0, "inOrder"),
        ({"broker-a 0": "aa  bb"}, SECOND_US, "warning"),
        ({"broker-a 0": "aa!!bb"}, SECOND_US, "warning"),
        ({"broker-a 0": "aa##bb"}, SECOND_US, "warning"),
        ({"broker-a 0": "aa  "}, SECOND_US, "error"),
        ({"broker-a 0": "aa!!"}, SECOND_US, "error"),
        ({"broker-a 0": "aa##"}, SECOND_US, "error"),
        ({"broker-a 0": "aa  bb"}, None, "error"),
    ],
)
def test_what_passes_is_a_warning_and_what_stays_an_error(
    strips: dict[str, str], settled_us: int | None, grave: str
) -> None:
    assert group_report(simulated(strips, settled_us=settled_us)).grave == grave
    everybody = GroupScenario(broadcasting=True)
    if "!" in strips["broker-a 0"]:
        assert group_report(simulated(strips, scenario=everybody)).grave == "inOrder"


def test_queues_that_stay_with_several_owners_are_in_the_first_line() -> None:
    report = simulated({"broker-a 0": "aaa!!!", "broker-a 1": "aaa   ", "broker-a 2": "aaaaaa"})
    first = group_report(report).facts[0]
    assert ": 1 of 3 queues unassigned and 1 of 3 queues with duplicate owners at the end; longest gap" in first
    everybody = simulated({"broker-a 0": "a!!!"}, scenario=GroupScenario((), broadcasting=True))
    assert "at the end" not in group_report(everybody).facts[0]


@every_case(
    ("again", "seconds", "told"),
    [
        (12, 2.0, "  at most 12 messages redelivered · a message waits up to 500 ms"),
        (1, 2.0, "at most 1 message redelivered · "),
        (None, 2.0, "redelivered: at most a queue's last 2.0 s, how many messages is unknown without --rate · "),
        (0, 0.0, "at most 0 messages redelivered · "),
    ],
)
def test_the_bound_of_messages_delivered_again_is_called_one(again: int | None, seconds: float, told: str) -> None:
    line = timeline("aaa  bbb", Q0, [takeover(Q0, "b", 5, again=again, again_s=seconds)])
    assert told in "\n".join(group_report(simulated([line])).facts)


def test_rules_and_what_was_configured_otherwise_are_told() -> None:
    scenario = GroupScenario(
        client_version="4.9.7",
        orderly=True,
        consume_us=2000,
        consume_from="CONSUME_FROM_FIRST_OFFSET",
        timers=Timers(heartbeat_us=10 * SECOND_US, pull_delay_us=0),
        seed=9,
    )
    shown = group_report(simulated(TWO, scenario=scenario))
    text = "\n".join(shown.closing)
    assert "seed" not in "\n".join(shown.facts)
    assert "2 consumers, 2 queues of T; strategy AVG, orderly; client 4.9.7 (rules of 5.5.0 and newer)" in text
    assert (
        "seed 9, trial 0; a request takes about 1ms; a message takes the listener 2ms; CONSUME_FROM_FIRST_OFFSET"
        in text
    )
    assert "timers: heartbeat 10s instead of 30s, pull-delay 0s instead of what the client version does" in text


def test_several_owners_are_no_news_with_broadcasting() -> None:
    report = group_report(simulated({"broker-a 0": "223  3"}, scenario=GroupScenario(broadcasting=True)))
    text = as_plain(report.only(()))
    assert "BROADCASTING" in text
    assert "overlap" not in "".join(report.facts)
    assert [row["state"] for row in rows(report, "windows")] == ["unassigned"]


def test_windows_come_by_time_and_adjoining_ones_are_one() -> None:
    lines = [timeline("aaa!cc  ", Q0), timeline("a  22333", Q1)]
    found = rows(group_report(simulated(lines)), "windows")
    assert [(row["queueId"], row["state"], row["fromMs"], row["toMs"], row["lengthMs"]) for row in found] == [
        ("1", "unassigned", "1000", "3000", "2000"),
        ("0", "duplicate-owners", "3000", "4000", "1000"),
        ("1", "duplicate-owners", "3000", "8000", "5000"),
        ("0", "unassigned", "6000", "8000", "2000"),
    ]
    assert [(row["ownersBefore"], row["owners"], row["ownersAfter"]) for row in found] == [
        ("a", "", "a b"),
        ("a", "a b", "c"),
        ("", "a b c", "'-"),
        ("c", "", "'-"),
    ]


def test_the_longest_windows_are_shown_in_the_order_of_time_and_the_others_on_demand() -> None:
    lines = [timeline("a" * (40 - n) + " " * (n + 1) + "b" * 5, queue) for n, queue in enumerate(queues(40))]
    report = group_report(simulated(lines))
    section = next(section for section in report.only(()).sections if section.name == "windows")
    assert section.brief is not None
    starts = [section.rows[place][4] for place in section.brief]
    assert len(starts) == 30
    assert starts == sorted(starts)  # type: ignore[type-var]
    lengths = [section.rows[place][6] for place in section.brief]
    assert min(lengths) == 11_000  # type: ignore[type-var]
    text = as_plain(report.only(()))
    assert "and 10 more: --section windows shows all" in text
    whole = as_plain(report.only(("windows",)))
    assert "more: --section" not in whole
    assert "gaps, overlaps, the 30 longest" in text
    assert "30 longest" not in whole
    assert len(rows(report, "windows")) == 40
    assert len(as_csv(report.only(()).table).splitlines()) == 41


def test_steps_are_there_when_asked_for() -> None:
    steps = [Step(3000.5, "b", "take", "takes 1 queue", (Q0,))]
    report = simulated(TWO, steps=steps)
    without = group_report(simulated(TWO))
    assert data_of(without)["steps"] is None
    assert "steps" not in [section.name for section in without.sections]
    explained = group_report(report)
    assert data_of(explained)["steps"] == [
        {
            "atMs": 3000.5,
            "who": "b",
            "what": "take",
            "text": "takes 1 queue",
            "queues": [{"topic": "T", "brokerName": "broker-a", "queueId": 0}],
        }
    ]
    assert "takes 1 queue" in as_plain(explained.only(()))


def test_trials_have_median_p95_and_worst() -> None:
    spread = trials(20, 19, convergence_ms=(1000, 2000, 3000), longest_gap_ms=(1, 1.5, 2500), redelivered=(0, 1, 7))
    report = group_report(simulated(TWO, found=spread))
    assert "  19 of 20 trials converged: p50 1.0 s, p95 2.0 s, max 3.0 s (trial 3)" in report.facts
    assert report.grave == "error"
    assert "  longest in a trial: gap p95 2 ms, max 2.5 s; overlap p95 0 ms, max 0 ms" in report.facts
    found = {row["name"]: row for row in rows(report, "trials")}
    assert list(found)[:2] == ["convergenceMs", "longestGapMs"]
    assert (found["convergenceMs"]["p95"], found["convergenceMs"]["p95Value"]) == ("2s", "2000")
    assert data_of(report)["trials"]["figures"]["longestGapMs"] == {
        "p50": 1,
        "p95": 1.5,
        "max": 2500,
        "maxTrial": 3,
    }
    assert data_of(report)["trials"]["figures"]["unreadMs"]["max"] == 0
    assert "20 trials, 1 of which did not converge" in as_plain(report.only(()))


def test_every_figure_is_in_the_summary_and_in_json() -> None:
    report = group_report(simulated(TWO, settled_us=None))
    names = [row["name"] for row in rows(report, "summary")]
    assert names == list(data_of(report)["figures"])
    assert len(names) == len(FIGURES) == len(simulated(TWO).figures.__struct_fields__)
    assert data_of(report)["figures"]["convergenceMs"] is None
    assert rows(report, "summary")[0]["shown"] == "not converged"


@every_case("width", [20, 40, 60, 80, 100, 200])
def test_tables_fit_their_terminal(width: int) -> None:
    ids = {"a": "192.168.100.1@12345#987654321012340", "b": "192.168.100.2@12345#987654321012341"}
    lines = [timeline("aaa  bbb", Q0, [takeover(Q0, ids["b"], 5)], ids=ids)]
    spread = trials(convergence_ms=(1000, 2000, 3000), queues_with_gap=(1, 2, 3))
    report = group_report(simulated(lines, steps=[Step(1, "a", "wake", "wakes up")], found=spread))
    for section in report.sections:
        assert max(map(len, on_a_terminal(report, width, section.name).splitlines())) <= width


def test_an_outage_is_in_the_first_line_and_told_apart_from_gaps() -> None:
    lines = group_report(simulated({"broker-a 0": "aa####  bb", "broker-a 1": "bbbbbbbbbb"})).facts
    assert lines == (
        "g, join b@3s: 1 of 2 queues cannot be read for up to 4.0 s; converged 1.0 s after it",
        (
            "  longest gap 2.0 s (1 of 2 queues) · no overlap · no queue is taken over, so no message is redelivered · "
            "a message waits up to 4.0 s"
        ),
    )
    over = trials(longest_outage_ms=(1000, 2000, 3000))
    assert (
        "  longest in a trial: outage p95 2.0 s, max 3.0 s; gap p95 0 ms, max 0 ms; overlap p95 0 ms, max 0 ms"
        in group_report(simulated(TWO, found=over)).facts
    )
