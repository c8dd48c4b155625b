"""Healthy groups of all kinds over several looks: busy, idle, in a burst, draining, just rebalancing, clocks that differ."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import floor
from random import Random

from msgspec.structs import replace

from rmqlb.model.group import ConsumerGroup, MemberReport
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.snapshot import ClusterSnapshot
from tests.engine.diagnose.consuming import OFFSET, Doing, Reporting, ms, owned, watched

Kind = Callable[[Random, float], Doing]
Doings = dict[tuple[str, MessageQueue], Doing]

LOOKS = (
    (0.0,),
    (-10.0, 0.0),
    (-20.0, -10.0, 0.0),
    (-30.0, -20.0, -10.0, 0.0),
    (-3.0, -2.0, -1.0, 0.0),
    (-600.0, -300.0, 0.0),
)
HANDOVER_S = (-14.0, -12.0)
"""When a rebalance takes a queue from one consumer, and when another one has it."""


def healthy_looks(snapshot: ClusterSnapshot, name: str, random: Random) -> tuple[ClusterSnapshot, ...]:
    """The looks at a healthy group of the snapshot, whose consumers do what the random numbers say."""
    reports = {i: _since(report, -7200) for i, report in snapshot.groups[name].reports.items()}
    kinds = random.sample((steady, idle, burst, draining, arrived), random.randint(1, 3))
    calls_s = random.choice((0.005, 0.05, 0.5, 15.0))
    doing: Doings = {
        (client_id, queue): _doing(random, calls_s, kinds)
        for client_id in reports
        for queue in owned(snapshot, client_id, name)
    }
    if len(reports) > 1 and random.random() < 0.2:
        reports, doing = _rebalancing(reports, doing, random)
    orderly = random.random() < 0.3
    reporting = {
        client_id: Reporting(
            orderly=orderly,
            call_ms=calls_s * 1000,
            skew_s=random.choice((0.0, 0.0, random.uniform(-3600, 3600))),
        )
        for client_id in reports
    }
    if orderly:
        doing = {key: replace(does, locked_at=_locked(does, random.uniform(0, 20))) for key, does in doing.items()}
    group = _listed_everywhere(snapshot, replace(snapshot.groups[name], reports=reports))
    return watched(replace(snapshot, groups={name: group}), doing, reporting, looks=random.choice(LOOKS), name=name)


def _doing(random: Random, calls_s: float, kinds: Sequence[Kind]) -> Doing:
    return random.choice(kinds)(random, calls_s)


def steady(random: Random, calls_s: float) -> Doing:
    """As many messages as the listener can take."""
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
    """Nothing arrives."""
    return Doing(
        end=lambda _: 5_000,
        done=lambda _: 5_000,
        pulled=lambda _: 5_000,
        consumed_at=lambda _: -4000,
        pulled_at=_renewed(random.uniform(0, 20), 20),
        locked_at=lambda _: -5000,
        stored_at=lambda _: -4000,
    )


def arrived(random: Random, calls_s: float) -> Doing:
    """After an hour the first message, which the listener has now."""
    at, does = -random.uniform(0, calls_s), idle(random, calls_s)
    return replace(
        does,
        end=lambda t: 5_000 + (t >= at),
        pulled=lambda t: 5_000 + (t >= at),
        pulled_at=lambda t: max(does.pulled_at(t), at if t >= at else -4000),
    )


def burst(random: Random, _: float) -> Doing:
    """For a minute more messages arrive than are consumed."""
    begin, arriving, consumed = -random.uniform(0, 60), 400, 250

    def end(t: float) -> float:
        return 5_000 + max(arriving * (t - begin), 0)

    def done(t: float) -> float:
        return 5_000 + max(consumed * (t - begin - 0.01), 0)

    return Doing(
        end=end,
        done=done,
        pulled=lambda t: min(end(t), done(t) + 1_020),
        consumed_at=lambda t: t - 0.004 if t > begin + 0.02 else -4000,
        pulled_at=lambda t: t - 0.01,
        locked_at=lambda _: -5000,
        stored_at=lambda offset: begin + (offset - 5_000) / arriving if offset >= 5_000 else -4000,
    )


def draining(random: Random, _: float) -> Doing:
    """A backlog that becomes less, so that the consumer holds as much as it may."""
    backlog, arriving, consumed = random.choice((20_000, 2_000_000)), 10, random.choice((15, 300))

    def end(t: float) -> float:
        return 10_000_000 + arriving * t

    def done(t: float) -> float:
        return min(10_000_000 - backlog + consumed * t, end(t) - 1)

    return Doing(
        end=end,
        done=done,
        pulled=lambda t: min(end(t), done(t) + 1_020),
        consumed_at=lambda t: t - 0.003,
        pulled_at=lambda t: t - 0.01,
        locked_at=lambda _: -5000,
        stored_at=lambda offset: (offset - 10_000_000) / arriving,
    )


def _renewed(phase: float, every_s: float) -> OFFSET:
    return lambda t: every_s * floor((t - phase) / every_s) + phase


def _listed_everywhere(snapshot: ClusterSnapshot, group: ConsumerGroup) -> ConsumerGroup:
    """Each broker of its topics lists the consumers as the first one does."""
    (first, *_) = group.views or ()
    brokers = [b for topic in group.own_topics or () for b in snapshot.routes[topic].route.broker_datas]
    addresses = dict.fromkeys(address for broker in brokers if (address := broker.address) is not None)
    return replace(group, views=tuple(replace(first, broker_addr=address) for address in addresses))


def _locked(does: Doing, phase: float) -> OFFSET:
    renewed = _renewed(phase, 20)
    return lambda t: max(renewed(t), does.since)


def _since(report: MemberReport, t: float) -> MemberReport:
    return replace(report, started_at=ms(t))


def _rebalancing(
    reports: dict[str, MemberReport], doing: Doings, random: Random
) -> tuple[dict[str, MemberReport], Doings]:
    """A consumer has started 20 s before and takes its queues from another one."""
    new, old = random.sample(sorted(reports), 2)
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
    return {**reports, new: _since(reports[new], -20)}, moved
