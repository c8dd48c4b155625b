"""The mqadmin commands of a step, to copy; mirrors `UpdateTopicSubCommand` and `UpdateOrderConfCommand` (5.5.0).

`updateTopic` sets what it is not given to its default (8 queues, RW, no flag), so every command says all of it. A
broker that lacks the topic creates it with the attributes in the command, and keeps these in later updates
(`TopicConfigManager.updateSingleTopicConfigWithoutPersist`), so the first command for that broker names the message
type. A topic with an order configuration keeps its order flag: brokers take it from the NameServers' configuration
(`TopicConfigManager.updateOrderTopicConfig`). `updateTopicPerm` is never used: it gives each broker the numbers of
queues of the route's first one. Nor is `deleteTopic`: it takes a whole cluster.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from rmqlb.model.route import MASTER_ID, PERM_WRITE, QueueData, TopicRouteData
from rmqlb.model.topic_change import AdminCommand

NORMAL = "NORMAL"
"""The type of a topic that has no `message.type`."""
_UNIT, _UNIT_SUB = 1, 2


def commands_between(
    before: TopicRouteData, after: TopicRouteData, name_servers: str | None, message_type: str | None = None
) -> list[AdminCommand]:
    """What leads from one route to the other; brokers that producers gain first, so that there always is a queue.

    Args:
        before: the route until then.
        after: the route afterwards.
        name_servers: for `-n`, `HOST:PORT;HOST:PORT`; None leaves it out, and mqadmin takes NAMESRV_ADDR.
        message_type: of the topic, for brokers that have not got it; None leaves it out.
    """
    old = {data.broker_name: data for data in before.queue_datas}
    changed = [data for data in after.queue_datas if data != old.get(data.broker_name)]
    changed.sort(key=lambda data: not data.perm & PERM_WRITE)
    found = [
        _update_topic(after, data, name_servers, None if data.broker_name in old else message_type) for data in changed
    ]
    if before.order_topic_conf != after.order_topic_conf and after.order_topic_conf is not None:
        words = ["mqadmin", "updateOrderConf", *_n(name_servers), "-t", after.topic, "-m", "put"]
        found.append(AdminCommand(None, None, shlex.join([*words, "-v", after.order_topic_conf])))
    return found


def _update_topic(
    route: TopicRouteData, data: QueueData, name_servers: str | None, message_type: str | None
) -> AdminCommand:
    broker = route.broker(data.broker_name)
    address = None if broker is None else broker.broker_addrs.get(MASTER_ID)
    if address == "unknown":
        address = None
    words = ["mqadmin", "updateTopic", *_n(name_servers), "-b", address or f"ADDRESS-OF-{data.broker_name}"]
    words += ["-t", route.topic, "-r", str(max(data.read_queue_nums, 0)), "-w", str(max(data.write_queue_nums, 0))]
    words += ["-p", str(data.perm), *_flags(data.topic_sys_flag)]
    words += [] if message_type in (None, NORMAL) else ["-a", f"+message.type={message_type}"]
    return AdminCommand(data.broker_name, address, shlex.join(words))


def _flags(flag: int) -> Iterator[str]:
    """`TopicSysFlag`: a unit topic, and one with subscriptions of units."""
    if flag & _UNIT:
        yield from ("-u", "true")
    if flag & _UNIT_SUB:
        yield from ("-s", "true")


def _n(name_servers: str | None) -> list[str]:
    return [] if name_servers is None else ["-n", name_servers]
