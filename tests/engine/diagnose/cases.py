"""Groups that a diagnosis is asked about: `answers.txt` has what it says of each, and `test_answers.py` compares.

A case is a snapshot, or the looks at a group, the oldest first; its name says what is the matter.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from functools import partial
from random import Random
from typing import Any

from msgspec.structs import replace

from rmqlb.engine.diagnose.diagnose import with_stacks
from rmqlb.model.group import BROADCASTING, CONSUME_ACTIVELY, CONSUME_POP, Connection, ProxyView, QueueState, Seen
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.process_queue import ConsumerEvidence, ConsumeStatus, ProcessQueue
from rmqlb.model.snapshot import ClusterSnapshot, Unread, unread_link
from tests.engine.diagnose.running import AT, PER_S, Doing, Process, Reporting, changed, owned, running, stored, watched
from tests.support.builders import route

Looks = tuple[ClusterSnapshot, ...]
Case = ClusterSnapshot | Looks
PAIR = running(Process("x"), Process("y"))
BOTH = ("T", "U")
SECOND_TOPIC = (route(a=4, b=4), route("U", a=4, b=4))
ON_BOTH = running(*(Process(i, topics=BOTH) for i in "xy"), routes=SECOND_TOPIC)
HASH = "CONSISTENT_HASH"
GRPC = ("host@1@0@abc1", "host@2@0@abc1")

FAULTS: Mapping[str, ClusterSnapshot] = {
    "duplicate-client-id": running(Process("x"), Process("x"), Process("y")),
    "mixed-strategies": running(Process("x"), Process("y", "AVG_BY_CIRCLE")),
    "subscription-mismatch": running(Process("x", topics=BOTH), Process("y"), routes=SECOND_TOPIC),
    "mixed-sdks": running(Process("x", HASH), Process("y", HASH, language="GO"), Process("z", HASH)),
    "split-consumer-view": running(Process("x"), Process("y", asks="b", unlisted=("a",))),
    "broker-unreachable-from-consumer": running(Process("x"), Process("y", cut=("b",))),
    "no-consumer-online": running(),
}
"""Code → a group that has what the code means, and no other fault."""


def stops_at(since: float, before: Callable[[float], float]) -> Callable[[float], float]:
    return lambda t: before(min(t, since))


def slower(share: float, since: float) -> Callable[[float], float]:
    return lambda t: stored(t) - 2 if t < since else stored(since) - 2 + share * PER_S * (t - since)


BLOCKED = Doing(done=stops_at(-90, Doing().done), consumed_at=stops_at(-90, Doing().consumed_at))
FULL = Doing(
    done=stops_at(-200, Doing().done),
    consumed_at=stops_at(-200, Doing().consumed_at),
    pulled=lambda _: stored(-200) + 1010,
)
HEAD = Doing(done=stops_at(-90, Doing().done), gaps=800)
FAILS_IN_ORDER = Doing(done=stops_at(-90, Doing().done), consumed_at=lambda t: t - 0.5)
HANGS_IN_ORDER = Doing(
    done=stops_at(-90, Doing().done), consumed_at=stops_at(-90, Doing().consumed_at), consuming=1,
    locked_at=lambda t: t - 5,
)  # fmt: skip
UNPULLED = Doing(
    done=stops_at(-300, stored), pulled=stops_at(-300, stored), consumed_at=stops_at(-300, Doing().consumed_at),
    pulled_at=stops_at(-300, Doing().pulled_at),
)  # fmt: skip
UNLOCKED = Doing(
    done=stops_at(-70, Doing().done), pulled=stops_at(-60, stored), consumed_at=stops_at(-70, Doing().consumed_at),
    locked_at=lambda _: -100,
)  # fmt: skip
DROPPED = Doing(dropped=True)
SLOW = Doing(done=slower(0.4, -150))
LIMITED = Doing(done=slower(0.4, -300), pulled=lambda t: slower(0.4, -300)(t) + 1005)
HOT = Doing(
    end=lambda t: 100_000 + 200 * (t + 1000),
    done=lambda t: 100_000 + 200 * 600 - 2 + 100 * (t + 400),
    pulled=lambda t: 100_000 + 200 * (t + 1000),
)
"""A queue that gets 200 messages per second, of which its consumer has consumed 100 for 400 s."""
PAUSED = Doing(done=stops_at(-300, stored), pulled=stops_at(-300, stored), consumed_at=lambda _: -300)
"""A consumer that its application has suspended: it goes round and does not pull."""
DOINGS = (BLOCKED, FULL, HEAD, FAILS_IN_ORDER, HANGS_IN_ORDER, UNPULLED, UNLOCKED, DROPPED, SLOW, LIMITED, HOT, PAUSED)


def of(client_id: str, does: Doing, number: int | None = None) -> dict[tuple[str, MessageQueue], Doing]:
    return {(client_id, queue): does for queue in owned(PAIR, client_id)[:number]}


FAILS = Reporting(consumed_per_s=0.0, failed_per_s=4.0)
ORDERLY = {i: Reporting(orderly=True) for i in "xy"}
X_FIRST, Y_FIRST = owned(PAIR, "x")[0], owned(PAIR, "y")[0]

WATCHED_FAULTS: Mapping[str, Looks] = {
    "frozen-consumer": watched(PAIR, of("x", BLOCKED), {"x": Reporting(answers=False)}),
    "consume-failing": watched(PAIR, of("x", FAILS_IN_ORDER), {"x": replace(FAILS, orderly=True), "y": Reporting(orderly=True)}),
    "blocked-consumer": watched(PAIR, of("x", BLOCKED)),
    "head-blocked": watched(PAIR, of("x", HEAD, 1)),
    "pull-stopped": watched(PAIR, of("x", UNPULLED, 1)),
    "lock-lost": watched(PAIR, of("x", UNLOCKED, 1), ORDERLY),
    "dropped-but-consuming": watched(PAIR, {("x", Y_FIRST): DROPPED}),
    "hot-queue": watched(PAIR, of("x", HOT, 1)),
    "slow-consumer": watched(PAIR, of("x", SLOW), {"x": Reporting(call_ms=200.0, consumed_per_s=16.0)}),
    "flow-control": watched(PAIR, {**of("x", LIMITED), **of("y", LIMITED)}),
    "lag-growing": watched(PAIR, {**of("x", SLOW), **of("y", SLOW)}),
    "lag-stalled": watched(PAIR, of("x", PAUSED)),
}  # fmt: skip
"""Code → looks at a group that has what the code means, and no other fault."""

WATCHED_PAIRS: Mapping[str, tuple[Looks, set[str]]] = {
    "x blocked, y held back": (watched(PAIR, {**of("x", FULL), **of("y", LIMITED)}), {"blocked-consumer", "flow-control"}),
    "x frozen, a message of y not finished": (watched(PAIR, {**of("x", BLOCKED), **of("y", HEAD, 1)}, {"x": Reporting(answers=False)}), {"frozen-consumer", "head-blocked"}),
    "x without a lock, y without a pull": (watched(PAIR, {**of("x", UNLOCKED, 1), **of("y", UNPULLED, 1)}, ORDERLY), {"lock-lost", "pull-stopped"}),
    "x blocked, y suspended": (watched(PAIR, {**of("x", BLOCKED), **of("y", PAUSED)}), {"blocked-consumer", "lag-stalled"}),
    "x slow, y consumes what was taken from it": (watched(PAIR, {**of("x", SLOW), ("y", X_FIRST): DROPPED}, {"x": Reporting(call_ms=200.0, consumed_per_s=16.0)}), {"slow-consumer", "dropped-but-consuming"}),
}  # fmt: skip
"""What is planted → the looks, and the codes that are named."""


def states(snapshot: ClusterSnapshot, *queues: MessageQueue, **changes: Any) -> ClusterSnapshot:
    all_states = snapshot.groups["g"].queues
    return changed(
        snapshot, queues={q: replace(s, **changes) if q in (queues or all_states) else s for q, s in all_states.items()}
    )


def at_broker(snapshot: ClusterSnapshot, broker: str, **changes: Any) -> ClusterSnapshot:
    return states(snapshot, *(q for q in snapshot.groups["g"].queues if q.broker_name == broker), **changes)


def reports(snapshot: ClusterSnapshot, ids: Iterable[str] = "", **changes: Any) -> ClusterSnapshot:
    old = snapshot.groups["g"].reports
    return changed(snapshot, reports={i: replace(r, **changes) if i in (ids or old) else r for i, r in old.items()})


def evidence(snapshot: ClusterSnapshot, ids: Iterable[str] = "", **changes: Any) -> ClusterSnapshot:
    for client_id, report in snapshot.groups["g"].reports.items():
        if client_id in (ids or client_id):
            its = replace(report.evidence or ConsumerEvidence(), **changes)
            snapshot = reports(snapshot, (client_id,), evidence=its)
    return snapshot


def connections(snapshot: ClusterSnapshot, *more: Connection, broker: str = "") -> ClusterSnapshot:
    views = snapshot.groups["g"].views or ()
    listed = (
        replace(v, connections=v.connections + more) if (v.broker_addr or "").startswith(broker) else v for v in views
    )
    return changed(snapshot, views=tuple(listed))


def channels(snapshot: ClusterSnapshot, broker: str, client_id: str, number: int) -> ClusterSnapshot:
    more = (Connection(client_id, f"192.0.2.9:{50_000 + port}", "JAVA", "V5_5_0") for port in range(number))
    return connections(snapshot, *more, broker=broker)


def without_list(snapshot: ClusterSnapshot, broker: str) -> ClusterSnapshot:
    views = snapshot.groups["g"].views or ()
    return changed(snapshot, views=tuple(view for view in views if view.broker_addr != f"{broker}:10911"))


def missing(snapshot: ClusterSnapshot, *parts: Unread) -> ClusterSnapshot:
    return replace(snapshot, unread=parts)


def listing(address: str, *client_ids: str) -> ProxyView:
    return ProxyView(tuple(map(Connection, client_ids)), Seen(f"Proxy {address}", AT), address)


def before(snapshot: ClusterSnapshot, *seconds: int, earlier: ClusterSnapshot | None = None) -> Looks:
    group = (earlier or snapshot).groups["g"]
    times = (replace(group.seen, at=AT - timedelta(seconds=each)) for each in seconds)
    return (*(replace(snapshot, groups={"g": replace(group, seen=at)}) for at in times), snapshot)


def each_look(looks: Looks, change: Callable[..., ClusterSnapshot], *args: Any, **changes: Any) -> Looks:
    return tuple(change(look, *args, **changes) for look in looks)


def does(snapshot: ClusterSnapshot, client_ids: str, doing: Doing, number: int | None = None) -> dict[Any, Doing]:
    return {(i, queue): doing for i in client_ids for queue in owned(snapshot, i)[:number]}


HEALTHY = running(Process("x"), Process("y"))
FIRST, SECOND, *_, LAST = sorted(HEALTHY.groups["g"].queues)
TWICE = FAULTS["duplicate-client-id"]
LATE = running(*(Process(i, asks="b") for i in ("x", "x", "y")), Process("z", unlisted=("a",), asks="b"))
ALL_X = partial(states, owners=frozenset("x"))
POPPING = changed(reports(running(Process("x")), client_rebalance=False), request_modes={"T": ("POP",)}, queues={})
SILENT_PROXY = Unread("proxy", "p:8080", "refused")


def owner_cases() -> Iterator[tuple[str, Case]]:
    yield "an ID twice, lists that differ", LATE
    yield "the same with an owner that no list gives", states(LATE, LAST, owners=frozenset("xz"))
    split = FAULTS["split-consumer-view"]
    room = "AllocateMessageQueueByMachineRoom"
    yield "lists that differ where nothing can be predicted", reports(split, strategy_class=room)
    yield "an ID twice, and a queue that nothing explains", states(TWICE, FIRST, owners=frozenset())
    yield "an ID twice, no owner observed", states(TWICE, owners=None)
    few = (*map(Process, "uvwxy"), Process("y"), Process("z", "AVG_BY_CIRCLE"))
    yield "two causes together, the one of more queues first", running(*few, routes=(route(a=9, b=9),))
    yield "more consumers than queues", running(*map(Process, "uvwxyz"), routes=(route(a=2, b=2),))
    for age_s in (49, 50):
        yield f"x owns all, y is {age_s} s old", ALL_X(running(Process("x"), Process("y", age_s=age_s)))
        late = Process("z", unlisted=("b",), age_s=age_s)
        yield f"lists that differ by a consumer {age_s} s old", running(Process("x"), Process("y", asks="b"), late)
    for age_s in (119, 120):
        late = Process("y", asks="b", unlisted=("a",), age_s=age_s)
        yield f"lists that differ without effect, y is {age_s} s old", running(Process("x", asks="b"), late)
        restarted = connections(running(Process("x"), Process("y", age_s=age_s)), Connection("y", "192.0.2.9:1"))
        yield f"y restarted {age_s} s ago and is listed twice", restarted
    yield "broadcasting", changed(states(HEALTHY, owners=frozenset("xy")), message_model=BROADCASTING)
    group = running(Process("x", topics=("T",)), Process("y", topics=("U",)), routes=(route("T", a=1), route("U", a=2)))
    listed = changed(reports(group, topics=None), topics=("U",))
    yield "different subscriptions, brokers list U only", listed
    for age_s in (60, 200):
        young = running(Process("x", topics=BOTH), Process("y", topics=BOTH, age_s=age_s), routes=SECOND_TOPIC)
        yield f"other topics without effect, y is {age_s} s old", reports(young, "y", topics=frozenset("T"))
        left = running(Process("x", topics=BOTH), Process("y", age_s=age_s), routes=SECOND_TOPIC)
        yield f"other topics, y is {age_s} s old", left
    yield "clients of different tags", running(*(Process(i, takes=t) for i, t in zip("xyz", TAGS, strict=True)))
    yield "other tags in a rolling release", running(Process("x", takes="red"), Process("y", takes="blue", age_s=60))
    tagged = running(*(Process(i, takes=t, age_s=200) for i, t in (("x", "red"), ("y", "blue"))))
    looks = each_look(watched(tagged, of("x", PAUSED)), evidence, "x", filters={"T": "red"})
    yield "queues that stall by other tags", each_look(looks, evidence, "y", filters={"T": "blue"})
    unreadable = replace(route("T", a=4), queue_datas=(replace(route("T", a=4).queue_datas[0], perm=2),))
    for topics in (("T",), BOTH):
        group = running(
            *(Process(i, topics=topics) for i in "xy"), routes=(route("T", a=4), route("U", a=1))[: len(topics)]
        )
        queues = {queue: state for queue, state in group.groups["g"].queues.items() if queue.topic != "T"}
        routes = {**group.routes, "T": replace(group.routes["T"], route=unreadable)}
        yield f"topics {topics}, T cannot be read", changed(replace(group, routes=routes), queues=queues)


TAGS = ("red", "blue || red", "red")


def missing_cases() -> Iterator[tuple[str, Case]]:
    unlisted = without_list(HEALTHY, "b")
    yield "the list of broker b is missing", unlisted
    yield "broker b did not list its consumers", missing(unlisted, Unread("members", "g", "timed out", "b"))
    undecided = reports(HEALTHY, client_rebalance=None)
    yield "no request modes, and who rebalances is unknown", changed(undecided, request_modes=None)
    yield "no request modes", changed(HEALTHY, request_modes=None)
    yield "nobody online, waiting requests unknown", changed(running(), polling_num=None)
    bare = evidence(HEALTHY, filters=None)
    yield "tag filters missing, y did not report", changed(bare, reports={"x": bare.groups["g"].reports["x"]})
    yield "the group could not be read", missing(replace(HEALTHY, groups={}), Unread("group", "g", "timed out"))
    yield "no route", missing(replace(running(Process("x")), routes={}), Unread("route", "T", "timed out"))


def proxy_cases() -> Iterator[tuple[str, Case]]:
    yield "nobody online, all messages are read", running(lag=0)
    yield "nobody online, lag unknown", states(running(), broker_offset=None)
    yield "messages were given out in the last minute", changed(running(), consume_tps=2.0)
    two = (listing("p:8080", *GRPC), listing("q:8080", GRPC[0]))
    yield "gRPC clients at two Proxies", changed(running(), proxies=two, polling_num=None)
    yield "a Proxy does not answer", missing(changed(running(), proxies=()), SILENT_PROXY)
    yield "the same, and receive requests wait", missing(changed(running(), proxies=(), polling_num=2), SILENT_PROXY)
    yield "a consumer at brokers, one at a Proxy", changed(running(Process("x")), proxies=(listing("p:8080", GRPC[0]),))
    yield "remoting consumers at a Proxy", changed(running(), proxies=(listing("p:8080", "x", "y"),), topics=("T",))
    yield "a gRPC client among others", running(Process("x"), Process(GRPC[0]))
    yield "gRPC clients alone", running(*map(Process, GRPC))
    yield "consumption by POP", changed(HEALTHY, consume_type=CONSUME_POP)
    yield "all topics in POP mode", POPPING
    yield "the same without the list of b", without_list(POPPING, "b")


def waiting(snapshot: ClusterSnapshot, owner: str, broker: str) -> ClusterSnapshot:
    its = (queue for queue in owned(snapshot, owner) if queue.broker_name == broker)
    return states(snapshot, *its, consumer_offset=900)


def without_broker(*processes: Process) -> tuple[ClusterSnapshot, ClusterSnapshot]:
    whole = running(*processes, routes=(route(a=4, b=4),))
    now = replace(whole, routes=running(Process("x"), routes=(route(a=4),)).routes)
    return whole, at_broker(without_list(now, "b"), "b", broker_offset=None)


def link_cases() -> Iterator[tuple[str, Case]]:
    link = unread_link("g", "no whole answer", "y", "b:10911")
    yield "y does not answer through b", before(missing(waiting(HEALTHY, "y", "b"), link), 20, 10)
    forgotten = waiting(running(Process("x"), Process("y", unlisted=("b",))), "y", "b")
    yield "b has forgotten y, which keeps its queues there", before(forgotten, 20, 10)
    stale = channels(HEALTHY, "b", "y", 22)
    yield "many connections of y at b alone, and y does not answer through b", missing(stale, link)
    yield "an ID twice at both brokers, more at b", channels(TWICE, "b", "x", 5)
    shared = changed(running(Process("x"), *[Process("y")] * 3), views=HEALTHY.groups["g"].views)
    yield "consumers share by stale connections", channels(shared, "a", "y", 2)
    whole = running(Process("x"), Process("ghost"))
    ghost = states(whole, *owned(whole, "ghost"), owners=frozenset())
    ghost = changed(ghost, reports={"x": ghost.groups["g"].reports["x"]})
    gone = Unread("member", "g", "The Consumer Group <g> not exist in this consumer", "ghost")
    yield "a client that does not run the group", missing(ghost, gone)
    silent = "b:10911 GET_CONSUMER_CONNECTION_LIST: no complete answer within 5 s"
    at_a = {queue: state for queue, state in HEALTHY.groups["g"].queues.items() if queue.broker_name == "a"}
    part = Unread("members", "g", silent, "b", no_answer=True)
    yield "b does not answer", missing(changed(without_list(HEALTHY, "b"), queues=at_a), part)
    both = (part, replace(part, detail="a"))
    yield "neither broker answers", missing(changed(HEALTHY, views=(), queues={}), *both)
    whole, now = without_broker(Process("x"), Process("y"))
    yield "b has left the routes since the look before", before(now, 10, earlier=whole)
    at, (_, now) = int(AT.timestamp() * 1000), without_broker(Process("x"))
    pulls = (("b", 0, at - 40_000), ("b", 1, at - 30_000), ("b", 2, 0), ("a", 0, at - 1000))
    items = tuple(ProcessQueue(MessageQueue("T", name, number), last_pull=time) for name, number, time in pulls)
    yield "b has left the routes, x pulled from it", evidence(now, queues=items, filters=None)
    orderly = partial(evidence, orderly=True)
    then = orderly(running(*map(Process, "xyz"), routes=(route(a=6),)))
    left = orderly(states(running(*map(Process, "xy"), routes=(route(a=6),)), broker_offset=1100))
    moved = [q for q, state in left.groups["g"].queues.items() if state.owners != then.groups["g"].queues[q].owners]
    killed = states(left, *moved, owners=frozenset())
    yield "orderly consumer z was killed", killed
    yield "orderly consumer z was killed after the look before", before(killed, 100, 10, earlier=then)
    yield "queues without an owner for longer than a lock lasts", before(killed, 100, 50)


def sdk_cases() -> Iterator[tuple[str, Case]]:
    for strategy, language in (
        *(("AVG", "GO"), ("AVG", "CPP"), ("AVG", "PYTHON"), ("AVG", "RUST"), ("AVG_BY_CIRCLE", "GO")),
        *((HASH, "GO"), (HASH, "CPP")),
    ):
        three = (Process("x", strategy), Process("y", strategy, language=language), Process("z", strategy))
        yield f"{strategy} in Java and {language}", running(*three)
        if language == "GO" and strategy != "AVG_BY_CIRCLE":
            yield f"{strategy} in Java and {language}, no owner observed", changed(running(*three), queues={})
    mostly = (Process("x", HASH), *(Process(each, HASH, language="CPP") for each in "yz"))
    yield f"{HASH} in Java, and in C++ mostly", running(*mostly)
    java_go = running(Process("x"), Process("y", language="GO"))
    own = reports(changed(java_go, queues={}), "x", strategy_class="com.example.Own")
    yield "Java with a strategy of its own, and Go", own
    yield "Java and Rust, no owner observed", changed(running(Process("x"), Process("y", language="RUST")), queues={})
    yield "an ID twice, and Go", running(Process("x"), Process("x"), Process("y", language="GO"))
    go = Process("x", HASH, language="GO")
    yield f"an ID twice in Go, {HASH}", running(go, go, Process("y", HASH))
    circle = running(Process("x"), Process("y"), Process("z", "AVG_BY_CIRCLE", language="GO"))
    yield "Go with AVG_BY_CIRCLE, which it does not report", circle
    views = tuple(
        replace(view, connections=tuple(replace(each, language="JAVA") for each in view.connections))
        for view in circle.groups["g"].views or ()
    )
    yield "Java with AVG_BY_CIRCLE, which it does not report", changed(circle, views=views)


def since(s: float) -> Doing:
    """It consumes nothing from then on, and pulls."""
    now = Doing(pulled_at=lambda t: t + 0.5)
    return replace(now, done=stops_at(s, now.done), consumed_at=stops_at(s, lambda t: t))


def step(at: float, before: float, after: float) -> Callable[[float], float]:
    return lambda t: before if t < at else after


def silent(*client_ids: str) -> dict[str, Reporting]:
    return {i: Reporting(answers=False) for i in client_ids}


STACKS = (
    "ConsumeMessageThread_g_1 WAITING\njdk.Unsafe.park\nPool.borrow\nMine.consume\nmore",
    "ConsumeMessageThread_g_2 WAITING\njdk.Unsafe.park\nPool.borrow\nMine.consume\nother",
    "ConsumeMessageThread_g_3 RUNNABLE\nSocket.read",
)
LACKING = {
    "cached": None, "last_consume": None, "commit_offset": None, "min_offset": None, "max_offset": None,
    "cached_mib": None, "last_pull": None, "last_lock": ORDERLY, "locked": ORDERLY, "dropped": None,
}  # fmt: skip


def consumer_cases() -> Iterator[tuple[str, Case]]:
    yield from WATCHED_FAULTS.items()
    yield from ((name, looks) for name, (looks, _) in WATCHED_PAIRS.items())
    yield "healthy, orderly", watched(PAIR, reporting=ORDERLY)
    yield "blocked, with stack traces", watched(PAIR, of("x", since(-100)), {"x": Reporting(stacks=STACKS)})
    limited = watched(PAIR, {**of("x", since(-300)), **of("y", LIMITED)})
    yield "blocked and held back, broadcasting", each_look(limited, changed, message_model=BROADCASTING)
    lagging, both = watched(PAIR, {**of("x", PAUSED), **of("y", SLOW)}), watched(PAIR, does(PAIR, "xy", since(-300)))
    yield "lag of pull consumers", each_look(lagging, reports, consumer_type="pull")
    yield "lag of assign consumers", each_look(lagging, reports, consumer_type="assign")
    for kind in ("pull", None):
        of_kind = each_look(both, reports, consumer_type=kind)
        yield f"{kind} consumers, blocked in a group without a type", each_look(of_kind, changed, consume_type=None)
        yield (
            f"{kind} consumers, blocked in a group that pulls",
            each_look(of_kind, changed, consume_type=CONSUME_ACTIVELY),
        )
    untyped = each_look(lagging, reports, consumer_type=None)
    yield "lag in such a group", each_look(untyped, changed, consume_type=CONSUME_ACTIVELY)
    looks = watched(PAIR)
    yield "no evidence of y", each_look(looks, reports, "y", evidence=None)
    yield "no process queues of y at the last look", (*looks[:-1], evidence(looks[-1], "y", queues=None))
    yield "y does not answer", watched(PAIR, None, silent("y"))
    yield "an ID twice, and blocked", watched(TWICE, does(TWICE, "x", since(-300)))
    for field, reporting in LACKING.items():
        yield (
            f"x does not report {field}",
            tuple(
                evidence(look, "x", queues=tuple(replace(item, **{field: None}) for item in its.queues or ()))
                for look in watched(PAIR, None, reporting)
                if (its := look.groups["g"].reports["x"].evidence) is not None
            ),
        )


def listener_cases() -> Iterator[tuple[str, Case]]:
    looks = watched(PAIR)
    yield "x does not report its order", each_look(looks, evidence, "x", orderly=None)
    yield "no time of the reports of x", each_look(watched(PAIR, of("x", HEAD)), evidence, "x", read_at=None)
    own = {"T": ConsumeStatus(20.0, 0.0, 0.1, 0, 40.0)}
    yield "calls that ended failed", each_look(watched(PAIR, of("x", since(-50))), evidence, "x", statuses=own)
    idle_orderly = {i: Reporting(orderly=True, consumed_per_s=0.0) for i in "xy"}
    for moved_at in (-15, -25):
        stepping = replace(since(-300), consumed_at=step(moved_at, -300, -20.5), locked_at=lambda t: t - 5)
        moving = of("x", stepping)
        yield f"the time of consumption moved {moved_at} s before", watched(PAIR, moving, idle_orderly)
    for calls in ({"T": 801.0, "U": 20.0}, {"T": 20.0}, {"T": 0.0, "U": 0.0}):
        statuses = {topic: ConsumeStatus(ms, 0.0, 0.0, 0, 1e6) for topic, ms in calls.items()}
        looks = watched(ON_BOTH, does(ON_BOTH, "x", since(-300)), looks=(-8, 0))
        yield f"8 s without consumption, calls of {calls} ms", each_look(looks, evidence, "x", statuses=statuses)
    empty = {("x", X_FIRST): replace(since(-70), pulled=since(-70).done)}
    yield "blocked, the youngest queue is empty", watched(PAIR, {**of("x", since(-100)), **empty})
    behind = Doing(done=stops_at(-90, stored), consumed_at=stops_at(-90, lambda t: t), pulled=stops_at(-15, stored))
    slow = {"x": Reporting(call_ms=7000.0, pulled_per_s=1.0)}
    yield "old messages prove that a listener is blocked", watched(PAIR, of("x", behind), slow)
    slow_calls = {i: replace(ORDERLY[i], call_ms=20.0) for i in "xy"}
    yield "an orderly message hangs, slow calls", watched(PAIR, of("x", HANGS_IN_ORDER, 1), slow_calls)
    eight = running(*(Process(f"c{number}") for number in range(8)), routes=(route(a=12, b=12),))
    for code, doing in (("heads", HEAD), ("listeners", BLOCKED)):
        ids = eight.groups["g"].reports
        yield f"{code} of 8 consumers blocked", watched(eight, {(i, q): doing for i in ids for q in owned(eight, i)})
    for code, doing in (("blocked", BLOCKED), ("head-blocked", HEAD)):
        looks = watched(PAIR, of("x", doing))
        yield f"{code}, stack traces were asked for", (*looks[:-1], with_stacks(looks[-1], "g", {"x": ("at T.take",)}))


def lock_cases() -> Iterator[tuple[str, Case]]:
    unlocked = {("x", X_FIRST): replace(UNLOCKED, locked_at=stops_at(-300, lambda t: t), pulled_at=lambda t: t + 0.5)}
    lost = watched(PAIR, unlocked, ORDERLY)
    yield "a lock is lost, broadcasting", each_look(lost, changed, message_model=BROADCASTING)
    yield "a lock is lost, consumers are not orderly", watched(PAIR, unlocked)
    for age_s in (49, 50):
        young = running(Process("x"), Process("y", age_s=age_s))
        yield f"a lock is lost, y is {age_s} s old", watched(young, unlocked, ORDERLY)
    four = running(*map(Process, "wxyz"))
    mine, some = owned(four, "x")[0], {i: Reporting(orderly=True) for i in "xyz"}
    both = dict.fromkeys((("z", mine), ("w", mine)), Doing())
    yield "two orderly consumers and another one have a queue", watched(four, both, some)
    left = {("y", mine): Doing(), ("z", mine): replace(Doing(), until=-5)}
    yield "one of three consumers with a lock gives it up", watched(four, left, {**some, "w": some["x"]})


def silent_cases() -> Iterator[tuple[str, Case]]:
    looks = watched(PAIR, of("x", since(-90)), silent("x"))
    answered = watched(PAIR, of("x", since(-90)))[0]
    yield "x does not answer, and did before", (answered, looks[-1])
    yield "x does not answer, other topics before", (changed(looks[0], topics=("U",)), *looks[1:])
    refused = missing(looks[-1], *(replace(part, no_answer=False) for part in looks[-1].unread))
    yield "x refuses", (*looks[:-1], refused)
    yield "no consumer answers", watched(PAIR, does(PAIR, "xy", since(-90)), silent("x", "y"))
    one = running(Process("x"))
    yield "the only consumer does not answer", watched(one, does(one, "x", since(-90)), silent("x"))


Rates = Mapping[str, tuple[float, float]]


def rated(rates: Sequence[Rates], by_id: Mapping[str, Reporting] | None = None, group: ClusterSnapshot = PAIR) -> Looks:
    looks = []
    for look, its in zip(watched(group, reporting=by_id), rates, strict=True):
        statuses = {topic: ConsumeStatus(20.0, ok, failed, 0, ok + failed) for topic, (ok, failed) in its.items()}
        looks.append(evidence(look, "x", statuses=statuses))
    return tuple(looks)


def failing_cases() -> Iterator[tuple[str, Case]]:
    # As measured on a cluster: nothing consumed, 83 failures per second, all of them on the retry topic.
    measured = rated([{"T": (0, 0), "%RETRY%g": (0, 83)}] * 3)
    for ok, failed in ((1, 3), (1.1, 3), (1, 1), (0, 0.15), (0, 0.17)):
        yield f"{failed} failures for {ok} messages consumed", rated([{"T": (ok, failed)}] * 3)
    yield "failures that have just begun", rated([{"T": (40, 0)}, {"T": (40, 0)}, {"T": (0, 40)}])
    yield "one topic fails", rated([{"T": (0.0, 10.0), "U": (1000.0, 0.0), "%RETRY%g": (0, 30)}] * 3, group=ON_BOTH)
    yield "both consumers fail", watched(PAIR, reporting=dict.fromkeys("xy", FAILS))
    yield "failures in one look", rated([{"T": (0, 83)}] * 3)[-1]
    yield "no rates", rated([{}] * 3)
    retry = MessageQueue("%RETRY%g", "a", 0)
    looks = enumerate(watched(PAIR, reporting={"x": FAILS}))
    grown = (changed(it, queues={**it.groups["g"].queues, retry: QueueState(None, 100 * n, 0)}) for n, it in looks)
    yield "failures, the retry topic grows", tuple(grown)
    letters = zip(measured, (None, 5, 12), strict=True)  # no listener failed in the first look, so that nobody asked
    yield "failures, dead letters", tuple(changed(look, dead_letters=number) for look, number in letters)


MINUTES_5 = (-300, -150, 0)
FOUR = running(Process("x"), Process("y"), routes=(route(a=4),))


def arriving(per_s: float, consumed: float, since: float = -400) -> Doing:

    def end(t: float) -> float:
        return 100_000 + per_s * (t + 1000)

    return Doing(end=end, done=lambda t: min(end(since) + consumed * (t - since), end(t)), pulled=end)


def grpc(look: ClusterSnapshot) -> ClusterSnapshot:
    proxies = (listing("p:8080", GRPC[0]),)
    return changed(states(look, owners=None), views=(), proxies=proxies, reports={}, consume_type=None)


def lag_cases() -> Iterator[tuple[str, Case]]:
    calls = {i: Reporting(call_ms=15_000.0) for i in "xy"}
    yield "calls of 15 s, looks over 21 s", watched(PAIR, of("x", PAUSED), calls, looks=(-21, -11, 0))
    burst = Doing(
        end=lambda t: 100_000 + 10 * (t + 600) + (9000 if t == 0 else 0), done=lambda t: 100_000 + 10 * (t + 600)
    )
    yield "a burst that may have begun just now", watched(PAIR, of("x", burst), looks=MINUTES_5)
    slower = Doing(done=lambda t: stored(-300) + 5 * (t + 300))
    for name, doing in (("suspended", PAUSED), ("slow", slower), ("healthy", Doing())):
        yield f"{name}, gRPC clients", each_look(watched(PAIR, does(PAIR, "xy", doing)), grpc)
    hot, also = owned(FOUR, "x")
    rest = does(FOUR, "y", arriving(20, 20))
    late = {("x", hot): arriving(140, 48), ("x", also): arriving(20, 3), **rest}
    yield "a hot queue, whose consumer is late in its other queue", watched(FOUR, late, looks=(-40, -20, 0))
    for share in (60, 40):
        even = does(FOUR, "xy", arriving((100 - share) / 3, (100 - share) / 3))
        yield f"a queue gets {share} % of the messages", watched(FOUR, even | {("x", hot): arriving(share, 20)})
    two = running(Process("x"), routes=(route(a=2),))
    its = does(two, "x", arriving(20, 20)) | does(two, "x", arriving(80, 20), 1)
    yield "one of two queues is hot", watched(two, its)
    alone = running(Process("x"), routes=(route(a=1),))
    yield "the only queue gets all messages", watched(alone, does(alone, "x", HOT))
    yield "a hot queue, by POP", each_look(watched(PAIR, of("x", HOT, 1)), changed, consume_type=CONSUME_POP)
    looks = watched(PAIR, of("x", SLOW), {"x": Reporting(call_ms=200.0)})
    yield "a slow consumer, y reports no rates", each_look(looks, evidence, "y", statuses=None)
    four = running(*map(Process, "xyzw"))
    says = {
        i: Reporting(call_ms=ms, consumed_per_s=8.0) for i, ms in zip("xyzw", (200.0, 90.0, 10.0, 30.0), strict=True)
    }
    yield "a slow consumer among four", watched(four, does(four, "x", SLOW), says)
    looks = watched(PAIR)
    lacking = [changed(one, queues={q: s for q, s in one.groups["g"].queues.items() if q != X_FIRST}) for one in looks]
    yield "the last look lacks a queue", (*looks[:-1], lacking[-1])
    yield "only the last look has a queue", (*lacking[:-1], looks[-1])
    yield "the looks are not in the order of time", (looks[1], looks[0], looks[2])


def offset_cases() -> Iterator[tuple[str, Case]]:
    one = running(Process("x"))
    then = states(states(one, FIRST, consumer_offset=7), SECOND, consumer_offset=-1)
    now = states(states(one, FIRST, consumer_offset=-1), SECOND, consumer_offset=0)
    yield "an offset is no longer stored", before(now, 10, earlier=then)
    mixed = running(Process("x"), Process("y"), Process("z", strategy="AVG_BY_CIRCLE"))
    twice = [queue for queue, state in mixed.groups["g"].queues.items() if len(state.owners or ()) > 1]
    yield "two owners store offsets", before(mixed, 10, earlier=states(mixed, twice[0], consumer_offset=1007))
    ahead = Doing(done=lambda t: stored(t) - 2 if t < -7 else stored(t) - 200)
    yield "an offset went back in a watched group", watched(PAIR, {("x", X_FIRST): ahead})
    moved = {("x", X_FIRST): replace(ahead, until=-5), ("y", X_FIRST): replace(ahead, since=-5)}
    yield "the same while a queue changes hands", watched(PAIR, moved)
    yield "both", watched(PAIR, {**moved, ("y", Y_FIRST): ahead})
    yield "the same in a young group", watched(running(Process("x"), Process("y", age_s=20)), {("x", X_FIRST): ahead})


def cases() -> dict[str, Looks]:
    families = (
        *(owner_cases, missing_cases, proxy_cases, link_cases, sdk_cases, consumer_cases, listener_cases),
        *(lock_cases, silent_cases, failing_cases, lag_cases, offset_cases),
    )
    found: dict[str, Looks] = {}
    named: list[tuple[str, Case]] = [*FAULTS.items()]
    for family in families:
        named += family()
    for name, case in named:
        assert name not in found, name
        found[name] = (case,) if isinstance(case, ClusterSnapshot) else case
    return found


def ill_looks(dice: Random) -> Looks:
    """Consumers of which each does one or two things with its queues, most of them faulty."""
    ids, routes = "xyzw"[: dice.randint(1, 4)], (route(a=dice.randint(1, 4), b=dice.randint(0, 4)),)
    snapshot = running(*(Process(i, dice.choice(("AVG",) * 9 + ("AVG_BY_CIRCLE",))) for i in ids), routes=routes)
    begin, rate, orderly = -dice.uniform(20, 400), dice.uniform(1, 200), dice.random() < 0.3
    can = (Doing(), Doing(), since(begin), arriving(rate, rate * dice.uniform(0, 1.2), begin), *DOINGS)
    does_all = {i: dice.sample(can, 2) for i in ids}
    doing = {(i, queue): dice.choice(does_all[i]) for i in ids for queue in owned(snapshot, i)}
    calls = [
        (dice.uniform(5, 400), dice.choice((None, dice.uniform(0, 30))), max(dice.uniform(-9, 9), 0.0)) for _ in ids
    ]
    says = {
        i: Reporting(orderly, ms, consumed_per_s=done, failed_per_s=failed, answers=dice.random() < 0.9)
        for i, (ms, done, failed) in zip(ids, calls, strict=True)
    }
    return watched(snapshot, doing, says, looks=(*sorted(-dice.uniform(1, 90) for _ in range(dice.randint(0, 4))), 0))
