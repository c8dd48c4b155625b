"""Listeners that fail: named from three failures in four on, over two looks; a healthy retry stays below."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from rmqlb.model.diagnosis import Diagnosis
from rmqlb.model.finding import Severity
from rmqlb.model.group import QueueState
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.process_queue import ConsumeStatus
from rmqlb.model.snapshot import ClusterSnapshot
from tests.engine.diagnose.consuming import Reporting, of_looks, watched
from tests.engine.diagnose.running import diagnosed, grave
from tests.engine.diagnose.watched_faults import FAILS, PAIR, Looks
from tests.support.mismatches import every_case

RETRY = MessageQueue("%RETRY%g", "a", 0)


def with_rates(looks: Looks, rates: list[dict[str, tuple[float, float]]]) -> Looks:
    """The looks in which x reports these messages per second of each topic, consumed and failed."""
    changed = []
    for look, its in zip(looks, rates, strict=True):
        group = look.groups["g"]
        report = group.reports["x"]
        assert report.evidence is not None
        statuses = {topic: ConsumeStatus(20.0, ok, failed, 0, ok + failed) for topic, (ok, failed) in its.items()}
        report = replace(report, evidence=replace(report.evidence, statuses=statuses))
        changed.append(replace(look, groups={"g": replace(group, reports={**group.reports, "x": report})}))
    return tuple(changed)


def failing(found: Diagnosis) -> Severity | str:
    """The severity of the finding, else how the rule answers."""
    severities = [each.severity for each in found.findings if each.code == "consume-failing"]
    if severities:
        return severities[0]
    return "in order" if "consume-failing" in found.checked else "unknown"


def test_a_listener_that_fails_for_every_message_is_named_and_its_group_not_in_order() -> None:
    """As measured on a cluster: nothing consumed, 83 failures per second, all of them on the retry topic."""
    found = of_looks(with_rates(watched(PAIR), [{"T": (0, 0), "%RETRY%g": (0, 83)}] * 3))
    assert grave(found) == ["consume-failing"]
    (its,) = found.findings
    assert (its.severity, its.consumers, len(its.queues)) == ("error", ("x",), 4)
    assert [(each.fact, each.value, each.threshold) for each in its.evidence] == [
        ("percent of the messages that x failed to consume", 100, 75),
        ("messages that failed at x in the last minute", 4980, 10),
    ]
    assert its.consequence == (
        "1 consumer fails to consume most of its messages; brokers redeliver them, and put them into %DLQ%g after the "
        "last try."
    )


def test_the_growth_of_the_retry_topic_is_evidence_where_it_is_known() -> None:
    def with_retries(number: int, look: ClusterSnapshot) -> ClusterSnapshot:
        group = look.groups["g"]
        queues = {**group.queues, RETRY: QueueState(None, 100 * number, 0)}
        return replace(look, groups={"g": replace(group, queues=queues)})

    looks = watched(PAIR, reporting={"x": FAILS})
    (its,) = of_looks(tuple(with_retries(n, look) for n, look in enumerate(looks))).findings
    assert [(each.fact, each.value) for each in its.evidence][2:] == [
        ("messages that came into the retry topic in 20 s", 200),
    ]


@every_case(
    ("rates", "answer"),
    [
        ([(0, 83)] * 3, "error"),
        ([(1, 3)] * 3, "warning"),
        ([(1.1, 3)] * 3, "in order"),  # 73 %
        ([(1, 1)] * 3, "in order"),  # each message fails once, and is consumed then
        ([(0, 0.15)] * 3, "in order"),  # 9 in a minute
        ([(0, 0.17)] * 3, "error"),
        ([(40, 0), (40, 0), (0, 40)], "in order"),  # replaced below: a failure that has just begun
        ([(0, 40), (0, 40), (20, 20)], "in order"),  # it has just ended
    ],
)
def test_from_which_share_of_failures_on(rates: list[tuple[float, float]], answer: str) -> None:
    found = failing(of_looks(with_rates(watched(PAIR), [{"T": each} for each in rates])))
    assert found == answer


@every_case(
    ("retries", "answer"),
    [((0, 30), "error"), ((0, 0), "error"), ((30, 0), "in order")],  # the last ones fail once and are consumed then
)
def test_a_topic_that_fails_is_named_beside_one_that_is_consumed(retries: tuple[float, float], answer: str) -> None:
    rates = {"T": (0.0, 10.0), "U": (1000.0, 0.0), "%RETRY%g": retries}
    assert failing(of_looks(with_rates(watched(PAIR), [rates] * 3))) == answer


def test_one_look_asks_for_another() -> None:
    looks = with_rates(watched(PAIR), [{"T": (0, 83)}] * 3)
    found = diagnosed(looks[-1])
    (reason,) = (each.reason for each in found.unknown if each.code == "consume-failing")
    assert reason == "the listener of x failed for 4980 of 4980 messages in the last minute: needs 2 samples, got 1"
    assert failing(of_looks(looks[1:])) == "error"


def test_a_consumer_that_reports_no_rates_is_unknown() -> None:
    assert failing(of_looks(with_rates(watched(PAIR), [{}] * 3))) == "unknown"


@given(st.floats(0.1, 1000), st.floats(0, 0.1), st.integers(0, 16), st.booleans())
@settings(max_examples=100)
def test_retries_that_succeed_and_few_poisonous_messages_are_no_failure(
    per_s: float, poisoned: float, tries: int, orderly: bool
) -> None:
    """A message that always fails is tried 17 times; every other one fails once at the most."""
    healthy = per_s * (1 - poisoned)
    failed = healthy * (tries % 2) * 0.4 + per_s * poisoned * 17
    looks = watched(PAIR, reporting={i: Reporting(orderly=orderly) for i in "xy"})
    assert failing(of_looks(with_rates(looks, [{"T": (healthy, failed)}] * 3))) == "in order"


def test_what_came_into_the_dead_letter_topic_is_evidence() -> None:
    looks = with_rates(watched(PAIR), [{"T": (0, 0), "%RETRY%g": (0, 83)}] * 3)
    letters = (None, 5, 12)  # no listener failed in the first look, so that nobody asked
    looks = tuple(
        replace(look, groups={"g": replace(look.groups["g"], dead_letters=number)})
        for look, number in zip(looks, letters, strict=True)
    )
    (its,) = [each for each in of_looks(looks).findings if each.code == "consume-failing"]
    (fact,) = [each for each in its.evidence if "dead-letter" in each.fact]
    assert (fact.value, fact.fact) == (7, "messages that came into the dead-letter topic in 10 s")
