"""The public Python API, first used by many threads at once: a program that `test_first_calls.py` runs.

`python -X faulthandler -m tests.hardening.first_calls HOW SEED`. What is made on its first use is to be used while
another thread makes it: the interpreter changes threads as often as it can.
"""

from __future__ import annotations

import random
import sys
import threading
import time
from collections.abc import Callable
from fractions import Fraction

import rmqlb

HOW = ("route", "calls", "names")
"""`route`: threads read a route, one soon after the other, and pause in each function of Python that msgspec calls
meanwhile. `calls`: all make the same call at once, then the next. `names`: each asks for all names, and makes all calls,
in an order of its own; for the others the names are there before."""
THREADS = 16
INTERVAL = 1e-6
"""Seconds until another thread may go on."""
_PAUSE = 1e-4
_APART = 0.1
"""Within so many seconds the threads of `route` begin: as long as one of them takes with its pauses."""
_STRICT = (
    b'{"brokerDatas":[{"brokerAddrs":{"0":"127.0.0.1:10911"},"brokerName":"broker-a","cluster":"c"}],'
    b'"queueDatas":[{"brokerName":"broker-a","perm":6,"readQueueNums":4,"writeQueueNums":4}]}'
)
_LOOSE = _STRICT.replace(b'{"0":', b"{0:")
"""As RocketMQ's own JSON has it."""
_IDS = ("10.0.0.9@1", "10.0.0.10@1")


def strict_route() -> object:
    """A route in strict JSON."""
    return rmqlb.parse_route(_STRICT, "Orders")


def loose_route() -> object:
    """The same in RocketMQ's dialect."""
    return rmqlb.parse_route(_LOOSE, "Orders")


def shares() -> object:
    """Those of each strategy that needs no settings."""
    queues = [rmqlb.MessageQueue("Orders", "broker-a", queue_id) for queue_id in range(4)]
    return [rmqlb.allocate(name, queues, _IDS) for name in ("AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH")]


def send() -> object:
    """Messages, with a failure."""
    failure = rmqlb.Failure("broker-a", rmqlb.Reaction("refused", "refused", cost_us=1000))
    return rmqlb.simulate_send(_route(), rmqlb.SendScenario(messages=20, failures=(failure,)))


def send_trials() -> object:
    """Messages by the kernels, which need numpy."""
    return rmqlb.simulate_trials(_route(), rmqlb.SendScenario(messages=20), trials=3)


def group() -> object:
    """A group, and what happens to it."""
    scenario = rmqlb.GroupScenario((rmqlb.Event("crash", 3_000_000, _IDS[0]),))
    return rmqlb.simulate_group("order-svc", rmqlb.Members(_IDS, "AVG"), [_route()], scenario)


def group_trials() -> object:
    """Nothing happens to it, many times."""
    members = rmqlb.Members(_IDS, "AVG")
    return rmqlb.simulate_group_trials("order-svc", members, [_route()], rmqlb.GroupScenario(()), trials=2)


def receive() -> object:
    """Messages for consumers that receive, one of which dies."""
    rates = (rmqlb.QueueRate("broker-a", 0, Fraction(5)),)
    crash = rmqlb.Crash(1, 2_000_000)
    scenario = rmqlb.ReceiveScenario(consumers=2, rates=rates, messages=20, crashes=(crash,))
    return rmqlb.simulate_receive(_route(), scenario), rmqlb.receives_within(_route(), scenario, 1_000_000)


def picks() -> object:
    """A producer's, by turns and by a key."""
    queues = _route().publish_queues()
    strategy = rmqlb.MQFaultStrategy(send_latency_fault_enable=True, client_version="5.5.0")
    info = rmqlb.TopicPublishInfo(queues, send_which_queue=1)
    return (
        strategy.select_one_message_queue(info, None),
        rmqlb.select_by_hash(queues, "order-1"),
        rmqlb.go_round_robin(queues).select(),
    )


CALLS = (strict_route, loose_route, shares, send, send_trials, group, group_trials, receive, picks)


def _route() -> rmqlb.TopicRouteData:
    return rmqlb.TopicRouteData(
        "Orders",
        (rmqlb.QueueData("broker-a", 4, 4, 6, 0),),
        (rmqlb.BrokerData("c", "broker-a", {0: "127.0.0.1:10911"}),),
    )


def _name(name: str) -> Callable[[], object]:
    def ask() -> object:
        return getattr(rmqlb, name)

    ask.__name__ = name
    return ask


def _told(call: Callable[[], object]) -> str:
    try:
        return repr(call())
    except BaseException as error:  # noqa: BLE001 - whatever it is, it is told
        sys.stderr.write(f"{call.__name__}: {type(error).__name__}: {error}\n")
        return repr(error)


def main(how: str, seed: str) -> int:
    """How many answers there are beyond one of each kind: errors, and what one thread got and another did not."""
    sys.setswitchinterval(INTERVAL)
    draw = random.Random(seed)
    names = tuple(map(_name, rmqlb.__all__))
    work = {"route": (strict_route,), "calls": CALLS, "names": (*names, *CALLS)}[how]
    orders = [draw.sample(work, len(work)) for _ in range(THREADS)]
    if how != "names":
        orders = orders[:1] * THREADS
        for ask in names:
            ask()
    if how == "route":
        threading.setprofile(lambda *_: time.sleep(_PAUSE))
    together = threading.Barrier(THREADS)
    answers: set[tuple[str, str]] = set()

    def use(order: list[Callable[[], object]], delay: float) -> None:
        for at, call in enumerate(order):
            if how == "calls" or at == 0:
                together.wait()
            time.sleep(delay)
            answers.add((call.__name__, _told(call)))

    delays = [draw.uniform(0, _APART) if how == "route" else 0 for _ in orders]
    threads = [threading.Thread(target=use, args=each) for each in zip(orders, delays, strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return len(answers) - len(work)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
