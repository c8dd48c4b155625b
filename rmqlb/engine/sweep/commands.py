"""The command that shows a case in full, to copy into a shell."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterable, Iterator, Sequence

from rmqlb.engine.sweep.effects import Effect
from rmqlb.model.group_scenario import SECOND_US, Event


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

    def plan(
        self, group: str, topics: Collection[str], client_ids: Sequence[str], effect: Effect, assume: str | None
    ) -> str | None:
        """plan-rebalance of a group; None where a client ID would be read as a number of consumers."""
        ids = [client_ids[place] for place in effect.places]
        if any(re.fullmatch(r"[+-]?\d+", client_id) for client_id in ids):
            return None
        changes = [*_each("--remove", ids), *_each("--remove-broker", effect.brokers)]
        changes += _each("--remove-master", effect.masters)
        return self._of_group("plan-rebalance", group, topics, changes, assume)

    def simulate(
        self,
        group: str,
        topics: Collection[str],
        events: Sequence[Event],
        trials: int,
        assume: str | None,
        *,
        orderly: bool,
    ) -> str | None:
        """simulate-rebalance of a group; None where a comma in a client ID would end the event."""
        texts = [_event(event) for event in events]
        if any("," in event.subject for event in events):
            return None
        changes = [*_each("--event", texts), "--trials", str(trials), *(["--orderly"] if orderly else [])]
        return self._of_group("simulate-rebalance", group, topics, changes, assume)

    def _of_group(
        self, command: str, group: str, topics: Collection[str], changes: Sequence[str], assume: str | None
    ) -> str:
        strategy = [] if assume is None else ["--strategy", assume]
        only = _each("-t", [topic for topic in self._topics if topic in topics])
        return shlex.join(["rmqlb", command, *self._source, "-g", group, *strategy, *changes, *only, *self._more])

    def send(self, topic: str, failing: Sequence[tuple[str, bool]]) -> str:
        """simulate-send to a topic whose brokers fail; of each whether it falls silent."""
        fails = [f"{name}:{'timeout' if silent else 'refused'}" for name, silent in failing]
        return shlex.join(["rmqlb", "simulate-send", *self._source, "-t", topic, *_each("--fail", fails)])


def _event(event: Event) -> str:
    slaves = ", with slaves" if event.with_slaves else ""
    return f"{event.kind} {event.subject}@{event.at_us // SECOND_US}s{slaves}"


def _each(option: str, values: Sequence[str]) -> Iterator[str]:
    for value in values:
        if value.startswith("-"):
            yield f"{option}={value}"
        else:
            yield from (option, value)
