"""The evidence on one group that the rules of a diagnosis judge.

Missing evidence raises DataError, which makes a rule's answer "unknown"; DoesNotApply means that such a group cannot
have the problem. No default replaces an observation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from functools import cached_property
from itertools import pairwise

from msgspec import Struct

from rmqlb.engine.assignment.balance import Owners
from rmqlb.engine.assignment.consumers import reported_strategies, subscriptions
from rmqlb.engine.group import Group
from rmqlb.errors import DataError
from rmqlb.model.diagnosis import Evidence
from rmqlb.model.group import CONSUME_ACTIVELY, RETRY_PREFIX, ConsumerGroup, MemberView, ProxyView, Seen
from rmqlb.model.message_queue import MessageQueue, sort_client_ids
from rmqlb.model.process_queue import ConsumerEvidence
from rmqlb.model.route import TopicRouteData
from rmqlb.model.snapshot import is_ghost
from rmqlb.model.times import utc_text
from rmqlb.model.words import counted, messages

CONVERGES_MS = 50_000  # a consumer learns of a new queue within 30 s (route poll) and rebalances within 20 s more
FORGETS_MS = 120_000  # a broker forgets a silent client after 120 s (`ConsumerManager.CHANNEL_EXPIRED_TIMEOUT`)

ASK_BROKERS = "diagnose again when that broker answers, from where it can be reached"
MAKE_EVIDENCE = "make the snapshot with fetch-routes --evidence"
ASK_CONSUMERS = "diagnose again; if it does not answer then either, look at its process"
ASK_OTHERWISE = "clients in some languages report less than Java's; that consumer's own log shows more"
LOOKS = 3  # for a judgement of growth or stall; also the default of `--looks`


class DoesNotApply(Exception):
    """Such a group cannot have the problem; the argument is the reason."""


class AnotherLookNeeded(DataError):
    """A later look would decide the rule.

    Args:
        problem: the undecided matter, and the data that would decide it.
        after_ms: the least time until that look; None where some seconds are enough.
        needed_ms: the time that all looks together must cover.
    """

    def __init__(self, problem: str, *, after_ms: int | None = None, needed_ms: int = 0) -> None:
        when = "some seconds later;"
        if after_ms is not None:
            after_s = -(-after_ms // 1000)
            when = f"{after_s} s later (--interval {max(after_s, -(-needed_ms // (1000 * (LOOKS - 1))))}s);"
        super().__init__(problem, hint=f"look again {when} in a file, give the snapshot made before it with --earlier")


class GroupEvidence(Struct, dict=True, eq=False):
    facts: Group  # the group at the last look
    earlier: tuple[ConsumerGroup, ...] = ()  # the looks before it, the oldest first

    @cached_property
    def group(self) -> ConsumerGroup:
        return self.facts.group

    @property
    def looks(self) -> tuple[ConsumerGroup, ...]:
        return (*self.earlier, self.group)

    @cached_property
    def read_at(self) -> tuple[int, ...]:
        """In milliseconds since 1970 (raises DataError)."""
        times = [*(look.seen.at for look in self.earlier), self.group.seen.at or self.facts.snapshot.taken_at]
        known = tuple(round(at.timestamp() * 1000) for at in times if at is not None)
        if len(known) < len(times):
            raise DataError("when the looks were is unknown")
        if any(after <= before for before, after in pairwise(known)):
            raise DataError("the earlier looks are not in the order of time", hint="give them with the oldest first")
        return known

    def seen(
        self, fact: str, value: str | int, threshold: str | int | None = None, *, by: Seen | None = None
    ) -> Evidence:
        where = by or self.group.seen
        at = where.at or self.group.seen.at or self.facts.snapshot.taken_at
        return Evidence(fact, value, threshold, where.where, None if at is None else utc_text(at))

    @cached_property
    def views(self) -> tuple[MemberView, ...]:
        """The consumer lists of brokers; () where only a Proxy lists consumers."""
        self.must_be_listed()
        if not self.group.client_ids:
            raise DoesNotApply("no consumer is visible")
        return self.group.views or ()

    def must_be_listed(self) -> None:
        if self.group.views is None:
            raise DataError("its consumers are unknown", hint="diagnose a live cluster, or a snapshot that lists them")
        if not self.group.client_ids and self.facts.untold is not None:
            raise DataError(self.facts.untold, hint=ASK_BROKERS)

    @property
    def lists(self) -> tuple[MemberView | ProxyView, ...]:
        return (*self.views, *(self.group.proxies or ()))

    def must_share(self) -> None:
        """Reject groups without a known consumer, or whose consumers do not share queues."""
        if self.lists and self.facts.apart is not None:
            raise DoesNotApply(self.facts.apart)
        self.facts.must_be_assigned()

    @cached_property
    def processes(self) -> Counter[str]:
        """Client ID → the number of its processes, by the list with the most."""
        return Counter(self.group.client_ids or ())

    @cached_property
    def ghosts(self) -> frozenset[str]:
        """Listed clients that answer that they do not run the group."""
        members = [part for part in self.facts.snapshot.unread if (part.kind, part.name) == ("member", self.facts.name)]
        return frozenset(part.detail for part in members if part.detail and is_ghost(part.reason))

    def must_be_all_lists(self) -> None:
        """Raise DataError while a broker of the group's topics has not listed its consumers."""
        missing = self.facts.untold
        if missing is None and self.views:  # where only a Proxy lists consumers, the brokers answered without any
            silent = sorted(self.broker_names - {self.broker_name(view) for view in self.views})
            missing = f"the consumers that broker {silent[0]} lists are unknown" if silent else None
        if missing is not None:
            answered = self.facts.untold is None and not self.facts.snapshot.unread
            hint = "read all brokers of its topics: -s rocketmq://HOST:9876" if answered else ASK_BROKERS
            raise DataError(missing, hint=hint)

    @cached_property
    def pushing(self) -> tuple[str, ...]:
        reports, usual = self.group.reports, "pull" if self.group.consume_type == CONSUME_ACTIVELY else "push"
        kinds = {i: reports[i].consumer_type if i in reports else None for i in self.processes.keys() - self.ghosts}
        return tuple(sort_client_ids(client_id for client_id, kind in kinds.items() if (kind or usual) == "push"))

    def report_of(self, client_id: str) -> ConsumerEvidence:
        """The running information of a consumer, empty where none is reported."""
        report = self.group.reports.get(client_id)
        return ConsumerEvidence() if report is None or report.evidence is None else report.evidence

    @cached_property
    def strategies(self) -> Mapping[str, str]:
        return {i: name for i, name in reported_strategies(self.group).items() if i in self.processes}

    @cached_property
    def subscriptions(self) -> Mapping[str, frozenset[str]]:
        return {i: topics for i, topics in subscriptions(self.group).items() if i in self.processes}

    @cached_property
    def filters(self) -> Mapping[str, Mapping[str, str]]:
        reported = {client_id: self.report_of(client_id).filters for client_id in self.processes}
        return {
            client_id: {topic: tags for topic, tags in filters.items() if not topic.startswith(RETRY_PREFIX)}
            for client_id, filters in reported.items()
            if filters is not None
        }

    def must_be_of_all(self, known: Mapping[str, object], what: str) -> None:
        """Raise DataError when a consumer did not report this, or others may exist."""
        silent = [client_id for client_id in self.processes if client_id not in known and client_id not in self.ghosts]
        if silent:
            problem = f"the {what} of {counted(len(silent), 'consumer')} is unknown: {silent[0]} did not report it"
            raise DataError(problem, hint=ASK_CONSUMERS)
        self.must_be_all_lists()

    def is_younger_than(self, ms: float) -> bool:
        """Some consumer started so recently that the others may not have followed yet."""
        at = self.group.seen.at or self.facts.snapshot.taken_at
        starts = [self.group.reports[i].started_at for i in self.processes if i in self.group.reports]
        latest = max((start for start in starts if start is not None), default=None)
        # The clock of a consumer that started long after the look is ahead.
        return at is not None and latest is not None and -ms < at.timestamp() * 1000 - latest < ms

    @property
    def is_rebalancing(self) -> bool:
        return self.is_younger_than(CONVERGES_MS)

    def stack_traces(self, of: str) -> str:
        """Words of a remedy, with `--stacks` where no traces were requested."""
        has_some = any(self.report_of(client_id).stacks for client_id in self.group.reports)
        return f"the stack traces of {of}" + ("" if has_some else " (--stacks)")

    @cached_property
    def topics(self) -> tuple[str, ...]:
        if self.group.own_topics is None:
            raise DataError("its topics are unknown", hint="diagnose while one of its consumers is online")
        return tuple(sorted(self.facts.topics))

    @cached_property
    def routes(self) -> tuple[TopicRouteData, ...]:
        for why in self.facts.unknown_routes.values():
            raise DataError(why.message, hint="diagnose again with that topic's route")
        if not self.topics:
            raise DataError("it subscribes to no topic")
        return tuple(self.facts.snapshot.routes[topic].route for topic in self.topics)

    @cached_property
    def queues(self) -> tuple[MessageQueue, ...]:
        return tuple(queue for route in self.routes for queue in route.subscribe_queues())

    @cached_property
    def broker_names(self) -> frozenset[str]:
        return frozenset(queue.broker_name for queue in self.queues)

    @cached_property
    def addresses(self) -> Mapping[str, str]:
        """Address → broker, over the routes of the group's topics."""
        brokers = [broker for route in self.routes for broker in route.broker_datas]
        return {address: broker.broker_name for broker in brokers for address in broker.broker_addrs.values()}

    def broker_name(self, view: MemberView) -> str | None:
        """The broker of the list; None when its address is in no route."""
        return None if view.broker_addr is None else self.addresses.get(view.broker_addr)

    @property
    def observed(self) -> Owners:
        """Queues whose owners are unknown are absent."""
        return self.facts.observed

    def owners(self, queue: MessageQueue) -> tuple[str, ...]:
        return self.observed.get(queue, ())

    @property
    def all_observed(self) -> bool:
        return all(queue in self.observed for queue in self.queues)

    def must_be_observed(self) -> None:
        unknown = sum(queue not in self.observed for queue in self.queues if queue.topic not in self.facts.popped)
        if unknown:
            raise DataError(f"the owners of {counted(unknown, 'queue')} are unknown", hint=ASK_CONSUMERS)

    def may_pass(self, queue: MessageQueue) -> bool:
        """A rebalance may explain it: it goes on, or the queue's owners differ between looks, or may differ."""
        owners = {look.queues[queue].owners for look in self.looks if queue in look.queues}
        lists = {look.client_ids for look in self.looks if look.client_ids is not None}
        return self.is_rebalancing or len(owners - {None}) > 1 or (None in owners and len(lists) > 1)

    def lag(self, queues: Iterable[MessageQueue]) -> int:
        states = self.facts.states
        return sum(states[queue].lag or 0 for queue in queues if queue in states)

    def unread_in(self, queues: Collection[MessageQueue]) -> str:
        states = self.facts.states
        known = sum(queue in states and states[queue].lag is not None for queue in queues)
        least = "" if known == len(queues) else "at least "
        return f"{least}{messages(self.lag(queues))} unread there" if known else "lag there unknown"

    def summary(self, queues: Collection[MessageQueue], state: str) -> str:
        return f"{counted(len(queues), 'queue')} {state}; {self.unread_in(queues)}."

    @property
    def ask_offsets(self) -> str:
        if any((part.kind, part.name) == ("offsets", self.facts.name) for part in self.facts.snapshot.unread):
            return ASK_BROKERS
        if self.earlier:
            return "look again: a queue counts once all looks have its offsets"
        return "read the running cluster: -s rocketmq://HOST:9876; a snapshot has what was read then"
