"""Makes `examples/recording.json`: `python -m tests.support.make_recording`.

What is recorded is a simulated group, `order-svc` of `examples/cluster.json` while a consumer joins, looked at once per
second; each consumer answers at its own time within a look, and one look is not answered by one of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta

from msgspec.structs import replace

from rmqlb.engine.assignment.assign import Members
from rmqlb.engine.kernel import Draws
from rmqlb.engine.rebalance.simulate import simulate_group
from rmqlb.engine.record.follow import Follower, look_of
from rmqlb.model.group import Connection, ConsumerGroup, MemberReport, QueueState
from rmqlb.model.group_scenario import SECOND_US, Event, GroupScenario
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.recording import Recording
from rmqlb.model.simulate_rebalance import RebalanceResult
from rmqlb.model.snapshot import ClusterSnapshot, Unread, Wanted
from rmqlb.sources.opening import Access, open_source
from rmqlb.views.formats.machine import as_json, envelope
from rmqlb.views.record import recording_report
from tests.support.make_examples import EXAMPLES

GROUP, JOINS = "order-svc", "192.0.2.2@inst3"
JOINS_AT_S, LISTED_AFTER_US, LOOKS = 5, 180_000, 11
SILENT = 7, "192.0.2.2@inst1"
"""A look, from 0, that a consumer does not answer."""


def snapshot() -> ClusterSnapshot:
    return open_source(str(EXAMPLES / "cluster.json"), Access()).fetch(Wanted(group=GROUP))


def simulated(cluster: ClusterSnapshot, trial: int) -> RebalanceResult:
    group = cluster.group(GROUP)
    routes = [cluster.route(topic) for topic in group.own_topics or ()]
    scenario = GroupScenario((Event("join", JOINS_AT_S * SECOND_US, JOINS),), until_us=LOOKS * SECOND_US, seed=20)
    return simulate_group(GROUP, Members(group.client_ids or (), "AVG"), routes, scenario, trial=trial)


def owners_at(report: RebalanceResult, client_id: str, at_us: int) -> Iterator[MessageQueue]:
    for one in report.queues:
        if any(each.from_us <= at_us < each.to_us and client_id in each.owners for each in one.intervals):
            yield one.queue


def seen(cluster: ClusterSnapshot, held: Mapping[str, Iterable[MessageQueue]], silent: str | None) -> ClusterSnapshot:
    group = cluster.group(GROUP)
    owners: dict[MessageQueue, set[str]] = {}
    for client_id, queues in held.items():
        for queue in queues:
            owners.setdefault(queue, set()).add(client_id)
    listed = [*held, *([] if silent is None else [silent])]
    now: ConsumerGroup = replace(
        group,
        views=tuple(replace(view, connections=tuple(map(Connection, listed))) for view in group.views or ()),
        queues={queue: QueueState(frozenset(ids)) for queue, ids in owners.items()},
        reports={i: MemberReport(i, strategy_class="AllocateMessageQueueAveragely") for i in held},
    )
    unread = () if silent is None else (Unread("member", GROUP, "timed out after 5s", silent),)
    return replace(cluster, groups={GROUP: now}, unread=unread)


def recording() -> tuple[Recording, ClusterSnapshot]:
    cluster, draws = snapshot(), Draws(7)
    report = simulated(cluster, trial=3)
    follower, taken_at = Follower(GROUP, 1000), cluster.taken_at or datetime.now(UTC)
    for number in range(LOOKS):
        asked_us = number * SECOND_US + 300_000 + draws.below(40_000)
        took_us = 40_000 + draws.below(60_000)
        ids = [
            each for each in report.client_ids if each != JOINS or asked_us > JOINS_AT_S * SECOND_US + LISTED_AFTER_US
        ]
        silent = SILENT[1] if number == SILENT[0] else None
        times = {each: asked_us + draws.below(took_us) for each in ids if each != silent}
        held = {each: tuple(owners_at(report, each, at)) for each, at in times.items()}
        asked_at, answered_at = (
            round((taken_at + timedelta(microseconds=us)).timestamp() * 1000) + more
            for us, more in ((asked_us, -1), (asked_us + took_us, 1))
        )
        follower.add(look_of(seen(cluster, held, silent), GROUP, asked_at, answered_at))
    return follower.recording("converged"), cluster


def text() -> str:
    recorded, cluster = recording()
    live = replace(cluster, kind="nameserver", endpoint="rocketmq://127.0.0.1:9876")
    return as_json(envelope(recording_report(recorded), "record", live, ()))


if __name__ == "__main__":
    (EXAMPLES / "recording.json").write_text(text())
