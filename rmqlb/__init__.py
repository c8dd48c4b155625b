"""What a RocketMQ cluster's clients will do with their queues, known before it happens.

The names imported below are the public Python API, `__all__`; importing `rmqlb` itself loads none of them.
"""

from __future__ import annotations

import sys
from _thread import RLock
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from rmqlb.version import __version__ as __version__

if TYPE_CHECKING:
    from rmqlb.engine.allocate import allocate as allocate, allocate_for as allocate_for
    from rmqlb.engine.allocate.conformance import check_strategy as check_strategy
    from rmqlb.engine.assignment.assign import Members as Members
    from rmqlb.engine.assignment.brokers import assign_pop as assign_pop
    from rmqlb.engine.rebalance.simulate import (
        simulate_group as simulate_group,
        simulate_group_trials as simulate_group_trials,
    )
    from rmqlb.engine.send.fault import MQFaultStrategy as MQFaultStrategy, TopicPublishInfo as TopicPublishInfo
    from rmqlb.engine.send.java import JavaRandom as JavaRandom
    from rmqlb.engine.send.balancers import (
        PublishingLoadBalancer as PublishingLoadBalancer,
        go_round_robin as go_round_robin,
    )
    from rmqlb.engine.send.queues import (
        publish_queues as publish_queues,
        select_by_hash as select_by_hash,
        select_by_machine_room as select_by_machine_room,
        select_by_random as select_by_random,
    )
    from rmqlb.engine.send.simulate import simulate_send as simulate_send
    from rmqlb.engine.send.trials import simulate_trials as simulate_trials
    from rmqlb.engine.simulate_receive.simulate_receive import (
        receives_within as receives_within,
        simulate_receive as simulate_receive,
    )
    from rmqlb.engine.size_group.size_group import size_group as size_group
    from rmqlb.errors import (
        AllocationError as AllocationError,
        DataError as DataError,
        EndpointError as EndpointError,
        RmqlbError as RmqlbError,
        UsageError as UsageError,
    )
    from rmqlb.model.group_scenario import Event as Event, GroupScenario as GroupScenario, Timers as Timers
    from rmqlb.model.message_queue import MessageQueue as MessageQueue
    from rmqlb.model.route import BrokerData as BrokerData, QueueData as QueueData, TopicRouteData as TopicRouteData
    from rmqlb.model.send_scenario import (
        Failure as Failure,
        Latency as Latency,
        Moment as Moment,
        Reaction as Reaction,
        SendScenario as SendScenario,
    )
    from rmqlb.model.simulate_rebalance import GroupTrials as GroupTrials, RebalanceResult as RebalanceResult
    from rmqlb.model.simulate_receive import (
        Crash as Crash,
        QueueRate as QueueRate,
        ReceiveReport as ReceiveReport,
        ReceiveScenario as ReceiveScenario,
        TargetWait as TargetWait,
    )
    from rmqlb.model.simulate_send import Attempt as Attempt, SendReport as SendReport, TrialsReport as TrialsReport
    from rmqlb.model.size_group import GroupSize as GroupSize, SizeLimits as SizeLimits, SizeQuestion as SizeQuestion
    from rmqlb.model.sweep_failures import FailureSweep as FailureSweep
    from rmqlb.sources.formats.documents import parse_route as parse_route
    from rmqlb.verbs.check import check as check
    from rmqlb.verbs.diagnose import diagnose as diagnose
    from rmqlb.verbs.diff import diff as diff
    from rmqlb.verbs.fetch_routes import fetch_routes as fetch_routes
    from rmqlb.verbs.plan_rebalance import plan_rebalance as plan_rebalance
    from rmqlb.verbs.plan_rollout import plan_rollout as plan_rollout
    from rmqlb.verbs.plan_topic import plan_topic as plan_topic
    from rmqlb.verbs.show_groups import show_consumers as show_consumers, show_groups as show_groups
    from rmqlb.verbs.show_owners import show_owners as show_owners
    from rmqlb.verbs.simulate_rebalance import simulate_rebalance as simulate_rebalance
    from rmqlb.verbs.sweep_failures import sweep_failures as sweep_failures

_importing = RLock()
"""Two threads that import modules of a cycle from different ends get incomplete modules, so one imports at a time."""


@cache
def _homes() -> dict[str, str]:
    """Map each public name to its module, as the imports above declare it."""
    import ast
    from inspect import getsource

    tree = ast.parse(getsource(sys.modules[__name__]))
    imports = (node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom))
    return {alias.name: str(node.module) for node in imports for alias in node.names if alias.asname}


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return sorted(_homes())
    if name.startswith("__") or name not in _homes():
        raise AttributeError(f"module 'rmqlb' has no attribute {name!r}")
    with _importing:
        value = getattr(import_module(_homes()[name]), name)
    globals()[name] = value
    return value
