"""Several groups in one command: each is done as if it were alone, from one reading of the source, and each once."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import pytest

from rmqlb.cli.exit_codes import ExitCode
from rmqlb.remoting.codes import RequestCode
from tests.support.mismatches import every_case
from tests.support.replay_remoting import cluster

from .run import EXAMPLE, error_of, run

SOURCE = ("-s", EXAMPLE)
PLAN, SHOW = ("plan-rebalance", "--add", "1"), ("show-owners", "--strategy", "AVG")
BOTH = ("-g", "order-svc", "-g", "bill-svc")
GROUPS = ("order-svc", "bill-svc")
SIMULATE = ("simulate-rebalance", "--event", "leave #0@10s")
each_command = every_case("command", [PLAN, SHOW, SIMULATE], ids=lambda command: command[0])


def result(*args: str) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(run(*args, *SOURCE, "-o", "json").stdout)
    return value


@each_command
def test_each_group_is_done_as_if_it_were_alone(command: tuple[str, ...]) -> None:
    several = result(*command, *BOTH)
    alone = [result(*command, "-g", group) for group in GROUPS]
    assert several["schema"] == f"{alone[0]['schema']}-of-groups"
    assert several["data"]["groups"] == [one["data"] for one in alone]
    assert several["data"]["summary"]["groups"] == 2


@each_command
def test_a_group_that_is_given_again_is_done_once(command: tuple[str, ...]) -> None:
    assert result(*command, *BOTH, "-g", "order-svc") == result(*command, *BOTH)
    assert result(*command, "-g", "order-svc", "-g", "order-svc") == result(*command, "-g", "order-svc")


def test_the_summary_is_the_sum_and_the_first_line_says_it() -> None:
    data = result(*PLAN, *BOTH)["data"]
    total, summaries = data["summary"], [group["summary"] for group in data["groups"]]
    for key in ("moved", "newlyAssigned", "newlyUnassigned", "added", "removed", "unassigned", "duplicateOwners"):
        assert total[key] == sum(summary[key] for summary in summaries), key
    fewest, most = (sum(summary["movedRange"][end] for summary in summaries) for end in ("fewest", "most"))
    assert total["movedRange"] == {"fewest": fewest, "most": most, "complete": True}
    lines = run(*PLAN, *SOURCE, *BOTH, "-o", "plain").stdout.splitlines()
    assert lines[0].startswith(f"2 groups: {fewest} to {most} of 34 queues move")
    assert [line.split(",")[0] for line in lines if " → 5 consumers: " in line or " → 4 consumers: " in line] == list(
        GROUPS
    )
    assert "order-svc: queues" in lines
    assert "bill-svc: consumers" in lines


@each_command
@pytest.mark.parametrize("section", ["queues", "consumers", "summary"])
def test_a_table_of_a_program_has_the_groups_in_its_first_column(command: tuple[str, ...], section: str) -> None:
    def rows(*groups: str) -> list[list[str]]:
        text = run(*command, *SOURCE, *groups, "--section", section, "-o", "csv").stdout
        return list(csv.reader(io.StringIO(text, newline="")))

    several = rows(*BOTH)
    alone = {group: rows("-g", group) for group in GROUPS}
    assert several[0] == ["group", *alone["order-svc"][0]]
    assert several[1:] == [[group, *row] for group in GROUPS for row in alone[group][1:]]


def test_a_condition_is_met_when_any_group_meets_it_and_that_group_is_named() -> None:
    ran = run(*PLAN, *SOURCE, *BOTH, "--fail-on", "moved>60%", "-o", "json")
    assert ran.code == ExitCode.CONDITION
    assert [line for line in ran.stderr.splitlines() if "met" in line] == [
        "condition met: moved>60% in group bill-svc (it is 100)"
    ]
    conditions = [group["conditions"][0]["met"] for group in json.loads(ran.stdout)["data"]["groups"]]
    assert conditions == [False, True]
    assert run(*PLAN, *SOURCE, *BOTH, "--fail-on", "moved>100%").code == 0


def test_what_is_true_of_one_group_only_is_said_with_its_name() -> None:
    ran = run(*SHOW, *SOURCE, *BOTH, "-g", "audit-svc", "-t", "OrderEvents")
    told = [line for line in ran.stderr.splitlines() if "not-subscribed" in line]
    assert told
    assert all("bill-svc" in line for line in told)
    named = [line for line in run(*PLAN, *SOURCE, *BOTH).stderr.splitlines() if "placeholder-ids" in line]
    assert [line.split(":")[1] for line in named] == [" group order-svc", " group bill-svc"]


@every_case(
    ("args", "code", "message"),
    [
        (("-g", "order-svc", "-g", "nobody"), "group-not-found", "nobody"),
        ((*BOTH, "--remove", "192.0.2.2@inst3"), "not-in-group", "group order-svc: --remove 192.0.2.2@inst3"),
        ((*BOTH, "--consumers", "3"), "which-group", "the consumers of which of the groups order-svc, bill-svc"),
    ],
)
def test_a_mistake_names_the_group_that_it_is_about(args: tuple[str, ...], code: str, message: str) -> None:
    failed = error_of(run("plan-rebalance", *SOURCE, *args).stderr)
    assert (failed.code, message in failed.message) == (code, True), failed


def test_a_live_source_is_asked_for_the_groups_and_no_more() -> None:
    with cluster() as (a, b):
        at = ("-s", f"rocketmq://{a.address}", "--map-address", a.mapped, "--map-address", b.mapped)
        ran = run("show-owners", *at, "-g", "order-svc", "-g", "audit-svc", "--strategy", "AVG", "-o", "json")
        asked = {code for code, _ in a.asked}
    assert [group["group"] for group in json.loads(ran.stdout)["data"]["groups"]] == ["order-svc", "audit-svc"]
    assert RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG not in asked


@pytest.mark.parametrize(
    "line",
    [
        "plan-rollout -g order-svc -g bill-svc",
        "simulate-send -t OrderEvents -t Skewed",
    ],
)
def test_what_is_done_for_one_refuses_a_second(line: str) -> None:
    import shlex

    failed = error_of(run(*shlex.split(line), *SOURCE).stderr)
    assert (failed.code, failed.hint) == ("given-twice", "run the command once for each")
