"""Which brokers work, and which of them NameServer, Proxy and clients believe to be there.

Rules of this file:
- All but the Proxy's turns is a function of the time: nothing but the scenario's failures changes it.
- A broker registers as soon as it is back. A poll at the very moment of a change comes before it.
- The Proxy's view is renewed when it is 20 s old, since there are always receives that look at it.
- A client whose list would be empty keeps the one it has (`SubscriptionLoadBalancer` refuses an empty one).
"""

from __future__ import annotations

from rmqlb.engine.receive.randomness import PROXY, draws
from rmqlb.engine.receive.rules import (
    ASSIGNMENT_US,
    FIRST_ASSIGNMENT_US,
    FIRST_POP_ROUTE_US,
    FIRST_ROUTE_US,
    PROXY_ROUTE_US,
    REBALANCE_US,
    ROUTE_US,
)
from rmqlb.model.java import sort_key
from rmqlb.model.receive_scenario import ReceiveScenario
from rmqlb.model.send_scenario import Failure

NEVER = 1 << 62


class Outage:
    """A broker's failure, in microseconds."""

    __slots__ = ("begin", "dropped", "end", "failure", "place", "silent")

    def __init__(self, failure: Failure, place: int) -> None:
        self.failure = failure
        self.place = place  # among the scenario's failures
        self.begin = failure.start.us or 0
        self.end = NEVER if failure.end is None or failure.end.us is None else failure.end.us
        self.dropped = NEVER if failure.notices_us is None else self.begin + failure.notices_us
        self.silent = failure.reaction.kind == "timeout"


class Routes:
    """Who works, and who is believed to."""

    def __init__(self, brokers: list[str], scenario: ReceiveScenario, trial: int) -> None:
        self.outages: dict[str, list[Outage]] = {}
        for place, failure in enumerate(scenario.failures):
            self.outages.setdefault(failure.broker_name, []).append(Outage(failure, place))
        for own in self.outages.values():
            own.sort(key=lambda outage: outage.begin)
        self._proxied = scenario.client != "pop"
        self._push = scenario.client == "push"
        self._phase = draws(scenario.seed, trial, PROXY).below(PROXY_ROUTE_US)
        self._sorted = sorted(brokers, key=sort_key)
        self._fallback = draws(scenario.seed, trial, PROXY, 1).below(1 << 31)

    def outage(self, broker: str, now: int) -> Outage | None:
        """The failure that a broker is in; of several the last to begin."""
        if not self.outages:
            return None
        found = None
        for each in self.outages.get(broker, ()):
            if each.begin <= now < each.end:
                found = each
        return found

    def back_at(self, broker: str, now: int) -> int:
        """When a broker works again; `now` when it does."""
        outage = self.outage(broker, now)
        while outage is not None and now < NEVER:
            now = outage.end
            outage = self.outage(broker, now)
        return now

    def proxy_knows(self, broker: str, now: int) -> bool:
        """The Proxy's view has the broker."""
        return not self.outages or self._registered(broker, _last(self._phase, PROXY_ROUTE_US, now))

    def client_knows(self, broker: str, now: int) -> bool:
        """A client's queue list or assignments have the broker."""
        if not self.outages:
            return True
        if self._push:
            return self.proxy_knows(broker, _last(FIRST_ASSIGNMENT_US, ASSIGNMENT_US, now))
        if self._proxied:
            return self.proxy_knows(broker, _last(FIRST_ROUTE_US, ROUTE_US, now))
        rebalanced = _last(0, REBALANCE_US, now)
        return self._registered(broker, _last(FIRST_POP_ROUTE_US, ROUTE_US, rebalanced))

    def known(self, queue_brokers: list[str], now: int) -> list[str]:
        """Of the brokers of queues those that a client's queue list has."""
        if not self.outages:
            return queue_brokers
        gone = {name for name in self.outages if not self.client_knows(name, now)}
        return [name for name in queue_brokers if name not in gone]

    def through_proxy(self, broker: str, now: int) -> str | None:
        """The broker that the Proxy asks for one that a client named (`ReceiveMessageQueueSelector.select`).

        Its own when the Proxy's view has it, otherwise the next of those that it has; None without any.
        """
        if self.proxy_knows(broker, now):
            return broker
        known = [each for each in self._sorted if self.proxy_knows(each, now)]
        if not known:
            return None
        self._fallback += 1
        return known[self._fallback % len(known)]

    def _registered(self, broker: str, at: int) -> bool:
        """The NameServer had the broker just before a time; before the start it had all."""
        own = self.outages.get(broker, ())
        return at <= 0 or not any(each.dropped < at <= each.end and each.dropped < each.end for each in own)


def _last(first: int, every: int, now: int) -> int:
    """The last time of a timer at or before a moment; 0 before its first."""
    return first + (now - first) // every * every if now >= first else 0
