"""What producers of a topic have left in each case."""

from __future__ import annotations

from collections import Counter

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
        """Raises DataError for an order configuration that producers cannot use."""
        self.sighting = sighting
        self.route = sighting.route
        self.atoms = Atoms((), () if self.route.is_static else (self.route,))
        names = writable_brokers(self.route)
        queues = Counter(queue.broker_name for queue in self.route.publish_queues())
        self.queues = {name: number for name, number in queues.items() if name in names}
        """Broker that producers can send to → how many queues they have there, in the order of their list."""
        self._found: dict[Effect, TopicOutcome] = {}

    @property
    def computed(self) -> int:
        """How many different results were computed."""
        return len(self._found)

    def outcome(self, effect: Effect) -> TopicOutcome:
        """What it comes to: without its master a broker is of no use to producers, whatever the route says of it."""
        if effect not in self._found:
            left = [n for name, n in self.queues.items() if name not in effect.brokers and name not in effect.masters]
            self._found[effect] = TopicOutcome(len(left), sum(left))
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
    return TopicCases(sighting)
