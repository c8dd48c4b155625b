"""One function per request that rmqlb sends; each returns a command that `Exchange.send` numbers and encodes.

Rules of this file:
- Every request is one of `codes.RequestCode`, so it reads. A function is named after its code; its parameters are the
  fields of the code's header class in snake_case.
- A request carries version 513 (V5_5_0) and language PYTHON. The version has two effects on a server: name servers
  since 4.9.4 answer code 105 in standard JSON, as if `acceptStandardJsonOnly` were set (older ones, and every other
  code, keep fastjson's dialect); and a server that is shutting down, since 5.2, answers GO_AWAY (1500) to every
  request.
- An optional field that is None is not sent. The paging fields of code 201 are never sent: without them every broker
  answers everything at once.
"""

from __future__ import annotations

from rmqlb.remoting.codes import RequestCode
from rmqlb.remoting.command import RemotingCommand


def _request(code: RequestCode, **ext_fields: str | bool | None) -> RemotingCommand:
    fields = {name: _java_text(value) for name, value in ext_fields.items() if value is not None}
    return RemotingCommand(code=code, ext_fields=fields)


def _java_text(value: str | bool) -> str:
    """What Java's `toString` gives, what `RemotingCommand.makeCustomHeaderToNet` sends."""
    return str(value).lower() if isinstance(value, bool) else value


# To a name server.


def get_route_info_by_topic(topic: str) -> RemotingCommand:
    """Code 105: the TopicRouteData of a topic; 17 (TOPIC_NOT_EXIST) if there is none."""
    return _request(RequestCode.GET_ROUTEINFO_BY_TOPIC, topic=topic)


def get_broker_cluster_info() -> RemotingCommand:
    """Code 106: all brokers and their addresses by cluster; keys of `brokerAddrs` are bare integers."""
    return _request(RequestCode.GET_BROKER_CLUSTER_INFO)


def get_all_topic_list() -> RemotingCommand:
    """Code 206: the names of all topics; 1 with remark `disable` where `enableAllTopicList` is off."""
    return _request(RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER)


# To a broker: who is connected.


def get_consumer_list_by_group(consumer_group: str) -> RemotingCommand:
    """Code 38: the client ids of a group, unsorted, duplicates possible; 1 (SYSTEM_ERROR) if nobody is online."""
    return _request(RequestCode.GET_CONSUMER_LIST_BY_GROUP, consumerGroup=consumer_group)


def get_consumer_connection_list(consumer_group: str) -> RemotingCommand:
    """Code 203: connections and subscriptions of a group; 206 (CONSUMER_NOT_ONLINE) if nobody is online."""
    return _request(RequestCode.GET_CONSUMER_CONNECTION_LIST, consumerGroup=consumer_group)


def get_consumer_running_info(consumer_group: str, client_id: str) -> RemotingCommand:
    """Code 307: what one client holds and does; the broker asks the client, up to 10 s. Never with thread dumps."""
    return _request(
        RequestCode.GET_CONSUMER_RUNNING_INFO, consumerGroup=consumer_group, clientId=client_id, jstackEnable=False
    )


# To a broker: configuration.


def get_all_subscription_group_config() -> RemotingCommand:
    """Code 201: the configuration of all groups."""
    return _request(RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG)


# To a broker: offsets.


def get_consume_stats(consumer_group: str, topic: str | None = None) -> RemotingCommand:
    """Code 208: broker and consumer offset of every queue of a group; of one topic if it is given."""
    return _request(RequestCode.GET_CONSUME_STATS, consumerGroup=consumer_group, topic=topic)
