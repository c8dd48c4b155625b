"""`--strategy-option KEY=VALUE`: each key does what it says, and one that would not count is refused."""

from __future__ import annotations

import json

from rmqlb.verbs.strategies import KEYS
from tests.support.mismatches import every_case

from .run import error_of, run

GROUP = ("-s", "examples/cluster.json", "--group", "order-svc")
PLAN = ("plan-rebalance", *GROUP, "--add", "1")


def refused(*line: str) -> tuple[str, str | None, str]:
    ran = run(*line, "-q")
    assert (ran.code, ran.stdout) == (2, "")
    error = error_of(ran.stderr)
    return error.message, error.hint, error.code


def given(*texts: str) -> tuple[str, ...]:
    return tuple(part for text in texts for part in ("--strategy-option", text))


def test_the_ring_has_as_many_entries_as_are_given() -> None:
    def owners(*more: str) -> object:
        ran = run("show-owners", *GROUP, "--strategy", "CONSISTENT_HASH", *more, "-o", "json")
        return [queue["owners"] for queue in json.loads(ran.stdout)["data"]["queues"]]

    assert owners() == owners(*given("virtual-nodes=10"))
    assert owners() != owners(*given("virtual-nodes=1"))


@every_case(
    ("texts", "message", "hint"),
    [
        (("virtual-node=1",), "virtual-node=1: there is no key virtual-node", "did you mean virtual-nodes?"),
        (("x",), "x: there is no key x", None),
        (("virtual-nodes",), "virtual-nodes: no value", "write --strategy-option virtual-nodes=N"),
        (("inner=",), "inner=: no value", "write --strategy-option inner=STRATEGY"),
        *(
            ((f"virtual-nodes={text}",), f"virtual-nodes={text}: not a whole number from 0 to 1000000", None)
            for text in ("-1", "1.5", "x", "1000001", "9" * 5000, "²")
        ),
        (("client-zone=([a",), "client-zone=([a: unterminated character set at position 1", None),
        (("pin=T",), "pin=T: expected TOPIC=HOST or TOPIC=HOST,HOST", None),
    ],
)
def test_what_is_wrong_is_told_before_anything_is_read(texts: tuple[str, ...], message: str, hint: str | None) -> None:
    found, its_hint, code = refused("plan-rebalance", "-s", "no-such-file", "-g", "g", "--add", "1", *given(*texts))
    assert (found, code) == (f"--strategy-option {message}", "usage")
    assert hint is None or its_hint == hint


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
        ("show-groups", "-s", "examples/cluster.json", *given("virtual-nodes=3")),
        ("show-consumers", *GROUP, *given("idc=r1")),
        ("diff", "examples/cluster.json", "examples/cluster-later.json", *given("virtual-nodes=3")),
        (
            *("simulate-rebalance", *GROUP, "--strategy", "AVG"),
            *("--event", "strategy-change CONSISTENT_HASH@9s, every 5s, down 2s", *given("virtual-nodes=3")),
        ),
    ],
    ids=lambda line: " ".join(line[3:]),
)
def test_a_key_counts_for_strategies_inside_afterwards_and_of_those_that_consumers_report(
    line: tuple[str, ...],
) -> None:
    assert run(*line, "-o", "json").code == 0


@every_case("command", ["show-groups", "show-consumers", "check", "diff", "plan-rebalance"])
def test_no_consumer_reports_a_pin(command: str) -> None:
    here = ("-s", "examples/cluster.json")
    line = {
        "show-groups": here,
        "show-consumers": GROUP,
        "check": (*here, "-p", "examples/policy.yaml"),
        "diff": ("examples/cluster.json", "examples/cluster-later.json"),
        "plan-rebalance": (*GROUP, "--add", "1"),
    }[command]
    message, _, code = refused(command, *line, *given("host=192.0.2.2"))
    assert code == "strategy-option-unused"
    assert "only PIN and PIN_OVER_ALL look at it, and " in message
