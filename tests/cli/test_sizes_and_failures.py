import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rmqlb.cli.common.output_files import snapshot_text
from tests.engine.sweep_failures.clusters import broker, cluster, consumers, route

from .run import EXAMPLE, changed_example, data_of, run

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


ASKED = ("size-group", "-s", EXAMPLE, "-g", "order-svc")


def changed(folder: Path, change: Callable[[Any], None]) -> str:
    def without_queues(document: Any) -> None:
        change(document["data"])
        for each in document["data"]["groups"]:
            each["queues"] = []

    return changed_example(folder, without_queues)


def size(*more: str, of: tuple[str, ...] = ASKED) -> Any:
    return data_of(*of, *more)


def test_a_topic_that_is_lost_with_its_broker_is_found(tmp_path: Path) -> None:
    def alone(data: Any) -> None:
        (skewed,) = (each for each in data["topics"] if each["topic"] == "Skewed")
        del skewed["route"]["queueDatas"][1:]

    limits = ("-g", "order-svc", "--no-idle", "--survive-broker")
    assert "topic Skewed is on one broker only" in run("size-group", "-s", changed(tmp_path, alone), *limits).stderr
    assert "one-broker" not in run(*ASKED, *limits[2:]).stderr


def unread_topic(tmp_path: Path, group: str) -> tuple[str, ...]:
    def unread(data: Any) -> None:
        (events,) = (each for each in data["topics"] if each["topic"] == "OrderEvents")
        events["route"]["queueDatas"] = [{**each, "readQueueNums": 0} for each in events["route"]["queueDatas"]]

    (place := tmp_path / group).mkdir(exist_ok=True)
    return "size-group", "-s", changed(place, unread), "-g", group


def test_the_rate_of_a_topic_without_read_queues_goes_to_the_queues_that_it_gets(tmp_path: Path) -> None:
    """100 messages a second of 1 s each, on two topics alike: 100 threads at 80 % are 125, and a consumer has 8."""
    work = ("--rate", "OrderEvents=50", "--rate", "Skewed=50", "--consume-time", "1s", "--set", "consume-threads=8")
    sizes = ("--queues-per-broker", "16", "--sizes", "1..40")
    unread = size(*work, *sizes, of=unread_topic(tmp_path, "order-svc"))
    assert unread["consumers"] == size(*work, *sizes)["consumers"] == 16
    topics = {each["topic"]: (each["queues"], each["queuesNow"], each["ratePerSecond"]) for each in unread["topics"]}
    assert topics == {"OrderEvents": (32, 0, 50.0), "Skewed": (32, 9, 50.0)}


def test_a_topic_that_gets_no_queue_brings_no_work(tmp_path: Path) -> None:
    of = unread_topic(tmp_path, "audit-svc")
    ran = run(*of, "--rate", "OrderEvents=50", "--consume-time", "1s")
    assert (ran.code, "no readable queue in OrderEvents" in ran.stderr) == (4, True)
    assert "--queues-per-broker" in ran.stderr
    ran = run(*of, "--rate", "50")
    assert (ran.code, "hint: say it: --consume-time 40ms" in ran.stderr) == (4, True)
    ran = run(*unread_topic(tmp_path, "order-svc"), "--rate", "OrderEvents=50", "--consume-time", "1s")
    assert (ran.code, "--rate Skewed=R" in ran.stderr) == (4, True)


def test_differing_subscriptions_are_those_of_the_plan(tmp_path: Path) -> None:
    """One consumer of three does not read Skewed: the plan leaves its share unassigned, and so does the size."""

    def mixed(data: Any) -> None:
        (group,) = (each for each in data["groups"] if each["group"] == "order-svc")
        (first,) = (each for each in group["reports"] if each["clientId"].endswith("inst0"))
        first["topics"].remove("Skewed")

    path = changed(tmp_path, mixed)
    found = size("--sizes", "1..6", of=("size-group", "-s", path, "-g", "order-svc"))
    ran = run("plan-rebalance", "-s", path, "-g", "order-svc", "--scale-to", "3", "-o", "json")
    planned = json.loads(ran.stdout)["data"]["summary"]["unassigned"]
    assert found["curve"][2]["unassigned"] == planned > 0
    shown = run("size-group", "-s", path, "-g", "order-svc", "--sizes", "1..6", "-o", "plain").stdout
    assert f"now 3 consumers: {planned} queues unassigned" in shown
    assert "consumers subscribe to different topics" in shown


def test_a_group_without_a_consumer_online_comes_too_late_to_new_queues(tmp_path: Path) -> None:
    def offline(document: Any) -> None:
        (group,) = (each for each in document["data"]["groups"] if each["group"] == "audit-svc")
        group |= {"views": [view | {"connections": []} for view in group["views"]], "consumeFromWhere": None}
        group["queues"] = [queue | {"lastTimestamp": 0} for queue in group["queues"]]

    line = ("plan-topic", "-s", changed_example(tmp_path, offline), "-t", "OrderEvents", "--queues")
    late = "no consumer of 1 group is online (audit-svc): one that starts after producers have written"
    assert late in run(*line, "16").stderr
    assert "starts-later" not in run(*line, "4").stderr
