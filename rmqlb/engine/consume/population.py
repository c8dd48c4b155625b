"""All members of a simulation, and what events do to them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from rmqlb.engine.assignment.assign import Members
from rmqlb.engine.consume.client import Client
from rmqlb.engine.consume.fixed_rate import age_us
from rmqlb.engine.consume.group_environment import GroupEnvironment
from rmqlb.model.group_scenario import Event, EventKind
from rmqlb.model.message_queue import sort_client_ids


class Population:
    """Every member that ever was, in the order in which they came."""

    def __init__(self, env: GroupEnvironment, members: Members, topics: Sequence[str]) -> None:
        self._env = env
        self._members = members
        self._topics = tuple(topics)
        self.clients: list[Client] = []

    def begin(self, *, all_new: bool) -> None:
        """Let the members of the beginning be there: for a while already, or started now."""
        for client_id in sort_client_ids(self._members.client_ids):
            age = 0 if all_new else age_us(self._env.draws(len(self.clients)))
            client = self._add(client_id, None, -age)
            if all_new:
                client.start()
            else:
                client.have_run()
        if not all_new:
            self._settle()

    def expect(self, events: Sequence[Event]) -> None:
        self._env.events_left = len(events)
        for event in events:
            self._env.clock.call(event.at_us, self._happen, event)

    def _add(self, client_id: str, strategy: str | None, created_us: int) -> Client:
        members, topics = self._members, self._topics
        subscribed = members.subscribed.get(client_id)
        client = Client(
            client_id,
            number=len(self.clients),
            strategy=strategy or members.strategy_for(client_id),
            topics=topics if subscribed is None else tuple(topic for topic in topics if topic in subscribed),
            env=self._env,
            created_us=created_us,
        )
        self.clients.append(client)
        self._env.clients.append(client)
        return client

    def _settle(self) -> None:
        env = self._env
        members = env.shares.members(tuple(sort_client_ids(client.client_id for client in self.clients)))
        for client in self.clients:
            for topic in client.allocates:
                view = env.name_server.views.get(topic)
                if view is None:
                    continue
                share = env.shares.share(view, client.strategy, members, client.client_id)
                client.queues.has_had(view.queues if env.broadcasting else share or (), client.created_us)
            env.check(client)

    def _happen(self, event: Event) -> None:
        env = self._env
        env.events_left -= 1
        env.say(event.subject, "event", event.text)
        if event.kind == "broker-up":
            env.bring_up(event)
        elif event.kind in ("broker-down", "broker-loss"):
            env.take_down(event)
        elif event.kind == "route-change":
            env.change_route(event)
        else:
            self._apply(event)
            env.truth_changed()

    def _apply(self, event: Event) -> None:
        if event.kind == "join":
            self._add(event.subject, event.strategy_name, self._env.clock.now).start()
            return
        frozen = event.kind == "unfreeze"
        named = [each for each in self.clients if each.alive and each.client_id == event.subject]
        client = next((each for each in named if each.frozen is frozen), named[0])
        _HAPPENS[event.kind](client)


_HAPPENS: Mapping[EventKind, Callable[[Client], None]] = {
    "leave": Client.leave,
    "crash": Client.crash,
    "host-loss": Client.lose_host,
    "freeze": Client.freeze,
    "unfreeze": Client.unfreeze,
    "pull-stall": lambda client: client.queues.stall(),
}
