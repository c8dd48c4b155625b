"""Quiet time is not gone through step by step: between two events, a group that is settled repeats itself.

The members' timers go on, and draw random numbers each time, so that where they stand at the next event depends on all
of it. But nobody changes what anybody else sees: each member goes through that time by itself (`idle`), and all that is
left of it is when brokers last heard it. Whatever is not known to be so goes step by step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from rmqlb.engine.consume.broker import Broker
from rmqlb.engine.consume.client import Client
from rmqlb.engine.consume.clock import Process, first_tick, until_next_tick
from rmqlb.engine.consume.group_environment import GroupEnvironment
from rmqlb.engine.consume.idle import IdleTimer, Ways, go_on
from rmqlb.engine.consume.shares import TopicView
from rmqlb.model.group_scenario import SECOND_US
from rmqlb.model.route import MASTER_ID

if TYPE_CHECKING:
    from rmqlb.engine.consume.vectorized import WaysAhead

_WORTH_US = 300 * SECOND_US
_BEFORE_US = 70 * SECOND_US  # so long before the next thing that happens all is gone through step by step again
_AGAIN_US = 30 * SECOND_US

_Wakes = list[tuple[int, Process, int]]  # when a process fell asleep, the process, and when it wakes up


class QuietTime:
    """What looks for quiet time while a simulation runs."""

    def __init__(self, env: GroupEnvironment, clients: Sequence[Client]) -> None:
        self._env = env
        self._clients = clients
        self._look_us = 0
        self._ways: WaysAhead | None = None

    def skip(self, until_us: int) -> None:
        """Let the time pass until shortly before something happens, if there is much of it and all is quiet."""
        env, now = self._env, self._env.clock.now
        if now < self._look_us or until_us - now < _WORTH_US or not env.is_at_rest():
            return
        self._look_us = now + _AGAIN_US
        sleeping, other = env.clock.asleep()
        clients = [client for client in self._clients if client.takes_part]
        frozen = [client for client in self._clients if client.frozen]
        timers = {process for client in clients for process in client.timers.values()}
        brokers = [broker for broker in env.brokers() if broker.up]
        scans = {process: every for broker in brokers for process, every in broker.every_us.items()}
        # Whatever is due beside members' timers and brokers' scans may change something: an event, a frozen member that
        # goes on, a message under way. Time is skipped up to shortly before the first of it.
        strangers = (due for process, due in sleeping.items() if process not in timers and process not in scans)
        until = min((*strangers, until_us, until_us if other is None else other)) - _BEFORE_US
        if until - now < _WORTH_US - _BEFORE_US or not _is_quiet(env, clients, brokers):
            return
        if any(client.connections.connected for client in frozen):  # brokers have yet to close them
            return
        wakes: _Wakes = []
        for process, due in sleeping.items():
            if process in scans and due < until:
                every = scans[process]
                next_due = first_tick(due, every, until)  # a scan of quiet time finds nothing: it only comes later
                wakes.append((next_due - every, process, next_due))
        for client in clients:
            idle = _idle_timers(env, client, sleeping) if client.rests else None
            if idle is not None:
                wakes += self._go_on(client, idle, until)
        # Of two things due at the same time the one that was asked for first comes first. So processes are put back in
        # the order in which they would have fallen asleep, and those that did so together in the order of before.
        order = {process: number for number, process in enumerate(sleeping)}
        wakes.sort(key=lambda wake: (wake[0], order[wake[1]]))
        env.clock.postpone({process: due for _, process, due in wakes})

    def _go_on(self, client: Client, idle: dict[Process, IdleTimer], until_us: int) -> _Wakes:
        self._env.clock.count(sum(timer.most_times(until_us) for timer in idle.values()))
        # Its random numbers come in the order of time, of all timers together: where they stand at the end decides what
        # it draws at the next event, so that none may be left out, though most of them change nothing.
        ways = Ways(self._ahead(client.draws.state))
        through, drawn = go_on(list(idle.values()), ways, until_us)
        client.draws.skip(drawn)
        wakes, done = [], dict(zip(idle, through, strict=True))
        for name, process in client.timers.items():
            timer = done[process]
            if not timer.done:
                continue
            wakes.append((timer.over_us, process, timer.due_us))
            if name == "loop":
                client.has_rested(timer.over_us)
                self._env.log.rebalances += timer.done
            elif name == "beats":  # of all beats only the last one counts: a broker keeps when it last heard whom
                for broker, at in zip(client.calls(), timer.ends(ways)[::2], strict=True):
                    broker.beat(client, at_us=at)
            elif name == "renewals":
                for (broker, locked), at in zip(client.queues.locked().items(), timer.ends(ways)[::2], strict=True):
                    for held in locked:
                        client.queues.renew(broker, held, at)
        return wakes

    def _ahead(self, state: int) -> Callable[[int, int], list[int]]:
        if self._ways is None:
            from rmqlb.engine.consume.vectorized import WaysAhead

            self._ways = WaysAhead(self._env.ways())
        return partial(self._ways.ways, state)


def _is_quiet(env: GroupEnvironment, clients: Sequence[Client], brokers: Sequence[Broker]) -> bool:
    """Brokers know exactly those that send them heartbeats, in time and over open connections, and say nothing."""
    # A broker forgets whom it has not heard for `channel_expiry_us`, and the others rebalance. Between two
    # heartbeats lie the pause of the timer and one round of requests and answers, each as slow as any; one more pause
    # is for a heartbeat that ran into a timeout before the quiet began.
    slowest_round_us = 2 * max((len(client.calls()) for client in clients), default=0) * env.longest_way_us()
    slowest_beat_us = max((client.clocks.heartbeat_us for client in clients), default=0)
    if 2 * slowest_beat_us + slowest_round_us > env.timers.channel_expiry_us:
        return False
    if any(
        each.profile.min_interval and each.clocks.rebalance_wait_us < each.clocks.rebalance_min_us for each in clients
    ):
        return False
    known: dict[Broker, int] = dict.fromkeys(brokers, 0)
    for client in clients:
        for broker in client.calls():
            if not broker.up or client not in broker.channels or broker not in client.connections.connected:
                return False
            known[broker] += 1
    return all(broker.rests and len(broker.channels) == number for broker, number in known.items())


def _idle_timers(
    env: GroupEnvironment, client: Client, sleeping: Mapping[Process, int]
) -> dict[Process, IdleTimer] | None:
    """A member's timers, in the order in which they fell asleep; None when they do not repeat themselves."""
    timers, asked = client.clocks, _asked(env, client)
    if asked is None or "loop" not in client.timers:
        return None
    topics, balanced = asked
    pause = timers.rebalance_wait_us if balanced or not client.profile.min_interval else timers.rebalance_min_us

    def every(period_us: int, due_us: int, waits: int, length: int = 1, *, picks: bool = False) -> IdleTimer:
        return IdleTimer(
            due_us,
            waits,
            lambda over, due: over + until_next_tick(due, period_us, over),
            every_us=period_us,
            length=length,
            picks=picks,
        )

    due = {name: sleeping[process] for name, process in client.timers.items()}
    idle = {
        "loop": every(pause, due["loop"], 2 * topics, picks=True)
        if client.profile.ticks
        else IdleTimer(due["loop"], 2 * topics, lambda over, _: over + pause, every_us=pause, picks=True),
        "polls": every(timers.route_poll_us, due["polls"], len(client.topics), 2),
        "beats": every(timers.heartbeat_us, due["beats"], 2 * len(client.calls())),
    }
    if env.locks:
        locked = client.queues.locked()
        for broker, queues in locked.items():
            if not broker.up or broker not in client.connections.connected:
                return None
            if any(broker.lock_of(held.queue) != client.client_id for held in queues):
                return None
        idle["renewals"] = every(timers.lock_renewal_us, due["renewals"], 2 * len(locked))
    names = {process: name for name, process in client.timers.items()}
    return {process: idle[names[process]] for process in sleeping if process in names}


def _asked(env: GroupEnvironment, client: Client) -> tuple[int, bool] | None:
    """For how many topics a rebalance asks a broker, and whether it is balanced; None when it may change something."""
    balanced, number = True, 0
    for topic in client.allocates if not env.broadcasting else ():
        view = client.views.get(topic)
        if view is not None and client.profile.ends_at_failure and not view.queues:
            return None
        if view is None or (client.profile.empty_ends_early and not view.queues):
            continue
        kept = _kept(env, client, view)
        if kept is None:
            return None
        number += 1
        balanced = balanced and kept
    return number, balanced


def _kept(env: GroupEnvironment, client: Client, view: TopicView) -> bool | None:
    """Whether a rebalance of the topic is balanced, whichever broker is asked; None when that is not all."""
    answers = set()
    for name in view.brokers:
        broker = env.first_of(name, view.addresses[name])
        if broker is None or broker.broker_id != MASTER_ID or broker not in client.connections.connected:
            return None
        answers.add(broker.members)
    kept = set()
    for members in answers:
        if members is None and client.profile.ends_at_failure:
            return None
        share = None if members is None else env.shares.share(view, client.strategy, members, client.client_id)
        if share is None and env.log.explain:
            return None
        if not client.queues.is_settled({view.topic: share}):
            return None
        kept.add(members is None or share is not None)
    return kept.pop() if len(kept) == 1 else None
