"""RocketMQ's own topics and groups (`TopicValidator`, `MixAll.PREDEFINE_GROUP_SET`, Proxies; 5.5.0)."""

from __future__ import annotations

from rmqlb.model.group import DLQ_PREFIX, RETRY_PREFIX

PROXY_SYNC_TOPIC = "DefaultHeartBeatSyncerTopic"  # `ProxyConfig.heartbeatSyncerTopicName`
PROXY_SYNC_GROUP = f"CID_{PROXY_SYNC_TOPIC}"  # `AbstractSystemMessageSyncer.getSystemMessageConsumerId`
_TOPICS = {
    *("TBW102", "SCHEDULE_TOPIC_XXXX", "BenchmarkTest", "SELF_TEST_TOPIC", "OFFSET_MOVED_EVENT", "CHECKPOINT_TOPIC"),
    *("RMQ_SYS_TRANS_HALF_TOPIC", "RMQ_SYS_TRACE_TOPIC", "RMQ_SYS_TRANS_OP_HALF_TOPIC", "TRANS_CHECK_MAX_TIME_TOPIC"),
    *("RMQ_SYS_ROCKSDB_TRANS_HALF_TOPIC", "RMQ_SYS_ROCKSDB_TRANS_OP_HALF_TOPIC", PROXY_SYNC_TOPIC),
}
REPLY_SUFFIX = "_REPLY_TOPIC"  # of the topic for replies, which begins with a cluster's name
_OWN_TOPIC_PREFIXES = ("rmq_sys_", "%SYS%")
_TOPIC_PREFIXES = (*_OWN_TOPIC_PREFIXES, RETRY_PREFIX, DLQ_PREFIX)
_GROUPS = {
    *("DEFAULT_CONSUMER", "DEFAULT_PRODUCER", "TOOLS_CONSUMER", "SCHEDULE_CONSUMER", "FILTERSRV_CONSUMER"),
    *("__MONITOR_CONSUMER", "CLIENT_INNER_PRODUCER", "SELF_TEST_P_GROUP", "SELF_TEST_C_GROUP", "CID_ONS-HTTP-PROXY"),
    *("CID_ONSAPI_PERMISSION", "CID_ONSAPI_OWNER", "CID_ONSAPI_PULL", "CID_RMQ_SYS_TRANS", PROXY_SYNC_GROUP),
}
_GROUP_PREFIXES = ("CID_RMQ_SYS_", "%SYS%")
SYSTEM_PREFIXES = tuple(dict.fromkeys((*_OWN_TOPIC_PREFIXES, *_GROUP_PREFIXES)))
"""Prefixes that no name of a group or cluster follows."""


def is_system_topic(topic: str) -> bool:
    """RocketMQ's own topics, and those for retries and dead letters.

    Brokers and clusters also have a topic of their own name each, which only the cluster's list shows.
    """
    return topic in _TOPICS or topic.startswith(_TOPIC_PREFIXES) or topic.endswith(REPLY_SUFFIX)


def is_system_group(group: str) -> bool:
    return group in _GROUPS or group.startswith(_GROUP_PREFIXES)


def is_fixed_name(name: str) -> bool:
    """A topic or group that has the same name in every cluster."""
    return name in _TOPICS or name in _GROUPS
