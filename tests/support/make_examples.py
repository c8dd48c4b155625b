"""Makes `examples/` from the captures of a real cluster: `python -m tests.support.make_examples`.

The captured answers are replayed on loopback and read by rmqlb's own Dashboard source. Members whose own report was
not captured are left as unreported; the time is that of the captures. `cluster-later.json` is what the cluster may look
like a day later: of what changed, only the changes are made up; who owns which queue then is what the strategies say.
"""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from msgspec.structs import replace

from rmqlb.engine.assignment.assign import Members, owners_at_rest
from rmqlb.model.group import Connection, ConsumerGroup, Seen
from rmqlb.model.route import TopicRouteData
from rmqlb.model.snapshot import ClusterSnapshot, RouteSighting, Wanted
from rmqlb.sources.dashboard import DashboardReads
from rmqlb.sources.dump import DumpSource
from rmqlb.sources.formats.snapshot_file import to_document
from rmqlb.sources.live import LiveSource
from rmqlb.sources.source import Access
from rmqlb.views.formats.machine import as_json, envelope
from rmqlb.views.report import Report
from tests.support.replay_dashboard import Replay, dashboard

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
ENDPOINT = "http://127.0.0.1:8082"
CAPTURED_AT = datetime(2026, 11, 21, 2, 2, 7, tzinfo=UTC)
JOINED, SLOW = "192.0.2.2@inst3", "192.0.2.2@inst2"
SENT = 300
"""Messages that each queue got meanwhile."""
STRATEGIES = {"audit-svc": "CONSISTENT_HASH", "bill-svc": "AVG", "order-svc": "AVG"}
DAY = timedelta(days=1)


def snapshot_json(snapshot: ClusterSnapshot) -> str:
    report = Report("rmqlb/snapshot", to_document(snapshot), (), (), {})
    return as_json(envelope(report, "fetch-routes", snapshot, ()))


def cluster_json() -> str:
    with dashboard(Replay()) as replay:
        found = []
        for group in STRATEGIES:
            reads = DashboardReads(replay.url, Access(clock=lambda: CAPTURED_AT))
            found.append(LiveSource(reads).fetch(Wanted(group=group)))
        whole = replace(
            found[0], routes={topic: route for snapshot in found for topic, route in snapshot.routes.items()},
            groups={name: group for snapshot in found for name, group in snapshot.groups.items()}, unread=(), notes=(),
        )  # fmt: skip
        return snapshot_json(whole).replace(replay.url, ENDPOINT)


def cluster_later_json() -> str:
    now = DumpSource(str(EXAMPLES / "cluster.json")).fetch(Wanted())
    routes = {name: _route(sighting) for name, sighting in now.routes.items()}
    groups = {
        name: _group(group, [routes[topic].route for topic in group.topics or () if topic in routes])
        for name, group in now.groups.items()
    }
    at = {"kind": "dashboard", "endpoint": ENDPOINT, "taken_at": CAPTURED_AT + DAY}
    return snapshot_json(replace(now, routes=routes, groups=groups, **at))


def _later(seen: Seen) -> Seen:
    return replace(seen, at=None if seen.at is None else seen.at + DAY)


def _route(sighting: RouteSighting) -> RouteSighting:
    """The route of Skewed has as many write queues as read queues."""
    route = sighting.route
    datas = tuple(replace(data, write_queue_nums=data.read_queue_nums) for data in route.queue_datas)
    return replace(sighting, route=replace(route, queue_datas=datas), seen=_later(sighting.seen))


def _group(group: ConsumerGroup, routes: list[TopicRouteData]) -> ConsumerGroup:
    """One more consumer of order-svc, another strategy of bill-svc, a slow consumer of audit-svc."""
    new = (Connection(JOINED, "127.0.0.1:51466", "JAVA", "V5_5_0"),) if group.group == "order-svc" else ()
    views = tuple(replace(v, seen=_later(v.seen), connections=(*v.connections, *new)) for v in group.views or ())
    then = replace(group, views=views, seen=_later(group.seen))
    owners = owners_at_rest(routes, Members(then.client_ids or (), STRATEGIES[group.group]))
    queues = {**group.queues}
    for queue in queues.keys() & owners.keys():
        state = queues[queue]
        end = (state.broker_offset or 0) + SENT
        is_slow = group.group == "audit-svc" and SLOW in owners[queue]
        read = state.consumer_offset if is_slow else end
        queues[queue] = replace(state, owners=frozenset(owners[queue]), broker_offset=end, consumer_offset=read)
    return replace(then, queues=queues)


if __name__ == "__main__":
    (EXAMPLES / "cluster.json").write_text(cluster_json())
    (EXAMPLES / "cluster-later.json").write_text(cluster_later_json())
