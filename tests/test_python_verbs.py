"""Each verb in Python returns what its command prints with `-o json`."""

import json
import shlex
from collections.abc import Callable, Mapping
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import rmqlb
from rmqlb.errors import DataError, EndpointError, RmqlbError, UsageError
from rmqlb.views.formats.machine import as_json
from tests.cli.run import ROOT, run
from tests.support.mismatches import every_case, refusal
from tests.support.replay_dashboard import dashboard

EXAMPLES = ROOT / "examples"
CLUSTER = str(EXAMPLES / "cluster.json")
LATER = str(EXAMPLES / "cluster-later.json")
GROUPS = str(EXAMPLES / "four-groups.yaml")
FAULTS = str(EXAMPLES / "faults.json")


def printed(line: str) -> dict[str, Any]:
    ran = run(*shlex.split(line), "-o", "json")
    assert ran.stdout, ran.stderr
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


def document(path: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = json.loads(Path(path).read_text(encoding="utf-8"))
    return found


POLICY = str(EXAMPLES / "policy.yaml")
KEYS = EXAMPLES / "keys.txt"
BEFORE = str(EXAMPLES / "faults-before.json")
DAY = date(2026, 11, 21)
ON, ON_LATER = f"-s {CLUSTER}", f"-s {LATER}"
RARE = "longest-gap-ms>1000000"
CALLS: dict[str, Callable[[], Any]] = {
    f"plan-rebalance {ON} -g order-svc --remove 1 --explain": lambda: rmqlb.plan_rebalance(CLUSTER, "order-svc", remove=1, explain=True),
    f"plan-rebalance {ON} -g order-svc -g 'bill-*' --remove-broker broker-b --fail-on 'moved>1000'": lambda: rmqlb.plan_rebalance(CLUSTER, ["order-svc", "bill-*"], remove_brokers=["broker-b"], fail_on=["moved>1000"]),
    f"plan-rebalance {ON} -g order-svc --strategy all --scale-to 5 --read-queues broker-a=6": lambda: rmqlb.plan_rebalance(CLUSTER, "order-svc", strategy="all", scale_to=5, read_queues={"broker-a": 6}),
    f"plan-rebalance {ON} -t OrderEvents --consumers 3 --strategy AVG --to-strategy AVG_BY_CIRCLE": lambda: rmqlb.plan_rebalance(CLUSTER, topics=["OrderEvents"], consumers=3, strategy="AVG", to_strategy="AVG_BY_CIRCLE"),
    f"show-owners {ON} -g '*-svc' --strategy AVG": lambda: rmqlb.show_owners(CLUSTER, "*-svc", strategies=["AVG"]),
    f"show-owners {ON} -t Skewed --consumers a,b --strategy CONSISTENT_HASH --strategy-option virtual-nodes=20 --sdk a=go": lambda: rmqlb.show_owners(CLUSTER, topics=["Skewed"], consumers=["a", "b"], strategies=["CONSISTENT_HASH"], strategy_options=["virtual-nodes=20"], sdk={"a": "go"}),
    f"show-groups {ON}": lambda: rmqlb.show_groups(CLUSTER),
    f"show-groups -s {FAULTS} -g '*-svc' --severity warning --fail-on 'groups-with-errors>1000'": lambda: rmqlb.show_groups(FAULTS, "*-svc", severity="warning", fail_on=["groups-with-errors>1000"]),
    f"show-consumers -s {GROUPS} -g dup-svc": lambda: rmqlb.show_consumers(GROUPS, "dup-svc"),
    f"show-consumers -s {FAULTS} -g ship-svc": lambda: rmqlb.show_consumers(FAULTS, "ship-svc"),
    f"check -s {FAULTS} --today {DAY}": lambda: rmqlb.check(FAULTS, today=DAY),
    f"check {ON} -p {POLICY} --today {DAY} --fail-on info": lambda: rmqlb.check(CLUSTER, POLICY, today=DAY, fail_on="info"),
    f"diff {CLUSTER} {FAULTS}": lambda: rmqlb.diff(CLUSTER, FAULTS),
    f"diff {CLUSTER} {LATER} -g 'order-*' --system --fail-on 'moved>1000'": lambda: rmqlb.diff(CLUSTER, LATER, "order-*", system=True, fail_on=["moved>1000"]),
    f"fetch-routes -s {GROUPS} --evidence --system": lambda: rmqlb.fetch_routes(GROUPS, evidence=True, system=True),
    f"fetch-routes {ON} -t 'Order*' -g '*-svc'": lambda: rmqlb.fetch_routes(CLUSTER, topics="Order*", groups=["*-svc"]),
    f"fetch-routes {ON} --redact": lambda: rmqlb.fetch_routes(CLUSTER, redact=True),
    f"simulate-rebalance {ON} -g order-svc --event 'crash #1@30s' --explain --trials 5 --set trial=2 --set seed=7": lambda: rmqlb.simulate_rebalance(CLUSTER, "order-svc", "crash #1@30s", explain=True, trials=5, trial=2, seed=7),
    f"simulate-rebalance {ON} -g order-svc --event 'join 1@30s' --event 'leave #0@1m' --set for=5m --orderly --set rebalance-wait=10s --rate 500 --rate OrderEvents=20 --set round-trip=3ms --set consume-time=2ms --set client-version=5.1.0 --set consumer-type=push --set consume-from=first --fail-on '{RARE}'": lambda: rmqlb.simulate_rebalance(CLUSTER, "order-svc", ["join 1@30s", "leave #0@1m"], duration="5m", orderly=True, timers=["rebalance-wait=10s"], rates=["500", "OrderEvents=20"], round_trip="3ms", consume_time="2ms", client_version="5.1.0", consumer_types="push", consume_from="first", fail_on=[RARE]),
    f"simulate-rebalance {ON_LATER} -g order-svc --set all-new --set earlier={CLUSTER}": lambda: rmqlb.simulate_rebalance(LATER, "order-svc", all_new=True, rates_since=CLUSTER),
    f"simulate-rebalance {ON} -g '*' --event 'restart-broker broker-b@30s, down 1m' --fail-on '{RARE}'": lambda: rmqlb.simulate_rebalance(CLUSTER, "*", "restart-broker broker-b@30s, down 1m", fail_on=[RARE]),
    f"simulate-rebalance {ON} -g order-svc --scale-to 2 --remove-broker broker-b --to-strategy AVG_BY_CIRCLE --set change-at=1m": lambda: rmqlb.simulate_rebalance(CLUSTER, "order-svc", scale_to=2, remove_brokers="broker-b", to_strategy="AVG_BY_CIRCLE", change_at="1m"),
    f"plan-rollout {ON} -g order-svc --pause 30s --trials 3 --set seed=5 --fail-on 'misassigned>1000'": lambda: rmqlb.plan_rollout(CLUSTER, "order-svc", pauses="30s", trials=3, seed=5, fail_on=["misassigned>1000"]),
    f"plan-rollout {ON} -g order-svc --to-strategy AVG_BY_CIRCLE --pause 20s,60s --at-once 1,2 --ids same --trials 2": lambda: rmqlb.plan_rollout(CLUSTER, "order-svc", to_strategy="AVG_BY_CIRCLE", pauses=["20s", "60s"], at_once=[1, 2], ids="same", trials=2),
    f"sweep-failures {ON}": lambda: rmqlb.sweep_failures(CLUSTER),
    f"sweep-failures {ON} -g order-svc --zone broker-a=z1 --zone '*=z2' --losses 1 --fail-on 'moved>1000'": lambda: rmqlb.sweep_failures(CLUSTER, groups="order-svc", zones=["broker-a=z1", "*=z2"], losses=1, fail_on="moved>1000"),
    f"plan-topic {ON} -t Skewed --drain-broker broker-b --keys {KEYS} --sdk go -g order-svc --strategy AVG --unordered": lambda: rmqlb.plan_topic(CLUSTER, "Skewed", drain_brokers=["broker-b"], keys=KEYS.read_text().splitlines(), sdks="go", groups="order-svc", strategy="AVG", unordered=True),
    f"plan-topic {ON} -t Skewed --add-broker broker-n:3:3 --message-type fifo": lambda: rmqlb.plan_topic(CLUSTER, "Skewed", add_brokers=["broker-n:3:3"], message_type="fifo"),
    f"plan-topic {ON_LATER} -t OrderEvents --queues 16 --earlier {CLUSTER} --check-step 1": lambda: rmqlb.plan_topic(LATER, "OrderEvents", queues=16, rates_since=CLUSTER, check_step=1),
    f"diagnose -s {GROUPS} -g '*-svc'": lambda: rmqlb.diagnose(GROUPS, "*-svc"),
    f"diagnose -s {FAULTS} --all-groups": lambda: rmqlb.diagnose(FAULTS, all_groups=True),
    f"diagnose -s {FAULTS} -g ship-svc --earlier {BEFORE}": lambda: rmqlb.diagnose(FAULTS, "ship-svc", earlier=BEFORE),
}  # fmt: skip


@every_case("line", CALLS)
def test_a_verb_returns_what_its_command_prints(line: str) -> None:
    result, expected = CALLS[line](), printed(line)
    assert json.loads(as_json(result)) == expected["data"]
    assert json.loads(as_json({"findings": list(result.meta.findings)}))["findings"] == expected["findings"]


ORDERS = partial(rmqlb.simulate_rebalance, CLUSTER, "order-svc")
OF_SKEWED = partial(rmqlb.plan_topic, CLUSTER, "Skewed")
REFUSED: list[tuple[Callable[[], object], type[RmqlbError], str]] = [
    (lambda: rmqlb.check(CLUSTER, {"rules": 7}), UsageError, "rules"),
    (lambda: rmqlb.check(CLUSTER, fail_on="grave"), UsageError, "--fail-on grave: write error, warning or info"),
    (lambda: rmqlb.diff(CLUSTER, LATER, "no-such-group"), DataError, "no-such-group"),
    (lambda: rmqlb.fetch_routes(CLUSTER, topics="NoSuchTopic"), DataError, "NoSuchTopic"),
    (lambda: ORDERS("join 1@30s", rates=["5", "5"]), UsageError, "given twice"),
    (lambda: ORDERS("explode #1@30s"), UsageError, "there is no event explode"),
    (lambda: rmqlb.plan_rollout(CLUSTER, "order-svc", restart="x"), DataError, "--restart x: it is not in the group"),
    (lambda: rmqlb.sweep_failures(CLUSTER, losses=3), UsageError, "losses is 1 or 2"),
    (lambda: rmqlb.plan_topic(CLUSTER, "NoSuchTopic", queues=4), DataError, "NoSuchTopic"),
    (lambda: OF_SKEWED(queues=16, rates_since="http://h"), UsageError, "http://h: an earlier snapshot is a file"),
    (lambda: OF_SKEWED(queues=16, check_step=9), UsageError, "--check-step 9: the plan has"),
    (lambda: rmqlb.diagnose(FAULTS), UsageError, r"which group\?"),
    (lambda: rmqlb.diagnose(FAULTS, "ship-svc", earlier=FAULTS), DataError, "the earlier snapshot .* is not earlier"),
    (lambda: rmqlb.diagnose(FAULTS, "no-such-group"), DataError, "no-such-group"),
    (lambda: rmqlb.show_owners(CLUSTER, "no-such-group"), DataError, "no-such-group"),
    (lambda: rmqlb.show_groups("nowhere.json"), DataError, "cannot read nowhere"),
    (lambda: rmqlb.show_groups(7), UsageError, "a source is a URL, a path, a snapshot or a parsed document, not int"),  # type: ignore[arg-type]
    (lambda: rmqlb.show_groups({"topics": object()}), UsageError, "cannot be written as JSON"),
    (lambda: rmqlb.show_groups({"what": "is this"}), DataError, "the document"),
]


@every_case(("call", "error", "match"), REFUSED)
def test_what_cannot_be_meant_is_an_error(call: Callable[[], object], error: type[RmqlbError], match: str) -> None:
    with pytest.raises(error, match=match):
        call()


def test_a_policy_may_be_a_dict() -> None:
    waiver = {"topic": "Skewed", "limit": "minBrokers", "until": date(2026, 12, 31), "reason": "migration"}
    rule = {"name": "spread", "topics": ["*"], "limits": {"minBrokers": 3}}
    result = rmqlb.check(CLUSTER, {"rules": [rule], "waivers": [waiver]}, today=DAY)
    assert (result.policy, result.outcome, len(result.waived)) == ("the policy", "failed", 1)
    assert rmqlb.check(CLUSTER, POLICY, today=date(2027, 1, 1)).outcome == "failed"


def test_a_source_may_be_a_path_a_parsed_document_or_a_fetched_snapshot() -> None:
    snapshot, of_text = rmqlb.fetch_routes(CLUSTER), as_json(rmqlb.plan_rebalance(CLUSTER, "order-svc", add=1))
    for source in (Path(CLUSTER), document(CLUSTER), snapshot, snapshot.meta.snapshot):
        assert as_json(rmqlb.plan_rebalance(source, "order-svc", add=1)) == of_text
    for source in (snapshot, snapshot.meta.snapshot):
        assert as_json(rmqlb.show_groups(source)) == as_json(rmqlb.show_groups(CLUSTER))
        assert as_json(rmqlb.diff(source, LATER)) == as_json(rmqlb.diff(CLUSTER, LATER))
        assert as_json(rmqlb.fetch_routes(source)) == as_json(snapshot)
    of_documents = rmqlb.diagnose(document(FAULTS), "ship-svc", earlier=[rmqlb.fetch_routes(BEFORE, evidence=True)])
    assert as_json(of_documents) == as_json(rmqlb.diagnose(FAULTS, "ship-svc", earlier=[BEFORE]))


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
        assert "which group?" in refusal(UsageError, rmqlb.plan_rebalance, url, add=1).message
    refusal(EndpointError, rmqlb.show_groups, url)


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


@every_case(("verb", "arguments"), PLAIN_TEXTS)
def test_a_plain_text_is_one_value_of_a_list(verb: str, arguments: dict[str, Any]) -> None:
    ask = partial(getattr(rmqlb, verb), CLUSTER)
    if verb not in ("show_groups", "plan_topic", "diff"):
        ask = partial(ask, "order-svc")
    in_lists = {name: value if name in NO_LISTS else [value] for name, value in arguments.items()}
    assert as_json(ask(**arguments)) == as_json(ask(**in_lists))
