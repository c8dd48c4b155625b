"""The numbers in `RemotingCommand.code`, with the names of RocketMQ 5.5.0.

`RequestCode` holds what rmqlb may send and nothing else: every code in it reads, and is needed. The codes of requests
are the same in 4.9, which does not know those from 351 on. A far side may answer any number.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final


class RequestCode(IntEnum):
    """Requests that rmqlb sends, all of them reads, as `org.apache.rocketmq.remoting.protocol.RequestCode`."""

    # The offset that the group has stored of a queue; 22 (QUERY_NOT_FOUND) when it has none. Without
    # `setZeroIfNotFound`, as clients ask: a queue whose first message is still in the broker's memory (before 5.1: not
    # yet left to the disk) is answered with 0 when nothing is stored.
    QUERY_CONSUMER_OFFSET = 14
    # A queue's first message that was stored at this time or later, in milliseconds since 1970.
    SEARCH_OFFSET_BY_TIMESTAMP = 29
    GET_MAX_OFFSET = 30  # the end of a queue, the number of its next message; 0 of a queue that is not there
    GET_MIN_OFFSET = 31  # the first message that is not deleted yet; less than 0 of a queue that is not there
    GET_ROUTEINFO_BY_TOPIC = 105  # the TopicRouteData of a topic; 17 (TOPIC_NOT_EXIST) if there is none
    GET_BROKER_CLUSTER_INFO = 106  # all brokers and their addresses by cluster; keys of `brokerAddrs` are bare integers
    # The configuration of all groups. Without its paging fields every broker answers everything at once.
    GET_ALL_SUBSCRIPTIONGROUP_CONFIG = 201
    # Connections and subscriptions of a group; 206 (CONSUMER_NOT_ONLINE) if nobody is online.
    GET_CONSUMER_CONNECTION_LIST = 203
    GET_ALL_TOPIC_LIST_FROM_NAMESERVER = 206  # 1 with remark `disable` where `enableAllTopicList` is off
    GET_CONSUME_STATS = 208  # broker and consumer offset of every queue of a group
    # What one client holds and does, with `jstackEnable` the stack traces of its threads. The broker asks the client;
    # it answers 207 (CONSUME_MSG_TIMEOUT) after 10 s, and 1 when it knows no such client or cannot reach it.
    GET_CONSUMER_RUNNING_INFO = 307
    # To a broker since 5.0. One before it answers that it does not know the code, or nothing at all.
    GET_TOPIC_CONFIG = 351  # the broker's TopicConfig, attributes included; 17 (TOPIC_NOT_EXIST) without one
    QUERY_ASSIGNMENT = 400  # the queues that the broker would assign to a client, and whether to PULL or POP them
    GET_ALL_MESSAGE_REQUEST_MODE = 402  # PULL or POP where it was set; the others have the broker's default
    POLLING_INFO = 200055  # how many receive requests (POP) of the group wait for a message of any queue (queueId -1)


READ_ONLY: Final = frozenset(RequestCode)
"""The allow-list that `Exchange.send` checks; a plain int is in it if its number is."""


class ResponseCode(IntEnum):
    """Answers, as `org.apache.rocketmq.remoting.protocol.ResponseCode` and `RemotingSysResponseCode`."""

    RPC_TIME_OUT = -1006
    RPC_SEND_TO_CHANNEL_FAILED = -1004
    RPC_ADDR_IS_NULL = -1002
    RPC_UNKNOWN = -1000
    SUCCESS = 0
    SYSTEM_ERROR = 1
    SYSTEM_BUSY = 2
    REQUEST_CODE_NOT_SUPPORTED = 3
    TRANSACTION_FAILED = 4
    FLUSH_DISK_TIMEOUT = 10
    SLAVE_NOT_AVAILABLE = 11
    FLUSH_SLAVE_TIMEOUT = 12
    MESSAGE_ILLEGAL = 13
    SERVICE_NOT_AVAILABLE = 14
    VERSION_NOT_SUPPORTED = 15
    NO_PERMISSION = 16
    TOPIC_NOT_EXIST = 17
    TOPIC_EXIST_ALREADY = 18
    PULL_NOT_FOUND = 19
    PULL_RETRY_IMMEDIATELY = 20
    PULL_OFFSET_MOVED = 21
    QUERY_NOT_FOUND = 22
    SUBSCRIPTION_PARSE_FAILED = 23
    SUBSCRIPTION_NOT_EXIST = 24
    SUBSCRIPTION_NOT_LATEST = 25
    SUBSCRIPTION_GROUP_NOT_EXIST = 26
    FILTER_DATA_NOT_EXIST = 27
    FILTER_DATA_NOT_LATEST = 28
    INVALID_PARAMETER = 29
    TRANSACTION_SHOULD_COMMIT = 200
    TRANSACTION_SHOULD_ROLLBACK = 201
    TRANSACTION_STATE_UNKNOW = 202
    TRANSACTION_STATE_GROUP_WRONG = 203
    NO_BUYER_ID = 204
    NOT_IN_CURRENT_UNIT = 205
    CONSUMER_NOT_ONLINE = 206
    CONSUME_MSG_TIMEOUT = 207
    NO_MESSAGE = 208
    POLLING_FULL = 209
    POLLING_TIMEOUT = 210
    BROKER_NOT_EXIST = 211
    BROKER_DISPATCH_NOT_COMPLETE = 212
    BROADCAST_CONSUMPTION = 213
    FLOW_CONTROL = 215
    NOT_LEADER_FOR_QUEUE = 501
    ILLEGAL_OPERATION = 604
    GO_AWAY = 1500
    LMQ_QUOTA_EXCEEDED = 2017
    LITE_SUBSCRIPTION_QUOTA_EXCEEDED = 2018
    USER_NOT_EXIST = 3001
    POLICY_NOT_EXIST = 3002
