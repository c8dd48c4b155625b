"""What a RocketMQ cluster's clients will do with their queues, known before it happens.

The names below are the public Python API; importing `rmqlb` itself loads none of them.
"""

from __future__ import annotations

import sys
from _thread import RLock
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from rmqlb.version import __version__

if TYPE_CHECKING:
    from rmqlb.engine.allocate import allocate, allocate_for
    from rmqlb.engine.allocate.conformance import check_strategy
    from rmqlb.engine.assignment.assign import Members
    from rmqlb.engine.assignment.brokers import assign_pop
    from rmqlb.engine.rebalance.simulate import simulate_group, simulate_group_trials
    from rmqlb.engine.send.balancers import PublishingLoadBalancer, go_round_robin
    from rmqlb.engine.send.fault import MQFaultStrategy, TopicPublishInfo
    from rmqlb.engine.send.java import JavaRandom
    from rmqlb.engine.send.queues import publish_queues, select_by_hash, select_by_machine_room, select_by_random
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
"""Two threads that import modules of a cycle from different ends get incomplete modules, so one imports at a time."""


@cache
def _homes() -> dict[str, str]:
    """Map each public name to its module, as the imports above declare it."""
    import ast
    from inspect import getsource

    tree = ast.parse(getsource(sys.modules[__name__]))
    imports = (node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom))
    return {alias.name: str(node.module) for node in imports for alias in node.names}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'rmqlb' has no attribute {name!r}")
    with _importing:
        value = getattr(import_module(_homes()[name]), name)
    globals()[name] = value
    return value
