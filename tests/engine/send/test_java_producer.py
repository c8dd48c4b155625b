from collections import Counter
from fractions import Fraction
from typing import Any

from rmqlb import Failure, MessageQueue, Reaction, SendScenario, simulate_send
from rmqlb.engine.send.java_producer import is_silent
from rmqlb.engine.send.recorder import MOST_KINDS
from rmqlb.model.send_scenario import Selector
from tests.engine.send.scenarios import ERROR, READ_ONLY, REFUSED, TIMEOUT, TWO, UNSAFE, played, sent
from tests.support.builders import route
from tests.support.mismatches import every_case


@every_case(("detector", "messages", "found"), [(True, 12, False), (True, 13, True), (False, 13, False)])
def test_only_the_detector_finds_a_broker_again_and_asks_every_three_seconds(
    detector: bool, messages: int, found: bool
) -> None:
    """The broker fails at 0 s, is isolated for 10 s, and fails again at 11 s: it is found at 3 s and at 12 s."""
    fields: dict[str, Any] = {"rate": Fraction(1), "latency_fault": True, "detector": detector, "retries": 1}
    run = played(route(a=1, b=1), Failure("a", ERROR), messages=messages, **fields)
    assert [course.failed for course in run.cluster.courses] == [2]
    assert run.strategy.items["a"].reachable is found


def test_the_detector_waits_200_ms_for_an_answer() -> None:
    silent = (REFUSED, TIMEOUT, Reaction("slow", "slow", 0, 200_001))
    answering = (
        None,
        UNSAFE,
        READ_ONLY,
        Reaction("slow", "slow", 0, 200_000),
        Reaction("code", "SYSTEM_BUSY", 2, 300_000),
    )
    assert [[is_silent(each) for each in some] for some in (silent, answering)] == [[True] * 3, [False] * 5]


def test_exceptions_of_more_kinds_than_anyone_reads_are_counted_together() -> None:
    names = [f"b{number}" for number in range(12)]
    failures = tuple(Failure(name, Reaction("code", "X", 1)) for name in names)
    scenario = SendScenario(messages=2000, latency_fault=True, failures=failures)
    brokers: dict[str, Any] = dict.fromkeys(names, 1)
    report = simulate_send(route(**brokers), scenario, trace=True)
    kinds = Counter(lost.brokers_sent for lost in report.lost_messages or ())
    assert len(kinds) > MOST_KINDS
    assert len(report.exceptions) == MOST_KINDS + 1
    assert [tally.brokers_sent for tally in report.exceptions].count(None) == 1
    assert sum(tally.messages for tally in report.exceptions) == report.totals.lost
    assert all(kinds[tally.brokers_sent] == tally.messages for tally in report.exceptions if tally.brokers_sent)


def test_a_selector_gets_each_key_in_turn_and_a_list_of_its_own() -> None:
    calls: list[tuple[int, object]] = []

    def chosen(listed: list[MessageQueue], key: object) -> MessageQueue:
        calls.append((len(listed), key))
        return listed.pop()

    report = sent(topic=TWO, messages=4, selector=Selector("function", function=chosen, keys=("x", "y", "z")))
    assert calls == [(4, "x"), (4, "y"), (4, "z"), (4, "x")]
    assert [tally.stored for tally in report.queues] == [0, 0, 0, 4]
    sent(topic=TWO, messages=2, selector=Selector("function", function=chosen))
    assert calls[4:] == [(4, 1), (4, 2)]


def test_the_first_exception_of_a_selector_is_a_finding() -> None:
    def chosen(_: list[MessageQueue], key: object) -> MessageQueue:
        raise ValueError(f"no {key}")

    report = sent(topic=TWO, messages=2, selector=chosen)
    assert report.totals.lost_by == {"select message queue threw exception": 2}
    (text,) = (finding.message for finding in report.findings if finding.code == "selector-throws")
    assert "throws for 2 of 2 messages" in text
    assert "no 1" in text
