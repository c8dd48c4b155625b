"""The numbers in `RemotingCommand.code`, with the names of RocketMQ 5.5.0.

`RequestCode` has exactly the requests of rmqlb, which all read. Their codes are the same in 4.9, which lacks those from
351 on. A server may answer any number.
"""

from enum import IntEnum
from typing import Final


class RequestCode(IntEnum):
    """`org.apache.rocketmq.remoting.protocol.RequestCode`."""

    # The group's stored offset of a queue; 22 (QUERY_NOT_FOUND) without one. Without `setZeroIfNotFound`, as in
    # clients' requests, the answer is 0 if nothing is stored and the queue's first message is still in the broker's
    # memory (before 5.1: not yet on disk only).
    QUERY_CONSUMER_OFFSET = 14
    # A broker's state as texts; `bootTimestamp` and `runtime` (`StoreStatsService.getRuntimeInfo`) give its clock.
    GET_BROKER_RUNTIME_INFO = 28
    # The first message stored at this time or later, in milliseconds since 1970.
    SEARCH_OFFSET_BY_TIMESTAMP = 29
    GET_MAX_OFFSET = 30  # the end of a queue, the number of its next message; 0 without the queue
    GET_MIN_OFFSET = 31  # the first message that is not deleted yet; below 0 without the queue
    GET_ROUTEINFO_BY_TOPIC = 105  # the TopicRouteData of a topic; 17 (TOPIC_NOT_EXIST) if there is none
    GET_BROKER_CLUSTER_INFO = 106  # all brokers and their addresses by cluster; keys of `brokerAddrs` are bare integers
    # The configuration of all groups; without paging fields every broker sends everything at once.
    GET_ALL_SUBSCRIPTIONGROUP_CONFIG = 201
    # Connections and subscriptions of a group; 206 (CONSUMER_NOT_ONLINE) without a consumer online.
    GET_CONSUMER_CONNECTION_LIST = 203
    GET_ALL_TOPIC_LIST_FROM_NAMESERVER = 206  # 1 with remark `disable` where `enableAllTopicList` is off
    GET_CONSUME_STATS = 208  # broker and consumer offset of every queue of a group
    # A client's queues and state, with `jstackEnable` its stack traces. The broker asks the client, and answers 207
    # (CONSUME_MSG_TIMEOUT) after 10 s, or 1 when it has no such client or cannot reach it.
    GET_CONSUMER_RUNNING_INFO = 307
    # For brokers since 5.0. An older one answers that the code is unknown, or nothing.
    GET_TOPIC_CONFIG = 351  # the broker's TopicConfig, attributes included; 17 (TOPIC_NOT_EXIST) without one
    QUERY_ASSIGNMENT = 400  # the queues that the broker would assign to a client, and PULL or POP
    GET_ALL_MESSAGE_REQUEST_MODE = 402  # PULL or POP where it was set; others have the broker's default
    POLLING_INFO = 200055  # number of the group's waiting receive requests (POP) for any queue (queueId -1)


READ_ONLY: Final = frozenset(RequestCode)  # the allow-list of `Exchange.send`


class ResponseCode(IntEnum):
    """`org.apache.rocketmq.remoting.protocol.ResponseCode` and `RemotingSysResponseCode`."""

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
