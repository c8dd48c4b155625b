"""Patterns in --group: as good as several names, and each group as if it were alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rmqlb.remoting.codes import RequestCode
from tests.support.mismatches import every_case
from tests.support.replay_remoting import cluster

from .run import EXAMPLE, ROOT, error_of, run

FAULTS = ("-s", str(ROOT / "examples" / "four-groups.yaml"))
SOURCE = ("-s", EXAMPLE)
PLAN, SHOW = ("plan-rebalance", "--add", "1"), ("show-owners", "--strategy", "AVG")
each_command = every_case("command", [PLAN, SHOW], ids=lambda command: command[0])


@each_command
def test_a_pattern_is_the_groups_that_it_matches_in_the_order_of_their_names(command: tuple[str, ...]) -> None:
    named = run(*command, *FAULTS, "-g", "calm-svc", "-g", "mix-svc", "-g", "slow-svc", "-o", "json").stdout
    for patterns in (("[cms]*-svc",), ("calm-svc", "mix*", "slow-svc", "m?x-svc")):
        given = [part for pattern in patterns for part in ("-g", pattern)]
        assert run(*command, *FAULTS, *given, "-o", "json").stdout == named


@each_command
def test_the_form_of_the_result_does_not_depend_on_how_many_match(command: tuple[str, ...]) -> None:
    one = json.loads(run(*command, *FAULTS, "-g", "cal*", "-o", "json").stdout)
    assert (one["schema"].endswith("-of-groups"), one["data"]["summary"]["groups"]) == (True, 1)


@each_command
@pytest.mark.parametrize("names", [("pay-*",), ("calm*", "pay-*"), ("%RETRY%*",)])
def test_a_pattern_that_matches_nothing_is_an_error(command: tuple[str, ...], names: tuple[str, ...]) -> None:
    ran = run(*command, *FAULTS, *(part for name in names for part in ("-g", name)))
    failed = error_of(ran.stderr)
    assert (ran.code, ran.stdout, failed.code) == (4, "", "group-not-found")
    assert failed.message.startswith(f"--group {names[-1]}: it matches no group of {FAULTS[1]}")
    assert failed.hint is not None
    assert "calm-svc" in failed.hint


def test_consumers_of_a_pattern_are_nobodys() -> None:
    failed = error_of(run("show-owners", *SOURCE, "-g", "*", "--consumers", "3").stderr)
    assert failed.message == "--consumers 3: the consumers of which of the groups *?"


def with_offline_group(tmp_path: Path) -> tuple[str, str]:
    """The example with a group without a consumer."""
    document = json.loads(Path(EXAMPLE).read_text(encoding="utf-8"))
    document["data"]["groups"].append({"group": "gone-svc", "topics": ["Skewed"], "views": [], "queues": []})
    path = tmp_path / "cluster.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    return "-s", str(path)


def test_a_group_with_which_nothing_can_be_done_is_left_out_of_a_pattern(tmp_path: Path) -> None:
    source = with_offline_group(tmp_path)
    ran = run("show-owners", *source, "-g", "*-svc", "-o", "json")
    value = json.loads(ran.stdout)
    assert [group["group"] for group in value["data"]["groups"]] == ["audit-svc", "bill-svc", "order-svc"]
    (left,) = (finding for finding in value["findings"] if finding["code"] == "group-left-out")
    assert (left["group"], left["message"].startswith("group gone-svc is left out: ")) == ("gone-svc", True)
    named = error_of(run("show-owners", *source, "-g", "gone-svc", "-g", "order*").stderr)
    alone = error_of(run("show-owners", *source, "-g", "gone*").stderr)
    assert named.message == alone.message
    assert "gone-svc" in named.message


def test_the_first_line_sums_up_and_the_worst_group_is_first() -> None:
    ran = run("show-owners", *FAULTS, "-g", "*", "--strategy", "AVG", "-o", "table")
    lines = ran.stdout.splitlines()
    assert lines[0].startswith("4 groups: 6 of 32 queues are unassigned; 2 of 32 queues have duplicate owners; ")
    rows = [line.split()[:2] for line in ran.stdout.split("\ngroups")[1].splitlines()[3:7]]
    assert rows == [["✗", "dup-svc"], ["✗", "mix-svc"], ["✓", "calm-svc"], ["✓", "slow-svc"]]
    data = json.loads(run("show-owners", *FAULTS, "-g", "*", "--strategy", "AVG", "-o", "json").stdout)["data"]
    assert [group["group"] for group in data["groups"]] == ["calm-svc", "dup-svc", "mix-svc", "slow-svc"]
    assert data["summary"]["observedUnassigned"] == 6


@each_command
def test_a_screen_has_a_line_per_group_and_all_tables_on_request(command: tuple[str, ...]) -> None:
    line = (*command, *SOURCE, "-g", "*-svc", "-o", "table")
    assert "order-svc: queues" not in run(*line).stdout
    whole = run(*line, "--all").stdout
    for group in ("order-svc", "bill-svc", "audit-svc"):
        assert f"\n{group}: queues" in whole or f"\n{group}: owners" in whole
        assert f"\n{group}, " in whole
    rows = run(*line[:-1], "csv", "--section", "groups").stdout.splitlines()
    assert len(rows) == 4


@pytest.mark.parametrize("width", ["80", "100", "120"])
@each_command
def test_three_groups_fit_a_screen(command: tuple[str, ...], width: str) -> None:
    ran = run(*command, *SOURCE, "-g", "*-svc", "-o", "table", env={"COLUMNS": width})
    lines = ran.stdout.splitlines()
    assert len(lines) <= 40
    assert max(map(len, lines)) <= int(width)


def test_a_live_source_is_asked_for_its_groups_and_then_for_those_that_match() -> None:
    with cluster() as (a, b):
        at = ("-s", f"rocketmq://{a.address}", "--map-address", a.mapped, "--map-address", b.mapped)
        ran = run("show-owners", *at, "-g", "[ao]*-svc", "--strategy", "AVG", "-o", "json")
        asked = [code for code, _ in a.asked]
    assert [group["group"] for group in json.loads(ran.stdout)["data"]["groups"]] == ["audit-svc", "order-svc"]
    assert RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG in asked
