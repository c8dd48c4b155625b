from __future__ import annotations

import json
from typing import Any

from rmqlb.cli.exit_codes import ExitCode
from tests.cli.run import EXAMPLE, run
from tests.cli.test_simulate_rebalance import I0, I1, I2, snapshot

BASE = ("plan-rollout", "-s", EXAMPLE, "--group", "order-svc", "--trials", "3")
SHORT = ("--pause", "20s", "--down", "5s")
NEW_STRATEGY = ("--to-strategy", "AVG_BY_CIRCLE")


def data(*args: str) -> dict[str, Any]:
    ran = run(*BASE, *args, "-o", "json")
    assert ran.code == 0, ran.stderr
    value = json.loads(ran.stdout)
    assert (value["schema"], value["command"]) == ("rmqlb/plan-rollout", "plan-rollout")
    found: dict[str, Any] = value["data"]
    return found


def test_a_restart_is_of_all_members_or_of_those_that_are_named() -> None:
    assert data(*SHORT)["consumers"] == [I0, I1, I2]
    assert data(*SHORT, "--restart", "all")["consumers"] == [I0, I1, I2]
    assert data(*SHORT, "--restart", I2, "--restart", "*inst0")["consumers"] == [I0, I2]


def test_a_change_of_strategy_shows_its_overlap() -> None:
    found = data(*SHORT, *NEW_STRATEGY)
    assert (found["strategyBefore"], found["strategyAfter"]) == ("AVG", "AVG_BY_CIRCLE")
    assert found["misassigned"] > 0
    assert len(found["stages"]) == 2
    ran = run(*BASE, *SHORT, *NEW_STRATEGY, "--fail-on", "misassigned>0", "-q")
    assert ran.code == ExitCode.CONDITION


def test_ids_of_processes_change_with_the_restart_unless_told_otherwise() -> None:
    text = snapshot(clientIds=["h@7#100", "h@8#100"])
    args = ("plan-rollout", "-s", "-", "--trials", "2", *SHORT, "-o", "json")
    codes = [
        [finding["code"] for finding in json.loads(run(*args, *more, stdin=text).stdout)["findings"]]
        for more in ((), ("--ids", "new"), ("--ids", "same"))
    ]
    assert ["new-ids" in each for each in codes] == [True, False, False]


def test_a_group_without_consumers_is_not_told_to_let_one_join() -> None:
    ran = run("plan-rollout", "-s", "-", *SHORT, stdin=snapshot(clientIds=[]))
    assert "[no-consumer-online]\nhint: name the consumers with --consumers" in ran.stderr
    assert "--event" not in ran.stderr
