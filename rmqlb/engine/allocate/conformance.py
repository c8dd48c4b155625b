"""Whether a strategy does what a group needs: each queue to one consumer, the same answer to the same question."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from msgspec.structs import replace

from rmqlb.engine.allocate import custom_inside, full_name, is_pinned, prepare
from rmqlb.engine.allocate.pin import chosen_hosts, host
from rmqlb.engine.allocate.strategy import Settings, StrategyFunction, with_function
from rmqlb.errors import AllocationError
from rmqlb.model.finding import Finding
from rmqlb.model.message_queue import MessageQueue, sort_client_ids, sort_queues

_Item = TypeVar("_Item")
_SHUFFLES = 2
_MOST_WORK = 2_000_000
"""Members × queues of a topic up to which every consumer is asked again with the lists in other orders."""
_SAMPLE = 20
Answers = dict[str, tuple[MessageQueue, ...] | None]  # client id → its queues, sorted; None where the strategy throws


def check_strategy(
    strategy: str | StrategyFunction,
    queues: Iterable[MessageQueue],
    client_ids: Iterable[str],
    *,
    group: str = "",
    settings: Settings | None = None,
) -> tuple[Finding, ...]:
    """What is wrong with a strategy, as far as these queues and consumers show it; () when it is as it should be.

    Each consumer is asked for its queues, then again, and again with the lists in other orders. The codes of findings:
    `custom-unassigned`, `custom-duplicate-owners`, `custom-throws` (consumers whose client throws), `custom-order` (the
    answer depends on the order of the lists, which clients sort) and `custom-varies` (a question has two answers).

    Args:
        strategy: a name, or a function (group, client id, queues, client ids) → queues.
        queues: of one or several topics, in any order; clients ask for each topic alone.
        client_ids: the consumers; an id that several processes share counts once, as no strategy can tell them apart.
        group: the group's name, for a function.
        settings: those of the strategy.

    Raises:
        DataError: a function returns something else than a list of the queues.
        UsageError: there is no such strategy.
    """
    name, own = with_function(strategy, replace(settings or Settings(), group=group))
    ids = sort_client_ids(set(client_ids))
    found = _Observed()
    for topic_queues in _by_topic(queues).values() if ids else ():
        found.ask(name, topic_queues, ids, own)
    return tuple(_findings(name, found, len(ids)))


class _Observed:
    def __init__(self) -> None:
        self.unassigned: list[MessageQueue] = []
        self.several: list[MessageQueue] = []
        self.throws: dict[str, str] = {}  # client ID → what it throws
        self.orders: dict[str, None] = {}  # the lists whose order changes the answer: queues, client ids
        self.varies = False

    def ask(self, strategy: str, queues: list[MessageQueue], ids: list[str], settings: Settings) -> None:
        answers = _answers(strategy, queues, ids, ids, settings, self.throws)
        owners = Counter(queue for answer in answers.values() for queue in answer or ())
        self.unassigned += [queue for queue in queues if not owners[queue]]
        self.several += [queue for queue in queues if owners[queue] > 1]
        some = ids if len(ids) * len(queues) <= _MOST_WORK else ids[:: -(-len(ids) // _SAMPLE)]
        expected = {client_id: answers[client_id] for client_id in some}

        def differs(queues_: list[MessageQueue], ids_: list[str]) -> bool:
            return _answers(strategy, queues_, ids_, some, settings, {}) != expected

        if differs(queues, ids):
            self.varies = True
        else:
            self.orders |= {"queues": None} if any(differs(other, ids) for other in _orders(queues)) else {}
            self.orders |= {"client ids": None} if any(differs(queues, other) for other in _orders(ids)) else {}


def own_findings(
    strategies: Sequence[str], queues: Sequence[MessageQueue], client_ids: Sequence[str], settings: Settings
) -> tuple[Finding, ...]:
    """What users' own strategies and pins do wrong, also inside of others (raises DataError)."""
    group = queues, client_ids, settings
    return *custom_findings(strategies, *group), *pin_findings(strategies, *group)


def custom_findings(
    strategies: Iterable[str], queues: Sequence[MessageQueue], client_ids: Sequence[str], settings: Settings
) -> tuple[Finding, ...]:
    names = dict.fromkeys(name for strategy in strategies if (name := custom_inside(strategy, settings)) is not None)
    found = (check_strategy(name, queues, client_ids, group=settings.group, settings=settings) for name in names)
    return tuple(finding for findings in found for finding in findings)


def pin_findings(
    strategies: Iterable[str], queues: Iterable[MessageQueue], client_ids: Iterable[str], settings: Settings
) -> tuple[Finding, ...]:
    """What pinning topics to machines leaves unassigned: by a mistake in it, or because no consumer runs there."""
    names = [name for name in dict.fromkeys(strategies) if is_pinned(name, settings)]
    topics = _by_topic(queues) if names else {}
    ids = sort_client_ids(set(client_ids))
    return tuple(finding for name in names for finding in _pinned(name, topics, ids, settings)) if ids else ()


def _pinned(
    name: str, topics: Mapping[str, list[MessageQueue]], ids: list[str], settings: Settings
) -> Iterator[Finding]:
    full = full_name(name, settings)
    left: list[MessageQueue] = []
    for topic, queues in topics.items():
        throws: dict[str, str] = {}
        answers = _answers(name, queues, ids, ids, settings, throws)
        owned = {queue for answer in answers.values() for queue in answer or ()}
        hosts = chosen_hosts(queues, settings)
        if throws or hosts is None or len(owned) == len(queues):
            continue
        if not any(host(client_id) in hosts for client_id in ids):
            machines = ", ".join(sorted(hosts)) or "none"
            yield Finding("pin-no-consumer", f"topic {topic} is pinned to machines without a consumer ({machines})")
        elif full.startswith("PIN_OVER_ALL-"):
            left += [queue for queue in queues if queue not in owned]
    if left:
        yield Finding(
            "pin-over-all",
            f"strategy {full} leaves {_listed(left)} unassigned: they fall to consumers that are not on the chosen "
            f"machines and take nothing; PIN shares {_them(left)} among those that are",
        )


def _by_topic(queues: Iterable[MessageQueue]) -> dict[str, list[MessageQueue]]:
    topics: dict[str, list[MessageQueue]] = {}
    for queue in sort_queues(queues):
        topics.setdefault(queue.topic, []).append(queue)
    return topics


def _answers(
    strategy: str,
    queues: list[MessageQueue],
    ids: list[str],
    asked: Iterable[str],
    settings: Settings,
    throws: dict[str, str],
) -> Answers:
    found: Answers = {}
    for client_id in asked:
        try:
            # Made again for each consumer: every client has a strategy object of its own.
            share = prepare(strategy, queues, ids, settings).share(client_id)
            found[client_id] = tuple(sort_queues(share))
        except AllocationError as error:
            found[client_id] = None
            throws[client_id] = str(error)
    return found


def _orders(items: list[_Item]) -> Iterator[list[_Item]]:
    from random import Random

    yield items[::-1]
    yield from (Random(seed).sample(items, len(items)) for seed in range(_SHUFFLES))  # noqa: S311 - no secret


def _findings(name: str, found: _Observed, consumers: int) -> Iterator[Finding]:
    left, several, strategy = found.unassigned, found.several, f"strategy {name}"
    if found.throws:
        client_id, text = next(iter(found.throws.items()))
        number = f"{len(found.throws)} of {consumers} consumers"
        message = f"{strategy} throws for {number}, which keep what they hold; first {client_id}: {text}"
        yield Finding("custom-throws", message)
    elif left:
        message = f"{strategy} leaves {_listed(left)} unassigned: no consumer reads {_them(left)}"
        yield Finding("custom-unassigned", message)
    if several:
        message = f"{strategy} gives {_listed(several)} to several consumers, which all read {_them(several)}"
        yield Finding("custom-duplicate-owners", message)
    if found.varies:
        message = (
            f"{strategy} answers differently when it is asked the same again: such consumers drop and take queues with "
            "every rebalance, and what is shown here is one of its answers"
        )
        yield Finding("custom-varies", message)
    if found.orders:
        message = (
            f"{strategy} depends on the order of the {' and of the '.join(found.orders)}: clients sort both lists by "
            "character before they call it, as is done here"
        )
        yield Finding("custom-order", message)


def _listed(queues: Sequence[MessageQueue]) -> str:
    first = f"{queues[0].broker_name}:{queues[0].queue_id} of {queues[0].topic}"
    return f"1 queue ({first})" if len(queues) == 1 else f"{len(queues)} queues (first {first})"


def _them(queues: Sequence[MessageQueue]) -> str:
    return "it" if len(queues) == 1 else "them"
