"""Topics whose routes differ between two snapshots."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rmqlb.model.diff import BrokerDiff, BrokerQueues, Presence, SettingDiff, TopicDiff
from rmqlb.model.java import sort_key
from rmqlb.model.route import BrokerData, TopicRouteData


def topic_diff(
    before: TopicRouteData | None, after: TopicRouteData | None, groups: Sequence[str] = ()
) -> TopicDiff | None:
    """What of a topic differs, None when nothing does; a route that is None is not there."""
    either = after or before
    if either is None:
        return None
    brokers = tuple(_brokers(_queues_of(before), _queues_of(after)))
    settings = tuple(_settings(before, after)) if before and after else ()
    change = presence(before, after)
    if change == "changed" and not brokers and not settings:
        return None
    return TopicDiff(either.topic, change, brokers, settings, tuple(groups))


def presence(before: object | None, after: object | None) -> Presence:
    """Whether something is new, gone, or in both."""
    return "added" if before is None else "removed" if after is None else "changed"


def settings_that_differ(pairs: Mapping[str, tuple[str | None, str | None]]) -> Iterator[SettingDiff]:
    """Of name → its value before and after, those that differ."""
    return (SettingDiff(name, was, becomes) for name, (was, becomes) in pairs.items() if was != becomes)


def _queues_of(route: TopicRouteData | None) -> dict[str, BrokerQueues]:
    if route is None:
        return {}
    brokers = route.brokers_by_name()
    return {
        data.broker_name: BrokerQueues(
            data.read_queue_nums,
            data.write_queue_nums,
            data.perm,
            _addresses(brokers.get(data.broker_name)),
        )
        for data in route.queue_datas
    }


def _addresses(broker: BrokerData | None) -> dict[str, str]:
    return {} if broker is None else {str(each): broker.broker_addrs[each] for each in sorted(broker.broker_addrs)}


def _brokers(before: Mapping[str, BrokerQueues], after: Mapping[str, BrokerQueues]) -> Iterator[BrokerDiff]:
    for name in sorted({*before, *after}, key=sort_key):
        was, becomes = before.get(name), after.get(name)
        if was != becomes:
            yield BrokerDiff(name, presence(was, becomes), was, becomes)


def _settings(before: TopicRouteData, after: TopicRouteData) -> Iterator[SettingDiff]:
    return settings_that_differ(
        {
            "orderTopicConf": (before.order_topic_conf, after.order_topic_conf),
            "topicQueueMappingByBroker": (_mapping(before), _mapping(after)),
        }
    )


def _mapping(route: TopicRouteData) -> str | None:
    """Which queues of a static topic each broker has, in a text."""
    if not route.is_static:
        return None
    found: dict[str, list[int]] = {}
    for queue, broker in route.serving_brokers().items():
        found.setdefault(broker, []).append(queue.queue_id)
    return "; ".join(f"{broker}: {', '.join(map(str, sorted(found[broker])))}" for broker in sorted(found))
