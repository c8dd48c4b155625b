"""Commands that show a case, to copy into a shell."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from rmqlb.engine.rebalance.reported_clients import consumer_types
from rmqlb.engine.sweep_failures.failures import Failure
from rmqlb.engine.sweep_failures.subjects import AnySubject, Effect, GroupSubject, TopicSubject
from rmqlb.model.sweep_failures import SILENT

_GAP_TRIALS = 3


class Commands(Struct, frozen=True):
    """How to write commands that read the same source.

    Attributes:
        source: options that name the source and say how to read it, as words.
        more: options of strategies.
        topics: groups are swept on these alone; empty means all of their own.
    """

    source: Sequence[str]
    more: Sequence[str] = ()
    topics: Sequence[str] = ()

    def in_full(self, subject: AnySubject, effect: Effect, case: Iterable[Failure]) -> str | None:
        """plan-rebalance for a group, simulate-send for a topic; None where no command line can name what is lost."""
        if isinstance(subject, TopicSubject):
            silent = _silent(case)
            lost = [name for name in subject.queues if name in effect.brokers or name in effect.masters]
            fails = [f"{name}:{'timeout' if name in silent else 'refused'}" for name in lost]
            words = ["rmqlb", "simulate-send", *self.source, "-t", subject.name, *_each("--fail", fails)]
            return shlex.join(words) if fails else None
        ids = [subject.client_ids[place] for place in effect.places]
        if any(re.fullmatch(r"[+-]?\d+", client_id) for client_id in ids):
            return None  # plan-rebalance reads it as a number of consumers
        changes = [
            *_each("--remove", ids),
            *_each("--remove-broker", effect.brokers),
            *_each("--remove-master", effect.masters),
        ]
        return self._for_group("plan-rebalance", subject, changes)

    def gap(self, subject: AnySubject, effect: Effect, case: Iterable[Failure]) -> str | None:
        """simulate-rebalance for a group whose queues have no owner until its consumers have rebalanced.

        A process that ends closes its connections; all that runs on a lost host or in a lost zone falls silent.
        """
        if isinstance(subject, TopicSubject) or not _has_gaps(subject, effect):
            return None
        ids = [subject.client_ids[place] for place in effect.places]
        if any("," in name for name in (*ids, *effect.brokers, *effect.masters)):
            return None  # a comma ends the name in an event
        silent = _silent(case)
        events = [f"{'host-loss' if name in silent else 'crash'} {name}@0s" for name in ids]
        down = [(name, ", with slaves") for name in effect.brokers] + [(name, "") for name in effect.masters]
        events += [f"broker-{'loss' if name in silent else 'down'} {name}@0s{slaves}" for name, slaves in down]
        orderly = ["--orderly"] if subject.orderly else []
        changes = [*_each("--event", events), "--trials", str(_GAP_TRIALS), *orderly]
        return self._for_group("simulate-rebalance", subject, changes)

    def _for_group(self, command: str, subject: GroupSubject, changes: Sequence[str]) -> str:
        strategy = ["--strategy", subject.members.group_strategy] if subject.basis == "assumed" else []
        own = {route.topic for route in subject.routes}
        topics = _each("-t", [topic for topic in self.topics if topic in own])
        return shlex.join(
            ["rmqlb", command, *self.source, "-g", subject.name, *strategy, *changes, *topics, *self.more]
        )


def _has_gaps(subject: GroupSubject, effect: Effect) -> bool:
    """Consumers are left, every queue gets an owner, and simulate-rebalance can read what is lost."""
    outcome = subject.outcome(effect)
    if not outcome.consumers or not outcome.queues or outcome.unassigned:
        return False
    kind, kinds, _ = consumer_types(subject.group.group)
    known = {broker.broker_name for route in subject.routes for broker in route.broker_datas}
    return known.issuperset(effect.brokers) and (not subject.orderly or {kind, *kinds.values()} == {"push"})


def _silent(case: Iterable[Failure]) -> set[str]:
    return {name for each in case if each.loss.kind in SILENT for name, _ in (*each.processes, *each.addresses)}


def _each(option: str, values: Sequence[str]) -> Iterator[str]:
    for value in values:
        if value.startswith("-"):
            yield f"{option}={value}"
        else:
            yield from (option, value)
