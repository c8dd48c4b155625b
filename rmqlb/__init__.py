"""What a RocketMQ cluster's clients will do with their queues, known before it happens.

The names below are the public Python API; importing `rmqlb` itself loads none of them.
"""

from __future__ import annotations

from _thread import RLock
from importlib import import_module
from typing import TYPE_CHECKING, Any

from rmqlb.version import __version__

if TYPE_CHECKING:
    from rmqlb.engine.allocate import allocate, allocate_for
    from rmqlb.engine.allocate.conformance import check_strategy
    from rmqlb.engine.assignment.assign import Members
    from rmqlb.engine.assignment.brokers import assign_pop
    from rmqlb.engine.rebalance.simulate import simulate_group, simulate_group_trials
    from rmqlb.engine.send.fault import MQFaultStrategy, TopicPublishInfo
    from rmqlb.engine.send.java import JavaRandom
    from rmqlb.engine.send.sdks.balancers import PublishingLoadBalancer, go_round_robin
    from rmqlb.engine.send.sdks.queues import publish_queues
    from rmqlb.engine.send.selectors import select_by_hash, select_by_machine_room, select_by_random
    from rmqlb.engine.send.simulate import simulate_send
    from rmqlb.engine.send.trials import simulate_trials
    from rmqlb.engine.simulate_receive.simulate_receive import receives_within, simulate_receive
    from rmqlb.engine.size_group.size_group import size_group
    from rmqlb.errors import AllocationError, DataError, EndpointError, RmqlbError, UsageError
    from rmqlb.model.group_scenario import Event, GroupScenario, Timers
    from rmqlb.model.message_queue import MessageQueue
    from rmqlb.model.route import BrokerData, QueueData, TopicRouteData
    from rmqlb.model.send_scenario import Failure, Latency, Moment, Reaction, SendScenario
    from rmqlb.model.simulate_rebalance import GroupTrials, RebalanceResult
    from rmqlb.model.simulate_receive import Crash, QueueRate, ReceiveReport, ReceiveScenario, TargetWait
    from rmqlb.model.simulate_send import Attempt, SendReport, TrialsReport
    from rmqlb.model.size_group import GroupSize, SizeLimits, SizeQuestion
    from rmqlb.model.sweep_failures import FailureSweep
    from rmqlb.sources.formats.documents import parse_route
    from rmqlb.verbs.check import check
    from rmqlb.verbs.diagnose import diagnose
    from rmqlb.verbs.diff import diff
    from rmqlb.verbs.fetch_routes import fetch_routes
    from rmqlb.verbs.plan_rebalance import plan_rebalance
    from rmqlb.verbs.plan_rollout import plan_rollout
    from rmqlb.verbs.plan_topic import plan_topic
    from rmqlb.verbs.show_groups import show_consumers, show_groups
    from rmqlb.verbs.show_owners import show_owners
    from rmqlb.verbs.simulate_rebalance import simulate_rebalance
    from rmqlb.verbs.sweep_failures import sweep_failures

_HOMES = {
    name: module
    for module, names in {
        "rmqlb.errors": "AllocationError DataError EndpointError RmqlbError UsageError",
        "rmqlb.model.simulate_send": "Attempt SendReport TrialsReport",
        "rmqlb.model.simulate_receive": "Crash QueueRate ReceiveReport ReceiveScenario TargetWait",
        "rmqlb.model.route": "BrokerData QueueData TopicRouteData",
        "rmqlb.model.group_scenario": "Event GroupScenario Timers",
        "rmqlb.model.send_scenario": "Failure Latency Moment Reaction SendScenario",
        "rmqlb.model.simulate_rebalance": "GroupTrials RebalanceResult",
        "rmqlb.engine.send.java": "JavaRandom",
        "rmqlb.engine.send.selectors": "select_by_hash select_by_machine_room select_by_random",
        "rmqlb.engine.assignment.assign": "Members",
        "rmqlb.engine.assignment.brokers": "assign_pop",
        "rmqlb.model.message_queue": "MessageQueue",
        "rmqlb.engine.send.fault": "MQFaultStrategy TopicPublishInfo",
        "rmqlb.engine.send.sdks.balancers": "PublishingLoadBalancer go_round_robin",
        "rmqlb.engine.send.sdks.queues": "publish_queues",
        "rmqlb.engine.allocate": "allocate allocate_for",
        "rmqlb.engine.allocate.conformance": "check_strategy",
        "rmqlb.sources.formats.documents": "parse_route",
        "rmqlb.engine.rebalance.simulate": "simulate_group simulate_group_trials",
        "rmqlb.engine.simulate_receive.simulate_receive": "receives_within simulate_receive",
        "rmqlb.engine.send.simulate": "simulate_send",
        "rmqlb.engine.send.trials": "simulate_trials",
        "rmqlb.engine.size_group.size_group": "size_group",
        "rmqlb.model.size_group": "GroupSize SizeLimits SizeQuestion",
        "rmqlb.model.sweep_failures": "FailureSweep",
        "rmqlb.verbs.check": "check",
        "rmqlb.verbs.diagnose": "diagnose",
        "rmqlb.verbs.diff": "diff",
        "rmqlb.verbs.fetch_routes": "fetch_routes",
        "rmqlb.verbs.plan_rebalance": "plan_rebalance",
        "rmqlb.verbs.plan_rollout": "plan_rollout",
        "rmqlb.verbs.plan_topic": "plan_topic",
        "rmqlb.verbs.show_groups": "show_consumers show_groups",
        "rmqlb.verbs.show_owners": "show_owners",
        "rmqlb.verbs.simulate_rebalance": "simulate_rebalance",
        "rmqlb.verbs.sweep_failures": "sweep_failures",
    }.items()
    for name in names.split()
}

__all__ = [
    "AllocationError",
    "Attempt",
    "BrokerData",
    "Crash",
    "DataError",
    "EndpointError",
    "Event",
    "Failure",
    "FailureSweep",
    "GroupScenario",
    "GroupSize",
    "GroupTrials",
    "JavaRandom",
    "Latency",
    "MQFaultStrategy",
    "Members",
    "MessageQueue",
    "Moment",
    "PublishingLoadBalancer",
    "QueueData",
    "QueueRate",
    "Reaction",
    "RebalanceResult",
    "ReceiveReport",
    "ReceiveScenario",
    "RmqlbError",
    "SendReport",
    "SendScenario",
    "SizeLimits",
    "SizeQuestion",
    "TargetWait",
    "Timers",
    "TopicPublishInfo",
    "TopicRouteData",
    "TrialsReport",
    "UsageError",
    "__version__",
    "allocate",
    "allocate_for",
    "assign_pop",
    "check",
    "check_strategy",
    "diagnose",
    "diff",
    "fetch_routes",
    "go_round_robin",
    "parse_route",
    "plan_rebalance",
    "plan_rollout",
    "plan_topic",
    "publish_queues",
    "receives_within",
    "select_by_hash",
    "select_by_machine_room",
    "select_by_random",
    "show_consumers",
    "show_groups",
    "show_owners",
    "simulate_group",
    "simulate_group_trials",
    "simulate_rebalance",
    "simulate_receive",
    "simulate_send",
    "simulate_trials",
    "size_group",
    "sweep_failures",
]

_importing = RLock()
"""Python gives a module that is not complete to a thread that would otherwise wait for ever: threads that import what
imports one another from different ends meet that, so one at a time does."""


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'rmqlb' has no attribute {name!r}")
    with _importing:
        value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value
