from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rmqlb.verbs.strategies import KEYS
from tests.support.mismatches import every_case

from .run import EXAMPLE, SKEWED, envelope_of, error_of, run

GROUP = ("-s", EXAMPLE, "--group", "order-svc")
PLAN = ("plan-rebalance", *GROUP, "--add", "1")
ON = ("--consumers", "10.0.0.1@1,10.0.0.2@1,10.0.0.3@1")
SKEWED_ON = ("-s", SKEWED, "--topic", "Skewed", *ON)


def refused(*line: str) -> tuple[str, str | None, str]:
    ran = run(*line, "-q")
    assert (ran.code, ran.stdout) == (2, "")
    error = error_of(ran.stderr)
    return error.message, error.hint, error.code


def given(*texts: str) -> tuple[str, ...]:
    return tuple(part for text in texts for part in ("--strategy-option", text))


def told(*line: str) -> tuple[Any, dict[str, str]]:
    document = envelope_of(*line)
    return document["data"], {each["code"]: each["message"] for each in document["findings"]}


def test_the_ring_has_as_many_entries_as_are_given() -> None:
    def owners(*more: str) -> object:
        return [
            queue["owners"]
            for queue in told("show-owners", *GROUP, "--strategy", "CONSISTENT_HASH", *more)[0]["queues"]
        ]

    assert owners() == owners(*given("virtual-nodes=10"))
    assert owners() != owners(*given("virtual-nodes=1"))


VALUES = {
    "virtual-nodes": "3",
    "idc": "r",
    "queues": "none.yaml",
    "inner": "AVG",
    "broker-zone": "*=z",
    "client-zone": "*=z",
    "host": "192.0.2.2",
    "pin": "T=192.0.2.2",
}


@every_case("key", KEYS)
def test_a_key_that_no_strategy_looks_at_is_refused(key: str) -> None:
    own = KEYS[key].strategies
    option = f"--strategy-option {key}={VALUES[key]}"
    look = f"only {own[0]} looks" if len(own) == 1 else None
    for line, named in (
        (("show-owners", *GROUP), "AVG, AVG_BY_CIRCLE, CONSISTENT_HASH"),
        ((*PLAN, "--strategy", "AVG_BY_CIRCLE"), "AVG_BY_CIRCLE"),
        (("simulate-rebalance", *GROUP, "--event", "leave #0@9s", "--strategy", "AVG"), "AVG"),
        (("plan-rollout", *GROUP, "--strategy", "AVG", "--to-strategy", "AVG_BY_CIRCLE"), "AVG, AVG_BY_CIRCLE"),
    ):
        if set(own) & set(named.split(", ")):
            continue
        message, hint, code = refused(*line, *given(f"{key}={VALUES[key]}"))
        assert message.startswith(f"{option}: {look or 'only '}")
        assert message.endswith(f" at it, and the strategy named is {named}")
        assert (hint, code) == (f"leave it out, or name {own[0]} as the strategy", "strategy-option-unused")


@every_case(
    "line",
    [
        (*PLAN, "--strategy", "PIN", *given("inner=CONSISTENT_HASH", "virtual-nodes=3", "host=192.0.2.2")),
        (*PLAN, "--strategy", "PIN-CONSISTENT_HASH", *given("virtual-nodes=3", "host=192.0.2.2")),
        (*PLAN, "--strategy", "AVG", "--to-strategy", "CONSISTENT_HASH", *given("virtual-nodes=3")),
        (*PLAN, "--strategy", "all", *given("virtual-nodes=3")),
        (*PLAN, *given("virtual-nodes=3")),
        ("show-groups", "-s", EXAMPLE, *given("virtual-nodes=3")),
        ("diff", EXAMPLE, "examples/cluster-later.json", *given("virtual-nodes=3")),
        ("simulate-rebalance", *GROUP, "--strategy", "AVG", "--event", "strategy-change CONSISTENT_HASH@9s, every 5s, down 2s", *given("virtual-nodes=3")),
    ],
)  # fmt: skip
def test_a_key_counts_for_strategies_inside_afterwards_and_of_those_that_consumers_report(
    line: tuple[str, ...],
) -> None:
    assert run(*line, "-o", "json").code == 0


def test_no_consumer_reports_a_pin() -> None:
    for line in (("show-groups", "-s", EXAMPLE), ("check", "-s", EXAMPLE), PLAN):
        message, _, code = refused(*line, *given("host=192.0.2.2"))
        assert code == "strategy-option-unused"
        assert "only PIN and PIN_OVER_ALL look at it, and " in message


def test_only_the_pinned_topic_goes_to_its_machines() -> None:
    named = ("--strategy", "PIN", "--strategy", "AVG", *given("pin=Skewed=10.0.0.2,10.0.0.3"))
    data, findings = told("show-owners", *GROUP, *ON, *named)
    for queue in data["queues"]:
        pinned, free = queue["owners"]["PIN-AVG"], queue["owners"]["AVG"]
        assert (pinned == free) if queue["topic"] == "OrderEvents" else pinned[0] in ("10.0.0.2@1", "10.0.0.3@1")
    assert not {"pin-over-all", "pin-no-consumer"} & findings.keys()


@every_case("strategies", [("AVG", "PIN_OVER_ALL"), ("PIN_OVER_ALL", "PIN")])
def test_a_pin_by_mistake_leaves_queues_unassigned_before_or_afterwards_and_is_named(
    strategies: tuple[str, str],
) -> None:
    before, after = strategies
    pinned = ("--strategy", before, "--to-strategy", after, *given("pin=Skewed=10.0.0.1"))
    data, findings = told("plan-rebalance", *GROUP, *ON, *pinned)
    assert data["summary"]["newlyUnassigned"] == (6 if before == "AVG" else 0)
    assert findings["pin-over-all"] == (
        "strategy PIN_OVER_ALL-AVG leaves 6 queues (first broker-a:3 of Skewed) unassigned: they fall to consumers that "
        "are not on the chosen machines and take nothing; PIN shares them among those that are"
    )


def test_machines_without_a_consumer_are_named_and_a_group_over_time_is_pinned_too() -> None:
    for strategy in ("PIN", "PIN_OVER_ALL"):
        _, findings = told("show-owners", *SKEWED_ON, "--strategy", strategy, *given("pin=Skewed=10.0.0.8,10.0.0.9"))
        text = "topic Skewed is pinned to machines without a consumer (10.0.0.8, 10.0.0.9)"
        assert findings["pin-no-consumer"] == text
        assert "pin-over-all" not in findings
    over_time = ("--strategy", "PIN_OVER_ALL", *given("host=10.0.0.1"), "--event", "leave 10.0.0.2@1@5s")
    data, findings = told("simulate-rebalance", *SKEWED_ON, *over_time)
    assert (data["strategy"], "pin-over-all" in findings) == ("PIN_OVER_ALL-AVG", True)


# -- strategies that are named, of a group whose observed owners are those of CONSISTENT_HASH, which nobody reports


@every_case(
    ("strategies", "closest"),
    [
        (("AVG",), "14 of 16 queues differ from what AVG predicts"),
        (("AVG", "AVG_BY_CIRCLE"), "13 of 16 queues differ from what AVG_BY_CIRCLE predicts"),
        (("AVG_BY_CIRCLE", "AVG"), "13 of 16 queues differ from what AVG_BY_CIRCLE predicts"),
        (("AVG", "CONSISTENT_HASH"), None),
        ((), None),
    ],
)
def test_owners_of_a_third_strategy_are_a_mismatch_with_the_closest(
    strategies: tuple[str, ...], closest: str | None
) -> None:
    named = (word for name in strategies for word in ("--strategy", name))
    _, findings = told("show-owners", "-s", EXAMPLE, "-g", "audit-svc", *named)
    assert findings.get("mismatch", "").startswith(f"observed owners of {closest}; first " if closest else "")
    assert ("mismatch" in findings) == (closest is not None)


ORDER_SVC = ("-s", "examples/cluster.json", "--group", "order-svc")
FIRST = "192.0.2.2@inst0"
RING = ("--strategy", "CONSISTENT_HASH")


def owners(*more: str) -> list[dict[str, list[str]]]:
    ran = run("show-owners", *ORDER_SVC, *more, "-o", "json")
    assert ran.code == 0, ran.stderr
    return [queue["owners"] for queue in json.loads(ran.stdout)["data"]["queues"]]


def codes(*line: str) -> set[str]:
    return {finding["code"] for finding in json.loads(run(*line, "-o", "json").stdout)["findings"]}


def test_a_consumer_of_another_library_owns_what_its_own_ring_gives_it() -> None:
    java, go = owners(*RING), owners(*RING, "--sdk", "go")
    mixed = owners(*RING, "--sdk", f"{FIRST}=go")
    assert owners(*RING, "--sdk", "JAVA") == java != go
    for queue, of_java, of_go in zip(mixed, java, go, strict=True):
        expected = {*of_java["CONSISTENT_HASH"]} - {FIRST} | {*of_go["CONSISTENT_HASH"]} & {FIRST}
        assert set(queue["CONSISTENT_HASH"]) == expected


def test_a_group_of_several_libraries_is_said_to_be_one() -> None:
    told = {"mixed-sdks", "assumed-sdk"}
    assert told & codes("show-owners", *ORDER_SVC, "--sdk", f"{FIRST}=go@9.0") == told
    assert told & codes("show-owners", *ORDER_SVC, "--sdk", f"{FIRST}=go") == {"mixed-sdks"}
    assert told & codes("show-owners", *ORDER_SVC, "--sdk", "go") == set()


def test_a_plan_says_what_the_two_rings_leave_unassigned() -> None:
    line = ("plan-rebalance", *ORDER_SVC, *RING, "--remove", "192.0.2.2@inst2", "--sdk", f"{FIRST}=go", "-o", "json")
    summary = json.loads(run(*line).stdout)["data"]["summary"]
    assert summary["after"]["unassigned"] > 0
    assert summary["after"]["duplicateOwners"] > 0


def test_a_simulation_says_how_well_the_rules_of_its_consumers_are_known() -> None:
    def used(*more: str) -> list[tuple[str, str, int, int]]:
        line = ("simulate-rebalance", *ORDER_SVC, "--event", "join new@1@1s", "--event", "join other@1@2s", *more)
        sdks = json.loads(run(*line, "-o", "json").stdout)["data"]["sdks"]
        assert all(each["library"] and each["vectors"] > 0 and each["live"] in (True, False) for each in sdks)
        return [(each["sdk"], each["mirrors"], each["consumers"], each["assumed"]) for each in sdks]

    consumers = len(json.loads(run("show-owners", *ORDER_SVC, "-o", "json").stdout)["data"]["sortedConsumers"])
    assert used("--sdk", "go") == [("go", "2.1.2", consumers + 2, 0)]
    java, go = used("--sdk", f"{FIRST}=go", "--sdk", "new@1=go@9.0")
    assert java[:3] == ("java", "5.5.0", consumers)
    assert go == ("go", "2.1.2", 2, 1)
    assert java[3] >= 1  # nothing is known of the other one that joins


def test_a_cpp_group_shows_avg_and_is_refused_another() -> None:
    assert all(queue.keys() == {"AVG"} for queue in owners("--sdk", "cpp"))
    ran = run("plan-rebalance", "--add", "1", *ORDER_SVC, "--sdk", "cpp", "--strategy", "AVG_BY_CIRCLE", "-q")
    assert (ran.code, error_of(ran.stderr).code) == (2, "strategy-not-in-sdk")


@every_case(
    ("given", "code"),
    [
        ("rust", "unknown-sdk"),
        ("x=java-grpc", "unknown-sdk"),
        ("x=", "unknown-sdk"),
        ("go@new", "usage"),
        ("go java", "given-twice"),
        ("x=go x=go", "given-twice"),
    ],
)
def test_a_wrong_sdk_is_told_before_anything_is_read(given: str, code: str) -> None:
    for command in ("show-owners", "plan-rebalance", "simulate-rebalance", "plan-rollout"):
        texts = [part for text in given.split() for part in ("--sdk", text)]
        ran = run(command, "-s", "no-such-file", "-g", "g", *texts, "-q")
        error = error_of(ran.stderr)
        assert (ran.code, ran.stdout, error.code) == (2, "", code)
        assert error.message.startswith("--sdk ")
        more = ("--for", "1s") if command == "simulate-rebalance" else ()
        error = error_of(run(command, *ORDER_SVC, "--sdk", "nobody@1=go", "-q", *more).stderr)
        assert (error.message, error.code) == ("--sdk nobody@1=…: it is never in the group", "not-in-group")


def with_go(tmp_path: Path) -> str:
    document = json.loads(Path("examples/cluster.json").read_text("utf-8"))
    for group in document["data"]["groups"]:
        for view in group["views"] or ():
            for connection in view["connections"]:
                if connection["clientId"] == FIRST:
                    connection |= {"language": "GO", "version": "V4_5_2"}
    (tmp_path / "go.json").write_text(json.dumps(document), "utf-8")
    return str(tmp_path / "go.json")


@pytest.mark.parametrize("redact", [(), ("--redact",)])
def test_a_snapshot_of_a_snapshot_keeps_client_libraries(tmp_path: Path, redact: tuple[str, ...]) -> None:
    def numbers(*more: str) -> list[list[int]]:
        data = json.loads(run("show-owners", "-s", again, "-g", group, *RING, *more, "-o", "json").stdout)["data"]
        return [[each["unassigned"], each["duplicateOwners"]] for each in data["strategies"]]

    again = str(tmp_path / "again.json")
    Path(again).write_text(run("fetch-routes", "-s", with_go(tmp_path), *redact, "-o", "json", "-q").stdout, "utf-8")
    (group, first), *_ = (
        (each["group"], connection["clientId"])
        for each in json.loads(Path(again).read_text("utf-8"))["data"]["groups"]
        for view in each["views"]
        for connection in view["connections"]
        if connection["language"] == "GO"
    )
    assert numbers() == numbers("--sdk", "java", "--sdk", f"{first}=go")
    assert numbers() != numbers("--sdk", "java") == [[0, 0]]
