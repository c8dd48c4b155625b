from fractions import Fraction
from typing import Any

import msgspec
from msgspec.structs import replace

from rmqlb import SendReport, simulate_send, simulate_trials
from rmqlb.model.send_scenario import Failure, Moment, Reaction, Selector, SendScenario
from rmqlb.views.simulate_send import last_failed_ms, send_facts, send_gravity, send_report, send_settings
from tests.cli.run import envelope_of
from tests.support.builders import route
from tests.support.mismatches import every_case

S = 1_000_000
REFUSED = Reaction("refused", "refused", 0, 1000)
SLOW, NOT_FLUSHED = Reaction("slow", "slow", 0, 800_000), Reaction("status", "FLUSH_DISK_TIMEOUT", 10)
TWO, ONE = route(a=1, b=1), route(b=1)


def fails(reaction: Reaction, start: int = 0, end: int | None = None, notices: int | None = None) -> Failure:
    ends = None if end is None else Moment(end * S)
    return Failure("b", reaction, Moment(start * S), ends, None if notices is None else notices * S)


def sent(*failures: Failure, topic: Any = TWO, **changes: Any) -> SendReport:
    """A message per second, the first of them to a; what b fails of is retried at a, so that b is next again."""
    fields: dict[str, Any] = {"messages": 4, "rate": Fraction(1), "start_at": 0, **changes}
    return simulate_send(topic, SendScenario(failures=failures, **fields))


@every_case(("line", "grave", "reaction", "changes"), [
    ("no broker fails: no message of 4 lost; longest send 1 ms", "inOrder", None, {}),
    ("b is excluded: no message of 4 lost; longest send 1 ms", "inOrder", None, {"exclude": frozenset("b")}),
    ("b refused from 0 s on: no message of 4 lost; 3 retried (75%), the last at 3.0 s; longest send 2 ms", "warning", REFUSED, {}),
    ("b refused from 0 s on: 2 of 4 messages lost (50%); 2 of 4 attempts fail, the last at 3.0 s; longest send 1 ms", "error", REFUSED, {"retries": 0}),
    ("b refused from 0 s on: all 2 messages lost; 2 of 2 attempts fail, the last at 1.0 s; longest send 1 ms", "error", REFUSED, {"topic": ONE, "retries": 0, "messages": 2}),
    ("b refused from 0 s on: the message is lost; 1 of 1 attempts fail, the last at 0 ms; longest send 1 ms", "error", REFUSED, {"topic": ONE, "retries": 0, "messages": 1}),
    ("b slow (800 ms) from 0 s on: no message of 4 lost; no attempt fails; longest send 800 ms", "inOrder", SLOW, {}),
    ("b FLUSH_DISK_TIMEOUT from 0 s on: no message of 4 lost; 2 stored, not SEND_OK; no attempt fails; longest send 1 ms", "warning", NOT_FLUSHED, {}),
    ("b FLUSH_DISK_TIMEOUT from 0 s on: no message of 4 lost; 3 stored more than once; 3 retried (75%); longest send 2 ms", "warning", NOT_FLUSHED, {"retry_not_store_ok": True}),
])  # fmt: skip
def test_the_first_line_of_sends(line: str, grave: str, reaction: Reaction | None, changes: dict[str, Any]) -> None:
    report = sent(*([] if reaction is None else [fails(reaction)]), **changes)
    assert send_facts(report)[0] == f"T, {line}"
    assert send_gravity(report.totals) == grave


@every_case(("line", "failure", "changes"), [
    ("b: 29 attempts failed; not in the producer's list from 30.0 s on (route poll)", (REFUSED, 0, None, 0), {}),
    ("b: 3 attempts failed; it stays in the producer's list", (REFUSED,), {"messages": 4}),
    ("b: 0 attempts failed", (SLOW,), {}),
    ("b: 1 attempt failed; isolated from 1.0 s on (latency fault)", (REFUSED,), {"messages": 4, "latency_fault": True}),
    ("b: 1 attempt failed; it stays in the producer's list; used again 0 ms after it is back", (REFUSED, 0, 2), {"messages": 6}),
    ("b: 1 attempt failed; isolated from 1.0 s on (latency fault); not used again by the end", (REFUSED, 0, 2), {"messages": 5, "latency_fault": True}),
    ("b: the simulation ends before it fails", (REFUSED, 50), {"messages": 4}),
])  # fmt: skip
def test_each_failure_has_a_line(line: str, failure: tuple[Any, ...], changes: dict[str, Any]) -> None:
    assert send_facts(sent(fails(*failure), **{"messages": 40, **changes}))[1:] == (f"  {line}",)


def test_many_failures_are_counted_and_trials_have_a_line_of_their_own() -> None:
    lines = send_facts(sent(*(fails(REFUSED, at, at + 1) for at in range(1, 15))))
    first = "T, b refused from 1 s to 2 s, b refused from 2 s to 3 s, b refused from 3 s to 4 s and 11 more: "
    assert lines[0].startswith(first)
    assert (len(lines), lines[-1]) == (1 + 12 + 1, "  and 2 failures more")
    by_number = Failure("b", REFUSED, Moment(message=2), Moment(message=4))
    assert send_facts(sent(by_number))[0].startswith("T, b refused from message 2 to message 4: ")
    early = Failure("a", REFUSED, Moment(0), Moment(1), None)
    assert (last_failed_ms(sent()), last_failed_ms(sent(fails(REFUSED), early))) == (None, 3000)
    one = sent(fails(REFUSED), retries=0)
    line = send_facts(replace(one, trials=simulate_trials(TWO, one.scenario, 8)))[1]
    assert line.startswith("  over 8 trials: 50% of messages lost (")
    assert line.endswith("; longest send p95 1 ms, max 1 ms; this is the first of them")


def test_the_settings_stand_last() -> None:
    def settings(*failures: Failure, **changes: Any) -> str:
        return "\n".join(send_settings(sent(*failures, **changes)))

    assert settings(latency_max=(50, 100), not_available_duration=(0, 7000)) == (
        "2 queues on 2 brokers; SYNC, 1 thread, 1 messages per second; up to 3 attempts within 3 s; "
        "route polls every 30 s from 30 s on; seed 1\n"
        "client 5.5.0 (rules of 5.3.3 and newer); latency fault off, its table (thresholds given): 100 ms → 7 s, "
        "a failure → 7 s"
    )
    assert ", 2 threads, back to back; one attempt within " in settings(threads=2, rate=None, retries=0)
    assert "; ONEWAY, 1 thread, 1 messages per second; one attempt " in settings(mode="oneway")
    by_hand = settings(selector=Selector("hash", key_hashes=(1,)))
    assert "; selector hash, 1 thread, 1 messages per second; one attempt within " in by_hand
    assert by_hand.endswith("; selectors do not use latency fault")
    for notices, line in ((0, "drops it at once"), (120, "drops it after 2m"), (None, "never drops it")):
        assert settings(fails(REFUSED, 0, 5, notices)).endswith(f"\nb: refused from 0 s to 5 s; the NameServer {line}")


def test_an_sdk_that_cannot_be_simulated_is_left_out_and_named() -> None:
    brokers: Any = {f"b{number:02}": 1 for number in range(13)}
    many = msgspec.json.encode(route(**brokers)).decode()
    value = envelope_of("simulate-send", "-s", "-", "-t", "T", "--messages", "20", "--compare", "sdks", stdin=many)
    assert "go" not in [each["sdk"] for each in value["data"]["sdks"]]
    (found,) = [finding["message"] for finding in value["findings"] if finding["code"] == "sdk-not-simulated"]
    reason = "rmqlb does not know the order of a Go producer's queues beyond 12"
    assert found.startswith(f"go is left out: topic T: {reason}")


@every_case(("stored", "audience"), [((1, 3), "scripts"), ((1, 4), "all"), ((20, 23), "scripts"), ((10, 13), "all")])
def test_queues_are_shown_unasked_where_turns_alone_do_not_explain_them(stored: tuple[int, ...], audience: str) -> None:
    report = sent(topic=route(b=2))
    queues = tuple(replace(each, stored=n) for each, n in zip(report.queues, stored, strict=True))
    (section,) = (each for each in send_report(replace(report, queues=queues)).sections if each.name == "queues")
    assert section.audience == audience
