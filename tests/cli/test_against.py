"""`--against`: an earlier result says whether the cluster has moved on since."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .run import EXAMPLE, ROOT, error_of, run

LATER = str(ROOT / "examples" / "cluster-later.json")
LINES = {
    "plan-rebalance": ("plan-rebalance", "-g", "order-svc", "--add", "1"),
    "simulate-rebalance": ("simulate-rebalance", "-g", "order-svc", "--event", "crash #1@10s"),
    "plan-rollout": ("plan-rollout", "-g", "order-svc", "--pause", "30s", "--trials", "2"),
    "simulate-send": ("simulate-send", "-t", "Skewed", "--messages", "9"),
}
CHANGED = {"simulate-send": "Skewed: broker-a 4 → 6 write queues"}


@pytest.fixture
def earlier(tmp_path: Path, request: pytest.FixtureRequest) -> str:
    path = tmp_path / "earlier.json"
    path.write_text(run(*LINES[request.param], "-s", EXAMPLE, "-o", "json").stdout)
    return str(path)


@pytest.mark.parametrize(("earlier", "name"), [(name, name) for name in LINES], indirect=["earlier"])
def test_every_plan_and_simulation_says_whether_the_cluster_has_moved_on(earlier: str, name: str) -> None:
    same = run(*LINES[name], "-s", EXAMPLE, "--against", earlier, "-o", "plain")
    assert same.stdout.splitlines()[1] == f"  the cluster is as it was for {earlier} of 2026-11-21T02:02:07Z"
    assert "moved-on" not in same.stderr
    moved = run(*LINES[name], "-s", LATER, "--against", earlier, "-o", "plain")
    changed = CHANGED.get(name, "+ 192.0.2.2@inst3: 12 queues moved, as AVG predicts")
    line = moved.stdout.splitlines()[1]
    assert line.startswith(f"  the cluster has moved on since {earlier} of 2026-11-21T02:02:07Z: {changed}")
    assert "[moved-on]" in moved.stderr
    data = json.loads(run(*LINES[name], "-s", LATER, "--against", earlier, "-o", "json").stdout)["data"]
    assert (data["against"]["same"], data["against"]["file"]) == (False, earlier)
    assert moved.stdout.splitlines()[-1].startswith(f"fingerprint {data['madeFrom']['fingerprint']}: ")


@pytest.mark.parametrize("earlier", ["plan-rebalance"], indirect=True)
def test_each_of_several_groups_finds_its_own(earlier: str, tmp_path: Path) -> None:
    several = ("plan-rebalance", "-g", "order-svc", "-g", "bill-svc", "--remove", "1")
    both = tmp_path / "both.json"
    both.write_text(run(*several, "-s", EXAMPLE, "-o", "json").stdout)
    ran = run(*several, "-s", LATER, "--against", str(both), "-o", "json")
    groups = json.loads(ran.stdout)["data"]["groups"]
    assert [group["against"]["group"]["strategyChanged"] for group in groups] == [False, True]
    failed = error_of(run(*several, "-s", LATER, "--against", earlier, "-o", "plain").stderr)
    assert failed.message == f"group bill-svc: --against {earlier}: it is not of bill-svc"
    assert failed.code == "not-of-this"


def test_stdin_is_read_once() -> None:
    ran = run(*LINES["plan-rebalance"], "-s", "-", "--against", "-")
    assert error_of(ran.stderr).message == "-s - and --against - both read stdin"


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"schema": "rmqlb/plan", "data": {"madeFrom": null}}', "[" * 100_000, '{"data": 1}']
)
def test_a_file_that_is_no_result_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text(text)
    ran = run(*LINES["plan-rebalance"], "-s", EXAMPLE, "--against", str(path))
    assert (ran.code, ran.stdout) == (2, "")
    failed = error_of(ran.stderr)
    assert failed.code == "not-a-result"
    assert failed.message.startswith(f"--against {path}: it does not say what it was made from")


@pytest.mark.parametrize(("earlier", "name"), [(name, name) for name in LINES], indirect=["earlier"])
def test_a_condition_asks_whether_the_cluster_has_moved_on(earlier: str, name: str) -> None:
    asked = (*LINES[name], "--fail-on", "changed-since>0")
    same = run(*asked, "-s", EXAMPLE, "--against", earlier, "-o", "json")
    assert (same.code, json.loads(same.stdout)["data"]["conditions"][0]["value"]) == (0, 0)
    moved = run(*asked, "-s", LATER, "--against", earlier, "-o", "json")
    data = json.loads(moved.stdout)["data"]
    group, number = data["against"]["group"], len(data["against"]["topics"])
    if group is not None:
        parts = ("joined", "left", "processes", "topicsAdded", "topicsRemoved", "settings")
        number += sum(len(group[part]) for part in parts) + group["strategyChanged"]
    assert (moved.code, data["conditions"][0]["value"]) == (3, number)
    assert number > 0
    failed = error_of(run(*asked, "-s", EXAMPLE).stderr)
    assert failed.message == "--fail-on 'changed-since>0': since which result?"
    assert failed.hint == "name it with --against FILE"


@pytest.mark.parametrize("earlier", ["simulate-send"], indirect=True)
def test_attempts_that_are_streamed_are_compared_too(earlier: str) -> None:
    asked = (*LINES["simulate-send"], "--fail-on", "changed-since>0", "--against", earlier, "-o", "jsonl")
    assert run(*asked, "-s", EXAMPLE).code == 0
    moved = run(*asked, "-s", LATER)
    assert (moved.code, "[moved-on]" in moved.stderr) == (3, True)
