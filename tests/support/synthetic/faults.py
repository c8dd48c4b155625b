"""More faults of groups and topics than `generate` makes, put into the snapshots that it wrote."""

import gzip
from collections.abc import Callable, Iterable
from itertools import cycle
from pathlib import Path

from msgspec.structs import replace

from rmqlb.model.group import BROADCASTING, CONSUME_POP, Connection, ConsumerGroup, MemberReport
from rmqlb.model.route import PERM_READ, TopicQueueMappingInfo, TopicRouteData
from rmqlb.model.snapshot import Everything, Wanted
from rmqlb.sources.dump import DumpSource
from tests.support.synthetic.fleet import document

WHOLE = Wanted(everything=Everything(system=True))
ConnectionsOf = Callable[[tuple[Connection, ...]], Iterable[Connection]]


def connected(group: ConsumerGroup, change: ConnectionsOf) -> ConsumerGroup:
    views = tuple(replace(view, connections=tuple(change(view.connections))) for view in group.views or ())
    known = {connection.client_id for view in views for connection in view.connections}
    return replace(group, views=views, reports={i: report for i, report in group.reports.items() if i in known})


def first_reports(group: ConsumerGroup, change: Callable[[MemberReport], MemberReport]) -> ConsumerGroup:
    first = min(group.reports, default="")
    return replace(group, reports={i: change(each) if i == first else each for i, each in group.reports.items()})


def all_report(group: ConsumerGroup, **changes: object) -> ConsumerGroup:
    return replace(group, reports={i: replace(each, **changes) for i, each in group.reports.items()})


def held_by(group: ConsumerGroup, owners: frozenset[str] | None, **changes: object) -> ConsumerGroup:
    return replace(group, queues={q: replace(state, owners=owners, **changes) for q, state in group.queues.items()})


def shared_id(its: tuple[Connection, ...]) -> tuple[Connection, ...]:
    return (its[0], replace(its[1], client_id=its[0].client_id), *its[2:]) if len(its) > 1 else its


def split_view(group: ConsumerGroup) -> ConsumerGroup:
    first, *others = group.views or ()
    return replace(group, views=(first, *(replace(view, connections=view.connections[:-1]) for view in others)))


def silent_member(group: ConsumerGroup) -> ConsumerGroup:
    silent = min(group.reports, default="")
    group = replace(group, reports={i: each for i, each in group.reports.items() if i != silent})
    queues = {q: replace(s, owners=None) if silent in (s.owners or ()) else s for q, s in group.queues.items()}
    return replace(group, queues=queues)


def no_members(group: ConsumerGroup) -> ConsumerGroup:
    """Nothing was read lately: otherwise its members are behind a Proxy."""
    group = replace(group, consume_type=None, message_model=None, views=(), reports={})
    return held_by(group, frozenset(), last_timestamp=1)


def grpc_ids(its: tuple[Connection, ...]) -> Iterable[Connection]:
    return (replace(each, client_id=f"host-{place}@1@0@abcdef{place}") for place, each in enumerate(its))


FAULTS: dict[str, Callable[[ConsumerGroup], ConsumerGroup]] = {
    "shared id": lambda group: connected(group, shared_id),
    "missing subscription": lambda group: first_reports(
        group, lambda each: replace(each, topics=frozenset(sorted(each.topics or ())[:-1]))
    ),
    "split view": split_view,
    "mixed strategies": lambda group: first_reports(
        group, lambda each: replace(each, strategy_class="AllocateMessageQueueConsistentHash")
    ),
    "broadcasting": lambda group: replace(group, message_model=BROADCASTING, queues={}, reports={}),
    "pop": lambda group: held_by(
        all_report(replace(group, consume_type=CONSUME_POP), strategy_class=None, client_rebalance=False), frozenset()
    ),
    "no members": no_members,
    "unseen members": lambda group: held_by(replace(group, views=None, reports={}), None),
    "silent member": silent_member,
    "foreign strategy": lambda group: all_report(group, strategy_class="AllocateMessageQueueByWeight"),
    "grpc": lambda group: held_by(connected(group, grpc_ids), None),
    "lost topic": lambda group: replace(group, topics=(*(group.topics or ()), f"Retired-{group.group}")),
}


def static(route: TopicRouteData) -> TopicRouteData:
    """Logical queues, dealt to the brokers in blocks."""
    total, first, mapping = sum(each.read_queue_nums for each in route.queue_datas), 0, {}
    for each in route.queue_datas:
        ids = {first + number: number for number in range(each.read_queue_nums)}
        mapping[each.broker_name] = TopicQueueMappingInfo(route.topic, "__global__", total, each.broker_name, 1, ids)
        first += each.read_queue_nums
    return replace(route, topic_queue_mapping_by_broker=mapping)


def queues_changed(route: TopicRouteData, **changes: int) -> TopicRouteData:
    return replace(route, queue_datas=tuple(replace(each, **changes) for each in route.queue_datas))


ROUTES: dict[str, Callable[[TopicRouteData], TopicRouteData]] = {
    "ordered": lambda route: replace(
        route, order_topic_conf=";".join(f"{q.broker_name}:{q.read_queue_nums}" for q in route.queue_datas)
    ),
    "static": static,
    "shrinking": lambda route: queues_changed(route, write_queue_nums=1),
    "read only": lambda route: queues_changed(route, perm=PERM_READ),
}


def put_faults(folder: Path, every: int) -> None:
    """Give every so many-th group and topic of each snapshot one, the kinds going round."""
    for path in sorted(folder.rglob("snapshot.json.gz")):
        snapshot = DumpSource(str(path)).fetch(WHOLE)
        of_groups, of_routes = cycle(FAULTS.values()), cycle(ROUTES.values())
        groups = {
            name: group if number % every else next(of_groups)(group)
            for number, (name, group) in enumerate(snapshot.groups.items())
        }
        routes = {
            name: seen if number % every else replace(seen, route=next(of_routes)(seen.route))
            for number, (name, seen) in enumerate(snapshot.routes.items())
        }
        path.write_bytes(gzip.compress(document(replace(snapshot, groups=groups, routes=routes))))
