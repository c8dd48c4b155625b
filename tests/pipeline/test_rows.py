from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest

import rmqlb
from rmqlb.engine.allocate.strategy import Settings
from rmqlb.engine.assignment.assign import Owners, owners_at_rest, spread
from rmqlb.engine.group import Group, all_groups, known, resolve_all
from rmqlb.engine.show_groups import overview
from rmqlb.engine.sweep_failures.sweep import SweepRequest, sweep_snapshot
from rmqlb.model.group import BROADCASTING, is_system_group
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


@cache
def snapshot(path: Path) -> ClusterSnapshot:
    return DumpSource(str(path)).fetch(Wanted(evidence=True))


def files(fleet: Path, day: date = LAST) -> dict[str, Path]:
    return {
        path.parent.parent.name.removeprefix("cluster="): path for path in fleet.rglob(f"date={day}/snapshot.json.gz")
    }


def groups(fleet: Path) -> Iterator[tuple[str, Group]]:
    for cluster, path in files(fleet).items():
        names = [name for name in all_groups(snapshot(path)) if not is_system_group(name)]
        yield from ((cluster, group) for group in resolve_all(snapshot(path), names))


def by_group(found: list[dict[str, Any]], **only: object) -> dict[tuple[str, str], list[dict[str, Any]]]:
    grouped: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in found:
        if all(row[name] == value for name, value in only.items()):
            grouped.setdefault((row["cluster"], row["group"]), []).append(row)
    return grouped


def test_snapshots_and_groups_are_those_of_the_files(judged: Warehouse, fleet: Path) -> None:
    found = {row["cluster"]: row for row in rows(judged, Snapshots, LAST)}
    assert {name: row["files"][0]["path"] for name, row in found.items()} == {
        n: str(p) for n, p in files(fleet).items()
    }
    expected = {(cluster, group.name) for cluster, group in groups(fleet)}
    assert {(row["cluster"], row["group"]) for row in rows(judged, Groups, LAST)} == expected
    assert len(expected) > 60


def test_queues_are_those_of_the_files(judged: Warehouse, fleet: Path) -> None:
    expected = {
        (cluster, group.name, q.topic, q.broker_name, q.queue_id): (
            None if state.sorted_owners is None else [*state.sorted_owners],
            state.lag,
        )
        for cluster, group in groups(fleet)
        for q, state in (group.snapshot.groups[group.name or ""].queues.items())
    }
    keys = ("cluster", "group", "topic", "brokerName", "queueId")
    found = {tuple(row[k] for k in keys): (row["ownersObserved"], row["lag"]) for row in rows(judged, Queues, LAST)}
    assert found == expected


def test_figures_as_groups_run_are_those_of_show_groups(judged: Warehouse, fleet: Path) -> None:
    found = by_group(rows(judged, Figures, LAST), runs=True)
    for cluster, path in files(fleet).items():
        names = [name for name in all_groups(snapshot(path)) if not is_system_group(name)]
        for line in overview(snapshot(path), names, Settings()).groups:
            (row,) = found[cluster, line.group]
            assert {name: row[CAMEL[name]] for name in FIGURES} == {name: getattr(line, name) for name in FIGURES}
            assert row["strategy"] == (",".join(line.strategies) or None)
            assert row["origin"] == line.strategy_origin


def test_findings_are_those_of_show_groups(judged: Warehouse, fleet: Path) -> None:
    found = by_group(rows(judged, Findings, LAST), kind="group")
    seen = set()
    for cluster, path in files(fleet).items():
        names = [name for name in all_groups(snapshot(path)) if not is_system_group(name)]
        for line in overview(snapshot(path), names, Settings()).groups:
            mine = sorted(
                (row["code"], row["severity"], row["message"]) for row in found.get((cluster, line.group), ())
            )
            assert mine == sorted((each.code, each.severity, each.message) for each in line.findings)
            seen |= {each.code for each in line.findings}
    assert len(seen) > 12, seen


def owners_of(found: list[dict[str, Any]]) -> dict[tuple[Any, ...], tuple[str, ...]]:
    owners: dict[tuple[Any, ...], tuple[str, ...]] = {}
    for row in found:
        queue = row["topic"], row["brokerName"], row["queueId"]
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
            own = by_queue[row["topic"], row["brokerName"], row["queueId"]]
            assert row["mismatch"] in (None, row["ownersObserved"] != own)
        checked += 1
    assert checked > 30


def owners_shown(path: str, group: str) -> Any:
    return known(lambda: rmqlb.show_owners(path, group))


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
            busy = dict.fromkeys(client_ids, 0)
            lags = {queue: state.lag for queue, state in group.states.items()}
            for queue, ids in owners.items():
                for client_id in ids:
                    busy[client_id] += lags.get(queue) or 0
            if all(lags.get(queue) is not None for queue, ids in owners.items() if ids):
                assert row["maxLagPerConsumer"] == max(busy.values())
            checked += 1
    assert checked > 80


def test_the_document_of_a_group_answers_as_the_whole_snapshot(judged: Warehouse, fleet: Path, tmp_path: Path) -> None:
    frame = judged.read(Groups, [LAST]).select("cluster", "group", "document").collect()
    for row in frame[::7]:
        path = tmp_path / "group.json"
        path.write_text(row["document"])
        whole = files(fleet)[row["cluster"]]
        mine, theirs = (owners_shown(str(each), row["group"]) for each in (path, whole))
        assert (mine is None) == (theirs is None)
        if mine is not None and theirs is not None:
            assert mine == theirs


def test_losses_are_those_of_sweep_failures(judged: Warehouse, fleet: Path) -> None:
    found = by_group(rows(judged, WhatIf, LAST))
    checked = 0
    for cluster, path in files(fleet).items():
        whole = snapshot(path)
        names = tuple(sorted(whole.groups))
        request = SweepRequest(names, (), kinds=("consumer", "host", "broker", "master"), at_once=1)
        sweep, _ = sweep_snapshot(whole, Policy("none", ()), request, LAST)
        for worst in sweep.groups:
            mine = [row for row in found[cluster, worst.group] if row["change"] != "consumer-added"]
            assert len(mine) == worst.cases, worst.group
            for figure in ("unassigned", "imbalance", "idle", "moved"):
                their = getattr(worst, figure)
                if their is not None and their.losses:
                    assert max(row[figure] or 0 for row in mine) == pytest.approx(float(their.value)), worst.group
                    (loss,) = their.losses
                    row = next(each for each in mine if (each["change"], each["subject"]) == (loss.kind, loss.name))
                    assert row[figure] == pytest.approx(float(their.value))
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
    verdicts = {(r["cluster"], r["verdict"]) for r in found if r["code"] == "idle"}
    assert ("fleet-a", "waived") in verdicts
    assert ("fleet-b", "waived") not in verdicts
    (waived, *_) = (r for r in found if r["verdict"] == "waived")
    assert (waived["waivedBy"], waived["waivedReason"]) == ("the team", "known")
    of_fleet = [(r["rule"], r["verdict"]) for r in found if r["cluster"] is None]
    assert of_fleet == [("nothing", "incomplete")]


def test_sends_are_topics_without_a_writable_broker_left(judged: Warehouse, fleet: Path) -> None:
    found = {(r["cluster"], r["topic"], r["change"], r["subject"]) for r in rows(judged, Sends, LAST)}
    assert {change for _, _, change, _ in found} >= {"none", "broker"}
    for cluster, path in files(fleet).items():
        whole = snapshot(path)
        request = SweepRequest((), tuple(sorted(whole.routes)), kinds=("broker", "master", "host"), at_once=1)
        sweep, _ = sweep_snapshot(whole, Policy("none", ()), request, LAST)
        unwritable = {t.topic: t.unwritable for t in sweep.topics if t.writable_brokers}
        mine: dict[str, int] = {}
        for name, topic, change, _ in found:
            if name == cluster and change != "none":
                mine[topic] = mine.get(topic, 0) + 1
        assert mine == {topic: number for topic, number in unwritable.items() if number}
        now = {t.topic for t in sweep.topics if not t.writable_brokers}
        assert {topic for name, topic, change, _ in found if (name, change) == (cluster, "none")} == now
