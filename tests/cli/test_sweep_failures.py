from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from rmqlb.cli.common.output_files import snapshot_text
from rmqlb.cli.exit_codes import ExitCode
from tests.engine.sweep_failures.clusters import broker, cluster, consumers, route
from tests.support.mismatches import every_case

from .run import EXAMPLE, data_of, error_of, run

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
    ran = run("sweep-failures", "-s", str(source), "-p", str(policy), "--orderly", "h", "-o", "json")
    found = [each for each in json.loads(ran.stdout)["data"]["counterexamples"] if each["gapCommand"] is not None]
    texts = [re.findall(r"'(\S+) [^']*'", each["gapCommand"]) for each in found]
    assert {each for its in texts for each in its} == {"host-loss", "crash", "broker-down"}
    for one in found:
        _, *words = shlex.split(one["gapCommand"])
        figures = json.loads(run(*words, "-o", "json").stdout)["data"]["trials"]["figures"]
        owners_die = "crash" in one["gapCommand"] or "host-loss" in one["gapCommand"]
        assert (figures["longestGapMs"]["max"] > 0) == owners_die, one["gapCommand"]


def test_a_sweep_is_of_the_whole_cluster_of_groups_or_of_a_topic() -> None:
    whole = data()
    assert [each["group"] for each in whole["groups"]] == ["audit-svc", "order-svc", "bill-svc"]
    some = data("-g", "bill-*")
    assert [each["group"] for each in some["groups"]] == ["bill-svc"]
    assert [each["topic"] for each in some["topics"]] == ["Skewed"]
    topic = data("-t", "Skewed")
    assert [(each["group"], each["queues"]) for each in topic["groups"]] == [("bill-svc", 9), ("order-svc", 9)]
    commands = [each["command"] for each in topic["counterexamples"] if each["about"] == "group"]
    assert all(" -t Skewed" in each for each in commands)


def test_zones_come_from_options_and_from_a_file(tmp_path: Path) -> None:
    zones = tmp_path / "zones.yaml"
    zones.write_text("az1: broker-a\naz2: [127.0.0.0/8, '192.0.2.2@inst0']\n")
    found = data("--lose", "zone", "--zone", "192.0.2.2@inst1=az3", "--zones", str(zones))
    assert [(each["name"], each["consumers"], each["addresses"]) for each in found["losses"]] == [
        ("az1", [], ["broker-a/0"]),
        ("az2", ["192.0.2.2@inst0"], ["broker-b/0"]),
        ("az3", ["192.0.2.2@inst1"], []),
    ]


def test_a_policy_says_the_limits_and_its_waivers_let_pass(tmp_path: Path) -> None:
    policy = tmp_path / "failures.yaml"
    policy.write_text(
        "rules: [{name: r, groups: ['bill-*'], limits: {minConsumers: 4}}]\n"
        "waivers: [{group: bill-svc, reason: small, until: 2026-12-01}]\n"
    )
    found = data("-p", str(policy), "--today", "2026-12-01")
    assert (found["counterexamples"], found["waived"]) == ([], 1)
    found = data("-p", str(policy), "--today", "2026-12-02")
    assert [(each["rule"], each["limit"], each["cases"]) for each in found["counterexamples"]] == [
        ("r", "minConsumers", 4)
    ]


@every_case(
    ("condition", "code"),
    [
        ("counterexamples>0", 3),
        ("broken-cases>50%", 0),
        ("unassigned[order-svc]>24", 3),
        ("imbalance[order-svc]>2", 0),
        ("imbalance>2", 3),
        ("moved[bill-svc]>99%", 3),
        ("unwritable-topics=100%", 3),
        ("lag-moved>0", 0),
    ],
)
def test_a_condition_on_the_worst_case_decides_the_exit_code(condition: str, code: int) -> None:
    ran = run(*BASE, "--fail-on", condition)
    assert ran.code == code, ran.stderr
    assert ("condition met" in ran.stderr) == (code == 3)


@every_case(
    ("text", "problem"),
    [
        ("- a\n", "it names no zone"),
        ("{}\n", "it names no zone"),
        ("az1: 7\n", "az1: 7 is not a list"),
        ("az1: ['']\n", "az1[0]: it is empty"),
        ("az1: [a\n", "line 2"),
    ],
)
def test_a_file_of_zones_is_read_strictly(tmp_path: Path, text: str, problem: str) -> None:
    zones = tmp_path / "zones.yaml"
    zones.write_text(text)
    ran = run(*BASE, "--zones", str(zones))
    assert (ran.code, ran.stdout) == (ExitCode.USAGE, "")
    error = error_of(ran.stderr)
    assert (error.code, problem in error.message) == ("zones-invalid", True), error


def test_a_cluster_in_which_nothing_can_be_judged_is_no_good_news() -> None:
    empty = replace(consumers("g", (), ["T"]), reports={})
    text = snapshot_text(cluster([empty], []), (), "fetch-routes")
    ran = run("sweep-failures", "-s", "-", "-o", "table", stdin=text)
    assert ran.code == ExitCode.DATA
    assert ran.stdout.startswith("nothing could be judged: ")
    assert "group g (the route of topic T is not known)" in ran.stdout
