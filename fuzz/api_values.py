"""The public Python API with wrong values: wrong types, unknown names, huge numbers, NaN, None, bytes, text for lists.

Whatever comes in, a value or a `RmqlbError` must come out, in bounded time and memory. A call is made of its seed only:

    python fuzz/api_values.py --count 100000 --seed 1

prints each seed whose call ended otherwise, or took long, and ends with 1 if there was one. Structs take any value: it
is the functions that look at what they are given.
"""

# ruff: noqa: FBT003, BLE001, T201 - values of every kind, anything that is raised, and what was found

from __future__ import annotations

import argparse
import random
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import rmqlb as public
from rmqlb import RmqlbError
from rmqlb.engine.allocate.rules import NAMES
from rmqlb.engine.allocate.strategy import Settings
from rmqlb.model.send_scenario import Selector

_API: Any = public
"""Called as nobody should, so that types are of no use."""
ALLOWED: tuple[type[BaseException], ...] = (RmqlbError,)
SLOW_S = 20.0
Draw = random.Random
Make = Callable[[Draw], object]

_NAN, _INF = float("nan"), float("inf")
STRANGE: Sequence[object] = (
    *(None, True, False, 0, 1, -1, 2, 3, 7, 2**31, -(2**31), 2**63, 10**12, 10**30, -(10**30), 10**5000),
    *(0.0, 1.5, -2.5, 1e308, _NAN, _INF, -_INF, Fraction(1, 3), Fraction(-1), Fraction(10**40, 7), 1j),
    *("", "a", "b", "aa", "bogus", "x@1", "\ud800", "a\nb", "\0", "é" * 5, "z" * 5000, b"", b"a", bytearray(b"a")),
    *((), [], {}, set(), frozenset(), ("a",), ["a", "a"], {"a": 1}, {"a"}, [None], [[]], (1, 2, 3), range(3)),
    *(object(), dict, lambda *_: None, lambda *_: "a", lambda *_: -(10**30), Ellipsis, NotImplemented),
)


def _one_of(*values: object) -> Make:
    return lambda draw: draw.choice(values)


def _many(make: Make, most: int = 3) -> Make:
    def several(draw: Draw) -> object:
        values = [make(draw) for _ in range(draw.randint(0, most))]
        return values if draw.random() < 0.3 else tuple(values)

    return several


def _by_name(make: Make) -> Make:
    return lambda draw: {draw.choice(("a", "b", "x@1")): make(draw) for _ in range(draw.randint(0, 2))}


def _struct(name: str, /, **fields: Make) -> Make:
    """One of the public structs, most of its fields left as they are."""

    def made(draw: Draw) -> object:
        kind = _KINDS.get(name) or getattr(public, name)
        required = kind.__struct_fields__[: len(kind.__struct_fields__) - len(kind.__struct_defaults__)]
        chosen = [field for field in fields if field in required or draw.random() < 0.3]
        return kind(**{field: wrong(draw, fields[field]) for field in chosen})

    return made


def wrong(draw: Draw, make: Make) -> object:
    """What belongs there, or now and then something else."""
    return draw.choice(STRANGE) if draw.random() < 0.02 else make(draw)


_KINDS: dict[str, Any] = {"Settings": Settings, "Selector": Selector}
_BROKER = _one_of("a", "b")
_US = _one_of(0, 1, 1000, 500_000, 30_000_000, 60_000_000)
_QUEUE = _struct("MessageQueue", topic=_one_of("T"), broker_name=_BROKER, queue_id=_one_of(0, 1, 2, -1))
_ID = _one_of("x@1", "y@1", "z@2#7", "room-a@3")
_NUMBER = _one_of(0, 1, 2, 4, 4, 4, -3)


def _data(name: str) -> Make:
    return _struct(
        "QueueData",
        broker_name=_one_of(name),
        read_queue_nums=_NUMBER,
        write_queue_nums=_NUMBER,
        perm=_one_of(6, 6, 6, 4, 2, 0),
    )


def _broker(name: str) -> Make:
    addresses = _one_of(*[{0: f"{name}:1"}] * 5, {1: f"{name}:2"}, {}, {"0": 1})
    return _struct("BrokerData", cluster=_one_of("c"), broker_name=_one_of(name), broker_addrs=addresses)


def _both(make: Callable[[str], Make]) -> Make:
    return lambda draw: (make("a")(draw), make("b")(draw))


_ROUTE = _struct(
    "TopicRouteData",
    topic=_one_of("T"),
    queue_datas=_both(_data),
    broker_datas=_both(_broker),
    order_topic_conf=_one_of(None, None, None, "a:2", "a:1;b:1", "a", "a:999999999999"),
)


def _moment(draw: Draw) -> object:
    name, make = draw.choice((("us", _US), ("message", _one_of(1, 2, 5))))
    given: Any = {name: wrong(draw, make)}
    return _API.Moment(**given)


_LATENCY = _struct(
    "Latency",
    text=_one_of("1ms"),
    table=_one_of((1000,), [0, 700_000], (4_000_000,), ()),
    tail=_many(_one_of(1000, 5_000_000)),
)
_REACTIONS = (
    *(("refused", "refused", 0, 1000), ("timeout", "timeout", 0, 0), ("slow", "slow", 0, 4_000_000)),
    *(("status", "FLUSH_DISK_TIMEOUT", 10, 0), ("code", "SYSTEM_ERROR", 1, 0), ("code", "GO_AWAY", 1500, 0)),
    *(("read-only", "read-only", 0, 0), ("code", "X", 2, 0), ("status", "SLAVE_NOT_AVAILABLE", 11, 0)),
)


def _reaction(draw: Draw) -> object:
    fields: Any = [wrong(draw, _one_of(field)) for field in draw.choice(_REACTIONS)]
    return _API.Reaction(*fields)


_FAILURE = _struct("Failure", broker_name=_BROKER, reaction=_reaction, start=_moment, end=_moment, notices_us=_US)
_SCENARIO = _struct(
    "SendScenario",
    client_version=_one_of("5.5.0", "4.9.2", "4.7.1", "5.1.0", "4.9.8", "5.3.0"),
    mode=_one_of("sync", "sync", "sync", "async", "oneway"),
    latency_fault=_one_of(True, False),
    detector=_one_of(True, False),
    threads=_one_of(1, 2, 40),
    messages=_one_of(1, 5, 200),
    rate=_one_of(Fraction(10), 100, Fraction(1, 3), Fraction(10**7)),
    duration_us=_one_of(None, 1, 2_000_000),
    retries=_one_of(0, 2, 5),
    timeout_ms=_one_of(0, 1, 300, 3000),
    timeout_per_request_ms=_one_of(None, 0, 300),
    retry_not_store_ok=_one_of(True, False),
    failures=_many(_FAILURE),
    latencies=_by_name(_LATENCY),
    latency=_LATENCY,
    exclude=_one_of(frozenset(), {"a"}, ["b"]),
    start_at=_one_of(None, 0, 1),
    seed=_one_of(0, 1, -5, 2**40),
    first_poll_us=_one_of(None, 0, 1_000_000),
    poll_us=_one_of(1, 1_000_000, 30_000_000),
    latency_max=_one_of(None, (0, 1, 2, 3, 4, 5, 6)),
    not_available_duration=_one_of(None, (0, 0, 0, 0, 5, 2000, 9000)),
    overshoot_us=_one_of(None, 0, 1000),
    selector=_struct(
        "Selector", kind=_one_of("hash", "random", "machine-room"), key_hashes=_many(_one_of(1, -7, 2**31 - 1))
    ),
)
_RECEIVE_SCENARIO = _struct(
    "ReceiveScenario",
    client=_one_of("simple", "simple", "push", "pop"),
    consumers=_one_of(1, 2, 3),
    loops=_one_of(1, 2, 9),
    await_us=_one_of(1_000_000, 5_000_000, 30_000_000),
    invisible_us=_one_of(1, 10_000_000, 60_000_000),
    batch=_one_of(1, 32, 33),
    fifo=_one_of(True, False),
    consume_us=_one_of(0, 1000, 20_000_000),
    error_pause_us=_one_of(0, 1_000_000),
    round_trip_us=_one_of(0, 1000),
    rates=_many(
        _struct("QueueRate", broker_name=_BROKER, queue_id=_one_of(0, 1, 9), per_second=_one_of(Fraction(5), 2, -1))
    ),
    messages=_one_of(None, 1, 20),
    duration_us=_one_of(None, 1, 60_000_000),
    failures=_many(_FAILURE),
    crashes=_many(_struct("Crash", consumer=_one_of(1, 2, 5), at_us=_US)),
    seed=_one_of(0, 1, -5, 2**40),
)
_SETTINGS = _struct(
    "Settings",
    virtual_nodes=_one_of(0, 1, 10, -1),
    consumer_idcs=_one_of(None, frozenset({"room"})),
    config=_one_of(None, [], {}, "abc", {"x@1": []}),
    inner=_one_of("AVG", "CONFIG", "PIN"),
    broker_zones=_one_of(None, {"a": "z"}, "(.)", "(", len),
    client_zones=_one_of(None, {"x@1": "z"}, "(.)", str.upper),
    hosts=_one_of(None, frozenset({"x"})),
)
_STRATEGY = _one_of(*NAMES, "MACHINE_ROOM_NEARBY-AVG", "PIN-PIN-AVG", "AVG", "AVG", "bogus")
_MEMBERS = _struct(
    "Members",
    client_ids=_many(_ID, 5),
    strategy=_STRATEGY,
    settings=_SETTINGS,
    strategy_of=_by_name(_STRATEGY),
    subscribed=_one_of({}, {"x@1": {"T"}}, {"x@1": "T"}),
)
_EVENT = _struct(
    "Event",
    kind=_one_of("join", "leave", "crash", "host-loss", "broker-down", "broker-loss", "broker-up", "route-change"),
    at_us=_US,
    subject=_one_of("x@1", "n@9", "a", "T"),
    strategy=_one_of(None, "AVG_BY_CIRCLE"),
    broker_name=_one_of(None, "a"),
    read_queues=_NUMBER,
    write_queues=_NUMBER,
)
_GROUP_SCENARIO = _struct(
    "GroupScenario",
    events=_many(_EVENT),
    client_version=_one_of("5.5.0", "4.9.7"),
    orderly=_one_of(True, False),
    broadcasting=_one_of(True, False),
    timers=_struct("Timers", rebalance_wait_us=_one_of(10_000_000), heartbeat_us=_one_of(5_000_000, 30_000_000)),
    latency_us=_one_of(0, 1000),
    consume_us=_one_of(0, 1000),
    rates=lambda draw: (
        {_API.MessageQueue("T", "a", 0): wrong(draw, _one_of(0, 1.5, 100))} if draw.random() < 0.5 else {}
    ),
    consume_from=_one_of("CONSUME_FROM_FIRST_OFFSET", "CONSUME_FROM_TIMESTAMP"),
    until_us=_one_of(1, 90_000_000),
    patience_us=_one_of(0, 60_000_000),
    all_new=_one_of(True, False),
    seed=_one_of(0, -1, 2**40),
)


def _allocation(draw: Draw) -> dict[str, object]:
    settings = {
        "presorted": _one_of(True, False),
        "virtual_nodes": _one_of(0, 1, 10, -1),
        "consumer_idcs": _one_of(None, ["room"], "room"),
        "config": _one_of(None, [], {}, "abc", {"x@1": "abc"}),
        "inner": _one_of("AVG", "bogus", "CONSISTENT_HASH"),
        "broker_zones": _one_of(None, {"a": "z"}, "(.)", "(", len),
        "client_zones": _one_of(None, {}, "(.)", str.upper),
        "hosts": _one_of(None, ["x"], "x"),
    }
    return {name: wrong(draw, make) for name, make in settings.items() if draw.random() < 0.4}


def _allocate(draw: Draw) -> object:
    ids, strategy, queues = _many(_ID, 5), wrong(draw, _STRATEGY), wrong(draw, _many(_QUEUE, 5))
    settings: Any = _allocation(draw)
    if draw.random() < 0.5:
        return _API.allocate(strategy, queues, wrong(draw, ids), **settings)
    return _API.allocate_for(wrong(draw, _ID), strategy, queues, wrong(draw, ids), **settings)


def _send(draw: Draw) -> object:
    route, scenario = wrong(draw, _ROUTE), wrong(draw, _SCENARIO)
    if draw.random() < 0.3:
        trials, precision = wrong(draw, _one_of(2, 5)), wrong(draw, _one_of(None, 0.1))
        return _API.simulate_trials(route, scenario, trials, precision=precision)
    trial = wrong(draw, _one_of(0, 1))
    return _API.simulate_send(route, scenario, trial=trial)


def _group(draw: Draw) -> object:
    given: Any = (wrong(draw, _one_of("g", None)), wrong(draw, _MEMBERS), wrong(draw, _many(_ROUTE, 2)))
    scenario: Any = wrong(draw, _GROUP_SCENARIO)
    if draw.random() < 0.2:
        return _API.simulate_group_trials(*given, scenario, wrong(draw, _one_of(1, 2)))
    return _API.simulate_group(*given, scenario, trial=wrong(draw, _one_of(0, 1)))


def _receive(draw: Draw) -> object:
    route, scenario = wrong(draw, _ROUTE), wrong(draw, _RECEIVE_SCENARIO)
    if draw.random() < 0.2:
        return _API.receives_within(route, scenario, wrong(draw, _one_of(1_000_000, 20_000_000, 1)))
    return _API.simulate_receive(route, scenario, trial=wrong(draw, _one_of(0, 1)), trace=draw.random() < 0.5)


def _pick(draw: Draw) -> object:
    strategy: Any = _API.MQFaultStrategy(
        wrong(draw, _one_of(True, True, False)),
        wrong(draw, _one_of(lambda: 0, lambda: 10**15, None)),
        wrong(draw, _one_of("5.5.0", "4.9.7", "4.7.1", "5.1.2")),
        wrong(draw, _one_of(0, 2**31 - 1, -1)),
    )
    info: Any = _API.TopicPublishInfo(
        wrong(draw, _many(_QUEUE, 4)),
        wrong(draw, _one_of(-1, 0, 2**31 - 1)),
        wrong(draw, _one_of(None, {"a": 2}, {})),
        wrong(draw, _one_of(None, lambda: 5)),
    )
    for _ in range(4):
        strategy.update_fault_item(
            wrong(draw, _BROKER), wrong(draw, _one_of(0, 700, 10**6)), draw.random() < 0.5, draw.random() < 0.5
        )
        strategy.is_available(wrong(draw, _BROKER))
        strategy.select_one_message_queue(wrong(draw, lambda _: info), wrong(draw, _one_of(None, "a")), True)
    return info


def _selector(draw: Draw) -> object:
    queues: Any = wrong(draw, _many(_QUEUE, 4))
    arg: Any = wrong(draw, _one_of("key", 5, 2**40, 1.5, True))
    _API.select_by_machine_room(queues, arg)
    random_: Any = wrong(draw, lambda _: _API.JavaRandom(wrong(draw, _one_of(1, -1))))
    return _API.select_by_random(queues, random_), _API.select_by_hash(queues, arg)


def _parse(draw: Draw) -> object:
    documents: tuple[object, ...] = (
        *("{}", '{"queueDatas":[]}', '{"queueDatas":[{"brokerName":"a","readQueueNums":1e400}]}', "[" * 3000, b"\xff"),
        *({"queueDatas": None}, {"brokerDatas": [1]}, {"queueDatas": [{}]}, {"queueDatas": object()}),
    )
    return _API.parse_route(wrong(draw, _one_of(*documents)), wrong(draw, _one_of("T")))


CALLS = (_allocate, _send, _send, _group, _receive, _pick, _selector, _parse)


def tried(seed: int) -> bool:
    """One call, made of the seed; True when it is refused.

    Raises:
        Exception: anything that is neither a value nor one of ours.
    """
    draw = random.Random(seed)  # noqa: S311 - wrong values, not secrets
    try:
        draw.choice(CALLS)(draw)
    except ALLOWED as error:
        str(error).encode("utf-8", "backslashreplace")
        return True
    return False


def main() -> int:
    """Try so many seeds, and tell what they end in."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=10_000, help="how many calls")
    parser.add_argument("--seed", type=int, default=1, help="of the first call; the next has the next")
    asked = parser.parse_args()
    refused = found = 0
    for seed in range(asked.seed, asked.seed + asked.count):
        began = time.monotonic()
        try:
            refused += tried(seed)
        except Exception:
            found += 1
            print(f"seed {seed}:\n{traceback.format_exc()}", file=sys.stderr)
        took = time.monotonic() - began
        if took > SLOW_S:
            found += 1
            print(f"seed {seed}: {took:.1f} s", file=sys.stderr)
    print(f"{asked.count} calls, {refused} refused, {found} found")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
