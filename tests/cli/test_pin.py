"""Topics pinned to machines: `--strategy-option pin=…`, and what it leaves unassigned when it is written by mistake."""

from __future__ import annotations

import json
from typing import Any

from rmqlb.cli.exit_codes import ExitCode
from tests.cli.run import EXAMPLE, SKEWED, error_of, run
from tests.support.mismatches import every_case

ON = ("--consumers", "10.0.0.1@1,10.0.0.2@1,10.0.0.3@1")
SKEWED_ON = ("-s", SKEWED, "--topic", "Skewed", *ON)
GROUP = ("-s", EXAMPLE, "-g", "order-svc", *ON)


def told(*args: str) -> tuple[Any, dict[str, str]]:
    ran = run(*args, "-o", "json")
    assert ran.code == ExitCode.OK, ran.stderr
    document = json.loads(ran.stdout)
    return document["data"], {each["code"]: each["message"] for each in document["findings"]}


def test_only_the_pinned_topic_goes_to_its_machines() -> None:
    data, findings = told(
        "show-owners",
        *GROUP,
        "--strategy",
        "PIN",
        "--strategy",
        "AVG",
        "--strategy-option",
        "pin=Skewed=10.0.0.2,10.0.0.3",
    )
    for queue in data["queues"]:
        pinned, free = queue["owners"]["PIN-AVG"], queue["owners"]["AVG"]
        assert (pinned == free) if queue["topic"] == "OrderEvents" else pinned[0] in ("10.0.0.2@1", "10.0.0.3@1")
    assert not {"pin-over-all", "pin-no-consumer"} & findings.keys()


def test_the_mistake_leaves_queues_unassigned_and_is_named() -> None:
    data, findings = told(
        "plan-rebalance",
        *GROUP,
        "--strategy",
        "AVG",
        "--to-strategy",
        "PIN_OVER_ALL",
        "--strategy-option",
        "pin=Skewed=10.0.0.1",
    )
    assert data["summary"]["newlyUnassigned"] == 6
    assert findings["pin-over-all"] == (
        "strategy PIN_OVER_ALL-AVG leaves 6 queues (first broker-a:3 of Skewed) unassigned: they fall to consumers that "
        "are not on the chosen machines and take nothing; PIN shares them among those that are"
    )
    _, healed = told(
        "plan-rebalance",
        *GROUP,
        "--strategy",
        "PIN_OVER_ALL",
        "--to-strategy",
        "PIN",
        "--strategy-option",
        "pin=Skewed=10.0.0.1",
    )
    assert "pin-over-all" in healed  # of the owners before


def test_machines_without_a_consumer_are_named() -> None:
    for strategy in ("PIN", "PIN_OVER_ALL"):
        _, findings = told(
            "show-owners", *SKEWED_ON, "--strategy", strategy, "--strategy-option", "pin=Skewed=10.0.0.8,10.0.0.9"
        )
        assert (
            findings["pin-no-consumer"] == "topic Skewed is pinned to machines without a consumer (10.0.0.8, 10.0.0.9)"
        )
        assert "pin-over-all" not in findings


def test_a_group_over_time_is_pinned_too() -> None:
    data, findings = told(
        "simulate-rebalance",
        *SKEWED_ON,
        "--strategy",
        "PIN_OVER_ALL",
        "--strategy-option",
        "host=10.0.0.1",
        "--event",
        "leave 10.0.0.2@1@5s",
    )
    assert data["strategy"] == "PIN_OVER_ALL-AVG"
    assert "pin-over-all" in findings


@every_case(
    ("args", "message"),
    [
        (("--strategy", "PIN", "--strategy-option", "pin=Skewed"), "--strategy-option pin=Skewed: expected TOPIC=HOST or TOPIC=HOST,HOST"),
        (("--strategy", "PIN", "--strategy-option", "pin==10.0.0.1"), "--strategy-option pin==10.0.0.1: expected TOPIC=HOST or TOPIC=HOST,HOST"),
        (("--strategy", "PIN", "--strategy-option", "pin=Skewed=10.0.0.1,"), "--strategy-option pin=Skewed=10.0.0.1,: expected TOPIC=HOST or TOPIC=HOST,HOST"),
        (("--strategy", "PIN", "--strategy-option", "pin=Skewed="), "--strategy-option pin=Skewed=: expected TOPIC=HOST or TOPIC=HOST,HOST"),
        (("--strategy", "PIN", "--strategy-option", "pin=Sewed=10.0.0.1"), "--strategy-option pin=Sewed=…: none of the topics looked at is Sewed"),
        (
            ("--strategy", "PIN", "--strategy-option", "pin=Skewed=10.0.0.1", "--strategy-option", "pin=Skewed=10.0.0.2"),
            "--strategy-option pin=Skewed=10.0.0.2: it is about the same as --strategy-option pin=Skewed=10.0.0.1, and one would not count",
        ),
        (("--strategy", "AVG", "--strategy-option", "host=10.0.0.1"), "--strategy-option host=10.0.0.1: only PIN and PIN_OVER_ALL look at it, and the strategy named is AVG"),
    ],
)  # fmt: skip
def test_a_pin_that_cannot_count_is_refused(args: tuple[str, ...], message: str) -> None:
    for command in (("show-owners",), ("plan-rebalance", "--add", "1"), ("simulate-rebalance", "--event", "join x@5s")):
        ran = run(*command, *SKEWED_ON, *args, "-q")
        assert (error_of(ran.stderr).message, ran.code, ran.stdout) == (message, ExitCode.USAGE, "")
