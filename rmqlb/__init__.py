"""Predict how RocketMQ consumers and producers use their queues, before you change the cluster.

The names of `__all__` are the public Python API; importing `rmqlb` itself loads none of them. `__init__.pyi` has their
types.
"""

from _thread import RLock
from importlib import import_module
from typing import Any

from rmqlb.version import __version__ as __version__

_MODULES = {
    "engine.allocate": "allocate allocate_for",
    "engine.allocate.conformance": "check_strategy",
    "engine.assignment.assign": "Members",
    "engine.assignment.brokers": "assign_pop",
    "engine.rebalance.simulate": "simulate_group simulate_group_trials",
    "engine.send.fault": "MQFaultStrategy TopicPublishInfo",
    "engine.send.java": "JavaRandom",
    "engine.send.queues": "PublishingLoadBalancer go_round_robin publish_queues select_by_hash "
    "select_by_machine_room select_by_random",
    "engine.send.simulate": "simulate_send",
    "engine.send.trials": "simulate_trials",
    "engine.simulate_receive.simulate_receive": "receives_within simulate_receive",
    "engine.size_group.size_group": "size_group",
    "errors": "AllocationError DataError EndpointError RmqlbError UsageError",
    "model.group_scenario": "Event GroupScenario Timers",
    "model.message_queue": "MessageQueue",
    "model.route": "BrokerData QueueData TopicRouteData",
    "model.send_scenario": "Failure Latency Moment Reaction SendScenario",
    "model.simulate_rebalance": "GroupTrials RebalanceResult",
    "model.simulate_receive": "Crash QueueRate ReceiveReport ReceiveScenario TargetWait",
    "model.simulate_send": "Attempt SendReport TrialsReport",
    "model.size_group": "GroupSize SizeLimits SizeQuestion",
    "model.sweep_failures": "FailureSweep",
    "sources.formats.documents": "parse_route",
    "verbs.check": "check",
    "verbs.diagnose": "diagnose",
    "verbs.diff": "diff",
    "verbs.doctor": "doctor",
    "verbs.fetch_routes": "fetch_routes",
    "verbs.plan_rebalance": "plan_rebalance",
    "verbs.plan_rollout": "plan_rollout",
    "verbs.plan_topic": "plan_topic",
    "verbs.show_groups": "show_consumers show_groups",
    "verbs.show_owners": "show_owners",
    "verbs.simulate_rebalance": "simulate_rebalance",
    "verbs.sweep_failures": "sweep_failures",
}
"""Module → its public names."""
_HOMES = {name: f"rmqlb.{module}" for module, names in _MODULES.items() for name in names.split()}
__all__ = [*_HOMES, "__version__"]  # noqa: PLE0604 - the names are computed

_importing = RLock()
"""Two threads that import modules of a cycle from different ends get incomplete modules, so one imports at a time."""


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'rmqlb' has no attribute {name!r}")
    with _importing:
        value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value
