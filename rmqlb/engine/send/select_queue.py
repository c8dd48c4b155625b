"""The queues of keys, SDK by SDK: the queue that the SDK picks, and the queue in which a Proxy stores the message.

A Proxy reads the message group, not the queue, of a gRPC SDK's message (`SendMessageQueueSelector`, 5.0.0 to 5.5.0). In
cluster mode it picks from all queues, in local mode from those of its broker, which the SDK has picked.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from itertools import combinations

from rmqlb.engine.send.profile import ChosenSdk, sdk
from rmqlb.engine.send.queues import broker_list, picker, place_of_key, publish_list, stored_list
from rmqlb.errors import DataError, RmqlbError
from rmqlb.model.message_queue import MessageQueue, QueueName
from rmqlb.model.route import TopicRouteData
from rmqlb.model.send_scenario import ProxyMode
from rmqlb.model.simulate_send import KeyedSdk, KeyQueue, KeyQueues, SdkPair

_PROXY = sdk("proxy").profile
_Finder = Callable[[str], QueueName | None]
_Places = list[QueueName | None] | str
"""The queue of each key (None where no queue takes it), or why they cannot be known."""


def key_queues(
    route: TopicRouteData,
    keys: Sequence[str],
    sdks: Sequence[ChosenSdk],
    proxy_mode: ProxyMode = "local",
    *,
    after: TopicRouteData | None = None,
    changes: Sequence[str] = (),
) -> KeyQueues:
    """Find the queue of each distinct key under each SDK, before and after a change (raises DataError)."""
    queues = route.publish_queues()
    if not queues:
        hint = "show-route shows which brokers are writable and have a master"
        raise DataError(f"topic {route.topic} has no queue that producers can write", hint=hint)

    def places(of: TopicRouteData) -> dict[str, _Places]:
        return {each.text: _places(keys, partial(_storing, of, each, proxy_mode)) for each in sdks}

    picks = {each.text: _places(keys, partial(_picking, route, each)) for each in sdks}
    before, later = places(route), None if after is None else places(after)
    known = [text for text, found in before.items() if isinstance(found, list)]
    pairs = [(one, other, _differing(before[one], before[other]) or 0) for one, other in combinations(known, 2)]
    pairs.sort(key=lambda pair: -pair[-1])
    return KeyQueues(
        topic=route.topic,
        writable_queues=len(queues),
        proxy_mode=proxy_mode,
        sdks=tuple(_keyed(each, before[each.text], later[each.text] if later else None) for each in sdks),
        pairs=tuple(SdkPair(one, other, differ, differ / len(keys)) for one, other, differ in pairs),
        changes=tuple(changes),
        keys=tuple(
            KeyQueue(key, _at(place, picks), _at(place, before), None if later is None else _at(place, later))
            for place, key in enumerate(keys)
        ),
    )


def _places(keys: Sequence[str], finder: Callable[[], _Finder]) -> _Places:
    try:
        find = finder()
        return [find(key) for key in keys]
    except RmqlbError as unknown:
        return unknown.problem


def _picking(route: TopicRouteData, chosen: ChosenSdk) -> _Finder:
    pick = picker(publish_list(route, chosen.profile), chosen.profile)
    return lambda key: _named(pick(key))


def _storing(route: TopicRouteData, chosen: ChosenSdk, mode: ProxyMode) -> _Finder:
    profile = chosen.profile
    if not profile.grpc or profile is _PROXY:
        return _picking(route, chosen)
    if mode == "cluster":
        return _picking(route, ChosenSdk(_PROXY, chosen.text))
    entries = broker_list(route, profile)
    if not entries:
        raise DataError(f"a producer of {profile.name} has no queue to pick from")

    @cache
    def in_broker(name: str) -> Callable[[str], MessageQueue] | None:
        stored = stored_list(route, name)
        return picker(stored, _PROXY) if stored else None

    def store(key: str) -> QueueName | None:
        queue, takes = entries[place_of_key(len(entries), key, profile)]
        pick = in_broker(queue.broker_name)
        return _named(pick(key)) if takes and pick is not None else None

    return store


def _named(queue: MessageQueue) -> QueueName:
    return QueueName(queue.broker_name, queue.queue_id)


def _keyed(chosen: ChosenSdk, before: _Places, after: _Places | None) -> KeyedSdk:
    profile = chosen.profile
    known = before if isinstance(before, list) else None
    used = Counter((place.broker_name, place.queue_id) for place in known or () if place is not None)
    moved = None if after is None else _differing(before, after)
    return KeyedSdk(
        sdk=chosen.text,
        mirrors=chosen.mirrors,
        assumed=chosen.assumed,
        **{name: getattr(profile, name) for name in ("vectors", "live", "grpc", "note")},
        unknown=next((each for each in (before, after) if isinstance(each, str)), None),
        queues_used=None if known is None else len(used),
        most_keys=None if known is None else max(used.values(), default=0),
        moved=moved,
        moved_share=None if moved is None else moved / len(before),
    )


def _differing(first: _Places, second: _Places) -> int | None:
    if isinstance(first, str) or isinstance(second, str):
        return None
    return sum(one != other for one, other in zip(first, second, strict=True))


def _at(number: int, places: Mapping[str, _Places]) -> dict[str, QueueName | None]:
    return {text: found[number] if isinstance(found, list) else None for text, found in places.items()}
