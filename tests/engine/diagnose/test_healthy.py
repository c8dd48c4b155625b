import os
from collections import Counter
from math import floor
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from rmqlb.engine.allocate.rules import WITHOUT_SETTINGS
from rmqlb.model.diagnosis import CODES
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.snapshot import ClusterSnapshot
from tests.engine.diagnose.cases import Looks
from tests.engine.diagnose.running import (
    OFFSET,
    Doing,
    Process,
    Reporting,
    diagnosed,
    grave,
    of_looks,
    owned,
    running,
    watched,
)
from tests.support.builders import route

GROUPS = int(os.environ.get("HEALTHY_GROUPS", "600"))
"""`.ci/full` asks for more."""
Doings = dict[tuple[str, MessageQueue], Doing]
LOOKS = ((0,), (-10, 0), (-20, -10, 0), (-30, -20, -10, 0), (-3, -2, -1, 0), (-600, -300, 0))
HANDOVER_S = (-14.0, -12.0)
"""When a rebalance takes a queue from one consumer, and when another one has it."""
NAMES = "abcxyz019.@-_%é漢"


def test_healthy_groups_have_no_finding_above_info() -> None:
    found = {}
    for number in range(GROUPS):
        looks = healthy_looks(Random(number))
        found[number] = of_looks(looks)
        if number % 5 == 0:  # without what consumers report of their queues
            bare = {i: replace(r, evidence=None) for i, r in looks[-1].groups["g"].reports.items()}
            last = replace(looks[-1], groups={"g": replace(looks[-1].groups["g"], reports=bare)})
            assert grave(diagnosed(last)) == []
    assert {number: grave(each) for number, each in found.items() if grave(each)} == {}
    decided = Counter(code for each in found.values() for code in each.checked)
    assert all(decided[code] > 100 for code in CODES), decided


def healthy_looks(random: Random) -> Looks:
    sizes = [(random.randint(1, 6), random.randint(1, 6)) for _ in range(random.randint(1, 3))]
    routes = tuple(route(f"T{n}", a=a, b=b) for n, (a, b) in enumerate(sizes))
    topics, strategy = tuple(each.topic for each in routes), random.choice(WITHOUT_SETTINGS)
    ids = {"".join(random.choices(NAMES, k=random.randint(1, 9))) for _ in range(random.randint(1, 6))}
    new = random.choice(sorted(ids)) if len(ids) > 1 and random.random() < 0.2 else ""
    processes = (Process(i, strategy, topics, age_s=20 if i == new else 7200) for i in sorted(ids))
    snapshot = running(*processes, routes=routes)
    kinds = random.sample((steady, idle, behind, arrived), random.randint(1, 3))
    calls_s = random.choice((0.005, 0.05, 0.5, 15.0))
    doing: Doings = {(i, q): random.choice(kinds)(random, calls_s) for i in ids for q in owned(snapshot, i)}
    if new:
        doing = rebalancing(doing, new, random.choice(sorted(ids - {new})))
    orderly = random.random() < 0.3
    reporting = {
        client_id: Reporting(orderly, calls_s * 1000, random.choice((0.0, 0.0, random.uniform(-3600, 3600))))
        for client_id in ids
    }
    if orderly:
        doing = {key: replace(does, locked_at=_locked(does, random.uniform(0, 20))) for key, does in doing.items()}
    return watched(snapshot, doing, reporting, looks=random.choice(LOOKS))


def steady(random: Random, calls_s: float) -> Doing:
    per_s, phase = random.choice((0.02, 0.5, 10, 500)), random.random()
    begin = -4000.0

    def end(t: float) -> float:
        return floor(per_s * (t - begin) + phase)

    def done(t: float) -> float:
        return end(t - calls_s)

    def stored_at(offset: float) -> float:
        return begin + (offset + 1 - phase) / per_s

    return Doing(
        end=end,
        done=done,
        pulled=lambda t: end(t - 0.002),
        consumed_at=lambda t: stored_at(done(t) - 1) + calls_s,
        pulled_at=lambda t: max(stored_at(end(t) - 1), _renewed(phase * 20, 20)(t)),
        locked_at=lambda _: begin,
        stored_at=stored_at,
    )


def idle(random: Random, _: float) -> Doing:
    return Doing(
        end=lambda _: 5_000, done=lambda _: 5_000, pulled=lambda _: 5_000, consumed_at=lambda _: -4000,
        pulled_at=_renewed(random.uniform(0, 20), 20), locked_at=lambda _: -5000, stored_at=lambda _: -4000,
    )  # fmt: skip


def arrived(random: Random, calls_s: float) -> Doing:
    """After an hour the first message, which the listener has now."""
    at, does = -random.uniform(0, calls_s), idle(random, calls_s)
    return replace(
        does,
        end=lambda t: 5_000 + (t >= at),
        pulled=lambda t: 5_000 + (t >= at),
        pulled_at=lambda t: max(does.pulled_at(t), at if t >= at else -4000),
    )


def behind(random: Random, _: float) -> Doing:
    """A burst that has just begun, or a backlog that becomes smaller."""
    begin, arriving, consumed = random.choice(
        ((-random.uniform(0, 60), 400, 250), (-4000.0, 10, 15), (-4000.0, 10, 300))
    )
    backlog = 0 if arriving == 400 else random.choice((200_000, 2_000_000))

    def end(t: float) -> float:
        return 5_000 + backlog + max(arriving * (t - begin), 0)

    def done(t: float) -> float:
        return min(5_000 + max(consumed * (t - begin - 0.01), 0), end(t))

    return Doing(
        end=end, done=done, pulled=lambda t: min(end(t), done(t) + 1_020),
        consumed_at=lambda t: t - 0.004 if t > begin + 0.02 else -4000, pulled_at=lambda t: t - 0.01,
        locked_at=lambda _: -5000,
        stored_at=lambda offset: begin + max(offset - 5_000 - backlog, 0) / arriving if offset >= 5_000 else -4000,
    )  # fmt: skip


def _renewed(phase: float, every_s: float) -> OFFSET:
    return lambda t: every_s * floor((t - phase) / every_s) + phase


def _locked(does: Doing, phase: float) -> OFFSET:
    renewed = _renewed(phase, 20)
    return lambda t: max(renewed(t), does.since)


def rebalancing(doing: Doings, new: str, old: str) -> Doings:
    gives, takes = HANDOVER_S
    moved: Doings = {}
    for (client_id, queue), does in doing.items():
        if client_id != new:
            moved[client_id, queue] = does
            continue
        moved[old, queue] = replace(does, until=gives)
        moved[new, queue] = replace(
            does,
            since=takes,
            done=lambda t, does=does: does.done(gives) if t < takes + 0.5 else does.done(t),
            pulled=lambda t, does=does: does.done(gives) if t < takes + 0.4 else does.pulled(t),
            consumed_at=lambda t, does=does: max(does.consumed_at(t), takes),
            pulled_at=lambda t, does=does: max(does.pulled_at(t), takes),
            locked_at=lambda _: takes,
        )
    return moved


STRATEGIES = WITHOUT_SETTINGS
SIZES = st.tuples(st.integers(1, 9), st.integers(1, 9))


@st.composite
def planted(draw: st.DrawFn, *faults: str) -> ClusterSnapshot:
    topics = draw(st.lists(SIZES, min_size=2, max_size=3))
    routes = tuple(route(f"T{n}", a=a, b=b) for n, (a, b) in enumerate(topics))
    names = tuple(each.topic for each in routes)
    ids = draw(st.lists(st.text("abcxyz019.@", min_size=1, max_size=6), min_size=3, max_size=7, unique=True))
    strategy = draw(st.sampled_from(STRATEGIES))
    processes = [Process(client_id, strategy, names) for client_id in ids]
    for place, fault in enumerate(faults):
        one = processes[place]
        if fault == "duplicate-client-id":
            processes.append(one)
        elif fault == "mixed-strategies":
            other = draw(st.sampled_from([name for name in STRATEGIES if name != strategy]))
            processes[place] = replace(one, strategy=other)
        elif fault == "subscription-mismatch":
            processes[place] = replace(one, topics=names[:-1])
        elif fault == "split-consumer-view":
            asked = draw(st.lists(st.sampled_from("ab"), min_size=len(processes), max_size=len(processes)))
            processes = [replace(each, asks=broker) for each, broker in zip(processes, asked, strict=True)]
            processes[place] = replace(one, unlisted=("b",))  # it cannot ask a broker that does not know it
        else:
            processes[place] = replace(one, cut=("b",))
    return running(*processes, routes=routes)


def is_disturbed(snapshot: ClusterSnapshot) -> bool:
    return any(len(state.owners or ()) != 1 for state in snapshot.groups["g"].queues.values())


def check(snapshot: ClusterSnapshot, *faults: str) -> None:
    found = diagnosed(snapshot)
    codes = set(grave(found))
    assert codes == set(faults)
    if is_disturbed(snapshot):
        first = found.findings[0]
        assert first.severity == "error"
        assert first.explains is not None
        assert first.explains.reproduces is True


FAULTS = ("duplicate-client-id", "mixed-strategies", "subscription-mismatch", "split-consumer-view")


@given(st.data(), st.lists(st.sampled_from(FAULTS), max_size=2, unique=True))
@settings(max_examples=300)
def test_planted_faults_are_found_and_no_other(data: st.DataObject, faults: list[str]) -> None:
    snapshot = data.draw(planted(*faults))
    check(snapshot, *faults)
    explains = [each.explains.fixes_all for each in diagnosed(snapshot).findings if each.explains is not None]
    assert len(faults) != 1 or explains == [True]


@given(st.data())
@settings(max_examples=100)
def test_a_consumer_that_does_not_reach_a_broker_is_found_by_the_queues_that_it_lacks(data: st.DataObject) -> None:
    snapshot = data.draw(planted("broker-unreachable-from-consumer"))
    lacks = is_disturbed(snapshot)  # otherwise it has no queue there, and only the lists show it
    check(snapshot, "broker-unreachable-from-consumer" if lacks else "split-consumer-view")
