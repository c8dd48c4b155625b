"""How many messages come into each queue: as typed, since an earlier snapshot, or between two samples of a cluster."""

import re
import time
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import chain
from typing import TypedDict

from msgspec import Struct
from msgspec.structs import replace

from rmqlb.engine.group import Given, Group, known
from rmqlb.engine.rates import observed_rates, spread_evenly
from rmqlb.errors import DataError, UsageError, typed
from rmqlb.model.group import RETRY_PREFIX
from rmqlb.model.group_scenario import Event
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.process_queue import ConsumerEvidence
from rmqlb.model.result import Progress, RateSource, no_progress
from rmqlb.model.snapshot import ClusterSnapshot, Wanted, suggestion
from rmqlb.verbs.amounts import rate, spacing
from rmqlb.verbs.parse import texts_of
from rmqlb.verbs.source import AnySource, Earlier, Reader, SnapshotReader, earlier


class RateOptions(TypedDict, total=False):
    """The keyword arguments of each verb that needs rates."""

    rates: str | Sequence[str]  # messages per second of each topic, as `500`, or of one, as `TOPIC=500`
    # an earlier snapshot, or as `60s` the time between two samples of a running cluster: each queue's rate is what came
    rates_since: AnySource | Earlier | None


class KnownRates(Struct, frozen=True):
    of_queues: Mapping[MessageQueue, float]  # messages per second; unknown without an entry
    of_topics: Mapping[str, float]  # as typed
    source: RateSource | None


class Rates(Struct, frozen=True):
    """What the arguments say."""

    texts: Sequence[str]
    earlier: Earlier | None
    spacing_s: float | None  # between two samples of a running cluster
    option: str  # of an earlier snapshot, up to its value

    @property
    def given(self) -> bool:
        return bool(self.texts) or self.earlier is not None or self.spacing_s is not None

    def read(self, source: Reader, wanted: Wanted, progress: Progress = no_progress) -> tuple["Rates", ClusterSnapshot]:
        """Read the source, and the earlier snapshot or a first sample, which the returned rates hold.

        With rates, running consumers are asked for their reports too, which tell the number of consume threads.
        Raises DataError for the rate of a topic that none of several groups reads.
        """
        before = self.earlier
        if self.spacing_s is not None:
            if not source.live:
                text = f"{self.option}{self.spacing_s:g}s: two samples need a running cluster"
                raise UsageError(text, hint=f"pass {self.option}FILE or --rate R")
            before = Earlier(source, "the first sample")
        if before is not None:
            before = replace(before, source=SnapshotReader(before.source.fetch(wanted)))
        if self.spacing_s is not None:
            progress(f"waiting {self.spacing_s:g} s for the second sample", 0, 0)
            time.sleep(self.spacing_s)
        snapshot = source.fetch(replace(wanted, evidence=wanted.evidence or self.given))
        names = wanted.groups_among(snapshot.groups) if wanted.several else ()
        if names and snapshot.groups.keys() >= {*names}:
            given = Given(topics=wanted.topics or (), retry=wanted.retry)
            groups = (Group(snapshot, name, given=given) for name in names)
            read = chain(*(known(partial(getattr, group, "topics")) or snapshot.routes for group in groups))
            typed_rates(self.texts, [*dict.fromkeys(read)])
        return replace(self, earlier=before), snapshot

    def of(self, group: Group, wanted: Wanted, snapshot: ClusterSnapshot, events: Sequence[Event] = ()) -> KnownRates:
        """Rates of a group's queues (raises DataError, UsageError); among several groups, other topics may be named."""
        own = [route.topic for route in group.pulled_routes]
        typed = typed_rates(self.texts, [*dict.fromkeys((*own, *(snapshot.routes if wanted.several else ())))])
        of_queues, over_ms = spread_evenly(typed, group.pulled_routes, events), None
        if self.earlier is not None:
            now, where = group.seen, self.earlier.option
            if now is None:
                raise DataError(f"{where}: the source does not report the group, so the rate is unknown")
            then = self.earlier.source.fetch(wanted)
            was = then.group(now.group)
            times = now.seen.at or snapshot.taken_at, was.seen.at or then.taken_at
            observed, over_s = observed_rates(now, was, times, group.pulled_queues, where)
            of_queues, over_ms = observed | of_queues, 1000 * over_s
        source = RateSource(tuple(self.texts), over_ms) if self.given else None
        return KnownRates(of_queues, {topic: typed[topic] for topic in own if topic in typed}, source)


def evidence_of(group: Group) -> list[ConsumerEvidence]:
    """The reports of the group's consumers, of those that have one."""
    reports = group.seen.reports.values() if group.seen is not None else ()
    return [report.evidence for report in reports if report.evidence is not None]


def asked_rates(options: RateOptions, option: str = "--earlier") -> Rates:
    """Refuse what cannot be meant (raises UsageError)."""
    since = options.get("rates_since")
    spacing_s = spacing(since, option)
    before = earlier(since, option) if spacing_s is None else None
    return Rates(texts_of(options.get("rates")), before, spacing_s, typed(option, ""))


def typed_rates(texts: Sequence[str], topics: Sequence[str]) -> Mapping[str, float]:
    """`--rate [TOPIC=]R`: topic → messages per second; R alone is for each other topic, retry topics left out."""
    given: dict[str, float] = {}
    for text in texts:
        topic, _, value = text.rpartition("=")
        if topic and topic not in topics:
            hint = suggestion("topics", topic, topics)
            raise DataError(f"--rate {text}: topic {topic} is not simulated", hint=hint, code="topic-not-found")
        if topic in given:
            raise UsageError(f"--rate {text}: {topic or 'the rate of each topic'} is given twice", code="given-twice")
        is_none = re.fullmatch(r"0(?:\.0+)?(?:/[smh])?", value.strip())
        given[topic] = 0.0 if is_none else float(rate(value, f"--rate {text}:" if topic else "--rate"))
    others = {topic: given[""] for topic in topics if "" in given and not topic.startswith(RETRY_PREFIX)}
    return others | {topic: each for topic, each in given.items() if topic}
