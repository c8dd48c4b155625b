"""The evidence on one group that the rules of a diagnosis judge.

Missing evidence raises DataError, which makes a rule's answer "unknown"; DoesNotApply means that such a group cannot
have the problem. No default replaces an observation.

- Reports are of push consumers. Consumers that pull on their own (lite-pull, pull) are left out: their application
  decides when to pull messages.
- A time is old only if the consumer's own times or the samples prove it: its clock may differ from this computer's.
  An age by this computer's clock counts only to call a time recent, and only where no time shows that clocks differ.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from itertools import pairwise

from msgspec import Struct

from rmqlb.engine.assignment.assign import Owners
from rmqlb.engine.assignment.consumers import reported_strategies, subscriptions
from rmqlb.engine.group import Group
from rmqlb.errors import DataError
from rmqlb.model.diagnosis import Evidence
from rmqlb.model.group import BROADCASTING, CONSUME_ACTIVELY, RETRY_PREFIX, ConsumerGroup, MemberView, ProxyView, Seen
from rmqlb.model.message_queue import MessageQueue, sort_client_ids
from rmqlb.model.process_queue import ConsumerEvidence, ConsumeStatus, ProcessQueue
from rmqlb.model.result import counted, messages, utc_text
from rmqlb.model.route import TopicRouteData
from rmqlb.model.snapshot import is_ghost

CONVERGES_MS = 50_000  # a consumer learns of a new queue within 30 s (route poll) and rebalances within 20 s more
FORGETS_MS = 120_000  # a broker forgets a silent client after 120 s (`ConsumerManager.CHANNEL_EXPIRED_TIMEOUT`)


ASK_BROKERS = "diagnose again when that broker answers, from a machine that can reach it"
MAKE_EVIDENCE = "make the snapshot with fetch-routes --evidence"
ASK_CONSUMERS = "diagnose again; if the consumer still does not answer, check its process"
ASK_OTHERWISE = "clients in some languages report less than Java clients; read that consumer's log"
NEEDED: Mapping[str, str] = {
    ASK_BROKERS: "answers from the brokers",
    MAKE_EVIDENCE: "fetch-routes --evidence",
    **dict.fromkeys((ASK_CONSUMERS, ASK_OTHERWISE), "answers from the consumers"),
}
"""How to get missing evidence → that evidence in a few words."""
SAMPLES = 3  # for a judgement of growth or stall; also the default of `--samples`


class DoesNotApply(Exception):
    """Raised if such a group cannot have the problem; the argument is the reason."""


class AnotherSampleNeeded(DataError):
    """Raised if a later sample would decide the rule.

    `after_ms` is the least time until that sample, None where some seconds are enough; all samples together must cover
    `needed_ms`. `suspect` is the consumer for which `problem` shows what the rule looks for.
    """

    def __init__(
        self, problem: str, needs: str = "", *, after_ms: int | None = None, needed_ms: int = 0, suspect: str = ""
    ) -> None:
        self.shown, self.suspect = problem, suspect
        when = "after some seconds;"
        if after_ms is not None:
            after_s = -(-after_ms // 1000)
            when = f"after {after_s} s (--every {max(after_s, -(-needed_ms // (1000 * (SAMPLES - 1))))}s);"
        hint = f"diagnose again {when} for a snapshot file, pass the one taken before it with --earlier"
        super().__init__(f"{problem}: needs {needs}" if needs else problem, hint=hint)


class GroupEvidence(Struct, dict=True, eq=False):
    facts: Group  # the group at the last sample
    earlier: tuple[ConsumerGroup, ...] = ()  # the samples before it, the oldest first

    @cached_property
    def group(self) -> ConsumerGroup:
        return self.facts.group

    @property
    def samples(self) -> tuple[ConsumerGroup, ...]:
        return (*self.earlier, self.group)

    @cached_property
    def read_at(self) -> tuple[int, ...]:
        """The times of the samples, in milliseconds since 1970 (raises DataError)."""
        times = [*(sample.seen.at for sample in self.earlier), self.group.seen.at or self.facts.snapshot.taken_at]
        known = tuple(round(at.timestamp() * 1000) for at in times if at is not None)
        if len(known) < len(times):
            raise DataError("the times of the samples are unknown")
        if any(after <= before for before, after in pairwise(known)):
            raise DataError("the earlier samples are not in order of time", hint="give the oldest first")
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
        """Whether a consumer started so recently that the others may not have rebalanced yet."""
        at = self.group.seen.at or self.facts.snapshot.taken_at
        starts = [self.group.reports[i].started_at for i in self.processes if i in self.group.reports]
        latest = max((start for start in starts if start is not None), default=None)
        # The clock of a consumer that started long after the sample is ahead.
        return at is not None and latest is not None and -ms < at.timestamp() * 1000 - latest < ms

    @property
    def is_rebalancing(self) -> bool:
        return self.is_younger_than(CONVERGES_MS)

    def stack_traces(self, of: str) -> str:
        """The words for stack traces in a remedy, with `--stacks` where no traces were requested."""
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
            raise DataError(why.message, hint="diagnose with the route of that topic")
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
        """Queue → its observed owners; queues whose owners are unknown are absent."""
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
        """Whether a rebalance may explain the owners: they differ between samples, or consumers just changed."""
        owners = {sample.queues[queue].owners for sample in self.samples if queue in sample.queues}
        lists = {sample.client_ids for sample in self.samples if sample.client_ids is not None}
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
            return "diagnose again: a queue counts when all samples have its offsets"
        return "read the running cluster: -s rocketmq://HOST:9876"


HELD_MS = 8_000  # a shorter state may be usual; samples are 10 s apart, less the time of reading
BLOCKED_MS = 60_000
"""`ConsumerRunningInfo.analyzeProcessQueue` suspects a listener that has messages and ends no call for this time."""
SHOWN_CONSUMERS = 3  # consumers whose evidence a finding shows, the gravest first; the finding names all
USUAL_CALLS = 10  # an unusual call takes 10 times the mean
DIFFER_MS = 1_000  # a time this far in the future proves that the clocks differ
ON_THE_WAY_MS = 5_000  # age of a report at its receipt, at most


class ClockBounds(Struct, frozen=True):
    """The bounds of a consumer's clock minus this computer's, in milliseconds."""

    client_id: str
    read_at: int  # when its last report was received, by this computer's clock
    least: int  # the consumer has reported times up to this far ahead
    most: int | None  # from a time that changed between two samples; None when none changed

    def age(self, time: int) -> int:
        """The age of a time of the consumer, by this computer's clock and within the bounds."""
        by_ours = self.read_at - time
        return max(by_ours + self.least, by_ours if self.most is None else min(by_ours, by_ours + self.most), 0)

    def is_older(self, time: int, ms: int) -> bool:
        """Whether a time is more than `ms` ago.

        Raises DataError if the clocks differ by an unknown amount, AnotherSampleNeeded if the clock may be behind.
        """
        by_ours = self.read_at - time
        if by_ours + self.least > ms:
            return True
        if self.most is not None and by_ours + self.most <= ms:
            return False
        if self.least > DIFFER_MS:
            problem = f"the clock of {self.client_id} is at least {self.least // 1000} s ahead of this computer's"
            raise DataError(problem, hint="synchronise the clocks (NTP), then diagnose again")
        if by_ours <= ms:
            return False
        raise AnotherSampleNeeded(f"the clock of {self.client_id} may be behind this computer's: unknown")


def clock_of(client_id: str, samples: Sequence[ConsumerEvidence]) -> ClockBounds:
    """The bounds of a consumer's clock from its reports, the oldest first (raises DataError without any time)."""
    reports = [
        (sample.read_at, _times(sample))
        for sample in samples
        if sample.read_at is not None and sample.queues is not None
    ]
    least = [time - read_at for read_at, queues in reports for times in queues.values() for time in times.values()]
    if not least:
        raise DataError(f"{client_id} reports no time, or the time of its report is unknown", hint=ASK_OTHERWISE)
    changed = [
        time - read_before + ON_THE_WAY_MS
        for (read_before, before), (_, after) in pairwise(reports)
        for queue, times in after.items()
        for name, time in times.items()
        if queue not in before or before[queue].get(name, time) != time
    ]
    most = min(changed, default=None)
    if most is not None and most < max(least):
        raise DataError(f"the clock of {client_id} changed between the samples", hint="diagnose again")
    return ClockBounds(client_id, reports[-1][0], max(least), most)


def _times(sample: ConsumerEvidence) -> dict[MessageQueue, dict[str, int]]:
    names = ("last_lock", "last_pull", "last_consume")
    return {item.queue: {name: time for name in names if (time := getattr(item, name))} for item in sample.queues or ()}


class ConsumerReports(Struct, dict=True, eq=False):
    client_id: str
    reports: tuple[ConsumerEvidence, ...]  # the oldest first; the last one is from the last sample
    where: str

    @property
    def now(self) -> ConsumerEvidence:
        return self.reports[-1]

    def unreported(self, what: str) -> DataError:
        return DataError(f"{self.client_id} does not report {what}", hint=ASK_OTHERWISE)

    def seen(self, fact: str, value: str | int, threshold: str | int | None = None) -> Evidence:
        at = datetime.fromtimestamp((self.now.read_at or 0) / 1000, UTC)
        return Evidence(fact, value, threshold, self.where, at.isoformat().replace("+00:00", "Z"))

    @cached_property
    def clock(self) -> ClockBounds:
        return clock_of(self.client_id, self.reports)

    @property
    def queues(self) -> tuple[ProcessQueue, ...]:
        """Its queues, without those that a rebalance took away."""
        return tuple(item for item in self.now.queues or () if not item.dropped)

    @cached_property
    def history(self) -> tuple[tuple[int, dict[MessageQueue, ProcessQueue]], ...]:
        """The time and the queues of each report, the oldest first (raises DataError)."""
        found = [(sample.read_at, sample.queues) for sample in self.reports if sample.queues is not None]
        if any(read_at is None for read_at, _ in found):
            raise DataError(f"the time of the report of {self.client_id} is unknown", hint=ASK_OTHERWISE)
        return tuple((read_at or 0, {item.queue: item for item in queues}) for read_at, queues in found)

    def status(self, topic: str) -> ConsumeStatus:
        return (self.now.statuses or {}).get(topic, ConsumeStatus())

    def usual_ms(self, topic: str) -> float | None:
        """The mean duration of its listener's calls; None when no call ended, or none is reported."""
        for report in reversed(self.reports):
            status = (report.statuses or {}).get(topic, ConsumeStatus())
            # The mean of no calls is 0, as is that of calls below a millisecond.
            if status.consume_ms or (status.consume_ms == 0 and (status.consumed_per_s or status.failed_per_s)):
                return status.consume_ms
        return None

    def unusual_ms(self, topics: Iterable[str]) -> int:
        """The duration from which a call of its listener is unusual; a minute without a known mean."""
        means = [self.usual_ms(topic) for topic in topics]
        longest = max((mean for mean in means if mean is not None), default=0.0)
        return BLOCKED_MS if None in means else min(BLOCKED_MS, max(HELD_MS, round(USUAL_CALLS * longest)))

    def waiting(self, item: ProcessQueue) -> int:
        if item.cached is None:
            raise self.unreported("the number of its pulled messages")
        return item.cached + (item.consuming or 0)

    def limit_reached(self, item: ProcessQueue) -> tuple[str, int, int] | None:
        """The limit that stops its pulls: words, value, limit (raises DataError)."""
        limits = self.now.limits
        checks = [("messages", self.waiting(item), limits.messages), ("MiB of messages", item.cached_mib, limits.mib)]
        if not self.now.orderly:  # `DefaultMQPushConsumerImpl.pullMessage`
            known = item.max_offset is not None and item.min_offset is not None
            span = 0 if not item.cached else (item.max_offset or 0) - (item.min_offset or 0) if known else None
            checks.append(("offsets from the first to the last message", span, limits.span))
        for words, value, limit in checks:
            if value is not None and limit is not None and value > limit:
                return words, value, limit
        if any(value is None or limit is None for _, value, limit in checks):
            raise self.unreported("its limits of cached messages")
        return None


class Trouble(Struct, frozen=True):
    client_id: str
    queues: tuple[MessageQueue, ...]  # the queues that wait
    facts: tuple[Evidence, ...] = ()
    gravity: float = 0  # larger is graver, among the problems of one kind
    orderly: bool = False  # the consumer consumes in order
    is_worst: bool = False  # the problem stops all consumption of the queues
    doubt: DataError | None = None  # why the problem may pass; None when it is proven
    subject: str = ""  # the words for a remedy that name the message


class Troubles:
    """The problems that a rule finds, and the errors that keep it from reporting that all is in order."""

    def __init__(self, found: Iterable[Trouble] = ()) -> None:
        self.found = list(found)
        self.errors: list[DataError] = []

    @property
    def queues(self) -> set[MessageQueue]:
        return {queue for each in self.found for queue in each.queues}

    @property
    def ids(self) -> list[str]:
        return sort_client_ids({each.client_id for each in self.found})

    @property
    def facts(self) -> list[Evidence]:
        by_consumer: dict[str, Trouble] = {}
        for each in sorted(self.found, key=lambda each: each.gravity, reverse=True):
            by_consumer.setdefault(each.client_id, each)
        return [fact for each in list(by_consumer.values())[:SHOWN_CONSUMERS] for fact in each.facts]

    def among(self, queues: Collection[MessageQueue]) -> Troubles:
        return Troubles(each for each in self.found if each.queues[0] in queues)

    def collect(self, found: Iterable[Trouble | DataError]) -> None:
        """Add these problems and errors; an error that the iterator raises keeps those before it."""
        try:
            for each in found:
                if isinstance(each, DataError):
                    self.errors.append(each)
                else:
                    self.found.append(each)
        except DataError as error:
            self.errors.append(error)

    def attempt(self, check: Callable[[], object]) -> None:
        try:
            check()
        except DataError as error:
            self.errors.append(error)

    def settle(self) -> None:
        """Raise the first error, preferably one that another sample would remove, with a suspect if there is one."""

        def place(error: DataError) -> int:
            return 2 if not isinstance(error, AnotherSampleNeeded) else 0 if error.suspect else 1

        if self.errors:
            raise min(self.errors, key=place)


Found = Iterator[Trouble | DataError]


def troubles_of(evidence: GroupEvidence, judge: Callable[[ConsumerReports], Found]) -> Troubles:
    """The problems that the judge finds at each push consumer (raises DataError, DoesNotApply)."""
    found = Troubles()
    for consumer in push_consumers(evidence, found):
        found.collect(judge(consumer))
    found.attempt(evidence.must_be_all_lists)
    return found


def in_each_queue(judge: Callable[[ConsumerReports, ProcessQueue], Found]) -> Callable[[ConsumerReports], Found]:
    """A judge of a consumer that judges each of its queues, whatever is unknown of the others."""

    def of_consumer(consumer: ConsumerReports) -> Found:
        for item in consumer.queues:
            try:
                yield from judge(consumer, item)
            except DataError as error:
                yield error

    return of_consumer


def push_consumers(evidence: GroupEvidence, found: Troubles) -> Iterator[ConsumerReports]:
    """The push consumers with their reports; a consumer without a report adds an error to `found`."""
    group = evidence.group
    if evidence.lists and evidence.facts.apart is not None and group.message_model != BROADCASTING:
        raise DoesNotApply(evidence.facts.apart)
    if not evidence.pushing:
        raise DoesNotApply("its consumers pull on their own")
    silent = []
    for client_id in evidence.pushing:
        reports = [sample.reports[client_id].evidence for sample in evidence.samples if client_id in sample.reports]
        known = tuple(each for each in reports if each is not None and each.queues is not None)
        if client_id not in group.reports or not known or known[-1] is not reports[-1]:
            silent.append(client_id)
        elif evidence.processes[client_id] == 1:
            yield ConsumerReports(client_id, known, group.seen.where)
        else:
            problem = f"{evidence.processes[client_id]} processes share client ID {client_id}: any of them may answer"
            found.errors.append(DataError(problem, hint="give each process its own ID"))
    if len(silent) == len(evidence.pushing) and all(client_id in group.reports for client_id in silent):
        found.errors.append(DataError("the snapshot has no process queues of its consumers", hint=MAKE_EVIDENCE))
    elif silent:
        several = f"{len(silent)} consumers did not report their process queues, such as {silent[0]}"
        problem = several if len(silent) > 1 else f"{silent[0]} did not report its process queues"
        found.errors.append(DataError(problem, hint=ASK_CONSUMERS))


def queue_text(queue: MessageQueue) -> str:
    return f"{queue.topic} {queue.broker_name}:{queue.queue_id}"
