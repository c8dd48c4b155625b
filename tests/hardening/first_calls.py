"""The Python API, first used by many threads at once: `python -X faulthandler -m tests.hardening.first_calls HOW SEED`.

What is made on its first use is to be used while another thread makes it: the interpreter changes threads as often as it
can. HOW is `route` (threads read a route one soon after the other, and pause in each Python function that msgspec calls)
or `calls` (each thread makes all calls in an order of its own).
"""

import random
import sys
import threading
import time

import rmqlb

HOW = ("calls", "route")
THREADS = 16
INTERVAL = 1e-6
"""Seconds until another thread may go on."""
_STRICT = (
    b'{"brokerDatas":[{"brokerAddrs":{"0":"127.0.0.1:10911"},"brokerName":"broker-a","cluster":"c"}],'
    b'"queueDatas":[{"brokerName":"broker-a","perm":6,"readQueueNums":4,"writeQueueNums":4}]}'
)
_IDS = ("10.0.0.9@1", "10.0.0.10@1")


def strict_route() -> rmqlb.TopicRouteData:
    return rmqlb.parse_route(_STRICT, "Orders")


def loose_route() -> rmqlb.TopicRouteData:
    return rmqlb.parse_route(_STRICT.replace(b'{"0":', b"{0:"), "Orders")


def shares() -> object:
    queues = [rmqlb.MessageQueue("Orders", "broker-a", queue_id) for queue_id in range(4)]
    return [rmqlb.allocate(name, queues, _IDS) for name in ("AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH")]


def send() -> object:
    return rmqlb.simulate_send(strict_route(), rmqlb.SendScenario(messages=20))


def group() -> object:
    scenario = rmqlb.GroupScenario((rmqlb.Event("crash", 3_000_000, _IDS[0]),))
    return rmqlb.simulate_group("order-svc", rmqlb.Members(_IDS, "AVG"), [strict_route()], scenario)


CALLS = (strict_route, loose_route, shares, send, group)


def main(how: str, seed: str) -> int:
    """How many answers there are beyond one of each call: errors, and what one thread got and another did not."""
    sys.setswitchinterval(INTERVAL)
    draw = random.Random(seed)
    work = CALLS if how == "calls" else CALLS[:1]
    if how == "route":
        threading.setprofile(lambda *_: time.sleep(1e-4))
    together = threading.Barrier(THREADS)
    answers: set[tuple[str, str]] = set()

    def use(seed: float) -> None:
        together.wait()
        time.sleep(seed / 10 if how == "route" else 0)
        for call in random.Random(seed).sample(work, len(work)):
            try:
                answers.add((call.__name__, repr(call())))
            except BaseException as error:  # noqa: BLE001 - whatever it is, it is told
                sys.stderr.write(f"{call.__name__}: {type(error).__name__}: {error}\n")
                answers.add((call.__name__, repr(error)))

    threads = [threading.Thread(target=use, args=(draw.random(),)) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return len(answers) - len(work)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
