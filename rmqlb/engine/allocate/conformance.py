"""Whether a strategy gives each queue to one consumer, and the same answer to the same question."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import TypeVar

from msgspec.structs import replace

from rmqlb.engine.allocate import custom_inside, full_name, names_inside, prepare
from rmqlb.engine.allocate.machines import chosen_hosts, host
from rmqlb.engine.allocate.rules import PINNED
from rmqlb.engine.allocate.strategy import Settings, StrategyFunction, with_function
from rmqlb.errors import AllocationError
from rmqlb.model.message_queue import MessageQueue, grouped, sort_client_ids, sort_queues
from rmqlb.model.result import Finding

_Item = TypeVar("_Item")
_SHUFFLES = 2
_MOST_WORK = 2_000_000  # consumers × queues of a topic; beyond it only a sample is tried in other orders
_SAMPLE = 20


def check_strategy(
    strategy: str | StrategyFunction,
    queues: Iterable[MessageQueue],
    client_ids: Iterable[str],
    *,
    group: str = "",
    settings: Settings | None = None,
) -> tuple[Finding, ...]:
    """Faults of a strategy, as far as these queues and consumers show them; () without any.

    Each consumer is asked for its queues, then again, and again with the lists in other orders. The codes of findings:
    `custom-unassigned`, `custom-duplicate-owners`, `custom-throws` (consumers whose client throws), `custom-order` (the
    answer depends on the order of the lists, which clients sort) and `custom-varies` (a question has two answers).

    Args:
        strategy: a name, or a function (group, client id, queues, client ids) → queues.
        queues: of one or several topics, in any order; clients ask for each topic alone.
        client_ids: the consumers; duplicates count once, as no strategy can distinguish them.
        group: the group's name, for a function.
        settings: those of the strategy.

    Raises:
        DataError: a function does not return a list of the queues.
        UsageError: there is no such strategy.
    """
    name, own = with_function(strategy, replace(settings or Settings(), group=group))
    ids = sort_client_ids(set(client_ids))
    left, several = list[MessageQueue](), list[MessageQueue]()
    throws: dict[str, str] = {}
    orders: dict[str, None] = {}  # the lists whose order changes the answer
    varies = False
    for listed in _by_topic(queues).values() if ids else ():
        shares, thrown = _answers(name, listed, ids, ids, own)
        throws |= thrown
        owners = Counter(chain(*shares.values()))
        left += [queue for queue in listed if not owners[queue]]
        several += [queue for queue in listed if owners[queue] > 1]
        some = ids if len(ids) * len(listed) <= _MOST_WORK else ids[:: -(-len(ids) // _SAMPLE)]
        expected = {client_id: shares[client_id] for client_id in some if client_id in shares}
        if _answers(name, listed, ids, some, own)[0] != expected:
            varies = True
            continue
        variants = {"queues": [(each, ids) for each in _orders(listed)]}
        variants["client ids"] = [(listed, each) for each in _orders(ids)]
        for what, lists in variants.items():
            if any(_answers(name, *each, some, own)[0] != expected for each in lists):
                orders[what] = None
    who, found = f"strategy {name}", list[Finding]()
    if throws:
        first = next(iter(throws))
        number = f"throws for {len(throws)} of {len(ids)} consumers, which keep their queues"
        found.append(Finding("custom-throws", f"{who} {number}; first {first}: {throws[first]}"))
    elif left:
        text = f"{who} leaves {_listed(left)} unassigned: no consumer reads {_them(left)}"
        found.append(Finding("custom-unassigned", text))
    if several:
        text = f"{who} gives {_listed(several)} to several consumers, which all read {_them(several)}"
        found.append(Finding("custom-duplicate-owners", text))
    if varies:
        effect = "its consumers drop and take queues at every rebalance, and this result is only one of many"
        text = f"{who} returns different results for the same input: {effect}"
        found.append(Finding("custom-varies", text))
    if orders:
        why = "clients and rmqlb sort both lists by character before they call it"
        text = f"{who} depends on the order of the {' and of the '.join(orders)}: {why}"
        found.append(Finding("custom-order", text))
    return tuple(found)


def own_findings(
    strategies: Sequence[str], queues: Sequence[MessageQueue], client_ids: Sequence[str], settings: Settings
) -> Iterator[Finding]:
    """Faults of users' own strategies and pins, also inside wrappers (raises DataError)."""
    names = dict.fromkeys(name for strategy in strategies if (name := custom_inside(strategy, settings)) is not None)
    for name in names:
        yield from check_strategy(name, queues, client_ids, group=settings.group, settings=settings)
    yield from _pin_findings(strategies, queues, client_ids, settings)


def _pin_findings(
    strategies: Iterable[str], queues: Iterable[MessageQueue], client_ids: Iterable[str], settings: Settings
) -> Iterator[Finding]:
    """Queues that pins leave unassigned: by a mistake, or because no consumer runs on the machines."""
    names = [each for each in dict.fromkeys(strategies) if {*PINNED}.intersection(names_inside(each, settings))]
    topics, ids = _by_topic(queues) if names else {}, sort_client_ids(set(client_ids))
    for name in names if ids else ():
        full, left = full_name(name, settings), list[MessageQueue]()
        for topic, listed in topics.items():
            (shares, thrown), hosts = _answers(name, listed, ids, ids, settings), chosen_hosts(listed, settings)
            owned = {*chain(*shares.values())}
            if thrown or hosts is None or len(owned) == len(listed):
                continue
            if not any(host(client_id) in hosts for client_id in ids):
                machines = ", ".join(sorted(hosts)) or "none"
                yield Finding("pin-no-consumer", f"topic {topic} is pinned to machines without a consumer ({machines})")
            elif full.startswith("PIN_OVER_ALL-"):
                left += [queue for queue in listed if queue not in owned]
        if left:
            yield Finding(
                "pin-over-all",
                f"strategy {full} leaves {_listed(left)} unassigned: they belong to consumers on other machines, which "
                f"take nothing; PIN shares {_them(left)} among the consumers on these machines",
            )


def _by_topic(queues: Iterable[MessageQueue]) -> dict[str, list[MessageQueue]]:
    return grouped((queue.topic, queue) for queue in sort_queues(queues))


def _answers(
    name: str, queues: list[MessageQueue], ids: list[str], checked: Iterable[str], own: Settings
) -> tuple[dict[str, list[MessageQueue]], dict[str, str]]:
    """Client ID → its queues, sorted, or what the strategy throws."""
    shares, throws = dict[str, list[MessageQueue]](), dict[str, str]()
    for client_id in checked:
        try:
            # Created again for each consumer: every client has its own strategy object.
            shares[client_id] = sort_queues(prepare(name, queues, ids, own).share(client_id))
        except AllocationError as error:
            throws[client_id] = str(error)
    return shares, throws


def _orders(items: list[_Item]) -> Iterator[list[_Item]]:
    from random import Random

    yield items[::-1]
    yield from (Random(seed).sample(items, len(items)) for seed in range(_SHUFFLES))  # noqa: S311 - no secret


def _listed(queues: Sequence[MessageQueue]) -> str:
    first = f"{queues[0].broker_name}:{queues[0].queue_id} of {queues[0].topic}"
    return f"1 queue ({first})" if len(queues) == 1 else f"{len(queues)} queues (first {first})"


def _them(queues: Sequence[MessageQueue]) -> str:
    return "it" if len(queues) == 1 else "them"
