from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import date
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest

import rmqlb
from rmqlb.engine.allocate.strategy import Settings
from rmqlb.engine.assignment.assign import Owners, owners_at_rest, spread
from rmqlb.engine.group import Group, all_groups, group_of, known
from rmqlb.engine.show_groups import overview
from rmqlb.engine.sweep_failures.sweep import SweepRequest, sweep_snapshot
from rmqlb.model.group import BROADCASTING, is_system_group
from rmqlb.model.message_queue import grouped
from rmqlb.model.policy import Policy
from rmqlb.model.snapshot import ClusterSnapshot, Wanted
from rmqlb.pipeline.tables import Assignments, Figures, Findings, Groups, Queues, Sends, Snapshots, WhatIf
from rmqlb.pipeline.warehouse import Warehouse
from rmqlb.sources.dump import DumpSource

from .running import POLICY, rows

pytestmark = pytest.mark.spark

LAST = date(2026, 11, 2)
FIGURES = [
    *("status", "basis", "shares_queues", "consumers", "processes", "queues", "unassigned", "duplicate_owners"),
    *("owners_unknown", "idle", "imbalance", "mismatches", "duplicate_client_ids", "lag", "lag_at_least"),
]
CAMEL = dict(zip(Figures.__struct_fields__, Figures.__struct_encode_fields__, strict=True))
NOTHING = Policy("none", ())


@cache
def snapshot(path: Path) -> ClusterSnapshot:
    return DumpSource(str(path)).fetch(Wanted(evidence=True))


@cache
def files(fleet: Path) -> dict[str, Path]:
    found = fleet.rglob(f"date={LAST}/snapshot.json.gz")
    return {path.parent.parent.name.removeprefix("cluster="): path for path in found}


def names(path: Path) -> list[str]:
    return [name for name in all_groups(snapshot(path)) if not is_system_group(name)]


def groups(fleet: Path) -> Iterator[tuple[str, Group]]:
    for cluster, path in files(fleet).items():
        yield from ((cluster, group_of(snapshot(path), name)) for name in names(path))


def by_group(found: list[dict[str, Any]], **only: object) -> dict[tuple[str, str], list[dict[str, Any]]]:
    chosen = (row for row in found if all(row[name] == value for name, value in only.items()))
    return grouped(((row["cluster"], row["group"]), row) for row in chosen)


def queue_of(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return row["topic"], row["brokerName"], row["queueId"]


def test_snapshots_groups_and_queues_are_those_of_the_files(judged: Warehouse, fleet: Path) -> None:
    snapshots = {row["cluster"]: row["files"][0]["path"] for row in rows(judged, Snapshots, LAST)}
    assert snapshots == {name: str(path) for name, path in files(fleet).items()}
    expected = {(cluster, group.name) for cluster, group in groups(fleet)}
    assert {(row["cluster"], row["group"]) for row in rows(judged, Groups, LAST)} == expected
    assert len(expected) > 60
    states = {
        (cluster, group.name, q.topic, q.broker_name, q.queue_id): (state.sorted_owners, state.lag)
        for cluster, group in groups(fleet)
        for q, state in group.snapshot.groups[group.name or ""].queues.items()
    }
    found = {
        (row["cluster"], row["group"], *queue_of(row)): (own if own is None else tuple(own), row["lag"])
        for row in rows(judged, Queues, LAST)
        for own in [row["ownersObserved"]]
    }
    assert found == states


def test_figures_and_findings_as_groups_run_are_those_of_show_groups(judged: Warehouse, fleet: Path) -> None:
    figures = by_group(rows(judged, Figures, LAST), runs=True)
    findings = by_group(rows(judged, Findings, LAST), kind="group")
    seen = set()
    for cluster, path in files(fleet).items():
        for line in overview(snapshot(path), names(path), Settings()).groups:
            (row,) = figures[cluster, line.group]
            assert {name: row[CAMEL[name]] for name in FIGURES} == {name: getattr(line, name) for name in FIGURES}
            assert (row["strategy"], row["origin"]) == (",".join(line.strategies) or None, line.strategy_origin)
            mine = [(one["code"], one["severity"], one["message"]) for one in findings.get((cluster, line.group), ())]
            assert sorted(mine) == sorted((each.code, each.severity, each.message) for each in line.findings)
            seen |= {each.code for each in line.findings}
    assert len(seen) > 12, seen


def owners_of(found: list[dict[str, Any]]) -> dict[tuple[Any, ...], tuple[str, ...]]:
    owners: dict[tuple[Any, ...], tuple[str, ...]] = {}
    for row in found:
        queue = queue_of(row)
        owners[queue] = (*owners.get(queue, ()), *([] if row["owner"] is None else [row["owner"]]))
        assert row["owners"] >= len(owners[queue])
    return {queue: tuple(sorted(own)) for queue, own in owners.items()}


def plain(owners: Mapping[Any, tuple[str, ...]]) -> dict[tuple[Any, ...], tuple[str, ...]]:
    return {(q.topic, q.broker_name, q.queue_id): tuple(sorted(own)) for q, own in owners.items()}


def predicted_owners(group: Group) -> Mapping[Any, tuple[str, ...]] | None:
    """None where no consumer owns queues, or that is unknown."""
    seen = group.snapshot.groups.get(group.name or "")
    if seen is None or seen.message_model == BROADCASTING or not group.shares:
        return None
    return known(lambda: group.predicted)


def test_assignments_are_those_of_show_owners(judged: Warehouse, fleet: Path) -> None:
    found = by_group(rows(judged, Assignments, LAST), runs=True)
    checked = 0
    for cluster, group in groups(fleet):
        key = cluster, group.name or ""
        predicted = predicted_owners(group)
        if predicted is None:
            assert key not in found, key
            continue
        assert owners_of(found.get(key, [])) == plain(predicted), key
        by_queue = {(q.topic, q.broker_name, q.queue_id): [*own] for q, own in predicted.items()}
        for row in found[key]:
            assert row["mismatch"] in (None, row["ownersObserved"] != by_queue[queue_of(row)])
        checked += 1
    assert checked > 30


def owners_under(group: Group, strategy: str) -> tuple[Owners, tuple[str, ...]]:
    members = group.under(strategy)
    group.must_be_answered(members)
    return owners_at_rest(group.routes, members), members.client_ids


def test_rows_under_another_strategy_are_its_owners(judged: Warehouse, fleet: Path) -> None:
    asked = ("AVG", "AVG_BY_CIRCLE")
    owned, figures = (by_group(rows(judged, table, LAST), runs=False) for table in (Assignments, Figures))
    checked = 0
    for cluster, group in groups(fleet):
        key = cluster, group.name or ""
        for row in figures.get(key, ()):
            assert row["strategy"] in asked
            own = [each for each in owned.get(key, []) if each["strategy"] == row["strategy"]]
            found = known(partial(owners_under, group, row["strategy"]))
            if found is None:
                assert (own, row["code"] is None) == ([], False)
                continue
            owners, client_ids = found
            even = spread(owners, client_ids)
            same = ("consumers", "queues", "unassigned", "duplicate_owners", "idle", "imbalance")
            assert {name: row[CAMEL[name]] for name in same} == {name: getattr(even, name) for name in same}
            assert owners_of(own) == plain(owners)
            lags: dict[Any, Any] = {
                queue: group.states[queue].lag if queue in group.states else None
                for queue, ids in owners.items()
                if ids
            }
            if None not in lags.values():
                busy = (sum(lag * owners[queue].count(each) for queue, lag in lags.items()) for each in client_ids)
                assert row["maxLagPerConsumer"] == max(busy)
            checked += 1
    assert checked > 80


def test_the_document_of_a_group_answers_as_the_whole_snapshot(judged: Warehouse, fleet: Path, tmp_path: Path) -> None:
    path = tmp_path / "group.json"
    for row in judged.read(Groups, [LAST]).select("cluster", "group", "document").collect()[::7]:
        path.write_text(row["document"])
        sources = (path, files(fleet)[row["cluster"]])
        mine, theirs = (known(partial(rmqlb.show_owners, str(each), row["group"])) for each in sources)
        assert mine == theirs


def test_losses_are_those_of_sweep_failures(judged: Warehouse, fleet: Path) -> None:
    found = by_group(rows(judged, WhatIf, LAST))
    checked = 0
    for cluster, path in files(fleet).items():
        every = tuple(sorted(snapshot(path).groups))
        request = SweepRequest(every, (), kinds=("consumer", "host", "broker", "master"), at_once=1)
        for worst in sweep_snapshot(snapshot(path), NOTHING, request, LAST)[0].groups:
            mine = [row for row in found[cluster, worst.group] if row["change"] != "consumer-added"]
            assert len(mine) == worst.cases, worst.group
            for figure in ("unassigned", "imbalance", "idle", "moved"):
                their = getattr(worst, figure)
                if their is not None and their.losses:
                    (loss,) = their.losses
                    row = next(each for each in mine if (each["change"], each["subject"]) == (loss.kind, loss.name))
                    values = max(each[figure] or 0 for each in mine), row[figure]
                    assert values == pytest.approx((float(their.value),) * 2), worst.group
                    checked += 1
    assert checked > 60


def test_one_more_consumer_is_that_of_plan_rebalance(judged: Warehouse, fleet: Path) -> None:
    found = [row for row in rows(judged, WhatIf, LAST) if row["change"] == "consumer-added"]
    assert len(found) > 30
    for row in found[::4]:
        plan: Any = rmqlb.plan_rebalance(str(files(fleet)[row["cluster"]]), row["group"], add=1)
        after = plan.summary.after
        mine = (row["moved"], row["consumers"], row["unassigned"], row["duplicateOwners"], row["idle"])
        assert mine == (plan.summary.moved, after.consumers, after.unassigned, after.duplicate_owners, after.idle)


def test_limits_are_those_of_check(judged: Warehouse, fleet: Path, tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text(POLICY)
    found = [row for row in rows(judged, Findings, LAST) if row["kind"] == "policy"]
    for cluster, path in files(fleet).items():
        mine = sorted((r["rule"], r["code"], r["group"] or r["topic"]) for r in found if r["cluster"] == cluster)
        theirs = rmqlb.check(str(path), str(policy), today=LAST)
        judged_ = [one for one in (*theirs.failed, *theirs.incomplete) if one.name is not None]
        assert mine == sorted((one.rule, one.limit, one.name) for one in judged_)
    idle = {r["cluster"]: r for r in found if (r["code"], r["verdict"]) == ("idle", "waived")}
    assert ("fleet-a" in idle, "fleet-b" in idle) == (True, False)
    assert (idle["fleet-a"]["waivedBy"], idle["fleet-a"]["waivedReason"]) == ("the team", "known")
    of_fleet = [(r["rule"], r["verdict"]) for r in found if r["cluster"] is None]
    assert of_fleet == [("nothing", "incomplete")]


def test_sends_are_topics_without_a_writable_broker_left(judged: Warehouse, fleet: Path) -> None:
    found = [(r["cluster"], r["topic"], r["change"]) for r in rows(judged, Sends, LAST)]
    assert {change for *_, change in found} >= {"none", "broker"}
    for cluster, path in files(fleet).items():
        request = SweepRequest((), tuple(sorted(snapshot(path).routes)), kinds=("broker", "master", "host"), at_once=1)
        sweep, _ = sweep_snapshot(snapshot(path), NOTHING, request, LAST)
        mine = Counter(topic for name, topic, change in found if name == cluster and change != "none")
        assert mine == {t.topic: t.unwritable for t in sweep.topics if t.writable_brokers and t.unwritable}
        now = {topic for name, topic, change in found if (name, change) == (cluster, "none")}
        assert now == {t.topic for t in sweep.topics if not t.writable_brokers}
