"""Every verb gives the same answer about a group, or says that it is unknown.

Odd groups are asked through every verb; each gives the facts that it states, and facts of one name have to be equal.
"""

from collections.abc import Callable, Iterator
from datetime import date
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from rmqlb import MessageQueue, RebalanceResult, RmqlbError, plan_rebalance, plan_rollout, show_owners
from rmqlb.engine.allocate.strategy import Settings
from rmqlb.engine.check import check_policy
from rmqlb.engine.diagnose.diagnose import case_of, diagnose
from rmqlb.engine.diff import compare_snapshots
from rmqlb.engine.group import resolve
from rmqlb.engine.sweep_failures.sweep import SweepRequest, sweep_snapshot
from rmqlb.model.group import QueueState
from rmqlb.model.groups import Consumers
from rmqlb.model.owners import OwnersReport
from rmqlb.model.plan import RebalancePlan
from rmqlb.model.policy import GROUP, Limit, Policy, Rule
from rmqlb.model.size_group import GroupSize, SizeQuestion
from rmqlb.model.snapshot import ClusterSnapshot, Unread
from rmqlb.verbs.show_groups import show_consumers, show_groups
from rmqlb.verbs.simulate_rebalance import simulate_rebalance
from rmqlb.verbs.size_group import size_group
from rmqlb.verbs.source import SnapshotReader
from rmqlb.views.diagnose import diagnosis_report
from rmqlb.views.formats.people import as_plain
from rmqlb.views.show_groups import groups_report
from tests.engine.check.clusters import AVG_CLASS, cluster, members
from tests.support.builders import route
from tests.support.mismatches import every_case
from tests.support.odd_groups import CIRCLE, HASH, ODD, PARTLY, two_routes, with_reports

_NONE = ("unassigned", "duplicateOwners", "idle")
LIMITS = (
    *(Limit(name, 0.0) for name in _NONE),
    *(Limit("imbalance", 1.0), Limit("minConsumers", 1000.0), Limit("duplicateClientIds", 0.0), Limit("lag", 0.0)),
)
PARTLY_SEEN = {"no-route", "routes-differ", "pop-consumption"}
"""Findings that a verb leaves queues out, and says so."""
OWN_REASONS = ("is BROADCASTING", "share the client ID", "no readable queue in the topics")
"""Why one verb alone refuses a group: nothing moves in a restart, a restart is not seen, no size has work."""
WITHOUT_OWNERS = ("by POP", "gRPC")
"""Why a group has no owners: `show-owners` and `plan-rebalance` show such a group, and may refuse it for the next reason."""


def refusals(verb: str, message: str) -> Iterator[tuple[str, str, Any]]:
    """The reason of a verb that refuses the group, as a fact where other verbs refuse it for the same one."""
    reason = message.removesuffix(", and none joins")
    if any(own in reason for own in OWN_REASONS):
        return
    if verb in ("_simulate", "_rollout", "_size"):
        yield verb, "refusal over time", reason
    if not any(each in reason for each in WITHOUT_OWNERS):
        yield verb, "refusal", reason


def facts_of(snapshot: ClusterSnapshot) -> Iterator[tuple[str, str, Any]]:
    """Verb, fact, value; what a verb does not know it does not state, and verbs that refuse give one reason."""
    for verb in VERBS:
        try:
            for fact, value in verb(snapshot).items():
                if value is not None:
                    yield verb.__name__, fact, value
        except RmqlbError as error:
            yield from refusals(verb.__name__, error.message)


def _show_groups(snapshot: ClusterSnapshot) -> dict[str, Any]:
    (line,) = show_groups(snapshot).groups
    return _line(line) | _severities(line.findings)


def _line(line: Any) -> dict[str, Any]:
    prefix = "observed" if line.basis == "observed" else "predicted"
    owners = (
        {}
        if line.basis is None
        else {
            "unassigned": _certain(line.unassigned, line.owners_unknown),
            "duplicate owners": _certain(line.duplicate_owners, line.owners_unknown),
            "idle": line.idle,
            "imbalance": None if line.imbalance is None else round(line.imbalance, 9),
        }
    )
    return {
        "consumers": line.consumers, "processes": line.processes, "duplicate client IDs": line.duplicate_client_ids,
        "queues": line.queues, "lag": line.lag, "mismatches": line.mismatches,
        "strategies": frozenset(line.strategies) or None,
        **{f"{prefix} {name}": value for name, value in owners.items()},
    }  # fmt: skip


def _certain(value: int | None, unknown: int | None) -> tuple[int, int] | None:
    """A count that is certain, and how many more there may be; nothing where that is unbounded."""
    return None if unknown is None or (value is None and not unknown) else (value or 0, unknown)


def _severities(findings: Any) -> dict[str, Any]:
    return {f"severity of {each.code}": each.severity for each in findings}


def _show_consumers(snapshot: ClusterSnapshot) -> dict[str, Any]:
    found = show_consumers(snapshot, "g")
    assert isinstance(found, Consumers)
    return _line(found.overview) | _severities(found.findings)


def _show_owners(snapshot: ClusterSnapshot) -> dict[str, Any]:
    found = show_owners(snapshot, "g")
    assert isinstance(found, OwnersReport)
    unassigned, duplicate = found.bad_owners
    unknown = len(found.queues) - len(found.observed_queues)
    is_whole = found.pop_topics == () and "no-route" not in {each.code for each in found.meta.findings}
    observed = (
        {"observed unassigned": (unassigned, unknown), "observed duplicate owners": (duplicate, unknown)}
        if found.observed_queues and is_whole and not found.broadcasting and (not unknown or unassigned or duplicate)
        else {}
    )
    return {
        "consumers": None if found.hidden else len(set(found.sorted_consumers)),
        "processes": None if found.hidden else len(found.sorted_consumers),
        "strategies": frozenset(found.strategies_reported) or None,
        "queues": len(found.queues) if is_whole and found.strategies else None,
        **observed,
        **_severities(found.meta.findings),
    }


def _plan(snapshot: ClusterSnapshot) -> dict[str, Any]:
    plan = plan_rebalance(snapshot, "g", add=1)
    assert isinstance(plan, RebalancePlan)
    before = plan.summary.before
    codes = {each.code for each in plan.meta.findings}
    is_whole = not plan.pop_topics and bool(plan.topics) and codes.isdisjoint(PARTLY_SEEN)
    found: dict[str, Any] = {"consumers": before.consumers if is_whole else None} | _severities(plan.meta.findings)
    if is_whole and "unread" not in codes and plan.strategy_origin != "assumed":
        found |= {
            "predicted unassigned": (before.unassigned, 0),
            "predicted duplicate owners": (before.duplicate_owners, 0),
            "predicted idle": before.idle,
            "predicted imbalance": None if before.imbalance is None else round(before.imbalance, 9),
            "queues": before.queues,
        }
    if is_whole and plan.summary.observed is not None and not plan.broadcasting:
        found["mismatches"] = plan.summary.observed.mismatches
    return found


def _diagnose(snapshot: ClusterSnapshot) -> dict[str, Any]:
    found = diagnose(case_of([snapshot], "g", Settings()))
    counts = found.counts
    return {
        "consumers": counts.consumers, "processes": counts.processes, "queues": counts.queues, "lag": counts.lag,
        **_severities(each for each in found.findings if each.code != "lag-stalled"),
    }  # fmt: skip


def _check(snapshot: ClusterSnapshot) -> dict[str, Any]:
    policy = Policy("p", (Rule("r", GROUP, ("g",), LIMITS),))
    measured = {each.limit: each for each in check_policy(snapshot, policy, date(2026, 1, 1)).judged if each.limit}
    found: dict[str, Any] = {}
    for limit, fact in (("idle", "idle"), ("imbalance", "imbalance")):
        one = measured[limit]
        if isinstance(one.value, float | int) and one.basis:
            prefix = "observed" if one.basis == "observed" else "predicted"
            found[f"{prefix} {fact}"] = round(one.value, 9) if limit == "imbalance" else one.value
    for limit, fact in (("unassigned", "unassigned"), ("duplicateOwners", "duplicate owners")):
        one = measured[limit]
        if one.verdict == "passed" and one.basis:
            found[f"{'observed' if one.basis == 'observed' else 'predicted'} {fact}"] = (0, 0)
        elif one.verdict == "failed":
            found[f"certainly {fact}"] = True
    for limit, fact in (("minConsumers", "processes"), ("duplicateClientIds", "duplicate client IDs"), ("lag", "lag")):
        if measured[limit].verdict in ("passed", "failed") and (limit != "lag" or measured[limit].verdict == "passed"):
            found[fact] = measured[limit].value
    return found


def _sweep(snapshot: ClusterSnapshot) -> dict[str, Any]:
    policy = Policy("p", (Rule("r", GROUP, ("g",), LIMITS[:3]),))
    sweep, _ = sweep_snapshot(snapshot, policy, SweepRequest(("g",), ()), date(2026, 1, 1))
    if not sweep.groups:
        return {}
    pulls_all = not resolve(snapshot, "g").popped
    return {"queues": sweep.groups[0].queues if pulls_all else None, "consumers": sweep.groups[0].consumers}


def _diff(snapshot: ClusterSnapshot) -> dict[str, Any]:
    found = compare_snapshots(snapshot, snapshot)
    assert found.groups == ()  # nothing differs from itself
    return {}


def _simulate(snapshot: ClusterSnapshot) -> dict[str, Any]:
    """The owners at the beginning, before anything happens; a client ID counts once, however many processes have it."""
    found = simulate_rebalance(snapshot, "g", duration="1s")
    assert isinstance(found, RebalanceResult)
    codes = {each.code for each in found.meta.findings}
    facts: dict[str, Any] = _severities(found.meta.findings)
    if codes.isdisjoint(PARTLY_SEEN) and found.queues:
        facts["consumers"] = len(found.consumers)
    if codes.isdisjoint({*PARTLY_SEEN, "unread", "assumed-strategy"}) and found.queues:
        owners = [set(queue.intervals[0].owners) for queue in found.queues]
        several = 0 if found.scenario.broadcasting else sum(len(each) > 1 for each in owners)
        facts |= {
            "predicted unassigned": (sum(not each for each in owners), 0),
            "predicted duplicate owners": (several, 0),
            "queues": len(owners),
        }
    return facts


def _rollout(snapshot: ClusterSnapshot) -> dict[str, Any]:
    return _severities(plan_rollout(snapshot, "g", pauses="1s", trials=2).meta.findings)


def _size(snapshot: ClusterSnapshot) -> dict[str, Any]:
    size = size_group(SnapshotReader(snapshot), SizeQuestion(), group="g", sizes=(1, 12))
    assert isinstance(size, GroupSize)
    now, codes = size.now, {each.code for each in size.meta.findings}
    facts = _severities(size.meta.findings)
    if now is None or codes & {*PARTLY_SEEN, "unread", "assumed-strategy"}:
        return facts
    return facts | {
        "predicted unassigned": (now.unassigned, 0),
        "predicted duplicate owners": (now.duplicate_owners, 0),
    }


VERBS: tuple[Callable[[ClusterSnapshot], dict[str, Any]], ...] = (
    *(_show_groups, _show_consumers, _show_owners, _plan, _diagnose, _check, _sweep, _diff),
    *(_simulate, _rollout, _size),
)


def disagreements(snapshot: ClusterSnapshot) -> list[str]:
    found: dict[str, dict[str, list[str]]] = {}
    for verb, fact, value in facts_of(snapshot):
        found.setdefault(fact, {}).setdefault(repr(value), []).append(verb)
    return [f"{fact}: {values}" for fact, values in found.items() if len(values) > 1]


@every_case("name", ODD)
def test_all_verbs_agree(name: str) -> None:
    assert disagreements(ODD[name]) == []


@every_case("name", [name for name in ODD if "HASH" in name or "or POP" in name or "differ," in name])
def test_what_is_not_decided_by_clients_is_never_predicted(name: str) -> None:
    predicted = [f"{verb}: {fact}" for verb, fact, _ in facts_of(ODD[name]) if fact.startswith("predicted")]
    assert predicted == [] or name == "broker-assigned or POP, queues held"


def test_what_is_observed_and_bad_is_certain_in_every_verb() -> None:
    facts = {(verb, fact): value for verb, fact, value in facts_of(ODD[PARTLY])}
    assert facts["_show_groups", "observed unassigned"] == facts["_show_owners", "observed unassigned"] == (2, 1)
    assert facts["_show_groups", "observed duplicate owners"] == (1, 1)
    assert facts["_check", "certainly unassigned"]
    assert facts["_check", "certainly duplicate owners"]
    assert diagnose(case_of([ODD[PARTLY]], "g", Settings())).counts.unassigned == 2
    met = show_groups(ODD[PARTLY], fail_on=["unassigned>0", "unassigned>1", "unassigned>3", "unassigned>2"]).conditions
    assert [each.met for each in met] == [True, True, False, None]


def test_words_say_that_more_may_be_wrong_where_owners_are_unknown() -> None:
    shown = as_plain(groups_report(show_groups(ODD[PARTLY])))
    assert "unassigned-queues: at least 2 of 4 queues unassigned, at least 1 with duplicate owners" in shown
    found = diagnose(case_of([ODD[PARTLY]], "g", Settings()))
    assert "at least 2 of 4 queues without an owner" in as_plain(diagnosis_report(found))


IDS = "abcd"


@st.composite
def snapshots(draw: st.DrawFn) -> ClusterSnapshot:
    """A group of up to four consumers on up to two topics, of which anything may be odd or unknown."""
    ids = draw(st.lists(st.sampled_from(IDS), max_size=5))
    topics = draw(st.sampled_from(["T", "T U", "U", None]))
    numbers = {topic: draw(st.integers(0, 6)) for topic in "TU"}
    routes = tuple(route(topic, a=number) for topic, number in numbers.items() if draw(st.booleans()) or topic == "T")
    found = members(
        " ".join(ids), *draw(st.sampled_from([(), (" ".join(ids[1:]),)])), topics=topics,
        strategy=draw(st.sampled_from([AVG_CLASS, CIRCLE, HASH, "OurOwn", None])),
        subscribed=draw(st.sampled_from([None, dict.fromkeys(ids[:1], "U"), dict.fromkeys(ids, "T U")])),
        consume_type=draw(st.sampled_from(["CONSUME_PASSIVELY", "CONSUME_ACTIVELY", "CONSUME_POP", None])),
        message_model=draw(st.sampled_from(["CLUSTERING", "CLUSTERING", "BROADCASTING", None])),
    )  # fmt: skip
    owners = st.one_of(st.none(), st.frozensets(st.sampled_from([*ids, "z"]), max_size=2))
    states = {
        MessageQueue(topic, "a", i): QueueState(draw(owners), broker_offset=draw(st.integers(0, 9)), consumer_offset=0)
        for topic, number in numbers.items()
        for i in range(number)
        if draw(st.booleans())
    }
    found = with_reports(found, client_rebalance=draw(st.sampled_from([True, False, None])))
    modes = draw(st.sampled_from([None, {}, {"T": ("POP",)}, {"T": ("PULL",)}]))
    found = replace(found, queues=states, request_modes=modes)
    unread = draw(st.sampled_from([(), (Unread("members", "g", "silent", "b"),), (Unread("route", "U", "no answer"),)]))
    snapshot = cluster(found, routes=routes, unread=unread)
    return two_routes(snapshot, draw(st.integers(0, 6))) if draw(st.integers(0, 4)) == 0 else snapshot


@settings(max_examples=200, deadline=None)
@given(snapshots())
def test_all_verbs_agree_about_any_group(snapshot: ClusterSnapshot) -> None:
    assert disagreements(snapshot) == []
