"""One function per request that rmqlb sends; each returns a command that `Exchange.send` numbers and encodes.

Rules of this file:
- Every request is one of `codes.RequestCode`, so it reads. A function is named after its
  code; its parameters are the fields of the code's header class in snake_case.
- A request carries version 513 (V5_5_0) and language PYTHON. The version has two effects on a server: name servers
  since 4.9.4 answer code 105 in standard JSON, as if `acceptStandardJsonOnly` were set (older ones, and every other
  code, keep fastjson's dialect); and a server that is shutting down, since 5.2, answers GO_AWAY (1500) to every
  request.
- An optional field that is None is not sent. The paging fields of codes 21 and 201 are never sent: without them every
  broker answers everything at once.
"""

from __future__ import annotations

import json
from typing import Literal

from rmqlb.remoting.codes import RequestCode
from rmqlb.remoting.command import RemotingCommand
from rmqlb.remoting.text import encode_text


def _request(code: RequestCode, body: bytes | None = None, **ext_fields: str | int | bool | None) -> RemotingCommand:
    fields = {name: _java_text(value) for name, value in ext_fields.items() if value is not None}
    return RemotingCommand(code=code, ext_fields=fields, body=body)


def _java_text(value: str | int | bool) -> str:
    """What Java's `toString` gives, what `RemotingCommand.makeCustomHeaderToNet` sends."""
    return str(value).lower() if isinstance(value, bool) else str(value)


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


def get_topics_by_cluster(cluster: str) -> RemotingCommand:
    """Code 224: the names of a cluster's topics."""
    return _request(RequestCode.GET_TOPICS_BY_CLUSTER, cluster=cluster)


def get_system_topic_list_from_ns() -> RemotingCommand:
    """Code 304: as "topics", the names of all clusters and brokers, and one broker's address."""
    return _request(RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_NS)


def get_kv_config(namespace: str, key: str) -> RemotingCommand:
    """Code 101: a configured value, in extField `value`; 22 (QUERY_NOT_FOUND) if there is none."""
    return _request(RequestCode.GET_KV_CONFIG, namespace=namespace, key=key)


def get_kvlist_by_namespace(namespace: str) -> RemotingCommand:
    """Code 219: all keys and values of a namespace; 22 (QUERY_NOT_FOUND) if there is none."""
    return _request(RequestCode.GET_KVLIST_BY_NAMESPACE, namespace=namespace)


# To a broker: who is connected.


def get_consumer_list_by_group(consumer_group: str) -> RemotingCommand:
    """Code 38: the client ids of a group, unsorted, duplicates possible; 1 (SYSTEM_ERROR) if nobody is online."""
    return _request(RequestCode.GET_CONSUMER_LIST_BY_GROUP, consumerGroup=consumer_group)


def get_consumer_connection_list(consumer_group: str) -> RemotingCommand:
    """Code 203: connections and subscriptions of a group; 206 (CONSUMER_NOT_ONLINE) if nobody is online."""
    return _request(RequestCode.GET_CONSUMER_CONNECTION_LIST, consumerGroup=consumer_group)


def get_producer_connection_list(producer_group: str) -> RemotingCommand:
    """Code 204: connections of a producer group; 1 (SYSTEM_ERROR) if nobody is online."""
    return _request(RequestCode.GET_PRODUCER_CONNECTION_LIST, producerGroup=producer_group)


def get_consumer_running_info(consumer_group: str, client_id: str) -> RemotingCommand:
    """Code 307: what one client holds and does; the broker asks the client, up to 10 s. Never with thread dumps."""
    return _request(
        RequestCode.GET_CONSUMER_RUNNING_INFO, consumerGroup=consumer_group, clientId=client_id, jstackEnable=False
    )


def query_topic_consume_by_who(topic: str) -> RemotingCommand:
    """Code 300: the groups that are subscribed to a topic or have offsets of it."""
    return _request(RequestCode.QUERY_TOPIC_CONSUME_BY_WHO, topic=topic)


def query_topics_by_consumer(group: str) -> RemotingCommand:
    """Code 343, since 5.0: the topics of which a group has offsets."""
    return _request(RequestCode.QUERY_TOPICS_BY_CONSUMER, group=group)


def query_assignment(
    topic: str,
    consumer_group: str,
    client_id: str,
    strategy_name: str,
    message_model: Literal["CLUSTERING", "BROADCASTING"] = "CLUSTERING",
) -> RemotingCommand:
    """Code 400, since 5.0: the queues that the broker would allocate to a client.

    Args:
        topic: the topic whose queues are allocated.
        consumer_group: the group whose online clients share them.
        client_id: any client id; one not online gets nothing.
        strategy_name: `AVG` or `AVG_BY_CIRCLE`; the broker knows no other.
        message_model: as the group's clients have it.
    """
    members = {
        "clientId": client_id,
        "consumerGroup": consumer_group,
        "messageModel": message_model,
        "strategyName": strategy_name,
        "topic": topic,
    }
    body = json.dumps(members, ensure_ascii=False, separators=(",", ":"))
    return _request(RequestCode.QUERY_ASSIGNMENT, body=encode_text(body, "the request"))


# To a broker: configuration.


def get_all_subscription_group_config() -> RemotingCommand:
    """Code 201: the configuration of all groups."""
    return _request(RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG)


def get_subscription_group_config(group: str) -> RemotingCommand:
    """Code 352, since 5.0: the configuration of a group; 26 (SUBSCRIPTION_GROUP_NOT_EXIST) if there is none."""
    return _request(RequestCode.GET_SUBSCRIPTIONGROUP_CONFIG, group=group)


def get_all_topic_config() -> RemotingCommand:
    """Code 21: the configuration of all topics."""
    return _request(RequestCode.GET_ALL_TOPIC_CONFIG)


def get_topic_config(topic: str) -> RemotingCommand:
    """Code 351, since 5.0: the configuration of a topic; 17 (TOPIC_NOT_EXIST) if there is none."""
    return _request(RequestCode.GET_TOPIC_CONFIG, topic=topic)


def get_all_message_request_mode() -> RemotingCommand:
    """Code 402, since 5.0: for which topics and groups PULL or POP was set."""
    return _request(RequestCode.GET_ALL_MESSAGE_REQUEST_MODE)


def get_broker_runtime_info() -> RemotingCommand:
    """Code 28: a table of the broker's figures, all text."""
    return _request(RequestCode.GET_BROKER_RUNTIME_INFO)


# To a broker: offsets.


def get_consume_stats(consumer_group: str, topic: str | None = None) -> RemotingCommand:
    """Code 208: broker and consumer offset of every queue of a group; of one topic if it is given."""
    return _request(RequestCode.GET_CONSUME_STATS, consumerGroup=consumer_group, topic=topic)


def get_topic_stats_info(topic: str) -> RemotingCommand:
    """Code 202: lowest and highest offset of every queue of a topic; 17 (TOPIC_NOT_EXIST) if there is none."""
    return _request(RequestCode.GET_TOPIC_STATS_INFO, topic=topic)


def get_max_offset(topic: str, queue_id: int) -> RemotingCommand:
    """Code 30: the offset after a queue's last message, in extField `offset`."""
    return _request(RequestCode.GET_MAX_OFFSET, topic=topic, queueId=queue_id)


def get_min_offset(topic: str, queue_id: int) -> RemotingCommand:
    """Code 31: the offset of a queue's first message, in extField `offset`."""
    return _request(RequestCode.GET_MIN_OFFSET, topic=topic, queueId=queue_id)


def search_offset_by_timestamp(
    topic: str, queue_id: int, timestamp: int, boundary_type: Literal["lower", "upper"] | None = None
) -> RemotingCommand:
    """Code 29: the offset stored at a time, in extField `offset`.

    Args:
        topic: full topic name.
        queue_id: from 0.
        timestamp: milliseconds since 1970.
        boundary_type: which one, if several messages have this time; since 5.0, None is `lower`.
    """
    return _request(
        RequestCode.SEARCH_OFFSET_BY_TIMESTAMP,
        topic=topic,
        queueId=queue_id,
        timestamp=timestamp,
        boundaryType=boundary_type,
    )


def query_consumer_offset(
    consumer_group: str, topic: str, queue_id: int, *, set_zero_if_not_found: bool | None = None
) -> RemotingCommand:
    """Code 14: a group's offset of a queue, in extField `offset`; 22 (QUERY_NOT_FOUND) if there is none.

    Args:
        consumer_group: the group.
        topic: full topic name.
        queue_id: from 0.
        set_zero_if_not_found: since 5.0, False to have 22 also where a broker would answer 0 because the queue's first
            message is still in its memory. Nothing is stored on either answer.
    """
    return _request(
        RequestCode.QUERY_CONSUMER_OFFSET,
        consumerGroup=consumer_group,
        topic=topic,
        queueId=queue_id,
        setZeroIfNotFound=set_zero_if_not_found,
    )


def get_all_consumer_offset() -> RemotingCommand:
    """Code 43: the stored offsets of all groups; keys are `topic@group`, below them bare queue ids."""
    return _request(RequestCode.GET_ALL_CONSUMER_OFFSET)
