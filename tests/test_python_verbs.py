"""Each verb in Python returns what its command prints with `-o json`."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import rmqlb
from rmqlb.errors import DataError, EndpointError, UsageError
from rmqlb.model.result import Result
from rmqlb.views.formats.machine import as_json
from tests.cli.run import ROOT, run
from tests.support.replay_dashboard import dashboard

EXAMPLES = ROOT / "examples"
CLUSTER = str(EXAMPLES / "cluster.json")
LATER = str(EXAMPLES / "cluster-later.json")
GROUPS = str(EXAMPLES / "four-groups.yaml")
FAULTS = str(EXAMPLES / "faults.json")


def printed(line: str) -> dict[str, Any]:
    """What a command prints as JSON."""
    ran = run(*shlex.split(line), "-o", "json")
    assert ran.stdout, ran.stderr
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


def must_equal(result: Result, line: str) -> None:
    """The result is the data of the command's JSON, and its meta has the command's findings."""
    expected = printed(line)
    assert json.loads(as_json(result)) == expected["data"]
    assert json.loads(as_json({"findings": list(result.meta.findings)}))["findings"] == expected["findings"]


def document(path: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = json.loads(Path(path).read_text(encoding="utf-8"))
    return found


def test_plan_rebalance() -> None:
    plan, line = partial(rmqlb.plan_rebalance, CLUSTER), f"plan-rebalance -s {CLUSTER}"
    must_equal(plan("order-svc", add=1), f"{line} -g order-svc --add 1")
    must_equal(plan("order-svc", remove=1, explain=True), f"{line} -g order-svc --remove 1 --explain")
    must_equal(
        plan(["order-svc", "bill-*"], remove_brokers=["broker-b"], fail_on=["moved>1000"]),
        f"{line} -g order-svc -g 'bill-*' --remove-broker broker-b --fail-on 'moved>1000'",
    )
    must_equal(
        plan("order-svc", strategy="all", scale_to=5, read_queues={"broker-a": 6}),
        f"{line} -g order-svc --strategy all --scale-to 5 --read-queues broker-a=6",
    )
    must_equal(
        plan(topics=["OrderEvents"], consumers=3, strategy="AVG", to_strategy="AVG_BY_CIRCLE"),
        f"{line} -t OrderEvents --consumers 3 --strategy AVG --to-strategy AVG_BY_CIRCLE",
    )


def test_show_owners() -> None:
    owners, line = partial(rmqlb.show_owners, CLUSTER), f"show-owners -s {CLUSTER}"
    must_equal(owners("order-svc"), f"{line} -g order-svc")
    must_equal(owners("*-svc", strategies=["AVG"]), f"{line} -g '*-svc' --strategy AVG")
    must_equal(
        owners(
            topics=["Skewed"],
            consumers=["a", "b"],
            strategies=["CONSISTENT_HASH"],
            strategy_options=["virtual-nodes=20"],
            sdk={"a": "go"},
        ),
        f"{line} -t Skewed --consumers a,b --strategy CONSISTENT_HASH --strategy-option virtual-nodes=20 --sdk a=go",
    )


@pytest.mark.parametrize("source", [CLUSTER, GROUPS, FAULTS])
def test_show_groups(source: str) -> None:
    must_equal(rmqlb.show_groups(source), f"show-groups -s {source}")
    must_equal(
        rmqlb.show_groups(source, "*-svc", severity="warning", fail_on=["groups-with-errors>1000"]),
        f"show-groups -s {source} -g '*-svc' --severity warning --fail-on 'groups-with-errors>1000'",
    )


@pytest.mark.parametrize(("source", "group"), [(CLUSTER, "order-svc"), (GROUPS, "dup-svc"), (FAULTS, "ship-svc")])
def test_show_consumers(source: str, group: str) -> None:
    must_equal(rmqlb.show_consumers(source, group), f"show-consumers -s {source} -g {group}")


def test_check() -> None:
    day, line = "2026-11-21", f"check -s {CLUSTER}"
    today = date.fromisoformat(day)
    must_equal(rmqlb.check(CLUSTER, today=today), f"{line} --today {day}")
    must_equal(rmqlb.check(FAULTS, today=today), f"check -s {FAULTS} --today {day}")
    policy = str(EXAMPLES / "policy.yaml")
    must_equal(
        rmqlb.check(CLUSTER, policy, today=today, fail_from="info"),
        f"{line} -p {policy} --today {day} --fail-from info",
    )
    assert rmqlb.check(CLUSTER, policy, today=date(2027, 1, 1)).outcome == "failed"


def test_a_policy_may_be_a_dict() -> None:
    waiver = {"topic": "Skewed", "limit": "minBrokers", "until": date(2026, 12, 31), "reason": "migration"}
    rule = {"name": "spread", "topics": ["*"], "limits": {"minBrokers": 3}}
    result = rmqlb.check(CLUSTER, {"rules": [rule], "waivers": [waiver]}, today=date(2026, 11, 21))
    assert (result.policy, result.outcome, len(result.waived)) == ("the policy", "failed", 1)
    with pytest.raises(UsageError, match=r"rules"):
        rmqlb.check(CLUSTER, {"rules": 7})
    with pytest.raises(UsageError, match="--fail-from grave: no such severity"):
        rmqlb.check(CLUSTER, fail_from="grave")


def test_diff() -> None:
    must_equal(rmqlb.diff(CLUSTER, LATER), f"diff {CLUSTER} {LATER}")
    must_equal(
        rmqlb.diff(CLUSTER, LATER, "order-*", system=True, fail_on=["moved>1000"]),
        f"diff {CLUSTER} {LATER} -g 'order-*' --system --fail-on 'moved>1000'",
    )
    must_equal(rmqlb.diff(CLUSTER, FAULTS), f"diff {CLUSTER} {FAULTS}")
    with pytest.raises(DataError, match="no-such-group"):
        rmqlb.diff(CLUSTER, LATER, "no-such-group")
    with pytest.raises(DataError) as raised:
        rmqlb.diff(str(EXAMPLES / "topicRoute-Skewed.txt"), CLUSTER)
    assert raised.value.hint == "compare snapshots, as fetch-routes writes them"


def test_fetch_routes() -> None:
    fetch = rmqlb.fetch_routes
    for source in (CLUSTER, GROUPS, FAULTS):
        must_equal(fetch(source), f"fetch-routes -s {source}")
        must_equal(fetch(source, evidence=True, system=True), f"fetch-routes -s {source} --evidence --system")
    must_equal(fetch(CLUSTER, topics="Order*", groups=["*-svc"]), f"fetch-routes -s {CLUSTER} -t 'Order*' -g '*-svc'")
    must_equal(fetch(CLUSTER, redact=True), f"fetch-routes -s {CLUSTER} --redact")
    with pytest.raises(DataError, match="NoSuchTopic"):
        fetch(CLUSTER, topics="NoSuchTopic")


def test_a_fetched_snapshot_is_a_source() -> None:
    snapshot = rmqlb.fetch_routes(CLUSTER)
    for source in (snapshot, snapshot.meta.snapshot):
        assert as_json(rmqlb.plan_rebalance(source, "order-svc", add=1)) == as_json(
            rmqlb.plan_rebalance(CLUSTER, "order-svc", add=1)
        )
        assert as_json(rmqlb.show_groups(source)) == as_json(rmqlb.show_groups(CLUSTER))
        assert as_json(rmqlb.diff(source, LATER)) == as_json(rmqlb.diff(CLUSTER, LATER))
        assert as_json(rmqlb.fetch_routes(source)) == as_json(snapshot)


def test_simulate_rebalance() -> None:
    simulate, line = partial(rmqlb.simulate_rebalance, CLUSTER), f"simulate-rebalance -s {CLUSTER}"
    must_equal(
        simulate("order-svc", "crash #1@30s", explain=True, trials=5, trial=2, seed=7),
        f"{line} -g order-svc --event 'crash #1@30s' --explain --trials 5 --trial 2 --seed 7",
    )
    must_equal(
        simulate(
            "order-svc",
            ["join 1@30s", "leave #0@1m"],
            duration="5m",
            orderly=True,
            timers=["rebalance-wait=10s"],
            rates=["500", "OrderEvents=20"],
            latency="3ms",
            consume_time="2ms",
            client="5.1.0",
            consumer_types="push",
            consume_from="first",
            fail_on=["longest-gap-ms>1000000"],
        ),
        f"{line} -g order-svc --event 'join 1@30s' --event 'leave #0@1m' --for 5m --orderly --timer rebalance-wait=10s "
        "--rate 500 --rate OrderEvents=20 --latency 3ms --consume-time 2ms --client 5.1.0 --consumer-type push "
        "--consume-from first --fail-on 'longest-gap-ms>1000000'",
    )
    must_equal(
        rmqlb.simulate_rebalance(LATER, "order-svc", all_new=True, rates_since=CLUSTER),
        f"simulate-rebalance -s {LATER} -g order-svc --all-new --rates-since {CLUSTER}",
    )
    must_equal(
        simulate("*", "restart-broker broker-b@30s, down 1m", fail_on=["longest-gap-ms>1000000"]),
        f"{line} -g '*' --event 'restart-broker broker-b@30s, down 1m' --fail-on 'longest-gap-ms>1000000'",
    )
    twice = simulate("order-svc", ["join 1@30s", "join 1@30s"])
    must_equal(twice, f"{line} -g order-svc --event 'join 1@30s' --event 'join 1@30s'")
    with pytest.raises(UsageError, match="given twice"):
        simulate("order-svc", "join 1@30s", rates=["5", "5"])
    with pytest.raises(UsageError, match="nothing happens to the group"):
        simulate("order-svc")
    with pytest.raises(UsageError, match="there is no event explode"):
        simulate("order-svc", "explode #1@30s")


def test_plan_rollout() -> None:
    plan, line = partial(rmqlb.plan_rollout, CLUSTER), f"plan-rollout -s {CLUSTER}"
    must_equal(
        plan("order-svc", pauses="30s", trials=3, seed=5, fail_on=["misassigned>1000"]),
        f"{line} -g order-svc --pause 30s --trials 3 --seed 5 --fail-on 'misassigned>1000'",
    )
    must_equal(
        plan("order-svc", to_strategy="AVG_BY_CIRCLE", pauses=["20s", "60s"], at_once=[1, 2], ids="same", trials=2),
        f"{line} -g order-svc --to-strategy AVG_BY_CIRCLE --pause 20s,60s --at-once 1,2 --ids same --trials 2",
    )
    with pytest.raises(UsageError, match="--pause soon: not a time"):
        plan("order-svc", pauses="soon")
    with pytest.raises(UsageError, match="--restart x: it is not in the group"):
        plan("order-svc", restart="x")


def test_sweep_failures() -> None:
    sweep, line = partial(rmqlb.sweep_failures, CLUSTER), f"sweep-failures -s {CLUSTER}"
    must_equal(sweep(), line)
    must_equal(
        sweep(groups="order-svc", zones=["broker-a=z1", "*=z2"], at_once=1, fail_on="moved>1000"),
        f"{line} -g order-svc --zone broker-a=z1 --zone '*=z2' --at-once 1 --fail-on 'moved>1000'",
    )
    with pytest.raises(UsageError, match="--lose rack: no such kind of loss"):
        sweep(lose="rack")
    with pytest.raises(UsageError, match="at_once is 1 or 2"):
        sweep(at_once=3)


def test_plan_topic() -> None:
    plan, line = partial(rmqlb.plan_topic, CLUSTER), f"plan-topic -s {CLUSTER}"
    must_equal(plan("OrderEvents", queues=16), f"{line} -t OrderEvents --queues 16")
    keys = EXAMPLES / "keys.txt"
    must_equal(
        plan(
            "Skewed",
            drain_brokers=["broker-b"],
            keys=keys.read_text().splitlines(),
            sdks="go",
            groups="order-svc",
            strategy="AVG",
            unordered=True,
        ),
        f"{line} -t Skewed --drain-broker broker-b --keys-file {keys} --sdk go -g order-svc --strategy AVG --unordered",
    )
    must_equal(
        plan("Skewed", add_brokers=["broker-n:3:3"], message_type="fifo"),
        f"{line} -t Skewed --add-broker broker-n:3:3 --message-type fifo",
    )
    must_equal(
        rmqlb.plan_topic(LATER, "OrderEvents", queues=16, rates_since=CLUSTER, check_step=1),
        f"plan-topic -s {LATER} -t OrderEvents --queues 16 --rates-since {CLUSTER} --check-step 1",
    )
    with pytest.raises(UsageError, match="what changes"):
        plan("Skewed")
    with pytest.raises(DataError, match="NoSuchTopic"):
        plan("NoSuchTopic", queues=4)
    with pytest.raises(UsageError, match="--rates-since http://h: an earlier snapshot is a file"):
        plan("Skewed", queues=16, rates_since="http://h")
    with pytest.raises(UsageError, match="--check-step 9: the plan has"):
        plan("Skewed", queues=16, check_step=9)


def test_diagnose() -> None:
    must_equal(rmqlb.diagnose(GROUPS, "dup-svc"), f"diagnose -s {GROUPS} -g dup-svc")
    must_equal(rmqlb.diagnose(GROUPS, "*-svc"), f"diagnose -s {GROUPS} -g '*-svc'")
    must_equal(rmqlb.diagnose(FAULTS, all_groups=True), f"diagnose -s {FAULTS} --all-groups")
    before = str(EXAMPLES / "faults-before.json")
    must_equal(
        rmqlb.diagnose(FAULTS, "ship-svc", earlier=before), f"diagnose -s {FAULTS} -g ship-svc --earlier {before}"
    )
    of_documents = rmqlb.diagnose(document(FAULTS), "ship-svc", earlier=[rmqlb.fetch_routes(before, evidence=True)])
    assert as_json(of_documents) == as_json(rmqlb.diagnose(FAULTS, "ship-svc", earlier=[before]))


def test_a_diagnosis_refuses_what_cannot_be_meant() -> None:
    with pytest.raises(UsageError, match=r"which group\?"):
        rmqlb.diagnose(FAULTS)
    with pytest.raises(UsageError, match="--stacks asks running consumers"):
        rmqlb.diagnose(FAULTS, "ship-svc", stacks=True)
    with pytest.raises(DataError, match=r"the earlier snapshot .* is not earlier"):
        rmqlb.diagnose(FAULTS, "ship-svc", earlier=FAULTS)
    with pytest.raises(DataError, match="no-such-group"):
        rmqlb.diagnose(FAULTS, "no-such-group")


def test_a_source_may_be_a_path_or_a_parsed_document() -> None:
    of_text = as_json(rmqlb.plan_rebalance(CLUSTER, "order-svc", add=1))
    assert as_json(rmqlb.plan_rebalance(Path(CLUSTER), "order-svc", add=1)) == of_text
    assert as_json(rmqlb.plan_rebalance(document(CLUSTER), "order-svc", add=1)) == of_text


def test_a_running_cluster_is_asked_by_its_url() -> None:
    with dashboard() as replay:
        url = replay.url
        assert "Skewed" in {each["topic"] for each in rmqlb.fetch_routes(url, topics="S*").topics}
        for result, line in (
            (rmqlb.plan_rebalance(url, "order-svc", add=1), "plan-rebalance -g order-svc --add 1"),
            (rmqlb.show_consumers(url, "order-svc"), "show-consumers -g order-svc"),
            (rmqlb.show_owners(url, "order-svc", strategies=["AVG"]), "show-owners -g order-svc --strategy AVG"),
        ):
            assert json.loads(as_json(result)) == printed(f"{line} -s {url}")["data"]
        with pytest.raises(UsageError, match=r"which group\?"):
            rmqlb.plan_rebalance(url, add=1)
    with pytest.raises(EndpointError):
        rmqlb.show_groups(url)


PLAIN_TEXTS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("plan_rebalance", {"add": "new@1", "topics": "OrderEvents", "fail_on": "moved>1000"}),
    ("plan_rebalance", {"remove": "192.0.2.2@inst0", "strategy_options": "virtual-nodes=20", "sdk": "java"}),
    ("plan_rebalance", {"remove_brokers": "broker-b", "read_queues": "broker-a=3", "write_queues": "3"}),
    ("plan_rebalance", {"remove_masters": "broker-b", "add_brokers": "broker-c:2", "consumers": "only@1"}),
    ("show_owners", {"topics": "OrderEvents", "consumers": "only@1", "strategies": "AVG", "sdk": "only@1=go"}),
    ("show_groups", {"groups": "order-svc", "strategy_options": "virtual-nodes=20", "fail_on": "unassigned>1000"}),
    ("simulate_rebalance", {"events": "join 1@30s", "topics": "OrderEvents", "fail_on": "longest-gap-ms>1000000"}),
    ("plan_rollout", {"pauses": "20s", "restart": "*inst0", "trials": 2, "fail_on": "longest-gap-ms>1000000"}),
    ("plan_topic", {"topic": "Skewed", "add_brokers": "broker-n:3:3", "keys": "order-1", "sdks": "go"}),
    ("plan_topic", {"topic": "Skewed", "drain_brokers": "broker-b", "groups": "order-svc"}),
    ("diff", {"after": LATER, "groups": "order-*", "fail_on": "moved>1000"}),
)
NO_LISTS = {"topic", "after", "pauses", "trials"}


@pytest.mark.parametrize(("verb", "arguments"), PLAIN_TEXTS)
def test_a_plain_text_is_one_value_of_a_list(verb: str, arguments: dict[str, Any]) -> None:
    ask = partial(getattr(rmqlb, verb), CLUSTER)
    if verb not in ("show_groups", "plan_topic", "diff"):
        ask = partial(ask, "order-svc")
    in_lists = {name: value if name in NO_LISTS else [value] for name, value in arguments.items()}
    assert as_json(ask(**arguments)) == as_json(ask(**in_lists))


def test_errors_are_those_of_the_package() -> None:
    with pytest.raises(DataError, match="no-such-group"):
        rmqlb.show_owners(CLUSTER, "no-such-group")
    with pytest.raises(DataError, match="cannot read nowhere"):
        rmqlb.show_groups("nowhere.json")
    with pytest.raises(UsageError, match="a source is a URL, a path, a snapshot or a parsed document, not int"):
        rmqlb.show_groups(7)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="cannot be written as JSON"):
        rmqlb.show_groups({"topics": object()})
    with pytest.raises(DataError, match="the document"):
        rmqlb.show_groups({"what": "is this"})
