"""What the rules look at, of one group of a snapshot.

Rule of this file: evidence that the snapshot lacks raises DataError, which makes a rule's answer "unknown";
DoesNotApply says that there is nothing to look for in such a group. No default stands for what was not observed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from functools import cached_property
from itertools import pairwise

from msgspec import Struct

from rmqlb.engine.assignment.balance import Owners
from rmqlb.engine.assignment.consumers import reported_strategies, subscriptions
from rmqlb.engine.group import Group, known
from rmqlb.errors import DataError
from rmqlb.model.diagnosis import Evidence
from rmqlb.model.group import CONSUME_ACTIVELY, RETRY_PREFIX, ConsumerGroup, MemberView, ProxyView, Seen
from rmqlb.model.message_queue import MessageQueue, sort_client_ids
from rmqlb.model.route import TopicRouteData
from rmqlb.model.snapshot import is_ghost
from rmqlb.model.times import utc_text
from rmqlb.model.words import counted, messages

CONVERGES_MS = 50_000
"""A consumer hears of a new queue within 30 s (route poll) and rebalances within 20 s more."""
FORGETS_MS = 120_000
"""A broker forgets a silent client after 120 s (`ConsumerManager.CHANNEL_EXPIRED_TIMEOUT`)."""

ASK_BROKERS = "diagnose again when that broker answers, from where it can be reached"
"""What to do where a broker did not answer."""
MAKE_EVIDENCE = "make the snapshot with fetch-routes --evidence"
"""What to do where consumers were not asked for evidence."""
ASK_CONSUMERS = "diagnose again; if it does not answer then either, look at its process"
"""What to do where a consumer did not answer."""
ASK_OTHERWISE = "clients in some languages report less than Java's; that consumer's own log shows more"
"""What to do where a consumer answered, and its report lacks something."""
LOOK_AGAIN = "look again some seconds later; in a file, give the snapshot made before it with --earlier"
"""What to do where one look is too few."""
LOOKS = 3
"""A judgement of growth or stall needs so many looks, and `diagnose` takes so many unless told otherwise."""


class DoesNotApply(Exception):
    """What a rule looks for cannot be the case in such a group; the argument says why."""


class AnotherLookNeeded(DataError):
    """A later look at the same group would decide it.

    Args:
        problem: what is not decided, and what would decide it.
        after_ms: how much later the look has to be, in milliseconds; None where some seconds will do.
        needed_ms: what all looks together have to cover, in milliseconds; the interval that is advised covers it.
    """

    def __init__(self, problem: str, *, after_ms: int | None = None, needed_ms: int = 0) -> None:
        super().__init__(problem, hint=LOOK_AGAIN if after_ms is None else _look_again(after_ms, needed_ms))


def _look_again(after_ms: int, needed_ms: int) -> str:
    """One more look in time, or a run of `LOOKS` looks that cover all that is needed."""
    after_s = -(-after_ms // 1000)
    interval_s = max(after_s, -(-needed_ms // (1000 * (LOOKS - 1))))
    later = f"look again {after_s} s later (--interval {interval_s}s)"
    return f"{later}; in a file, give the snapshot made before it with --earlier"


class GroupEvidence(Struct, dict=True, eq=False):
    """One group of a snapshot, and the same group as earlier looks saw it.

    Attributes:
        facts: of the last look.
        earlier: the looks before it, the oldest first; `looks.earlier_look` makes one of a snapshot.
    """

    facts: Group
    earlier: tuple[ConsumerGroup, ...] = ()

    @cached_property
    def group(self) -> ConsumerGroup:
        """The group (raises DataError when it could not be read)."""
        return self.facts.group

    @property
    def looks(self) -> tuple[ConsumerGroup, ...]:
        """All looks, the last one last (raises DataError)."""
        return (*self.earlier, self.group)

    @cached_property
    def read_at(self) -> tuple[int, ...]:
        """When each look was, in milliseconds since 1970 (raises DataError)."""
        times = [look.seen.at for look in self.earlier]
        times.append(self.group.seen.at or self.facts.snapshot.taken_at)
        known = tuple(round(at.timestamp() * 1000) for at in times if at is not None)
        if len(known) < len(times):
            raise DataError("when the looks were is unknown")
        if any(after <= before for before, after in pairwise(known)):
            raise DataError("the earlier looks are not in the order of time", hint="give them with the oldest first")
        return known

    @cached_property
    def views(self) -> tuple[MemberView, ...]:
        """The lists of consumers that brokers gave, where some consumer is online (raises DataError).

        There is none where only a Proxy lists consumers.
        """
        if self.group.views is None:
            raise DataError("its consumers are unknown", hint="diagnose a live cluster, or a snapshot that lists them")
        if not self.group.client_ids:
            if self.facts.untold is not None:
                raise DataError(self.facts.untold, hint=ASK_BROKERS)
            raise DoesNotApply("no consumer is visible")
        return self.group.views

    @property
    def lists(self) -> tuple[MemberView | ProxyView, ...]:
        """The same, and the lists of Proxies (raises as `views`)."""
        return (*self.views, *(self.group.proxies or ()))

    def must_share(self) -> None:
        """Refuse groups of which no consumer is known, and those whose consumers do not share their queues."""
        if self.lists and self.facts.apart is not None:
            raise DoesNotApply(self.facts.apart)
        self.facts.must_be_assigned()

    @cached_property
    def processes(self) -> Counter[str]:
        """Client ID → how many processes have it, as the broker says that lists most of them."""
        return Counter(self.group.client_ids or ())

    @cached_property
    def ghosts(self) -> frozenset[str]:
        """The listed clients that answer that they do not run the group."""
        return frozenset(
            part.detail
            for part in self.facts.snapshot.unread
            if (part.kind, part.name) == ("member", self.facts.name) and part.detail and is_ghost(part.reason)
        )

    def must_be_all_lists(self) -> None:
        """Refuse to answer (DataError) as long as some broker of the group's topics has not listed its consumers."""
        if self._missing_list is not None:
            answered = self.facts.untold is None and not self.facts.snapshot.unread
            hint = "read all brokers of its topics: -s rocketmq://HOST:9876" if answered else ASK_BROKERS
            raise DataError(self._missing_list, hint=hint)

    @cached_property
    def _missing_list(self) -> str | None:
        if self.facts.untold is not None:
            return self.facts.untold
        if not self.views:  # those of a Proxy; the brokers have answered that they list none
            return None
        listed = {self.broker_name(view) for view in self.views}
        silent = sorted(self.broker_names - listed)
        return f"the consumers that broker {silent[0]} lists are unknown" if silent else None

    @cached_property
    def pushing(self) -> tuple[str, ...]:
        """The consumers that the client pulls for, as clients sort them (raises DataError)."""
        return tuple(sort_client_ids(filter(self._pushes, self.processes.keys() - self.ghosts)))

    def _pushes(self, client_id: str) -> bool:
        reports = self.group.reports
        kind = reports[client_id].consumer_type if client_id in reports else None
        return kind == "push" if kind is not None else self.group.consume_type != CONSUME_ACTIVELY

    @cached_property
    def has_process_queues(self) -> bool:
        """Some consumer has reported process queues in some look (raises DataError)."""
        reported = (report.evidence for look in self.looks for report in look.reports.values())
        return any(each is not None and each.queues is not None for each in reported)

    @cached_property
    def broker_names(self) -> frozenset[str]:
        """The brokers of the topics' queues (raises DataError)."""
        return frozenset(queue.broker_name for queue in self.queues)

    def broker_name(self, view: MemberView) -> str | None:
        """The broker that gave the list; None when its address is in no route."""
        for route in self.routes:
            for broker in route.broker_datas:
                if view.broker_addr in broker.broker_addrs.values():
                    return broker.broker_name
        return None

    @cached_property
    def topics(self) -> tuple[str, ...]:
        """All topics to which some consumer subscribes: brokers list those of the last heartbeat (raises DataError)."""
        if self.group.own_topics is None:
            raise DataError("its topics are unknown", hint="diagnose while one of its consumers is online")
        return tuple(sorted(self.facts.topics))

    @cached_property
    def routes(self) -> tuple[TopicRouteData, ...]:
        """The routes of these topics (raises DataError)."""
        for why in self.facts.unknown_routes.values():
            raise DataError(why.message, hint="diagnose again with that topic's route")
        if not self.topics:
            raise DataError("it subscribes to no topic")
        return tuple(self.facts.snapshot.routes[topic].route for topic in self.topics)

    @cached_property
    def queues(self) -> tuple[MessageQueue, ...]:
        """The queues that its consumers can read (raises DataError)."""
        return tuple(queue for route in self.routes for queue in route.subscribe_queues())

    @cached_property
    def observed(self) -> Owners:
        """Queue → its owners, of the queues whose owners were observed."""
        return self.facts.observed

    @property
    def receives(self) -> bool:
        """Its consumers receive messages by POP or from a Proxy, and own no queue; False where that is unknown."""
        return known(lambda: self.facts.assigned_by) in ("pop", "proxy")

    @property
    def ask_offsets(self) -> str:
        """What to do where the offsets of some queues are unknown."""
        lost = [part for part in self.facts.snapshot.unread if part.kind == "offsets" and part.name == self.facts.name]
        if lost:
            return ASK_BROKERS
        if len(self.looks) > 1:
            return "look again: a queue counts once all looks have its offsets"
        return "read the running cluster: -s rocketmq://HOST:9876; a snapshot has what was read then"

    def stack_traces(self, of: str) -> str:
        """The stack traces of consumers in a sentence, with the option that asks for them where none was."""
        reports = (report.evidence for report in self.group.reports.values())
        has_some = any(each is not None and each.stacks for each in reports)
        return f"the stack traces of {of}" + ("" if has_some else " (--stacks)")

    def must_be_observed(self) -> None:
        """Refuse to answer (DataError) as long as some queue's owners are unknown."""
        unknown = sum(queue not in self.observed for queue in self.queues if queue.topic not in self.facts.popped)
        if unknown:
            raise DataError(f"the owners of {counted(unknown, 'queue')} are unknown", hint=ASK_CONSUMERS)

    @cached_property
    def strategies(self) -> Mapping[str, str]:
        """Client ID → the strategy that it reports, of the consumers that brokers list."""
        reported = reported_strategies(self.group)
        return {client_id: name for client_id, name in reported.items() if client_id in self.processes}

    @cached_property
    def subscriptions(self) -> Mapping[str, frozenset[str]]:
        """Client ID → the topics that it reports, of the same consumers."""
        return {i: topics for i, topics in subscriptions(self.group).items() if i in self.processes}

    @cached_property
    def filters(self) -> Mapping[str, Mapping[str, str]]:
        """Client ID → which messages of each topic it reports to take, of the same consumers."""
        reports = {i: self.group.reports[i].evidence for i in self.processes if i in self.group.reports}
        return {
            i: {topic: each for topic, each in known.filters.items() if not topic.startswith(RETRY_PREFIX)}
            for i, known in reports.items()
            if known is not None and known.filters is not None
        }

    def must_be_of_all(self, known: Mapping[str, object], what: str) -> None:
        """Refuse to answer (DataError) when this is not known of each consumer, or there may be others."""
        silent = [client_id for client_id in self.processes if client_id not in known and client_id not in self.ghosts]
        if silent:
            raise DataError(
                f"the {what} of {counted(len(silent), 'consumer')} is unknown: {silent[0]} did not report it",
                hint=ASK_CONSUMERS,
            )
        self.must_be_all_lists()

    def youngest_ms(self) -> float | None:
        """How long the consumer has run that started last; None when that is unknown."""
        at = self.group.seen.at or self.facts.snapshot.taken_at
        starts = [self.group.reports[i].started_at for i in self.processes if i in self.group.reports]
        known = [start for start in starts if start is not None]
        if at is None or not known:
            return None
        return at.timestamp() * 1000 - max(known)

    def is_younger_than(self, ms: float) -> bool:
        """Some consumer is known to have started that recently, so that the others may not have followed yet."""
        age = self.youngest_ms()
        return age is not None and -ms < age < ms  # long before its start its clock is not ours

    def changes_hands(self, queue: MessageQueue) -> bool:
        """Its observed owners are not the same in all looks, or may not be where brokers list other consumers since."""
        owners = {look.queues[queue].owners for look in self.looks if queue in look.queues}
        return len(owners - {None}) > 1 or (None in owners and self._lists_change)

    @cached_property
    def _lists_change(self) -> bool:
        return len({look.client_ids for look in self.looks if look.client_ids is not None}) > 1

    def lag(self, queues: tuple[MessageQueue, ...]) -> int:
        """Messages not yet read in these queues, as far as they are known."""
        states = self.group.without_foreign_offsets.queues
        return sum(states[queue].lag or 0 for queue in queues if queue in states)

    def unread_in(self, queues: Collection[MessageQueue]) -> str:
        """The same in words, of queues of a group that keeps its offsets at brokers, as far as they are known."""
        states = self.group.without_foreign_offsets.queues
        lags = [states[queue].lag for queue in queues if queue in states]
        known = [lag for lag in lags if lag is not None]
        if not known:
            return "how much is unread there is unknown"
        return f"{messages(sum(known))} unread there" + (
            "" if len(known) == len(queues) else ", of those that are known"
        )

    def seen(
        self, fact: str, value: str | int, *, threshold: str | int | None = None, by: Seen | None = None
    ) -> Evidence:
        """A fact with where and when it was observed."""
        where = by or self.group.seen
        at = where.at or self.group.seen.at or self.facts.snapshot.taken_at
        return Evidence(fact, value, threshold, where.where, None if at is None else utc_text(at))
