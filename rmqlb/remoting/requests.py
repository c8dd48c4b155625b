"""One function per request that rmqlb sends, named after its code, with the fields of its header class.

A request carries version 513 (V5_5_0) and language PYTHON. Name servers since 4.9.4 answer that version's code 105 in
standard JSON, as if `acceptStandardJsonOnly` were set (older ones, and every other code, keep fastjson's dialect); a
server that is shutting down, since 5.2, answers GO_AWAY (1500) to every request. An optional field that is None is not
sent. The paging fields of code 201 are never sent: without them every broker answers everything at once.
"""

from __future__ import annotations

import json

from rmqlb.remoting.codes import RequestCode
from rmqlb.remoting.command import RemotingCommand


def _request(code: RequestCode, **ext_fields: str | bool | int | None) -> RemotingCommand:
    # What Java's `toString` gives, what `RemotingCommand.makeCustomHeaderToNet` sends.
    given = {name: value for name, value in ext_fields.items() if value is not None}
    fields = {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in given.items()}
    return RemotingCommand(code=code, ext_fields=fields)


def get_route_info_by_topic(topic: str) -> RemotingCommand:
    """Code 105: the TopicRouteData of a topic; 17 (TOPIC_NOT_EXIST) if there is none."""
    return _request(RequestCode.GET_ROUTEINFO_BY_TOPIC, topic=topic)


def get_broker_cluster_info() -> RemotingCommand:
    """Code 106: all brokers and their addresses by cluster; keys of `brokerAddrs` are bare integers."""
    return _request(RequestCode.GET_BROKER_CLUSTER_INFO)


def get_all_topic_list() -> RemotingCommand:
    """Code 206: the names of all topics; 1 with remark `disable` where `enableAllTopicList` is off."""
    return _request(RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER)


def get_consumer_connection_list(consumer_group: str) -> RemotingCommand:
    """Code 203: connections and subscriptions of a group; 206 (CONSUMER_NOT_ONLINE) if nobody is online."""
    return _request(RequestCode.GET_CONSUMER_CONNECTION_LIST, consumerGroup=consumer_group)


def get_consumer_running_info(consumer_group: str, client_id: str, *, stacks: bool = False) -> RemotingCommand:
    """Code 307: what one client holds and does, and the stack traces of its threads.

    The broker asks the client. It answers 207 (CONSUME_MSG_TIMEOUT) when the client has not answered within 10 s, and 1
    when it knows no such client or cannot reach it.
    """
    return _request(
        RequestCode.GET_CONSUMER_RUNNING_INFO, consumerGroup=consumer_group, clientId=client_id, jstackEnable=stacks
    )


def get_all_subscription_group_config() -> RemotingCommand:
    """Code 201: the configuration of all groups."""
    return _request(RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG)


def get_consume_stats(consumer_group: str, topic: str | None = None) -> RemotingCommand:
    """Code 208: broker and consumer offset of every queue of a group; of one topic if it is given."""
    return _request(RequestCode.GET_CONSUME_STATS, consumerGroup=consumer_group, topic=topic)


def query_consumer_offset(consumer_group: str, topic: str, queue_id: int) -> RemotingCommand:
    """Code 14: the offset that the group has stored of a queue; 22 (QUERY_NOT_FOUND) when it has none.

    Without `setZeroIfNotFound`, as clients ask: a queue whose first message, number 0, is still in the broker's memory
    (before 5.1: not yet left to the disk) is answered with 0 when nothing is stored.
    """
    return _request(RequestCode.QUERY_CONSUMER_OFFSET, consumerGroup=consumer_group, topic=topic, queueId=queue_id)


def search_offset_by_timestamp(topic: str, queue_id: int, timestamp: int) -> RemotingCommand:
    """Code 29: a queue's first message that was stored at this time or later, in milliseconds since 1970."""
    return _request(RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, topic=topic, queueId=queue_id, timestamp=timestamp)


def get_max_offset(topic: str, queue_id: int) -> RemotingCommand:
    """Code 30: the end of a queue, the number of its next message; 0 of a queue that is not there."""
    return _request(RequestCode.GET_MAX_OFFSET, topic=topic, queueId=queue_id)


def get_min_offset(topic: str, queue_id: int) -> RemotingCommand:
    """Code 31: the first message of a queue that is not deleted yet; less than 0 of a queue that is not there."""
    return _request(RequestCode.GET_MIN_OFFSET, topic=topic, queueId=queue_id)


# To a broker since 5.0. One before it answers that it does not know the code, or nothing at all.


def get_topic_config(topic: str) -> RemotingCommand:
    """Code 351: the broker's TopicConfig of a topic, attributes included; 17 (TOPIC_NOT_EXIST) without one."""
    return _request(RequestCode.GET_TOPIC_CONFIG, topic=topic)


def query_assignment(consumer_group: str, topic: str, client_id: str, strategy: str) -> RemotingCommand:
    """Code 400: the queues that the broker would assign to a client, and whether it shall PULL or POP them."""
    body = {
        "clientId": client_id,
        "consumerGroup": consumer_group,
        "messageModel": "CLUSTERING",
        "strategyName": strategy,
        "topic": topic,
    }
    text = json.dumps(body, ensure_ascii=False)
    return RemotingCommand(code=RequestCode.QUERY_ASSIGNMENT, body=text.encode("utf-8", "surrogatepass"))


def get_all_message_request_mode() -> RemotingCommand:
    """Code 402: PULL or POP of each topic and group for which it was set; the others have the broker's default."""
    return _request(RequestCode.GET_ALL_MESSAGE_REQUEST_MODE)


def polling_info(consumer_group: str, topic: str) -> RemotingCommand:
    """Code 200055: how many receive requests (POP) of the group wait at the broker for a message of any queue."""
    return _request(RequestCode.POLLING_INFO, consumerGroup=consumer_group, topic=topic, queueId=-1)
