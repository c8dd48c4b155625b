"""The changes that `plan_rebalance` plans and `simulate_rebalance` simulates."""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any, TypedDict

from msgspec.structs import replace

from rmqlb.engine.group import Group
from rmqlb.engine.plan.changes import Edits, change_members, change_routes, describe
from rmqlb.engine.plan.rebalance import Side
from rmqlb.engine.rebalance.simulate import change_events, renamed_apart, restarts
from rmqlb.model.group_scenario import SECOND_US, Event
from rmqlb.model.message_queue import sort_client_ids
from rmqlb.verbs import parse
from rmqlb.verbs.parse import texts_of
from rmqlb.verbs.strategies import Strategies

_EVERY_US, _DOWN_US = 60 * SECOND_US, 15 * SECOND_US


class ChangeOptions(TypedDict, total=False):
    """The keyword arguments that say what changes."""

    add: int | str | Sequence[int | str]  # client IDs, or a number of placeholders
    remove: int | str | Sequence[int | str]  # client IDs, or a number of the last ones in sorted order
    replace_ids: Mapping[str, str] | Sequence[tuple[str, str]]  # an old client ID → the new one
    scale_to: int | None  # consumers in the end
    to_strategy: str | None
    add_brokers: str | Sequence[str]  # `NAME[:READ[:WRITE]]`
    remove_brokers: str | Sequence[str]
    remove_masters: str | Sequence[str]
    read_queues: int | str | Sequence[str] | Mapping[str, int]  # a number for all brokers, or broker → number
    write_queues: int | str | Sequence[str] | Mapping[str, int]


def changes_of(options: ChangeOptions, strategies: Strategies) -> Edits:
    """Parse the changes (raises UsageError)."""
    ids = options.get("replace_ids", ())
    return Edits(
        add=_each(options.get("add", ()), "--add"),
        remove=_each(options.get("remove", ()), "--remove"),
        replace=tuple(ids.items() if isinstance(ids, Mapping) else ids),
        scale_to=options.get("scale_to"),
        to_strategy=strategies.optional(options.get("to_strategy"), "--to-strategy"),
        add_brokers=tuple(
            parse.new_broker(text, f"--add-broker {text}") for text in texts_of(options.get("add_brokers"))
        ),
        remove_brokers=texts_of(options.get("remove_brokers")),
        remove_masters=texts_of(options.get("remove_masters")),
        read_queues=parse.queue_counts(_counts(options.get("read_queues", ())), "--read-queues"),
        write_queues=parse.queue_counts(_counts(options.get("write_queues", ())), "--write-queues"),
    )


def split_changes(options: Mapping[str, Any]) -> tuple[ChangeOptions, dict[str, Any]]:
    """The changes among keyword arguments, and the other arguments."""
    names = ChangeOptions.__annotations__
    changes: Any = {name: value for name, value in options.items() if name in names}
    return changes, {name: value for name, value in options.items() if name not in names}


def _each(given: int | str | Sequence[int | str], option: str) -> tuple[int | str, ...]:
    values = (given,) if isinstance(given, int | str) else tuple(given)
    return tuple(each if isinstance(each, int) else parse.client_id(each, option) for each in values)


def _counts(given: int | str | Sequence[str] | Mapping[str, int]) -> tuple[str, ...]:
    if isinstance(given, Mapping):
        return tuple(f"{broker}={number}" for broker, number in given.items())
    return texts_of(str(given) if isinstance(given, int) else given)


def events_of(changes: Edits, group: Group, at_us: int, at: str) -> tuple[Event, ...]:
    """The changes as events of one moment; a new strategy comes with a rolling restart (raises UsageError).

    Every 60 s one consumer goes down for 15 s, and comes back with the strategy.
    """
    ids_after = change_members(group.client_ids, changes)
    routes = group.pulled_routes
    before = Side(group.members, routes)
    after = Side(replace(group.members, client_ids=ids_after), change_routes(routes, changes))
    text, strategy = f"{', '.join(describe(changes))} at {at}", changes.to_strategy
    events = [replace(each, at_us=at_us, text=text) for each in change_events(before, after, changes)]
    events = [replace(each, strategy=strategy) if each.kind == "join" else each for each in events]
    for route, count in product(routes, changes.write_queues):
        name, number = count.broker_name, count.number
        events.append(Event("route-change", at_us, route.topic, broker_name=name, write_queues=number, text=text))
    if strategy is not None:
        stay = sort_client_ids(set(group.client_ids) & set(ids_after))
        becomes = renamed_apart(stay, ids_after)
        events += restarts(
            stay, at_us, every_us=_EVERY_US, down_us=_DOWN_US, becomes=becomes, strategy=strategy, text=text
        )
    return tuple(events)


def has_placeholders(changes: Edits, group: Group) -> bool:
    new = Counter(change_members(group.client_ids, changes)) - Counter(group.client_ids)
    return bool(new.keys() - {*changes.add, *(after for _, after in changes.replace)})
