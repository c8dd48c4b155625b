"""What producers of a topic have left in each case."""

from __future__ import annotations

from rmqlb.engine.check.policy_limits import writable_brokers
from rmqlb.engine.plan.changes import Changes, change_route
from rmqlb.engine.sweep.effects import Atoms, Effect
from rmqlb.errors import DataError
from rmqlb.model.route import TopicRouteData
from rmqlb.model.snapshot import RouteSighting
from rmqlb.model.sweep import TopicOutcome


class TopicCases:
    """One topic; a static one has logical queues, which do not follow single brokers: nothing of it is lost."""

    def __init__(self, sighting: RouteSighting) -> None:
        self.sighting = sighting
        self.route = sighting.route
        self.atoms = Atoms((), () if self.route.is_static else (self.route,))
        self._found: dict[Effect, TopicOutcome] = {}

    @property
    def computed(self) -> int:
        """How many different results were computed."""
        return len(self._found)

    def outcome(self, effect: Effect) -> TopicOutcome:
        """What it comes to (raises DataError for an order configuration that producers cannot use)."""
        if effect not in self._found:
            route = self.route_without(effect)
            names = writable_brokers(route)
            queues = sum(queue.broker_name in names for queue in route.publish_queues())
            self._found[effect] = TopicOutcome(len(names), queues)
        return self._found[effect]

    def route_without(self, effect: Effect) -> TopicRouteData:
        """The route that NameServers give once they have dropped what is lost."""
        return change_route(self.route, Changes(remove_brokers=effect.brokers, remove_masters=effect.masters))


def topic_cases(sighting: RouteSighting) -> TopicCases:
    """The topic's cases (raises DataError where nothing can be said of its producers)."""
    if sighting.others:
        raise DataError("NameServers give different routes of it")
    if sighting.route.is_static:
        raise DataError("it is a static topic: its queues are logical and do not follow single brokers")
    cases = TopicCases(sighting)
    cases.outcome(Effect())
    return cases
