"""What a generated fleet looks like, in numbers; what is left open follows from what is given."""

from __future__ import annotations

from datetime import date
from random import Random

import msgspec

from rmqlb.errors import UsageError
from rmqlb.model.snapshot import suggestion

MOST_CONSUMERS = 64
MOST_QUEUES = 256
"""Of one topic."""

STRATEGIES = {"AVG": 80, "AVG_BY_CIRCLE": 10, "CONSISTENT_HASH": 10}
"""What consumers run, and how many of a hundred groups do."""
LAYOUTS = ("json.gz", "json", "jsonl")
_QUEUES_A_PAIR = 20
_ROWS_A_CLUSTER = 150_000
"""Keeps a night's snapshot well below the largest document that rmqlb reads."""


class FleetShape(msgspec.Struct, frozen=True, kw_only=True):
    """A fleet to generate.

    Attributes:
        seed: equal seeds (and numpy versions) give equal bytes.
        clusters: None for 3, or as many as keep every snapshot readable.
        brokers: in each cluster.
        topics, groups: in the whole fleet; None for a fifth of the pairs, and for two in five pairs.
        pairs: (group, topic) subscriptions in the whole fleet, `%RETRY%` topics not counted.
        queues: (group, topic, queue) rows a night, when all brokers are up; None for what the draw gives.
        consumers: of a group, on average; between 1 and 64 each.
        days: nights, one snapshot of each cluster a night.
        faults, odd_names, churn: share, 0 to 1, of groups with a fault, of odd names, of groups that change in a night.
        other_clients: share of groups, among those without a fault, with Go, C++, mixed, POP or gRPC clients.
        observed: owners and offsets too.
        retry_queues: also the groups' `%RETRY%` queues, one on each broker.
        layout: json.gz or json (a file a night), or jsonl (a file a cluster, a line a night).
    """

    seed: int = 0
    clusters: int | None = None
    brokers: int = 4
    topics: int | None = None
    groups: int | None = None
    pairs: int | None = None
    queues: int | None = None
    consumers: float = 5.0
    days: int = 1
    first: date = date(2026, 11, 1)
    faults: float = 0.15
    odd_names: float = 0.02
    churn: float = 0.1
    other_clients: float = 0.1
    observed: bool = True
    retry_queues: bool = True
    bad_files: int = 0
    layout: str = "json.gz"

    def __post_init__(self) -> None:
        for name in ("clusters", "topics", "groups", "pairs", "queues"):
            _within(name, getattr(self, name), 1, 10**9)
        _within("seed", self.seed, 0, 2**63 - 1)
        _within("brokers", self.brokers, 1, 200)
        _within("consumers", self.consumers, 1, MOST_CONSUMERS)
        _within("days", self.days, 1, 3660)
        _within("bad files", self.bad_files, 0, 100_000)
        for name in ("faults", "odd_names", "churn", "other_clients"):
            _within(name.replace("_", " "), getattr(self, name), 0, 1)
        if self.layout not in LAYOUTS:
            raise UsageError(f"unknown layout {self.layout}", hint=suggestion("layouts", self.layout, LAYOUTS))
        if date.max.toordinal() - self.first.toordinal() < self.days:
            raise UsageError(f"{self.days} days from {self.first} end after the year 9999")
        _check_sizes(sizes(self))


class Sizes(msgspec.Struct, frozen=True):
    """A fleet's numbers with nothing left open but `queues`; the attributes are those of `FleetShape`."""

    clusters: int
    topics: int
    groups: int
    pairs: int
    queues: int | None


def sizes(shape: FleetShape) -> Sizes:
    """What is asked for, and what follows for the rest."""
    pairs = shape.pairs
    if pairs is None and shape.groups is not None:
        pairs = shape.groups * 5 // 2
    if pairs is None:
        pairs = 500 if shape.queues is None else max(shape.queues // _QUEUES_A_PAIR, 1)
    groups = shape.groups or max(pairs * 2 // 5, 1)
    topics = shape.topics or max(pairs // 5, 1)
    rows = shape.queues or pairs * _QUEUES_A_PAIR
    clusters = shape.clusters or min(max(3, -(-rows // _ROWS_A_CLUSTER)), groups, topics)
    asked = Sizes(clusters, topics, groups, pairs, shape.queues)
    if shape.pairs is None and topics >= clusters <= groups <= pairs:
        return msgspec.structs.replace(asked, pairs=min(pairs, sum(_room(asked))))
    return asked


def chance(seed: int, *purpose: object) -> Random:
    """The random numbers of one purpose; the same ones in every run."""
    return Random("/".join(map(str, (seed, *purpose))))


def share_out(total: int, clusters: int) -> list[int]:
    """So many things over the clusters, the first ones getting up to twice as many as the last."""
    weights = [2 - number / max(clusters - 1, 1) for number in range(clusters)]
    rest = total - clusters
    parts = [1 + int(rest * weight / sum(weights)) for weight in weights]
    for number in range(total - sum(parts)):
        parts[number] += 1
    return parts


def _check_sizes(asked: Sizes) -> None:
    for name, number in (("topics", asked.topics), ("groups", asked.groups)):
        if number < asked.clusters:
            raise UsageError(f"{number} {name} in {asked.clusters} clusters", hint="each cluster needs one")
    if asked.pairs < asked.groups:
        raise UsageError(f"{asked.pairs} pairs for {asked.groups} groups", hint="each group needs a topic")
    if asked.pairs > sum(_room(asked)):
        raise UsageError(
            f"{asked.pairs} pairs are more than {asked.groups} groups and {asked.topics} topics in {asked.clusters} "
            "clusters make",
            hint="ask for more topics or groups, or for fewer clusters",
        )
    if asked.queues is not None and not asked.pairs <= asked.queues <= asked.pairs * MOST_QUEUES:
        raise UsageError(
            f"{asked.queues} queues for {asked.pairs} pairs", hint=f"a topic has between 1 and {MOST_QUEUES} queues"
        )


def share_pairs(asked: Sizes) -> list[int]:
    """The pairs of each cluster: one for each of its groups, and its part of the rest, as far as its topics go."""
    groups, room = share_out(asked.groups, asked.clusters), _room(asked)
    more = share_out(asked.pairs - asked.groups + asked.clusters, asked.clusters)
    parts = [min(group + extra - 1, most) for group, extra, most in zip(groups, more, room, strict=True)]
    for number, most in enumerate(room):
        parts[number] += min(most - parts[number], asked.pairs - sum(parts))
    return parts


def _room(asked: Sizes) -> list[int]:
    """The most pairs that each cluster can have: every group on every topic."""
    groups, topics = share_out(asked.groups, asked.clusters), share_out(asked.topics, asked.clusters)
    return [a * b for a, b in zip(groups, topics, strict=True)]


def _within(name: str, value: float | None, least: float, most: float) -> None:
    if value is not None and not least <= value <= most:
        raise UsageError(f"{name}: {value} is not between {least} and {most}")
