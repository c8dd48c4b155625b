from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

from rmqlb.cli.common.output_files import snapshot_text
from tests.engine.sweep_failures.clusters import broker, cluster, consumers, route

from .run import EXAMPLE, data_of, run

BASE = ("sweep-failures", "-s", EXAMPLE)


def data(*args: str) -> Any:
    return data_of(*BASE, *args)


def test_every_counterexample_comes_with_a_command_that_shows_its_figures() -> None:
    found = data()["counterexamples"]
    assert {each["about"] for each in found} == {"group", "topic"}
    for one in found:
        _, *words = shlex.split(one["command"])
        shown = run(*words, "-o", "json")
        assert shown.code == 0, one["command"]
        result = json.loads(shown.stdout)["data"]
        if one["about"] == "topic":
            assert result["totals"]["failedAttempts"] > 0
            continue
        summary, group = result["summary"], one["group"]
        keys = ("unassigned", "idle", "imbalance", "moved", "lagMoved", "duplicateOwners")
        assert {key: summary[key] for key in keys} == {key: group[key] for key in keys}
        assert (summary["after"]["consumers"], summary["after"]["queues"]) == (group["consumers"], group["queues"])


def test_the_gap_of_a_counterexample_is_simulated_by_its_command(tmp_path: Path) -> None:
    policy = tmp_path / "p.yaml"
    policy.write_text(
        "rules: [{name: r, groups: ['*'], limits: {minConsumers: 3, movedOnBrokerLoss: 0%, withoutLock: 0}}]"
    )
    brokers = broker("a", "10.0.0.1", "10.0.0.3"), broker("b", "10.0.0.2")
    ids = ["10.1.0.1@1", "10.1.0.1@1", "10.1.0.2@2", "10.1.0.2@3"]
    source = tmp_path / "c.json"
    groups = [consumers("g", ids, ["T"]), consumers("h", ids[1:], ["T"], "CONSISTENT_HASH")]
    snapshot = cluster(groups, [route("T", brokers, [3, 4])])
    source.write_text(snapshot_text(snapshot, (), "fetch-routes"))
    ran = run("sweep-failures", "-s", str(source), "-p", str(policy), "--orderly-group", "h", "-o", "json")
    found = [each for each in json.loads(ran.stdout)["data"]["counterexamples"] if each["gapCommand"] is not None]
    texts = [re.findall(r"'(\S+) [^']*'", each["gapCommand"]) for each in found]
    assert {each for its in texts for each in its} == {"host-loss", "crash", "broker-down"}
    for one in found:
        _, *words = shlex.split(one["gapCommand"])
        figures = json.loads(run(*words, "-o", "json").stdout)["data"]["trials"]["figures"]
        owners_die = "crash" in one["gapCommand"] or "host-loss" in one["gapCommand"]
        assert (figures["longestGapMs"]["max"] > 0) == owners_die, one["gapCommand"]
