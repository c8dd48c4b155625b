from __future__ import annotations

import json

from tests.cli.run import EXAMPLE, data_of, run
from tests.support.mismatches import every_case

BASE = ("simulate-receive", "-s", EXAMPLE, "--topic", "OrderEvents")
GIVEN = ("simulate-receive", "--broker", "a:8", "--broker", "b:8")


def test_json_has_the_distribution_and_with_trace_each_message() -> None:
    found = data_of(*GIVEN, "--messages", "30", "--trace", "--loops", "3")
    assert [point["percent"] for point in found["quantiles"]] == [*range(0, 100, 5), 99, 100]
    assert found["quantiles"][-1]["waitMs"] == found["wait"]["maxMs"]
    waits = sorted(message["waitMs"] for message in found["messages"])
    assert (len(waits), waits[-1]) == (30, found["wait"]["maxMs"])
    assert data_of(*GIVEN, "--messages", "30")["messages"] is None


def test_rates_are_of_all_queues_of_a_broker_or_of_a_queue() -> None:
    found = data_of(*GIVEN, "--rate", "4", "--rate", "a=2", "--rate", "b:0=1", "--for", "30s")["scenario"]
    assert found["rates"] == {"a": 2.0, "b": 5.0}
    assert found["ratePerSecond"] == 7.0
    assert data_of(*GIVEN, "--rate", "a=2", "--for", "30s")["scenario"]["rates"] == {"a": 2.0, "b": 0.0}


def test_each_queue_has_its_waits_by_the_version_of_its_broker() -> None:
    args = ("--type", "pop", "--batch", "1", "--rate", "a:0=50", "--broker-version", "5.3.3")
    found = data_of(*GIVEN, *args)
    assert found["scenario"]["rules"] == "broker 5.3.3 (rules of 5.3.1 to 5.3.3), remoting client 5.5.0"
    table = run(*GIVEN, *args, "--section", "queues", "-o", "plain", "-q").stdout
    rows = [line.split()[:3] for line in table.splitlines() if line.startswith(("a ", "b "))]
    assert rows == [[each["brokerName"], str(each["queueId"]), str(each["messages"])] for each in found["queueWaits"]]


def test_a_failure_lasts_long_enough_at_an_assumed_rate() -> None:
    ran = run(*BASE, "--fail", "broker-b@30s-5m", "-o", "json")
    value = json.loads(ran.stdout)
    assert [finding["code"] for finding in value["findings"]] == ["assumed-rate"]
    found = value["data"]
    assert found["scenario"]["durationMs"] == 600_000
    (failure,) = found["failures"]
    assert (failure["fromMs"], failure["toMs"]) == (30_000, 300_000)
    assert 300_000 < failure["receivedAgainMs"] < 360_000


def test_the_bound_at_any_rates_is_of_healthy_brokers_and_consumers() -> None:
    base = (*GIVEN, "--rate", "5", "--messages", "20", "-o", "plain")
    shown = ["at any rates" in run(*base, *more).stdout for more in ((), ("--fail", "b@1s-2s"), ("--crash", "1@9h"))]
    assert shown == [True, False, False]


@every_case(
    ("condition", "met"),
    [
        ("wait-max>1s", True),
        ("wait-max-ms>1000", True),
        ("wait-max>1h", False),
        ("wait-max[a]>1m", True),
        ("unpolled>2m", True),
        ("back-max>0", False),
        ("left>0", False),
        ("receives[a]>60%", False),
        ("receives-needed>8", True),
    ],
)
def test_figures(condition: str, met: bool) -> None:
    condition = condition.replace("back-max>", "back-max-ms>")
    ran = run(*GIVEN, "--messages", "60", "--target-wait", "1s", "--fail-on", condition, "-q", "-o", "csv")
    assert (ran.code, condition in ran.stderr) == ((3, True) if met else (0, False)), ran.stderr
