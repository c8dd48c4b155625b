"""What takes simulations: the gaps of groups, and the failed attempts of producers; of the worst cases only."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rmqlb.engine.consume.reported_clients import client_version, consumer_types
from rmqlb.engine.consume.simulate import GroupSimulation
from rmqlb.engine.send.horizon import long_enough
from rmqlb.engine.send.simulate import simulate_send
from rmqlb.engine.sweep.effects import Effect
from rmqlb.engine.sweep.group_cases import GroupCases
from rmqlb.engine.sweep.losses import Taken
from rmqlb.engine.sweep.topic_cases import TopicCases
from rmqlb.errors import RmqlbError
from rmqlb.model.group_scenario import Event, GroupScenario, known_consume_from
from rmqlb.model.route import TopicRouteData
from rmqlb.model.send_scenario import HOST_LOSS_US, REFUSED_US, Failure, Reaction, SendScenario
from rmqlb.model.sweep import SILENT

GAP_TRIALS = 3
"""Simulations of a case; the longest gap of any is its gap."""
_MOST_WORK = 4000
"""Consumers × queues of a group up to which a simulation takes some tenths of a second."""
_REFUSED, _SILENT = Reaction("refused", "refused", 0, REFUSED_US), Reaction("timeout", "timeout")


def has_gaps(cases: GroupCases, effect: Effect) -> bool:
    """Somebody is left, no queue is without an owner for good, and the group is not too large."""
    outcome = cases.outcome(effect)
    return 0 < outcome.consumers * outcome.queues <= _MOST_WORK and not outcome.unassigned


def gap_ms(cases: GroupCases, effect: Effect, taken: Sequence[Taken]) -> float | None:
    """The longest time in which a queue has no owner meanwhile, over a few simulations.

    Processes are killed, so that their connections close; what a host or zone takes falls silent. None where the
    simulation does not know one of them.
    """
    group = cases.facts.group
    kind, kinds, _ = consumer_types(group)
    scenario = GroupScenario(
        gap_events(cases, effect, taken),
        client_version=client_version(group)[0],
        orderly=bool(cases.orderly),
        consume_from=known_consume_from(group.consume_from_where),
        consumer_type=kind,
        consumer_types=kinds,
    )
    try:
        simulation = GroupSimulation(None, cases.members, cases.routes, scenario, states=group.queues)
        return max(simulation.run(trial, gaps_only=True).figures.longest_gap_ms for trial in range(GAP_TRIALS))
    except RmqlbError:
        return None  # a plan can be of more than a simulation: of a broker without an address, say


def gap_events(cases: GroupCases, effect: Effect, taken: Sequence[Taken]) -> tuple[Event, ...]:
    """What happens to the group at once."""
    return tuple(_events(cases, effect, taken))


def _events(cases: GroupCases, effect: Effect, taken: Sequence[Taken]) -> Iterator[Event]:
    silent = _silent(taken)
    for place in effect.places:
        client_id = cases.atoms.client_ids[place]
        yield Event("host-loss" if client_id in silent else "crash", 0, client_id)
    for name in effect.brokers:
        yield Event("broker-loss" if name in silent else "broker-down", 0, name, with_slaves=True)
    for name in effect.masters:
        yield Event("broker-loss" if name in silent else "broker-down", 0, name)


def _silent(taken: Sequence[Taken]) -> set[str]:
    """Client IDs and brokers that fall silent."""
    machines = [each for each in taken if each.loss.kind in SILENT]
    return {name for each in machines for name, _ in (*each.processes, *each.addresses)}


class Producers:
    """Producers of topics; those of topics of one shape do the same, and are simulated once.

    The shape of a topic is how many queues producers see on each of its brokers, in the order in which they see them:
    names count in nothing but that order.
    """

    def __init__(self) -> None:
        self._shares: dict[object, float | None] = {}

    def key(self, cases: TopicCases, failing: Sequence[tuple[str, bool]]) -> object:
        """Equal for what is simulated once."""
        places = {name: place for place, name in enumerate(cases.queues)}
        return tuple(cases.queues.values()), tuple((places[name], silent) for name, silent in failing)

    def known(self, key: object) -> bool:
        """It was simulated."""
        return key in self._shares

    def failed_share(self, cases: TopicCases, failing: Sequence[tuple[str, bool]]) -> float | None:
        """The share of failed attempts for as long as the failure is news to the producer."""
        if not failing:
            return 0.0
        key = self.key(cases, failing)
        if key not in self._shares:
            self._shares[key] = _failed_share(cases.route, failing)
        return self._shares[key]


def failing_brokers(cases: TopicCases, effect: Effect, taken: Sequence[Taken]) -> tuple[tuple[str, bool], ...]:
    """The brokers of the producers' list that fail, each with whether it falls silent."""
    silent = _silent(taken)
    return tuple((name, name in silent) for name in cases.queues if name in effect.brokers or name in effect.masters)


def _failed_share(route: TopicRouteData, failing: Sequence[tuple[str, bool]]) -> float | None:
    failures = tuple(
        Failure(name, _SILENT if silent else _REFUSED, notices_us=HOST_LOSS_US if silent else 0)
        for name, silent in failing
    )
    try:
        totals = simulate_send(route, long_enough(SendScenario(failures=failures)), trace=False).totals
    except RmqlbError:
        return None
    return totals.failed_attempts / totals.attempts if totals.attempts else None
