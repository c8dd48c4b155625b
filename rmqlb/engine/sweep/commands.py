"""The commands that show a case, to copy into a shell."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterable, Iterator, Sequence

from rmqlb.engine.rebalance.reported_clients import consumer_types
from rmqlb.engine.sweep.effects import Effect
from rmqlb.engine.sweep.group_cases import GroupCases
from rmqlb.engine.sweep.losses import Taken
from rmqlb.engine.sweep.topic_cases import TopicCases
from rmqlb.model.sweep import SILENT

_GAP_TRIALS = 3


class Commands:
    """How commands begin and end that read what was swept.

    Args:
        source: options that name the source and say how to read it, as words.
        more: options of strategies.
        topics: of groups that are looked at on these alone; otherwise they are all of its own.
    """

    def __init__(self, source: Iterable[str], more: Sequence[str] = (), topics: Sequence[str] = ()) -> None:
        self._source = tuple(source)
        self._more = tuple(more)
        self._topics = tuple(topics)

    def on(self, topics: Sequence[str]) -> Commands:
        """The same for groups that are looked at on these topics alone, if there are any."""
        return Commands(self._source, self._more, topics)

    def in_full(self, cases: GroupCases | TopicCases, effect: Effect, lost: Sequence[Taken]) -> str | None:
        """The command that shows a case: plan-rebalance of a group, simulate-send to a topic."""
        if isinstance(cases, TopicCases):
            return self._send(cases, effect, _silent(lost))
        ids = [cases.atoms.client_ids[place] for place in effect.places]
        if any(re.fullmatch(r"[+-]?\d+", client_id) for client_id in ids):
            return None  # plan-rebalance reads it as a number of consumers
        changes = [*_each("--remove", ids), *_each("--remove-broker", effect.brokers)]
        return self._of_group("plan-rebalance", cases, [*changes, *_each("--remove-master", effect.masters)])

    def gap(self, cases: GroupCases | TopicCases, effect: Effect, lost: Sequence[Taken]) -> str | None:
        """simulate-rebalance of a group whose queues are without an owner until its consumers have rebalanced.

        A process that ends closes its connections; all that a host or zone takes falls silent.
        """
        if isinstance(cases, TopicCases) or not _has_gaps(cases, effect):
            return None
        silent = _silent(lost)
        ids = [cases.atoms.client_ids[place] for place in effect.places]
        events = [f"{'host-loss' if name in silent else 'crash'} {name}@0s" for name in ids]
        down = [(name, ", with slaves") for name in effect.brokers] + [(name, "") for name in effect.masters]
        events += [f"broker-{'loss' if name in silent else 'down'} {name}@0s{slaves}" for name, slaves in down]
        if any("," in name for name in (*ids, *effect.brokers, *effect.masters)):
            return None  # a comma ends the name in an event
        changes = [*_each("--event", events), "--trials", str(_GAP_TRIALS), *(["--orderly"] if cases.orderly else [])]
        return self._of_group("simulate-rebalance", cases, changes)

    def _of_group(self, command: str, cases: GroupCases, changes: Sequence[str]) -> str:
        strategy = ["--strategy", cases.members.group_strategy] if cases.basis == "assumed" else []
        topics: Collection[str] = [route.topic for route in cases.routes]
        only = _each("-t", [topic for topic in self._topics if topic in topics])
        return shlex.join(["rmqlb", command, *self._source, "-g", cases.name, *strategy, *changes, *only, *self._more])

    def _send(self, cases: TopicCases, effect: Effect, silent: Collection[str]) -> str | None:
        failing = [name for name in cases.queues if name in effect.brokers or name in effect.masters]
        fails = [f"{name}:{'timeout' if name in silent else 'refused'}" for name in failing]
        words = ["rmqlb", "simulate-send", *self._source, "-t", cases.route.topic, *_each("--fail", fails)]
        return shlex.join(words) if failing else None


def _has_gaps(cases: GroupCases, effect: Effect) -> bool:
    """Somebody is left, no queue is without an owner for good, and simulate-rebalance can take what is lost."""
    outcome = cases.outcome(effect)
    if not outcome.consumers or not outcome.queues or outcome.unassigned:
        return False
    kind, kinds, _ = consumer_types(cases.facts.group)
    known = {broker.broker_name for route in cases.routes for broker in route.broker_datas}
    return known.issuperset(effect.brokers) and (not cases.orderly or {kind, *kinds.values()} == {"push"})


def _silent(lost: Sequence[Taken]) -> set[str]:
    """Client IDs and brokers that fall silent."""
    machines = [each for each in lost if each.loss.kind in SILENT]
    return {name for each in machines for name, _ in (*each.processes, *each.addresses)}


def _each(option: str, values: Sequence[str]) -> Iterator[str]:
    for value in values:
        if value.startswith("-"):
            yield f"{option}={value}"
        else:
            yield from (option, value)
