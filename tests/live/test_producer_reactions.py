"""What real producers did about failing brokers is what is written down in tests/data/vectors/producer-reactions.json.

``--update-golden`` writes it anew. Counts of what is left to chance are written down, but only their kinds are checked.
"""

from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

import pytest

from .jvm import Java
from .reactions import FAILING, SHORT_TIMEOUT_MS, Row, measured, read_facts, write_facts

pytestmark = [pytest.mark.live, pytest.mark.slow]

OUT_OF_TIME = "RemotingTooMuchRequestException: sendDefaultImpl call timeout"
# What a loaded machine may add to a time.
PATIENCE_MS = 1500

Facts = tuple[list[Row], list[Row]]


@pytest.fixture(scope="module")
def facts(producer_javas: Mapping[str, Java], request: pytest.FixtureRequest) -> Facts:
    with ThreadPoolExecutor() as pool:
        by_version = list(pool.map(measured, producer_javas.values()))
    rows = [row for of_version, _ in by_version for row in of_version]
    timeouts = [row for _, of_version in by_version for row in of_version]
    if request.config.getoption("--update-golden"):
        write_facts(rows, timeouts)
    return rows, timeouts


def of_timeouts(facts: Facts, version: str, mode: str, reaction: str = "is silent") -> Row:
    (found,) = (row for row in facts[1] if (row["version"], row["mode"], row["reaction"]) == (version, mode, reaction))
    return found


def test_producers_do_what_is_written_down(facts: Facts) -> None:
    written, _ = read_facts()
    assert facts[0] == written


@pytest.mark.parametrize(
    ("version", "reaction"), [("5.5.0", "is silent"), ("4.9.7", "is silent"), ("4.9.7", "hangs up")]
)
def test_a_sync_message_whose_time_is_up_fails_for_good(facts: Facts, version: str, reaction: str) -> None:
    now = of_timeouts(facts, version, "sync", reaction)
    assert min(map(int, now["firstAttemptOverMs"])) in (-1, 0)
    assert max(map(int, now["firstAttemptOverMs"])) < PATIENCE_MS
    assert set(now["attempts"]) <= {"1", "2", "3"}
    assert all(end == OUT_OF_TIME or end.startswith("MQClientException: Send [3] times, ") for end in now["outcomes"])
    later = {outcome.split(": ")[0] for outcome in now["laterAttempts"]}
    assert later <= {"RemotingTimeoutException", "RemotingTooMuchRequestException"}
    if reaction == "is silent":  # it is isolated, and each broker that was tried with no time left
        assert now["isolatedMs"] == {"5.5.0": 10_000, "4.9.7": 600_000}[version]
        assert all(FAILING in brokers.split() for brokers in now["isolated"])
        sizes: Counter[str] = Counter()
        for brokers, times in now["isolated"].items():
            sizes[str(len(brokers.split()))] += times
        assert sizes == now["attempts"]
    if version == "5.5.0":  # nothing is written when no time is left
        assert now["received"] == {"a3": now["repetitions"]}


@pytest.mark.parametrize(
    ("version", "outcome"),
    [
        ("5.5.0", "MQClientException: wait response timeout, cost=N"),
        ("4.9.7", "RemotingTooMuchRequestException: invokeAsync call the addr[127.0.0.1:N] timeout"),
    ],
)
def test_an_async_timeout_is_told_late_and_nobody_else_gets_it(facts: Facts, version: str, outcome: str) -> None:
    measured_now = of_timeouts(facts, version, "async")
    least, _, greatest = measured_now["tookOverMs"]
    assert least >= 1000
    assert greatest <= 2000 + PATIENCE_MS
    assert measured_now["timeoutMs"] == SHORT_TIMEOUT_MS
    assert measured_now["outcomes"] == {outcome: measured_now["repetitions"]}
    assert measured_now["received"] == {"1": measured_now["repetitions"]}
