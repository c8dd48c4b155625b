"""Sweeps of groups that a caller gives come to what those of a snapshot come to."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, given, settings
from msgspec.structs import replace

from rmqlb import Members, UsageError, sweep_failures
from rmqlb.engine.allocate.rules import NAMES
from rmqlb.engine.sweep_failures.sweep import DEFAULT_LIMITS
from rmqlb.model.snapshot import ClusterSnapshot
from rmqlb.model.sweep_failures import FailureSweep
from rmqlb.sources.user_files.policy_file import built_in_text, parse_policy
from tests.support.mismatches import every_case

from .clusters import CLASSES, GROUP_LIMITS, TOPIC_LIMITS, broker, clusters, route, swept, zones

STRATEGIES = {java_class: name for name, java_class in CLASSES.items()}
ROUTE = route("T", (broker("a", "10.0.0.1"), broker("b", "10.0.0.2")), [4, 4])
GROUPS = {"g": Members(("10.1.0.1@1", "10.1.0.2@1"), "AVG")}


def members(snapshot: ClusterSnapshot, name: str) -> Members:
    group = snapshot.groups[name]
    strategy = STRATEGIES[next(iter(group.reports.values())).strategy_class or ""]
    reads = {each: report.topics for each, report in group.reports.items() if report.topics is not None}
    return Members(group.client_ids or (), strategy, subscribed=reads)


def figures(sweep: FailureSweep) -> Any:
    """All but lags, locks and the rules' names, which a caller does not say."""
    found = [
        replace(each, rule="", group=each.group and replace(each.group, lag_moved=None, without_lock=None))
        for each in sweep.counterexamples
    ]
    groups = [replace(each, lag_moved=None, without_lock=None) for each in sweep.groups]
    return sweep.cases, sweep.losses, found, groups, sweep.topics


@settings(max_examples=5, deadline=None)
@given(clusters())
def test_given_groups_come_to_what_a_snapshot_of_them_comes_to(snapshot: ClusterSnapshot) -> None:
    routes = [each.route for _, each in sorted(snapshot.routes.items())]
    patterns: dict[str, list[str]] = {}
    for rule in zones(snapshot):
        patterns.setdefault(rule.zone, []).append(rule.pattern)
    told = {name: members(snapshot, name) for name in sorted(snapshot.groups)}
    shares = {name: bound for name, bound in {**GROUP_LIMITS, **TOPIC_LIMITS}.items() if name != "withoutLock"}
    for name, each in told.items():  # which topics a group consumes, only its subscriptions say
        topics = {topic for its in each.subscribed.values() for topic in its} or snapshot.routes.keys()
        assume(topics == set(snapshot.groups[name].topics or ()))
    assert figures(sweep_failures(told, routes, limits=shares, zones=patterns)) == figures(swept(snapshot))


def test_the_limits_without_any_are_those_of_the_command() -> None:
    rules = parse_policy(built_in_text("built_in_sweep_policy.yaml"), "built-in policy", NAMES).rules
    assert {limit.name: limit.bound for rule in rules for limit in rule.limits} == DEFAULT_LIMITS


def test_orderly_groups_are_those_that_are_named() -> None:
    slaves = route("T", (broker("a", "10.0.0.1", "10.0.0.3"),), [4])
    found = sweep_failures(GROUPS, [slaves], limits={"withoutLock": 0}, orderly=["g"])
    assert [(each.value, each.losses[0].name, each.command) for each in found.counterexamples] == [(4, "a", None)]
    assert sweep_failures(GROUPS, [slaves], limits={"withoutLock": 0}).counterexamples == ()


def test_a_group_without_consumers_and_without_queues_is_swept() -> None:
    found = sweep_failures({"g": Members((), "CONSISTENT_HASH")}, [route("T", (broker("a", "10.0.0.1"),), [0])])
    assert (found.cases.tried, found.cases.broken) == (found.cases.all, 0)


def test_groups_that_share_nothing_are_named_as_not_judged() -> None:
    found = sweep_failures({"g": replace(GROUPS["g"], broadcasting=True)}, [ROUTE])
    assert [(each.name, "BROADCASTING" in each.why) for each in found.unjudged] == [("g", True)]


@every_case(
    ("wrong", "message"),
    [
        ({"limits": {"lag": 1}}, "limits: there is no limit lag here"),
        ({"limits": {"idle": -1}}, "limits['idle'] is -1, not a number from 0"),
        ({"orderly": ["h"]}, "orderly: h is not among the groups"),
        ({"zones": {"z": ["10.0.0.0/40"]}}, "zone z: 10.0.0.0/40 is not a network"),
        ({"zones": {"z": []}}, "zone z: it has no pattern"),
        ({"at_once": 3}, "at_once is 3: a number from 1 to 2 is needed"),
    ],
)
def test_arguments_that_cannot_be_are_named(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as raised:
        sweep_failures(GROUPS, [ROUTE], **wrong)
    assert raised.value.message == message
