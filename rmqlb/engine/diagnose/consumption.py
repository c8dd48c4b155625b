"""Rules for processes, listeners, pulls and locks, based on the process queues that consumers report."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import takewhile

from rmqlb.engine.diagnose import evidence
from rmqlb.engine.diagnose.case import Case, rule
from rmqlb.engine.diagnose.evidence import AnotherSampleNeeded, ConsumerReports, DoesNotApply, Trouble, Troubles
from rmqlb.errors import DataError, RmqlbError
from rmqlb.model.diagnosis import Evidence, GroupFinding
from rmqlb.model.group import BROADCASTING, RETRY_PREFIX, ConsumerGroup, dead_letter_topic, retry_topic
from rmqlb.model.message_queue import MessageQueue, grouped, sort_client_ids, sort_queues
from rmqlb.model.process_queue import ConsumerEvidence, ProcessQueue
from rmqlb.model.result import ERROR, INFO, WARNING, are, counted, of_all

SAMPLED_MS = 10_000
"""Interval of a client's counts of pulls; its rates cover 60 s of them (`StatsItem.samplingInSeconds`)."""
FAILING_PERCENT = 75
"""Share of failures from which a listener fails, over two samples.

A message that fails once and is then consumed is one failure and one success, so healthy retries stay below 50 %.
Clients count failures (`ConsumeMessageConcurrentlyService`, `ConsumeMessageOrderlyService`: `processConsumeResult`)
under the topic of the queue; a message that was sent back counts under the retry topic.
"""
FEWEST_FAILURES = 10  # per minute; fewer prove nothing
PULLS_WITHIN_MS = 120_000  # longest time between two pulls (`ProcessQueue.PULL_MAX_IDLE_TIME`)
LONGEST_PULL_MS = 20_000
"""A pull without a message ends after 15 s (`brokerSuspendMaxTimeMillis`), which brokers check every 5 s."""
BLOCKED_S = evidence.BLOCKED_MS // 1000
LOCKED_MS = 30_000  # age at which a lock ends (`ProcessQueue.REBALANCE_LOCK_MAX_LIVE_TIME`); renewed every 20 s


@rule("frozen-consumer")
def frozen_consumer(case: Case) -> Iterator[GroupFinding]:
    """Report listed consumers that do not answer, and whose predicted queues nobody reads."""
    case.must_share()
    frozen = Troubles()
    for client_id in sort_client_ids(case.processes.keys() - case.group.reports.keys() - case.ghosts):
        frozen.collect(_frozen(case, client_id))
    if frozen.found:
        ids = frozen.ids
        yield case.finding(
            ERROR,
            f"{counted(len(ids), 'consumer')} {are(len(ids))} connected but not running: "
            f"{case.summary(frozen.queues, 'not read')}",
            f"Check the process of {ids[0]}: garbage collection, a debugger, a stopped or starved container. "
            "A restart gives its queues to the other consumers.",
            of=frozen,
        )
    frozen.attempt(case.must_be_all_lists)
    frozen.settle()


def _frozen(case: Case, own: str) -> Iterator[Trouble]:
    """The predicted queues with messages of a silent consumer, if none of them is read (raises DataError)."""
    key = ("member", case.group.group, own)
    part = next((each for each in case.facts.snapshot.unread if (each.kind, each.name, each.detail) == key), None)
    if part is None or not part.no_answer:
        why = "the snapshot has no request to it" if part is None else part.reason
        raise DataError(f"{own} did not report: {why}", hint=evidence.ASK_CONSUMERS)
    queues = _predicted(case, own)
    samples = [*zip(case.read_at, case.samples, strict=True)]
    samples = [(at, sample) for at, sample in samples if own in (sample.client_ids or ()) and own not in sample.reports]
    waiting: list[MessageQueue] = []
    for queue in queues:
        states = [sample.queues.get(queue) for _, sample in samples]
        offsets = {None if state is None else state.consumer_offset for state in states}
        if None in offsets:
            raise DataError(f"the offsets of queues predicted for {own} are unknown", hint=case.ask_offsets)
        if len(offsets) > 1:
            return
        if all(state is not None and state.lag for state in states):
            waiting.append(queue)
    span_ms = samples[-1][0] - samples[0][0]
    if not waiting:
        raise AnotherSampleNeeded(f"{own} did not answer, and no message waits in the queues predicted for it")
    if span_ms < evidence.HELD_MS:
        raise AnotherSampleNeeded(f"{own} does not answer", "2 samples, got 1", suspect=own)
    listing = [view for view in case.views if own in view.client_ids]
    unread = f"seconds in which no message of {counted(len(waiting), 'queue')} predicted for {own} was consumed"
    facts = (
        *(case.seen(f"consumers that {v.place} lists", own, by=v.seen) for v in listing),
        case.seen(f"answer of {own} to the request for its running information", part.reason),
        case.seen(unread, span_ms // 1000, evidence.HELD_MS // 1000),
    )
    yield Trouble(own, tuple(waiting), facts)


def _predicted(case: Case, client_id: str) -> tuple[MessageQueue, ...]:
    """The predicted queues of the consumer that no other consumer is observed to own (raises DataError)."""
    if len(case.processes) > 1:
        subscribed = {*case.subscriptions.values(), *(frozenset(sample.own_topics or ()) for sample in case.samples)}
        differ = "as can happen when subscriptions differ"
        if len(subscribed - {frozenset()}) > 1:
            raise DataError(f"{client_id} did not answer, {differ}", hint=evidence.ASK_CONSUMERS)
        if not case.group.reports:
            raise DataError(f"no consumer answered, {differ}", hint=evidence.ASK_CONSUMERS)
        if case.facts.basis == "assumed":
            raise DataError("the strategy of its consumers is unknown", hint=evidence.ASK_CONSUMERS)
    try:
        predictions = case.possible(case.present)
    except RmqlbError as error:
        raise DataError(f"the queues of {client_id} cannot be predicted: {error.message}") from error
    if len(predictions) > 1:
        problem = f"brokers list different consumers, so the queues of {client_id} are unknown"
        raise DataError(problem, hint="diagnose again after two minutes, when brokers have dropped consumers that left")
    owners = predictions[0].items()
    return tuple(queue for queue, ids in owners if client_id in ids and {client_id}.issuperset(case.owners(queue)))


@rule("consume-failing")
def consume_failing(case: Case) -> Iterator[GroupFinding]:
    failing = evidence.troubles_of(case, _failing_listener)
    if failing.found:
        ids, letters = failing.ids, dead_letter_topic(case.group.group)
        fail, their = ("1 consumer fails", "its") if len(ids) == 1 else (f"{len(ids)} consumers fail", "their")
        retried = f"brokers redeliver them, and move them to {letters} after the last retry"
        if all(each.orderly for each in failing.found):
            retried = "the listener gets the first message of each queue again and again; later messages wait"
        yield case.finding(
            ERROR if any(each.is_worst for each in failing.found) else WARNING,
            f"{fail} to consume most of {their} messages; {retried}.",
            f"Read the log of {ids[0]}: its listener throws an exception, or returns RECONSUME_LATER.",
            of=failing,
            facts=[*failing.facts, *_failed_messages(case)],
        )
    failing.settle()


def _failing_listener(consumer: ConsumerReports) -> Iterator[Trouble]:
    """The listener, if two samples show that most of its calls failed in the last minute."""
    now, own = _failing_minute(consumer, consumer.now), consumer.client_id
    if now is None:
        return
    failed, consumed = now
    read_at = consumer.now.read_at or 0
    before = [each for each in consumer.reports[:-1] if read_at - (each.read_at or read_at) >= evidence.HELD_MS]
    if not before:
        problem = f"the listener of {own} failed for {failed} of {failed + consumed} messages in the last minute"
        raise AnotherSampleNeeded(problem, "2 samples, got 1", suspect=own)
    if _failing_minute(consumer, before[-1]) is not None:
        statuses = consumer.now.statuses or {}
        topics = {topic for topic, each in statuses.items() if each.failed_per_s and not topic.startswith(RETRY_PREFIX)}
        queues = [item.queue for item in consumer.queues if not item.queue.topic.startswith(RETRY_PREFIX)]
        concerned = tuple(queue for queue in queues if not topics or queue.topic in topics)  # only retries come: all
        percent = _percent(failed, consumed)
        facts = (
            consumer.seen(f"percent of the messages that {own} failed to consume", percent, FAILING_PERCENT),
            consumer.seen(f"messages that failed at {own} in the last minute", failed, FEWEST_FAILURES),
        )
        yield Trouble(own, concerned, facts, failed, orderly=bool(consumer.now.orderly), is_worst=percent == 100)


def _failing_minute(consumer: ConsumerReports, report: ConsumerEvidence) -> tuple[int, int] | None:
    """Failed and consumed messages of the last minute, of all topics or of one with its retries.

    A single topic fails only if its retries fail too (raises DataError).
    """
    statuses = report.statuses or {}
    rates = [rate for status in statuses.values() for rate in (status.failed_per_s, status.consumed_per_s)]
    if None in rates or not rates:
        raise consumer.unreported("the number of failed messages")
    minutes = {t: (60 * (each.failed_per_s or 0), 60 * (each.consumed_per_s or 0)) for t, each in statuses.items()}
    retries = _total(minute for topic, minute in minutes.items() if topic.startswith(RETRY_PREFIX))
    parts = [_total(minutes.values())]
    for topic, minute in minutes.items():
        if not topic.startswith(RETRY_PREFIX) and _is_failing(_total([minute])):
            parts += [_total([minute, retries])] if not any(retries) or _percent(*retries) >= FAILING_PERCENT else []
    return next(filter(_is_failing, parts), None)


def _total(minutes: Iterable[tuple[float, float]]) -> tuple[int, int]:
    failed, consumed = (sum(each) for each in zip((0.0, 0.0), *minutes, strict=True))
    return round(failed), round(consumed)


def _is_failing(minute: tuple[int, int]) -> bool:
    return minute[0] >= FEWEST_FAILURES and _percent(*minute) >= FAILING_PERCENT


def _percent(failed: int, consumed: int) -> int:
    """The percentage of failures, rounded down: 100 means that all messages fail."""
    return failed * 100 // (failed + consumed)


def _failed_messages(case: Case) -> Iterator[Evidence]:
    """New messages in the retry topic from the first sample to the last, and new dead letters."""
    before = case.samples[0].queues
    topic, states = retry_topic(case.group.group), case.group.queues
    retried = [(before[q].broker_offset, states[q].broker_offset) for q in states if q.topic == topic and q in before]
    grown = [now - was for was, now in retried if was is not None and now is not None]
    if grown:
        seconds = (case.read_at[-1] - case.read_at[0]) // 1000
        yield case.seen(f"messages that came into the retry topic in {seconds} s", sum(grown))
    samples = zip(case.read_at, case.samples, strict=True)
    letters = [(at, sample.dead_letters) for at, sample in samples if sample.dead_letters is not None]
    if letters and (more := letters[-1][1] - letters[0][1]):
        seconds = (letters[-1][0] - letters[0][0]) // 1000
        yield case.seen(f"messages that came into the dead-letter topic in {seconds} s", more)


@rule("blocked-consumer")
def blocked_consumer(case: Case) -> Iterator[GroupFinding]:
    blocked = evidence.troubles_of(case, _blocked_listener)
    if blocked.found:
        ids, wait = blocked.ids, "waits" if len(blocked.queues) == 1 else "wait"
        consume = "1 consumer consumes" if len(ids) == 1 else f"{len(ids)} consumers consume"
        yield case.finding(
            ERROR,
            f"{consume} nothing: {case.summary(blocked.queues, wait)}",
            f"Read {case.stack_traces(ids[0])}, find the call that blocks its listener, and give that call a "
            "timeout. A restart frees the listener until the next such call.",
            of=blocked,
        )
    blocked.settle()


def _blocked_listener(consumer: ConsumerReports) -> Iterator[Trouble]:
    """The listener, if it has messages and has ended no call for a minute (raises DataError)."""
    waiting = {item.queue: consumer.waiting(item) for item in consumer.queues}
    if not any(waiting.values()):
        return
    idle: dict[MessageQueue, int] = {}  # queue → when a message of it was last consumed
    found = Troubles()
    for item in consumer.queues:
        try:
            if item.last_consume is None:
                raise consumer.unreported("the time of its last consumption")
            if consumer.clock.is_older(item.last_consume, evidence.BLOCKED_MS):
                idle[item.queue] = item.last_consume
            elif _has_consumed(consumer, item):
                return
        except DataError as error:
            found.errors.append(error)
    found.settle()
    queues = tuple(sort_queues(queue for queue in idle if waiting[queue]))
    statuses = (consumer.now.statuses or {}).values()
    if queues:
        own, age = consumer.client_id, consumer.clock.age(max(idle[queue] for queue in queues))
        number = sum(waiting[queue] for queue in queues)
        shown = f"the listener of {own} has {number:,} messages and consumed none for {age // 1000} s"
        facts = (
            consumer.seen(f"messages that {own} has pulled and not consumed", number, 1),
            consumer.seen(f"seconds since {own} consumed a message of these queues", age // 1000, BLOCKED_S),
            _not_pulled_just_now(consumer, queues, shown),
            *_first_frames(consumer),
        )
        yield Trouble(own, queues, facts, gravity=age)
    elif not any((status.consumed_per_s or 0) + (status.failed_per_s or 0) > 0 for status in statuses):
        raise AnotherSampleNeeded(
            f"{consumer.client_id} has had messages for less than {BLOCKED_S} s, and no sample shows the "
            "end of a listener call",
            after_ms=evidence.BLOCKED_MS,
        )


def _not_pulled_just_now(consumer: ConsumerReports, queues: tuple[MessageQueue, ...], shown: str) -> Evidence:
    """Proof that the messages of these idle queues waited (raises AnotherSampleNeeded with what this sample shows)."""
    own = consumer.client_id
    needed = consumer.unusual_ms(queue.topic for queue in queues)
    # The samples' time in which messages of these queues wait and no message of any queue is consumed.
    samples = _samples_without_consumption(consumer)
    waits = (ms for ms, sample in samples if any(q in sample and consumer.waiting(sample[q]) for q in queues))
    lasted = max(waits, default=0)
    if lasted >= needed:
        stuck = f"seconds in which no listener call of {own} ended"
        return consumer.seen(stuck, lasted // 1000, needed // 1000)
    if (old := _old_messages(consumer)) is not None:
        return old
    raise AnotherSampleNeeded(
        shown,
        f"{needed // 1000} s between samples without the end of a call, got {lasted // 1000} s",
        after_ms=needed - lasted,
        needed_ms=needed,
        suspect=own,
    )


def _first_frames(consumer: ConsumerReports) -> Iterator[Evidence]:
    stacks = consumer.now.stacks or ()
    for top, number in Counter(" < ".join(stack.splitlines()[1:4]) for stack in stacks).most_common(2):
        if top:
            fact = f"first frames of {of_all(number, len(stacks), 'consume thread')} of {consumer.client_id}"
            yield consumer.seen(fact, top)


def _has_consumed(consumer: ConsumerReports, item: ProcessQueue) -> bool:
    """Whether the consumer has consumed a message since it got the queue."""
    time = item.last_consume
    if consumer.now.orderly is False and item.last_lock is not None and time is not None and time > item.last_lock:
        return True  # only orderly consumers renew the lock
    return any(item.queue in sample and sample[item.queue].last_consume != time for _, sample in consumer.history[:-1])


def _samples_without_consumption(consumer: ConsumerReports) -> Iterator[tuple[int, dict[MessageQueue, ProcessQueue]]]:
    """Age and queues of earlier samples since which nothing was consumed, the latest first."""
    (read_at, now), *earlier = reversed(consumer.history)
    for before, sample in earlier:
        if any(queue in sample and sample[queue].last_consume != now[queue].last_consume for queue in now):
            return
        yield read_at - before, sample


def _old_messages(consumer: ConsumerReports) -> Evidence | None:
    """Proof that the consumer had more messages of a topic than it pulls in a minute, so some are older."""
    for ms, sample in _samples_without_consumption(consumer):
        if ms < SAMPLED_MS:
            continue
        had: Counter[str] = Counter()
        # In the order of its report, so equal input gives equal bytes.
        for queue in (each for each in consumer.history[-1][1] if each in sample):
            had[queue.topic] += consumer.waiting(sample[queue])
        for topic, number in had.items():
            pulled = consumer.status(topic).pulled_per_s
            if pulled is not None and number > pulled * evidence.BLOCKED_MS / 1000:
                fact = f"messages of {topic} that {consumer.client_id} had {ms // 1000} s before, more than it pulls"
                return consumer.seen(f"{fact} in a minute", number, round(pulled * evidence.BLOCKED_MS / 1000) + 1)
    return None


@rule("head-blocked")
def head_blocked(case: Case) -> Iterator[GroupFinding]:
    heads = evidence.troubles_of(case, _standing_head)
    own = heads.among(case.unexplained(heads.queues, ("consume-failing", "blocked-consumer", "lock-lost")))
    proven = Troubles(each for each in own.found if each.doubt is None)
    if proven.found:
        queues = sort_queues(proven.queues)
        first = min(proven.found, key=lambda each: queues.index(each.queues[0]))
        # An orderly consumer takes no later message before that one is finished.
        meaning = "a restart redelivers the messages consumed after it"
        if all(each.orderly for each in proven.found):
            meaning = "later messages wait for the first one"
        yield case.finding(
            ERROR if any(each.is_worst for each in proven.found) else WARNING,
            f"The committed offset of {counted(len(queues), 'queue')} does not move; {meaning}; "
            f"{case.unread_in(queues)}.",
            f"Check how the listener of {first.client_id} handles {first.subject}; read "
            f"{case.stack_traces(first.client_id)}.",
            of=proven,
        )
    heads.errors += [each.doubt for each in own.found if each.doubt is not None]
    heads.settle()


@evidence.in_each_queue
def _standing_head(consumer: ConsumerReports, item: ProcessQueue) -> Iterator[Trouble]:
    """The queue if its first message was not finished between samples, or may not be (raises DataError)."""
    waiting, own = consumer.waiting(item), consumer.client_id
    if not waiting:
        return
    first = _first(item)
    if item.commit_offset is None or first is None:
        raise consumer.unreported("its offsets")
    # A consumer that has finished no message of the queue reports the broker's offset as committed.
    since = _stands_since(consumer, item) if item.commit_offset <= first else None
    if since is None:
        return
    lasted, needed = consumer.history[-1][0] - consumer.history[since][0], consumer.unusual_ms((item.queue.topic,))
    doubt, name = None, evidence.queue_text(item.queue)
    if lasted < needed or not _goes_on(consumer, item, since):
        wanted = f"{needed // 1000} s of samples in which other messages finish, got {lasted // 1000} s"
        if lasted >= needed:
            wanted = "a sample in which other messages finish"
        doubt = AnotherSampleNeeded(
            f"offset {first} of {name} is unfinished at {own}",
            wanted,
            after_ms=max(needed - lasted, 0) or None,
            needed_ms=needed,
        )
    unfinished = f"seconds for which {own} has not finished offset {first} of {name}"
    facts = (
        consumer.seen(unfinished, lasted // 1000, needed // 1000),
        consumer.seen(f"later messages of {name} in the process queue of {own}", waiting - 1),
    )
    yield Trouble(
        own,
        (item.queue,),
        facts,
        gravity=lasted,
        orderly=bool(consumer.now.orderly),
        is_worst=bool(consumer.now.orderly) or (doubt is None and consumer.limit_reached(item) is not None),
        doubt=doubt,
        subject=f"offset {first} of {name}",
    )


def _first(item: ProcessQueue) -> int | None:
    return item.consuming_min_offset if item.consuming else item.min_offset


def _stands_since(consumer: ConsumerReports, item: ProcessQueue) -> int | None:
    """The earliest sample since which the first message stands; None when it moved after the last sample but one."""
    since = len(consumer.history) - 1
    for number in range(since - 1, -1, -1):
        sample = consumer.history[number][1]
        if item.queue not in sample:
            break
        was = sample[item.queue]
        has_moved = consumer.waiting(was) and _first(was) != _first(item)
        if was.commit_offset != item.commit_offset or has_moved:
            return None if number == len(consumer.history) - 2 else since
        if consumer.waiting(was):
            since = number
    return since


def _goes_on(consumer: ConsumerReports, item: ProcessQueue, since: int) -> bool:
    """Whether the listener ran after that sample: otherwise the message may only wait for a thread."""
    before, now = consumer.history[since][1], consumer.history[-1][1]
    was = before[item.queue]
    if was.last_consume != item.last_consume or (was.consuming and item.consuming):
        return True
    # Threads process messages in the order of pulls, and a message with a later pull is already consumed.
    return not consumer.now.orderly and any(
        (now[queue].commit_offset or 0) > _pulled_up_to(before[queue]) for queue in now.keys() & before.keys()
    )


def _pulled_up_to(item: ProcessQueue) -> int:
    return (item.max_offset or 0) + 1 if item.cached else item.commit_offset or 0


@rule("pull-stopped")
def pull_stopped(case: Case) -> Iterator[GroupFinding]:
    stopped = evidence.troubles_of(case, _stopped_pull)
    causes = ("broker-silent", "broker-gone", "broker-unreachable-from-consumer", "blocked-consumer")
    left = case.unexplained(stopped.queues, causes)
    if left:
        own = stopped.among(left)
        yield case.finding(
            ERROR if case.lag(left) else WARNING,
            case.summary(left, "not pulled"),
            f"Search the log of {own.ids[0]} for errors of the pull and rebalance threads, and restart it. "
            "Meanwhile, other consumers take its queues.",
            of=own,
        )
    stopped.settle()


@evidence.in_each_queue
def _stopped_pull(consumer: ConsumerReports, item: ProcessQueue) -> Iterator[Trouble]:
    """The queue if the consumer may pull and has not for two minutes (raises DataError)."""
    if item.last_pull is None:
        raise consumer.unreported("the time of its last pull")
    try:
        is_old = consumer.clock.is_older(item.last_pull, PULLS_WITHIN_MS)
    except AnotherSampleNeeded:
        # With a clock that is behind, some pull would have changed its time.
        (read_at, now), *earlier = reversed(consumer.history)
        pulls = {queue: state.last_pull for queue, state in now.items()}
        unchanged = takewhile(lambda sample: {q: s.last_pull for q, s in sample[1].items()} == pulls, earlier)
        if max((read_at - before for before, _ in unchanged), default=0) <= LONGEST_PULL_MS:
            raise
        is_old = True
    if is_old and consumer.limit_reached(item) is None:
        words = f"seconds since {consumer.client_id} pulled from {evidence.queue_text(item.queue)}"
        fact = consumer.seen(words, consumer.clock.age(item.last_pull) // 1000, PULLS_WITHIN_MS // 1000)
        yield Trouble(consumer.client_id, (item.queue,), (fact,), gravity=-item.last_pull)


@rule("lock-lost")
def lock_lost(case: Case) -> Iterator[GroupFinding]:
    """Report orderly consumers that own a queue without its lock, and locks that two consumers report."""
    if case.group.message_model == BROADCASTING:
        raise DoesNotApply("BROADCASTING consumers need no locks")
    lost = evidence.troubles_of(case, _lost_locks)
    twice = _locked_twice(case, lost)
    queues = lost.queues | twice.keys()
    if queues:
        grave = ERROR if case.lag(queues) or twice else WARNING
        named = {queue: sort_client_ids(twice[queue]) for queue in sort_queues(twice)[: evidence.SHOWN_CONSUMERS]}
        locked = [
            case.seen(f"consumers that report the lock of {evidence.queue_text(q)}: {', '.join(ids)}", len(ids), 2)
            for q, ids in named.items()
        ]
        yield case.finding(
            INFO if case.is_rebalancing else grave,
            case.summary(queues, "consumed by two consumers at once" if twice else "not consumed"),
            "Check whether these consumers reach the brokers of these queues, and whether a broker has restarted. "
            "A killed consumer keeps its locks for 60 s.",
            queues=queues,
            consumers=set[str](lost.ids).union(*twice.values()),
            facts=[*lost.facts, *locked],
        )
    lost.settle()
    if not any(case.report_of(client_id).orderly for client_id in case.pushing):
        raise DoesNotApply("its consumers do not consume in order")


def _lost_locks(consumer: ConsumerReports) -> evidence.Found:
    if consumer.now.orderly is None:
        raise consumer.unreported("whether it consumes in order")
    if consumer.now.orderly:
        yield from _lost_lock(consumer)


@evidence.in_each_queue
def _lost_lock(consumer: ConsumerReports, item: ProcessQueue) -> Iterator[Trouble]:
    name = evidence.queue_text(item.queue)
    if item.last_lock is None or item.locked is None:
        raise consumer.unreported("its locks")
    if consumer.clock.is_older(item.last_lock, LOCKED_MS):
        age = consumer.clock.age(item.last_lock) // 1000
        fact = consumer.seen(f"seconds since {consumer.client_id} got the lock of {name}", age, LOCKED_MS // 1000)
        yield Trouble(consumer.client_id, (item.queue,), (fact,), gravity=-item.last_lock)
    elif not item.locked:
        raise AnotherSampleNeeded(f"{consumer.client_id} lost the lock of {name} within the last 30 s")


def _locked_twice(case: Case, lost: Troubles) -> Mapping[MessageQueue, frozenset[str]]:
    """Queue → the consumers that report its lock at both the last sample and the one before."""
    now, *earlier = (_lock_owners(sample) for sample in reversed(case.samples))
    twice = {queue: ids for queue, ids in now.items() if len(ids) > 1}
    before = earlier[0] if earlier else {}
    lasting = {queue: ids for queue, ids in twice.items() if before.get(queue, frozenset()) >= ids}
    if lasting.keys() < twice.keys():
        lost.errors.append(AnotherSampleNeeded("two consumers report the lock of a queue; one may just have got it"))
    return lasting


def _lock_owners(sample: ConsumerGroup) -> dict[MessageQueue, frozenset[str]]:
    reports = {i: report.evidence for i, report in sample.reports.items() if report.evidence is not None}
    items = ((i, item) for i, report in reports.items() if report.orderly for item in report.queues or ())
    locked = grouped((item.queue, i) for i, item in items if item.locked and not item.dropped)
    return {queue: frozenset(ids) for queue, ids in locked.items()}


@rule("dropped-but-consuming")
def dropped_but_consuming(case: Case) -> Iterator[GroupFinding]:
    former = evidence.troubles_of(case, _consumed_after_drop)
    if former.found:
        ids = former.ids
        owners = {owner for queue in former.queues for owner in case.owners(queue)} - set(ids)
        also = (
            f" that {', '.join(sort_client_ids(owners))} also consumes: messages are delivered twice" if owners else ""
        )
        yield case.finding(
            ERROR if owners else WARNING,
            f"A former owner still consumes {counted(len(former.queues), 'queue')}{also}.",
            f"Check why the listener of {ids[0]} still runs; if it continues, restart that consumer.",
            of=former,
        )
    former.settle()


def _consumed_after_drop(consumer: ConsumerReports) -> evidence.Found:
    before = consumer.history[-2][1] if len(consumer.history) > 1 else {}
    for item in consumer.now.queues or ():
        was, time = before.get(item.queue), item.last_consume
        if item.dropped is None or (item.dropped and time is None):
            yield consumer.unreported("its dropped queues")
        elif item.dropped and was is not None and was.dropped:
            if was.last_consume != time and time is not None:
                name = f"{evidence.queue_text(item.queue)}, which was taken from it"
                seen = consumer.seen(
                    f"seconds since {consumer.client_id} consumed {name}", consumer.clock.age(time) // 1000
                )
                yield Trouble(consumer.client_id, (item.queue,), (seen,), gravity=time)
        elif item.dropped:
            yield AnotherSampleNeeded(f"{evidence.queue_text(item.queue)} was just taken from {consumer.client_id}")
