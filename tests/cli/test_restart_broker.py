"""What a broker's restart does to everything: one group, several, and the producers of their topics."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from rmqlb.cli.exit_codes import ExitCode
from tests.cli.run import EXAMPLE, run
from tests.support.replay_remoting import cluster
from tests.support.schemas import problems

SOURCE = ("simulate-rebalance", "-s", EXAMPLE)
RESTART = ("--event", "restart-broker broker-b@30s, down 1m")
GROUPS = ("audit-svc", "bill-svc", "order-svc")


def result(*args: str, code: int = 0) -> dict[str, Any]:
    ran = run(*SOURCE, *args, "-o", "json")
    assert ran.code == code, ran.stderr
    document: dict[str, Any] = json.loads(ran.stdout)
    assert not problems(document)
    return document


def data(*args: str) -> dict[str, Any]:
    found: dict[str, Any] = result(*args)["data"]
    return found


def without_text(value: dict[str, Any]) -> dict[str, Any]:
    events = [{key: part for key, part in event.items() if key != "text"} for event in value["events"]]
    return {**value, "events": events}


def test_a_restart_is_down_and_up() -> None:
    window = ("--event", "broker-down broker-b@30s-1m30s")
    single = ("--event", "broker-down broker-b@30s", "--event", "broker-up broker-b@1m30s")
    restart = without_text(data("-g", "order-svc", *RESTART))
    assert restart == without_text(data("-g", "order-svc", *window)) == without_text(data("-g", "order-svc", *single))


def test_each_group_is_simulated_as_if_it_were_alone() -> None:
    document = result("-g", "*", *RESTART)
    assert document["schema"] == "rmqlb/simulate-rebalance-of-groups"
    assert document["data"]["groups"] == [data("-g", group, *RESTART) for group in GROUPS]
    assert (
        result("-g", "audit-svc", "-g", "bill-*", "-g", "order-svc", *RESTART)["data"]["groups"]
        == document["data"]["groups"]
    )


def test_a_pattern_makes_a_list_however_many_it_matches() -> None:
    assert [group["group"] for group in data("-g", "bill-*", *RESTART)["groups"]] == ["bill-svc"]


def test_the_summary_is_the_sum_of_its_parts() -> None:
    found = data("-g", "*", *RESTART, "--rate", "100")
    summary, figures = found["summary"], [group["figures"] for group in found["groups"]]
    assert summary["groups"] == len(figures) == 3
    assert summary["queues"] == sum(len(group["queues"]) for group in found["groups"])
    for key in ("queuesWithGap", "queuesWithOverlap", "queuesWithOutage", "queuesUnreadAtEnd", "redelivered"):
        assert summary[key] == sum(each[key] for each in figures), key
    for key in ("longestGapMs", "longestOverlapMs", "longestOutageMs", "unreadMs", "convergenceMs"):
        assert summary[key] == max(each[key] for each in figures), key
    totals = [producer["totals"] for producer in found["producers"]]
    assert summary["topics"] == len(totals) == 2
    for key in ("messages", "lost", "retried"):
        assert summary[key] == sum(each[key] for each in totals), key
    assert summary["longestSendMs"] == max(each["longestSendMs"] for each in totals)


def test_producers_are_those_of_simulate_send() -> None:
    """The same failure, rate and latency: the same messages."""
    told = ("--rate", "OrderEvents=50", "--latency", "2ms")
    found = {each["topic"]: each for each in data("-g", "order-svc", "-g", "bill-svc", *RESTART, *told)["producers"]}
    assert found.keys() == {"OrderEvents", "Skewed"}
    for topic, rate in (("OrderEvents", ("--rate", "50")), ("Skewed", ())):
        ran = run(
            *("simulate-send", "-s", EXAMPLE, "--topic", topic, "--fail", "broker-b@30s-90s"),
            *(*rate, "--latency", "2ms", "-o", "json"),
        )
        alone = json.loads(ran.stdout)["data"]
        same = ("scenario", "totals", "brokers", "failures", "timeline")
        assert {key: found[topic][key] for key in same} == {key: alone[key] for key in same}


def test_a_machine_that_is_lost_is_silent_for_producers_too() -> None:
    (failure,) = data("-g", "bill-*", "--event", "broker-loss broker-b@30s")["producers"][0]["failures"]
    assert (failure["kind"], failure["beganMs"], failure["endedMs"]) == ("timeout", 30_000, None)
    assert failure["nameserverNoticesMs"] == 120_000


def test_without_a_failing_broker_there_are_no_producers() -> None:
    found = data("-g", "*", "--event", "leave #0@10s")
    assert (found["producers"], found["summary"]["topics"], found["summary"]["longestSendMs"]) == ([], 0, None)
    text = run(*SOURCE, "-g", "*", "--event", "leave #0@10s", "-o", "table").stdout
    assert "producers" not in text.partition("--all")[0]


def two_clusters(folder: Path) -> str:
    """bill-svc reads another topic, on other brokers; no group reads a third one."""
    document = json.loads(Path(EXAMPLE).read_text(encoding="utf-8"))
    (skewed,) = (each for each in document["data"]["topics"] if each["topic"] == "Skewed")
    text = json.dumps(skewed).replace("broker-", "other-").replace("Skewed", "Bills")
    document["data"]["topics"] += [json.loads(text), json.loads(json.dumps(skewed).replace("Skewed", "Unread"))]
    groups = document["data"]["groups"]
    place = next(place for place, group in enumerate(groups) if group["group"] == "bill-svc")
    groups[place] = json.loads(json.dumps(groups[place]).replace("broker-", "other-").replace("Skewed", "Bills"))
    path = folder / "two.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    return str(path)


def test_a_group_that_is_not_on_the_broker_is_not_affected(tmp_path: Path) -> None:
    source = ("simulate-rebalance", "-s", two_clusters(tmp_path), "-g", "*", *RESTART)
    found = json.loads(run(*source, "-o", "json").stdout)["data"]
    bills = next(group for group in found["groups"] if group["group"] == "bill-svc")
    assert (bills["events"], bills["figures"]["convergenceMs"], bills["figures"]["unreadMs"]) == ([], 0, 0)
    assert (found["summary"]["groups"], found["summary"]["groupsAffected"]) == (3, 2)
    assert [each["topic"] for each in found["producers"]] == ["OrderEvents", "Skewed", "Unread"]
    lines = run(*source, "-o", "table").stdout.splitlines()
    assert lines[0].startswith("restart-broker broker-b@30s, down 1m: 2 of 3 groups affected; ")
    assert next(line for line in lines if "bill-svc" in line).startswith("✓")


@pytest.mark.parametrize("option", ["--svg", "--html"])
def test_a_picture_is_of_one_group(option: str) -> None:
    ran = run(*SOURCE, "-g", "*", *RESTART, option, "-")
    assert (ran.code, ran.stdout) == (ExitCode.USAGE, "")
    assert ran.stderr.startswith(f"error: {option}: the picture of which group?")


def test_a_condition_is_met_when_any_group_meets_it_and_that_group_is_named() -> None:
    ran = run(*SOURCE, "-g", "*", *RESTART, "--fail-on", "taken>20")
    assert ran.code == ExitCode.CONDITION
    met = [line for line in ran.stderr.splitlines() if line.startswith("condition met")]
    taken = {group["group"]: group["figures"]["taken"] for group in data("-g", "*", *RESTART)["groups"]}
    assert [line.partition(" (")[0] for line in met] == [
        f"condition met: taken>20 in group {group}" for group, number in taken.items() if number > 20
    ]


def test_the_worst_group_comes_first() -> None:
    lines = run(*SOURCE, "-g", "*", *RESTART, "-o", "table").stdout.splitlines()
    order = [group for line in lines for group in GROUPS if f" {group} " in line]
    assert order == ["audit-svc", "order-svc", "bill-svc"]  # the longest wait first


def test_scripts_get_each_table_with_the_group() -> None:
    def rows(section: str) -> list[dict[str, str]]:
        text = run(*SOURCE, "-g", "*", *RESTART, "--section", section, "-o", "csv").stdout
        return list(csv.DictReader(io.StringIO(text)))

    by_group = {row["group"]: row for row in rows("groups")}
    for group in data("-g", "*", *RESTART)["groups"]:
        assert float(by_group[group["group"]]["unreadMs"]) == group["figures"]["unreadMs"]
    assert {row["topic"] for row in rows("producers")} == {"OrderEvents", "Skewed"}
    assert {row["group"] for row in rows("windows")} == set(GROUPS)


def test_a_running_cluster_is_read_once_for_groups_and_producers() -> None:
    with cluster() as (a, b):
        at = ("-s", f"rocketmq://{a.address}", "--map-address", a.mapped, "--map-address", b.mapped)
        ran = run("simulate-rebalance", *at, "-g", "*", *RESTART, "-o", "json")
    assert ran.code == ExitCode.OK, ran.stderr
    found = json.loads(ran.stdout)["data"]
    assert {"order-svc", "audit-svc"} <= {group["group"] for group in found["groups"]}
    assert found["summary"]["groupsAffected"] >= 2
    assert found["producers"]
    assert all(each["failures"][0]["brokerName"] == "broker-b" for each in found["producers"])
