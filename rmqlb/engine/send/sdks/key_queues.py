"""Where keys are stored, SDK by SDK: what the SDK picks, and what a Proxy between it and the brokers makes of that.

Of the message that a gRPC SDK sends the Proxy reads the message group and not the queue (`SendMessageQueueSelector`,
5.0.0 to 5.5.0). A Proxy in cluster mode picks from all queues; one in a broker (local mode) from those of its broker,
which the SDK has picked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations

from rmqlb.engine.send.sdks.keys import picker, place_of_key
from rmqlb.engine.send.sdks.profile import ChosenSdk, sdk
from rmqlb.engine.send.sdks.publish_list import broker_list, publish_list, stored_list
from rmqlb.errors import DataError, RmqlbError
from rmqlb.model.key_queues import KeyedSdk, KeyQueue, KeyQueues, SdkPair
from rmqlb.model.message_queue import MessageQueue, QueueName
from rmqlb.model.route import TopicRouteData
from rmqlb.model.send_scenario import ProxyMode

_PROXY = sdk("proxy").profile
Places = list[QueueName | None]
"""Of each key the queue that it is stored in; None where none takes it."""


def key_queues(
    route: TopicRouteData,
    keys: Sequence[str],
    sdks: Sequence[ChosenSdk],
    proxy_mode: ProxyMode = "local",
    *,
    after: TopicRouteData | None = None,
    changes: Sequence[str] = (),
) -> KeyQueues:
    """Where each key goes under each SDK.

    Args:
        route: the topic's.
        keys: message groups or sharding keys, each once; at least one, none of them blank.
        sdks: whose producers send them.
        proxy_mode: of the Proxy that gRPC producers send to.
        after: the route after a change, or None.
        changes: that change in words.

    Raises:
        DataError: the topic has no queue that producers can write.
    """
    queues = route.publish_queues()
    if not queues:
        raise DataError(
            f"topic {route.topic} has no queue that producers can write",
            hint="show-route says which brokers are writable and have a master",
        )
    picks = {chosen.text: _picks(route, keys, chosen) for chosen in sdks}
    before = {chosen.text: _places(route, keys, chosen, proxy_mode) for chosen in sdks}
    later = None if after is None else {chosen.text: _places(after, keys, chosen, proxy_mode) for chosen in sdks}
    known = {text: found for text, found in before.items() if isinstance(found, list)}
    pairs = [_pair(one, other, known[one], known[other]) for one, other in combinations(known, 2)]
    return KeyQueues(
        topic=route.topic,
        writable_queues=len(queues),
        proxy_mode=proxy_mode,
        sdks=tuple(_keyed(chosen, before[chosen.text], later[chosen.text] if later else None) for chosen in sdks),
        pairs=tuple(pairs),
        changes=tuple(changes),
        keys=tuple(_rows(keys, picks, before, later)),
    )


def _places(route: TopicRouteData, keys: Sequence[str], chosen: ChosenSdk, mode: ProxyMode) -> Places | str:
    """The queue of each key, or why they cannot be known."""
    try:
        store = _storing(route, chosen, mode)
        return [store(key) for key in keys]
    except RmqlbError as unknown:
        return unknown.problem


def _picks(route: TopicRouteData, keys: Sequence[str], chosen: ChosenSdk) -> Places | str:
    """Of each key the queue that the SDK itself picks, or why that cannot be known."""
    try:
        pick = picker(publish_list(route, chosen.profile), chosen.profile)
        return [_named(pick(key)) for key in keys]
    except RmqlbError as unknown:
        return unknown.problem


def _storing(route: TopicRouteData, chosen: ChosenSdk, mode: ProxyMode) -> Callable[[str], QueueName | None]:
    """What finds the queue of a key."""
    profile = chosen.profile
    if not profile.grpc or profile is _PROXY or mode == "cluster":
        own = profile if not profile.grpc else _PROXY
        pick = picker(publish_list(route, own), own)
        return lambda key: _named(pick(key))
    entries = broker_list(route, profile)
    if not entries:
        raise DataError(f"a producer of {profile.name} has no queue to pick from")
    of_broker: dict[str, Callable[[str], MessageQueue] | None] = {}

    def store(key: str) -> QueueName | None:
        picked = entries[place_of_key(len(entries), key, profile)]
        name = picked.queue.broker_name
        if name not in of_broker:
            stored = stored_list(route, name)
            of_broker[name] = picker(stored, _PROXY) if stored else None
        in_broker = of_broker[name]
        return _named(in_broker(key)) if picked.takes and in_broker is not None else None

    return store


def _named(queue: MessageQueue) -> QueueName:
    return QueueName(queue.broker_name, queue.queue_id)


def _keyed(chosen: ChosenSdk, before: Places | str, after: Places | str | None) -> KeyedSdk:
    profile = chosen.profile
    known = before if isinstance(before, list) else []
    used = Counter((place.broker_name, place.queue_id) for place in known if place is not None)
    moved = _differing(known, after) if isinstance(before, list) and isinstance(after, list) else None
    unknown = before if isinstance(before, str) else after if isinstance(after, str) else None
    return KeyedSdk(
        sdk=chosen.text,
        mirrors=chosen.mirrors,
        vectors=profile.vectors,
        live=profile.live,
        assumed=chosen.assumed,
        grpc=profile.grpc,
        note=profile.note,
        unknown=unknown,
        queues_used=len(used) if isinstance(before, list) else None,
        most_keys=max(used.values(), default=0) if isinstance(before, list) else None,
        moved=moved,
        moved_share=None if moved is None else moved / len(known),
    )


def _pair(one: str, other: str, first: Places, second: Places) -> SdkPair:
    differ = _differing(first, second)
    return SdkPair(one, other, differ, differ / len(first))


def _differing(first: Places, second: Places) -> int:
    return sum(one != other for one, other in zip(first, second, strict=True))


def _rows(
    keys: Sequence[str],
    picks: dict[str, Places | str],
    before: dict[str, Places | str],
    after: dict[str, Places | str] | None,
) -> Iterator[KeyQueue]:
    for number, key in enumerate(keys):
        later = None if after is None else _at(number, after)
        yield KeyQueue(key, _at(number, picks), _at(number, before), later)


def _at(number: int, places: dict[str, Places | str]) -> dict[str, QueueName | None]:
    return {text: found[number] if isinstance(found, list) else None for text, found in places.items()}
