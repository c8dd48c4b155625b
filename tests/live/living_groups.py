"""Groups of real clients that live through events side by side, one of them beside `rmqlb record`.

They begin one after another, once the programs of all of them have loaded their classes; whoever wants a recording
waits for it. Another process compares each with its simulations, and a group that disagreed lives once more, while other
tests run.
"""

import multiprocessing
import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from threading import Barrier, Lock
from typing import Final, NamedTuple

from rmqlb.model.snapshot import Wanted
from rmqlb.sources.opening import open_source
from rmqlb.sources.source import Access
from tests.cli.run import command, environment
from tests.support.rebalance_comparison import compared, disagreements, report
from tests.support.recorded_groups import Recording

from .cluster import RocketMQCluster
from .jars import go_program
from .jvm import Java, wait_until
from .rebalance_log import START, Act, Group

TOPIC: Final = "OrderEvents"
WATCHED: Final = "concurrent"
"""The group that is recorded. Nobody else asks its members for what they own: two at a time would wait for each other."""
# The locks of a dead client are up 40 to 60 s after its death; then its queues are taken, and the group comes to rest.
_LOCKS_LIVE_ON: Final = 75.0
# So far apart that whoever learns of a new broker first has it for itself for a while.
_APART: Final = 5.0
# A poll of each is over by then, and the heartbeat a second after it.
_ALL_HAVE_LEARNT: Final = 27.0
# Until the recording of the join has ended.
_RECORDED: Final = 40.0
# Brokers forget a client 120 to 130 s after its last heartbeat, and the others rebalance within 20 s after that.
_LONG: Final = 170.0
# Nobody notices.
_SHORT: Final = 40.0
# Brokers have forgotten the second connection that a client may have opened when it went on, and the group is at rest.
_SECOND_CONNECTIONS_ARE_GONE: Final = 160.0
# For the slowest of some forty programs.
_ALL_ARE_READY: Final = 300.0
_TRIALS: Final = 900
_one_again_at_a_time: Final = Lock()

_JOIN_AND_CRASH: Final = (*START, Act("join", "c3"), Act("crash", "c2", _LOCKS_LIVE_ON))
_ALL: Final = (*START, Act("join", "c3"), Act("leave", "c1"), Act("crash", "c2"))
_SHORTLY: Final = (Act("freeze", "c2", _SHORT), Act("unfreeze", "c2"), Act("freeze", "c1", _SHORT), Act("crash", "c1"))
# Whom the first consumer asks is chance: told that it is alone or not, what follows must be foretold.
_ONE_BY_ONE: Final = tuple(Act("join", name, _APART) for name in ("c1", "c2", "c4"))

ACTS: Final[Mapping[str, Sequence[Act]]] = {
    "new broker": (*_ONE_BY_ONE, Act("broker-up", "broker-b", _ALL_HAVE_LEARNT)),
    "go, new broker": (*_ONE_BY_ONE, Act("broker-up", "broker-b", 2 * _ALL_HAVE_LEARNT)),
    "lite pull": _ALL,
    "go": _ALL,
    WATCHED: (*START, Act("join", "c3", _RECORDED), Act("leave", "c1"), Act("crash", "c2")),
    "orderly": _JOIN_AND_CRASH,
    "guests, orderly": _JOIN_AND_CRASH,
    "frozen shortly": (*START, *_SHORTLY),
    "version 4": (*START, Act("join", "c3"), Act("leave", "c1"), Act("freeze", "c2", _LONG), Act("unfreeze", "c2")),
    "frozen": (*START, Act("freeze", "c2", _LONG), Act("unfreeze", "c2", _SECOND_CONNECTIONS_ARE_GONE)),
}
"""What each group lives through, those that are done first before the others."""


class Watched(NamedTuple):
    """What rmqlb said of the watched group: a snapshot, and recordings, one of a join until the group was converged."""

    before: Path
    join: Path
    rest: Path


class Compared(NamedTuple):
    report: str
    disagreements: Sequence[str]


class LivingGroups(NamedTuple):
    lives: Mapping[str, Future[Recording]]
    compared: Mapping[str, Future[list[Compared]]]  # of two lives where the first one disagreed
    watched: Future[Watched]


def group_id(name: str) -> str:
    return f"{name.replace(', ', '-').replace(' ', '-')}-svc"


@contextmanager
def living_groups(cluster: RocketMQCluster, legacy: RocketMQCluster, folder: Path) -> Iterator[LivingGroups]:
    groups = {name: _group(name, cluster, legacy, folder) for name in ACTS}
    ready = Barrier(len(groups), timeout=_ALL_ARE_READY)
    simulating = ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), _give_way)
    with ThreadPoolExecutor(2 * len(groups) + 1) as threads, simulating:
        lives = {name: threads.submit(groups[name].live_through, ACTS[name], ready) for name in groups}
        beside = {name: threads.submit(_simulated, name, groups[name], lives[name], simulating) for name in groups}
        source = f"rocketmq://{cluster.name_server}"
        yield LivingGroups(lives, beside, threads.submit(_watched, source, lives[WATCHED], folder))


def _give_way() -> None:
    """Linux shares the processors among sessions first, and each JVM has one of its own."""
    os.setsid()
    with suppress(OSError):  # a kernel without such groups
        Path("/proc/self/autogroup").write_text("10")


def _simulated(name: str, group: Group, life: Future[Recording], simulating: ProcessPoolExecutor) -> list[Compared]:
    """What a client does once in thousands of times, such as losing an answer for 3 s, it does not do twice in a row."""
    first = simulating.submit(_beside_simulations, life.result()).result()
    if not first.disagreements or "new broker" in name:  # which cannot come again
        return [first]
    with _one_again_at_a_time:
        second = replace(group, name=f"{group.name}-again").live_through(ACTS[name], Barrier(1))
    return [first, simulating.submit(_beside_simulations, second).result()]


def _beside_simulations(life: Recording) -> Compared:
    found = compared(life, _TRIALS)
    assert all(each.changing for each in found)
    return Compared(report(life, found), disagreements(found))


def _group(name: str, cluster: RocketMQCluster, legacy: RocketMQCluster, folder: Path) -> Group:
    """Guests are clients of 5.1.4, the last that rebalance at each wake-up, and let a lock go that they give up slowly."""
    is_go = name.startswith("go")
    topic = ("NewGoOrders" if is_go else "NewOrders") if "new broker" in name else TOPIC
    source, log = Path(__file__).parent / "go" / "rebalancelog", folder / f"{group_id(name)}-log"
    guests = Java.prepare("5.1.4", folder / "guests") if "guests" in name else None
    return Group(
        legacy if name == "version 4" else cluster, group_id(name), topic, 8,
        orderly="orderly" in name, guests=guests, lite_pull=name == "lite pull",
        go=go_program(source, log) if is_go else None,
    )  # fmt: skip


def _watched(source: str, living: Future[Recording], folder: Path) -> Watched:
    """By processes of their own: other tests run meanwhile in this one."""
    before, join, rest = (folder / f"{name}.json" for name in Watched._fields)
    line = command("record", "-s", source, "-g", group_id(WATCHED), "-o", "json")
    wait_until(lambda: living.done() or _is_converged(source), _ALL_ARE_READY, lambda: "three members own all queues")
    if living.done():
        living.result()  # raises what kept the members from starting
    with before.open("w") as file:
        snapshot = command("fetch-routes", "-s", source, "-g", group_id(WATCHED))
        subprocess.run(snapshot, stdout=file, env=environment(), check=True)
    with join.open("w") as file:
        subprocess.run([*line, "--until", "converged", "--for", "2m"], stdout=file, env=environment(), check=True)
    with rest.open("w") as file:
        recording = subprocess.Popen(line, stdout=file, env=environment())
        try:
            living.result()
        finally:
            recording.send_signal(signal.SIGINT)
            status = recording.wait(60)
    assert status == 0
    return Watched(before, join, rest)


def _is_converged(source: str) -> bool:
    try:
        group = open_source(source, Access()).fetch(Wanted(group=group_id(WATCHED))).groups[group_id(WATCHED)]
    except Exception:  # noqa: BLE001 - the group is not there yet
        return False
    owners = [state.owners for queue, state in group.queues.items() if queue.topic == TOPIC]
    return len(group.client_ids or ()) == 3 and len(owners) == 16 and all(each and len(each) == 1 for each in owners)
