"""Compare two snapshots of a cluster: topic by topic, group by group, and in numbers.

Changed owners are explained by a prediction: the owners of the first snapshot, with changes applied. Each of `CAUSES`
decides owners separately, and comes from the first snapshot or the second. The smallest combination that gives a queue
its present owners explains the change; among equals the first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import combinations
from typing import Literal

from msgspec.structs import replace

from rmqlb.engine.allocate.strategy import Settings
from rmqlb.engine.assignment.assign import Members, Owners, owners_at_rest, spread
from rmqlb.engine.assignment.consumers import reported_strategies
from rmqlb.engine.assignment.detect import DEFAULT
from rmqlb.engine.diagnose.case import Case
from rmqlb.engine.diagnose.diagnose import earlier_sample, findings_of
from rmqlb.engine.group import Group, known
from rmqlb.engine.plan.rebalance import change_of
from rmqlb.engine.record.compare import Expected
from rmqlb.errors import DataError, RmqlbError
from rmqlb.model import diff as result
from rmqlb.model.diagnosis import GroupFinding, group_finding
from rmqlb.model.group import RETRY_PREFIX, QueueState
from rmqlb.model.message_queue import MessageQueue, grouped, sort_client_ids, sort_key, sort_queues
from rmqlb.model.recording import DIFFERENCES
from rmqlb.model.result import WARNING, Finding, Progress, Severity, are, counted, no_progress, side_of
from rmqlb.model.route import TopicRouteData
from rmqlb.model.snapshot import ClusterSnapshot, Everything

Causes = tuple[result.Cause, ...]
_QueueOwners = tuple[str, ...] | None
"""None is a queue that does not exist."""


class GroupSide:
    """A group in one snapshot: the facts that decide its owners, and its observed owners.

    Attributes:
        group: without offsets of other groups.
        client_ids: with duplicates; None when not all of them are reported, or they are behind an unknown Proxy.
        members: the consumers and their strategy; None when `problem` says why nothing can be predicted.
        strategy_known: the strategy is reported, or follows from the observed owners; otherwise it is the default.
        topics: those whose queues its consumers share; None when unknown.
        offline: brokers list no consumer, so the strategy and often the subscriptions are not reported.
        states: its queues without those of its retry topic.
    """

    def __init__(self, facts: Group) -> None:
        self.facts, self.group = facts, facts.group.without_foreign_offsets
        self.client_ids = None if facts.untold is not None else facts.listed
        self.offline = self.client_ids == ()
        self.states = {q: state for q, state in self.group.queues.items() if not q.topic.startswith(RETRY_PREFIX)}
        self.members: Members | None = None
        self.topics: tuple[str, ...] | None = None
        self.strategy_known, self.problem = False, facts.apart
        if self.problem is None and self.offline:
            self.members = Members((), DEFAULT, facts.settings)
            routes = known(lambda: facts.routes)
            self.topics = None if routes is None else tuple(route.topic for route in routes)
        elif self.problem is None:
            try:
                is_known, _ = facts.basis != "assumed", facts.all_client_ids
                members, topics = facts.members, tuple(route.topic for route in facts.routes)
                self.members, self.topics, self.strategy_known = members, topics, is_known
            except DataError as error:
                self.problem = error.message

    @property
    def summary(self) -> result.GroupOwners:
        lags = [state.lag for state in self.states.values() if state.lag is not None]
        even = spread(self.facts.observed, (), broadcasting=self.facts.broadcasting)
        return result.GroupOwners(
            consumers=None if self.client_ids is None else len(set(self.client_ids)),
            topics=self.group.own_topics,
            strategies=self.strategies,
            **{name: getattr(even, name) for name in ("queues", "unassigned", "duplicate_owners")},
            lag=sum(lags) if lags else None,
        )

    @property
    def strategies(self) -> tuple[str, ...]:
        reported = Counter(reported_strategies(self.group).values())
        if reported:
            return tuple(name for name, _ in reported.most_common())
        return (self.members.name,) if self.members is not None and self.strategy_known and self.client_ids else ()

    @property
    def sdks(self) -> dict[str, str]:
        members = self.members
        return {} if members is None else {each: members.sdk_for(each).name for each in members.client_ids}

    def complete_from(self, other: GroupSide) -> None:
        mine, theirs = self.members, other.members
        if mine is not None and theirs is not None and not self.strategy_known and other.strategy_known:
            self.members = replace(mine, strategy=theirs.strategy, strategy_of=theirs.strategy_of)
        if self.topics is None:
            self.topics = other.topics


class Prediction:
    """The owners with any of the changes between two snapshots; `ends` has those with none and with all."""

    def __init__(self, before: GroupSide, after: GroupSide) -> None:
        self._before, self._after = before, after
        before.complete_from(after)
        after.complete_from(before)
        self.problem = before.problem or after.problem
        self.changed = () if self.problem else tuple(_changed(before, after))
        self._known: dict[Causes, Owners] = {}
        self.ends: tuple[Owners, Owners] = {}, {}
        if self.problem is None and (self.changed or before.facts.observed != after.facts.observed):
            try:
                self.ends = self._owners(()), self._owners(self.changed)
            except RmqlbError as error:  # a client would throw
                self.problem = error.message

    def _causes_of(self, queue: MessageQueue, owners: _QueueOwners) -> Causes | None:
        """The fewest changes that give the queue these owners; None when none do."""
        for number in range(len(self.changed) + 1):
            for causes in combinations(self.changed, number):
                try:
                    if self._owners(causes).get(queue) == owners:
                        return causes
                except RmqlbError:  # clients throw with these changes, and keep their queues
                    continue
        return None

    def _owners(self, causes: Causes) -> Owners:
        """Queue → its owners with these changes applied to the first snapshot (raises AllocationError)."""
        if causes in self._known:
            return self._known[causes]
        first, then = self._before, self._after
        chosen = {cause: then if cause in causes else first for cause in result.CAUSES}
        strategy, ids = chosen["strategy"].members, chosen["consumers"].client_ids
        topics, routes = chosen["subscriptions"].topics, chosen["routes"].facts.snapshot.routes
        owners: Owners = {}
        if strategy is not None and ids is not None and topics is not None:
            subscribed = {**first.facts.subscribed, **then.facts.subscribed, **chosen["subscriptions"].facts.subscribed}
            sdks = {**self._before.sdks, **self._after.sdks, **chosen["consumers"].sdks}
            members = replace(strategy, client_ids=ids, subscribed=subscribed, sdk_of=sdks)
            owners = owners_at_rest([routes[topic].route for topic in topics if topic in routes], members)
        self._known[causes] = owners
        return owners

    def queue_diffs(self) -> Iterator[result.QueueDiff]:
        sides = self._before.facts, self._after.facts
        if not any(side.broadcasting for side in sides):
            queues = set().union(*self.ends, *(side.observed for side in sides))
            yield from filter(None, map(self._queue_diff, sort_queues(queues)))

    def _queue_diff(self, queue: MessageQueue) -> result.QueueDiff | None:
        """The change of a queue; None when nothing changed, or when the change is unknown."""
        observed = self._before.facts.observed.get(queue), self._after.facts.observed.get(queue)
        first, last = predicted = self.ends[0].get(queue), self.ends[1].get(queue)
        # Without a prediction, or without any route to the queue, the queue exists on both sides.
        exists = [owners is not None or predicted == (None, None) for owners in predicted]
        is_observed = all(seen is not None for seen, there in zip(observed, exists, strict=True) if there)
        if not is_observed and predicted == (None, None):
            return None
        sides = zip(observed if is_observed else predicted, exists, strict=True)
        was, becomes = (owners if there else None for owners, there in sides)
        if was == becomes and first == last:
            return None
        how, causes = self._explained(queue, was, becomes)
        return result.QueueDiff(
            *(queue.topic, queue.broker_name, queue.queue_id),
            change=change_of(was, becomes),
            basis="observed" if is_observed else "predicted",
            owners_before=was,
            owners_after=becomes,
            predicted_before=first,
            predicted_after=last,
            how=how,
            causes=causes,
            lag_before=self._before.group.queues.get(queue, QueueState()).lag,
            lag_after=self._after.group.queues.get(queue, QueueState()).lag,
        )

    def _explained(self, queue: MessageQueue, was: _QueueOwners, becomes: _QueueOwners) -> tuple[result.How, Causes]:
        if self.problem is not None:
            return "unexplained", ()
        causes = self._causes_of(queue, becomes)
        if causes is not None and (causes or was != becomes):
            return ("predicted" if causes else "converged"), causes
        first, last = (end.get(queue) for end in self.ends)
        # A moving queue has its former owner, the new one, both or none.
        if first != last and set(becomes or ()) <= {*(was or ()), *(last or ())}:
            return "pending", self._causes_of(queue, last) or ()
        return "unexplained", ()


def _changed(before: GroupSide, after: GroupSide) -> Iterator[result.Cause]:
    if before.client_ids != after.client_ids or sdks_that_differ(before, after):
        yield "consumers"
    if _strategies_differ(before, after):
        yield "strategy"
    topics, others = before.topics or (), after.topics or ()
    first, then, all_topics = before.facts.subscribed, after.facts.subscribed, dict.fromkeys((*topics, *others))
    changed = ((first[each] ^ then[each]) & all_topics.keys() for each in first.keys() & then.keys())
    if set(topics) != set(others) or any(changed):
        yield "subscriptions"
    for topic in all_topics:
        was, becomes = (side.facts.snapshot.routes.get(topic) for side in (before, after))
        if (was and was.route.subscribe_queues()) != (becomes and becomes.route.subscribe_queues()):
            yield "routes"
            return


def _strategies_differ(before: GroupSide, after: GroupSide) -> bool:
    """Whether a consumer of both runs another strategy, or a new one differs from the group's."""
    first, then = before.members, after.members
    if first is None or then is None or before.offline or after.offline:
        return False
    known = set(first.client_ids)
    strategies = ((first.strategy_for(i) if i in known else first.group_strategy, i) for i in set(then.client_ids))
    return any(then.strategy_for(client_id) != strategy for strategy, client_id in strategies)


def sdks_that_differ(before: GroupSide, after: GroupSide) -> dict[str, tuple[str, str]]:
    """Client ID → its client library before and after, for consumers of both that changed it."""
    first, then = before.sdks, after.sdks
    return {each: (first[each], then[each]) for each in first.keys() & then.keys() if first[each] != then[each]}


_MOST_GROUPS = 5  # groups with their own finding
_OF_OWNERS = {
    "unexplained": "queues whose owners no change explains",
    "pending": "queues not yet with the predicted owners",
}


def compare_snapshots(
    before: ClusterSnapshot,
    after: ClusterSnapshot,
    wanted: Everything | None = None,
    *,
    settings: Settings | None = None,
    progress: Progress = no_progress,
) -> result.SnapshotDiff:
    """Explain each queue's new owner; `wanted` None is all topics and groups except RocketMQ's own."""
    wanted = wanted or Everything()
    not_compared: list[result.NotCompared] = []

    def comparable(kind: Literal["topic", "group"], names: Iterable[str], *known: Collection[str]) -> list[str]:
        found = []
        for name in sorted(names):
            reason = None
            for there, gap in zip(known, (before.gaps, after.gaps), strict=True):
                if name not in there:
                    reason = gap.topics.get(name) if kind == "topic" else gap.groups.get(name, gap.unlisted)
            if reason is None:
                found.append(name)
            else:
                not_compared.append(result.NotCompared(kind, name, reason))
        return found

    own = () if wanted.system else (before.own_topics | after.own_topics) - {*wanted.topics}
    routes = {name for name in {*before.routes, *after.routes} if wanted.takes_topic(name) and name not in own}
    topics = comparable("topic", routes, before.routes, after.routes)
    named = {name for name in {*before.groups, *after.groups} if wanted.takes_group(name)}
    groups = comparable("group", named, before.groups, after.groups)
    topic_diffs = tuple(_topic_diffs(topics, before, after))
    found = []
    for done, name in enumerate(groups):
        progress("groups", done, len(groups))
        sides = (
            GroupSide(Group(snapshot, name, settings or Settings())) if name in snapshot.groups else None
            for snapshot in (before, after)
        )
        found.append(_group_diff(name, *sides))
    summary = _summary(len(topics), found, topic_diffs)
    group_diffs = tuple(each for each in found if each.differs)
    return result.SnapshotDiff(side_of(before), side_of(after), summary, group_diffs, topic_diffs, tuple(not_compared))


def _topic_diffs(names: Iterable[str], before: ClusterSnapshot, after: ClusterSnapshot) -> Iterator[result.TopicDiff]:
    groups = (*before.groups.values(), *after.groups.values())
    subscribers = grouped((topic, group.group) for group in groups for topic in group.topics or ())
    for name in names:
        was, becomes = (s.routes[name].route if name in s.routes else None for s in (before, after))
        first, then = _queues_of(was), _queues_of(becomes)
        pairs = ((each, first.get(each), then.get(each)) for each in sorted({*first, *then}, key=sort_key))
        brokers = tuple(result.BrokerDiff(each, _presence(*two), *two) for each, *two in pairs if two[0] != two[1])
        settings: tuple[result.SettingDiff, ...] = ()
        if was is not None and becomes is not None:
            order = _setting("orderTopicConf", was.order_topic_conf, becomes.order_topic_conf)
            settings = (*order, *_setting("topicQueueMappingByBroker", _mapping(was), _mapping(becomes)))
        change = _presence(was, becomes)
        if change != "changed" or brokers or settings:
            yield result.TopicDiff(name, change, brokers, settings, tuple(sorted({*subscribers.get(name, ())})))


def _summary(topics: int, groups: Sequence[result.GroupDiff], routes: Sequence[result.TopicDiff]) -> result.DiffSummary:
    changed = [group for group in groups if group.change != "same"]
    growths = [group.lag_growth for group in groups if group.lag_growth is not None]
    return result.DiffSummary(
        groups=len(groups),
        groups_changed=len(changed),
        groups_added=sum(group.change == "added" for group in changed),
        groups_removed=sum(group.change == "removed" for group in changed),
        topics=topics,
        topics_changed=len(routes),
        consumers_joined=sum(len(group.joined) for group in changed),
        consumers_left=sum(len(group.left) for group in changed),
        strategies_changed=sum(group.strategy_changed for group in changed),
        moved=sum(group.count("moved") for group in changed),
        newly_assigned=sum(group.count("assigned") for group in changed),
        newly_unassigned=sum(group.count("unassigned") for group in changed),
        newly_duplicate_owners=sum(queue.got_duplicate_owners for group in changed for queue in group.queues),
        queues_added=sum(group.count("added") for group in changed),
        queues_removed=sum(group.count("removed") for group in changed),
        pending=sum(queue.how == "pending" for group in changed for queue in group.queues),
        unexplained=sum(queue.how == "unexplained" for group in changed for queue in group.queues),
        lag_growth=sum(max(growth, 0) for growth in growths) if growths else None,
        offsets_back=sum(group.offsets_back for group in groups),
    )


def _group_diff(name: str, before: GroupSide | None, after: GroupSide | None) -> result.GroupDiff:
    was, becomes = (None if side is None else side.summary for side in (before, after))
    if before is None or after is None:
        return result.GroupDiff(name, _presence(before, after), was, becomes)
    prediction, is_known = Prediction(before, after), before.strategy_known or after.strategy_known
    queues = tuple(prediction.queue_diffs())
    joined, left = _only(after.client_ids, before.client_ids), _only(before.client_ids, after.client_ids)
    first, then = Counter(before.client_ids or ()), Counter(after.client_ids or ())
    both_ids = sort_client_ids(first.keys() & then.keys())
    processes = tuple(result.ProcessesDiff(i, first[i], then[i]) for i in both_ids if first[i] != then[i])
    topics, topics_before = after.group.own_topics, before.group.own_topics
    topics_added, topics_removed = _only(topics, topics_before), _only(topics_before, topics)
    strategy_changed = "strategy" in prediction.changed
    if prediction.problem is not None and before.strategies and after.strategies:
        strategy_changed = set(before.strategies) != set(after.strategies)
    settings = tuple(_group_settings(before, after))
    changed = any((queues, joined, left, processes, topics_added, topics_removed, strategy_changed, settings))
    both = [(before.states[queue], after.states[queue]) for queue in before.states.keys() & after.states.keys()]
    explained_by = Counter((queue.how, queue.causes) for queue in queues)
    growth = _steps((first.lag, then.lag) for first, then in both)
    produced = _steps((first.broker_offset, then.broker_offset) for first, then in both)
    consumed = _steps((_stored(first), _stored(then)) for first, then in both)
    differs = result.GroupDiff(
        group=name,
        change="changed" if changed else "same",
        before=was,
        after=becomes,
        joined=tuple(sort_client_ids(joined)),
        left=tuple(sort_client_ids(left)),
        processes=processes,
        topics_added=topics_added,
        topics_removed=topics_removed,
        strategy_changed=strategy_changed,
        strategy_assumed=bool(queues) and prediction.problem is None and not is_known,
        settings=settings,
        explanations=tuple(result.Explained(*explained, number) for explained, number in explained_by.most_common()),
        queues=queues,
        not_predicted=prediction.problem if queues else None,
        lag_growth=sum(growth) if growth else None,
        produced=sum(produced) if produced else None,
        consumed=sum(consumed) if consumed else None,
        offsets_back=sum(step < 0 for step in consumed),
    )
    return replace(differs, findings=tuple(_group_findings(differs, before.facts.snapshot, after.facts)))


def _stored(state: QueueState) -> int | None:
    return None if state.consumer_offset is None or state.consumer_offset < 0 else state.consumer_offset


def _steps(pairs: Iterable[tuple[int | None, int | None]]) -> list[int]:
    return [then - first for first, then in pairs if first is not None and then is not None]


def _only(some: Collection[str] | None, others: Collection[str] | None) -> tuple[str, ...]:
    """The names of only the first list, each once; none unless both lists are known."""
    return () if some is None or others is None else tuple(dict.fromkeys(name for name in some if name not in others))


def _group_settings(before: GroupSide, after: GroupSide) -> Iterator[result.SettingDiff]:
    if before.offline or after.offline:  # no consumer reports settings
        return
    names = {"messageModel": "message_model", "consumeType": "consume_type", "consumeFromWhere": "consume_from_where"}
    for name, field in names.items():
        yield from _setting(name, getattr(before.group, field), getattr(after.group, field))
    for client_id, (was, becomes) in sorted(sdks_that_differ(before, after).items()):
        yield from _setting(f"sdk of {client_id}", was, becomes)


def _setting(name: str, before: str | None, after: str | None) -> Iterator[result.SettingDiff]:
    if before != after:
        yield result.SettingDiff(name, before, after)


def _presence(before: object | None, after: object | None) -> result.Presence:
    return "added" if before is None else "removed" if after is None else "changed"


def _queues_of(route: TopicRouteData | None) -> dict[str, result.QueueCounts]:
    if route is None:
        return {}
    known, found = route.brokers_by_name(), {}
    for data in route.queue_datas:
        name = data.broker_name
        addresses = sorted(known[name].broker_addrs.items()) if name in known else ()
        by_id = {str(number): address for number, address in addresses}
        found[name] = result.QueueCounts(data.read_queue_nums, data.write_queue_nums, data.perm, by_id)
    return found


def _mapping(route: TopicRouteData) -> str | None:
    if not route.is_static:
        return None
    found = grouped((broker, queue.queue_id) for queue, broker in route.serving_brokers().items())
    return "; ".join(f"{broker}: {', '.join(map(str, sorted(found[broker])))}" for broker in sorted(found))


def diff_findings(diff: result.SnapshotDiff) -> Iterator[Finding]:
    before, after = diff.before, diff.after
    if before.taken_at is not None and after.taken_at is not None and before.taken_at > after.taken_at:
        text = f"{before.endpoint} was taken after {after.endpoint}: swap the snapshots"
        yield Finding("snapshots-swapped", text)
    s = diff.summary
    whole = s.groups and s.groups_added + s.groups_removed == s.groups
    if whole and s.topics == sum(topic.change != "changed" for topic in diff.topics):
        text = "no group and no topic is in both snapshots: they probably belong to different clusters"
        yield Finding("nothing-in-common", text)
    for kind in ("topic", "group"):
        those = [each for each in diff.not_compared if each.kind == kind]
        if those:
            more = f" and {len(those) - 1} more" if len(those) > 1 else ""
            yield Finding("not-compared", f"not compared: {kind} {those[0].name}{more}: {those[0].reason}")
    found = [(group, finding) for group in diff.groups for finding in group.findings]
    for code in ("unexplained-owners", "not-moved-yet"):
        yield from [finding.brief for _, finding in found if finding.code == code][:_MOST_GROUPS]
    for group, finding in found:
        if finding.code == "offset-rewound":
            yield _rewound(group, finding.severity)
        elif finding.code == "assumed-strategy":
            yield finding.brief


def _group_findings(group: result.GroupDiff, before: ClusterSnapshot, facts: Group) -> Iterator[GroupFinding]:
    evidence, name = Case(facts), group.group
    for how, fact in _OF_OWNERS.items():
        queues = tuple(queue.queue for queue in group.queues if queue.how == how)
        number = counted(len(queues), "queue")
        text = f"{number} of group {name} {are(len(queues))} not yet with the predicted owners: not converged"
        if how == "unexplained":
            why = f": owners could not be predicted: {group.not_predicted}" if group.not_predicted else ""
            text = f"no change explains the owners of {number} of group {name}{why}"
        if queues:
            finding = Finding("unexplained-owners" if how == "unexplained" else "not-moved-yet", text, name)
            yield replace(
                group_finding(finding, name),
                queues=queues,
                evidence=(evidence.seen(fact, len(queues), threshold=1),),
                consequence=f"The owners of {number} differ from the prediction.",
                remedy="Compare with another snapshot a minute later.",
            )
    if group.strategy_assumed:
        text = f"rmqlb assumes {DEFAULT}, the client's default of group {name}: no snapshot shows its strategy"
        yield group_finding(Finding("assumed-strategy", text, name), name)
    earlier, later = before.taken_at, facts.snapshot.taken_at
    if group.offsets_back and (earlier is None or later is None or earlier <= later):
        sample, then = earlier_sample(before, name), facts.group.queues
        both = ((queue, (state, then.get(queue, QueueState()))) for queue, state in sample.queues.items())
        known = ((queue, states[0]) for queue, states in both if None not in map(_stored, states))
        stored = {queue: state for queue, state in known if not queue.topic.startswith(RETRY_PREFIX)}
        found = findings_of(Case(facts, (replace(sample, queues=stored),)), ("offset-rewound",))
        # The offsets went back even if the rule names another cause or cannot decide.
        yield from found or (group_finding(_rewound(group, WARNING), name),)


def _rewound(group: result.GroupDiff, severity: Severity) -> Finding:
    text = f"the offsets of {counted(group.offsets_back, 'queue')} of group {group.group} went back"
    return Finding("offset-rewound", f"{text}: messages from that offset on are redelivered", group.group, severity)


def predicted_group(expected: Expected, name: str, after: ClusterSnapshot) -> result.PredictedGroup:
    group = Group(after, name)
    names = expected.placeholders(set(group.group.client_ids or ()))
    owners = {queue: tuple(sort_client_ids(observed)) for queue, observed in group.observed.items()}
    queues = tuple(expected.compare(queue, owners.get(queue), names) for queue in sort_queues(expected.after))
    return result.PredictedGroup(name, expected.kind, names, queues)


def prediction_summary(groups: Iterable[result.PredictedGroup]) -> result.PredictionSummary:
    numbers = Counter(queue.outcome for group in groups for queue in group.queues)
    differences = sum(numbers[outcome] for outcome in DIFFERENCES)
    kinds = (numbers[outcome] for outcome in ("other-owner", "not-yet", "unknown"))
    return result.PredictionSummary(numbers.total(), differences, *kinds)
