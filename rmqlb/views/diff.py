from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from rmqlb.model import diff as model
from rmqlb.model.message_queue import grouped
from rmqlb.model.owners import Change
from rmqlb.model.result import ERROR, INFO, WARNING, Severity, SnapshotSide, counted, have, named, of_all
from rmqlb.model.route import MASTER_ID
from rmqlb.views.columns import NOT_THERE, QUEUE_COLUMNS, Cell, Column, columns_from, rows_of
from rmqlb.views.numbers import duration
from rmqlb.views.report import Report, Rows, Section, first_places, section_of, worst
from rmqlb.views.route_view import perm_text

_MOST_ROWS = 20
_MOST_LAGGING = 5
_WHAT = (Column("what changed", "what", "prose"), Column("effect", "effect", "prose"))
_GROUP = Column("group", "group", quiet=True)
_QUEUE_KEYS = ("group", "topic", "brokerName", "queueId")
_VERBS: Mapping[Change, str] = {
    "moved": "moved",
    "unassigned": "became unassigned",
    "assigned": "got an owner",
    "added": "added",
    "removed": "removed",
}
QueueOfGroup = tuple[Any, Any]  # A group, and one of its queues


def diff_report(diff: model.SnapshotDiff) -> Report:
    s, topics = diff.summary, {topic.topic: topic for topic in diff.topics}
    queues = [(group, queue) for group in diff.groups for queue in group.queues]
    odd = [(group, queue) for group, queue in queues if queue.how == "unexplained"]
    columns = (Column("", "severity", "sign"), Column("group", "group"), *_WHAT)
    by_group = tuple(row for group in sorted(diff.groups, key=_weight) for row in _group_rows(group, topics))
    by_topic = tuple(_topic_row(topic, diff.groups) for topic in diff.topics)
    groups = Section("groups", "groups", columns, by_group)
    table = _queue_table("unexplained", "queues with unexplained owners", odd)
    unexplained = replace(table, brief=first_places(len(odd), _MOST_ROWS), chosen=f"the first {_MOST_ROWS}")
    by_topics = Section("topics", "topics", (Column("topic", "topic"), *_WHAT), by_topic).unless_empty()
    listed = replace(_queue_table("queues", "queues with different owners", queues), named_only=True)
    sections = (groups.unless_empty(), by_topics, unexplained.unless_empty(), _lag(diff.groups), listed)
    grave = "" if s.groups_changed or s.topics_changed or s.lag_growth else "inOrder"
    if s.unexplained or s.pending or s.offsets_back or s.groups_removed:
        grave = WARNING
    if s.newly_unassigned or s.newly_duplicate_owners:
        grave = ERROR
    rows = Rows(_QUEUE_KEYS, [({"group": group.group}, queue) for group, queue in queues])
    more = f"--section queues lists {counted(len(queues), 'queue')} with different owners" if queues else ""
    tables = (groups, *sections[1:])
    return Report("rmqlb/diff", diff, tuple(_facts(diff)), sections, rows=rows, tables=tables, grave=grave, more=more)


def prediction_report(found: model.PredictionDiff) -> Report:
    items = [(group, queue) for group in found.groups for queue in group.queues]
    differ = [(group, queue) for group, queue in items if queue.outcome not in ("as-predicted", "unknown")]
    s = found.summary
    parts = [f"{of_all(s.queues - s.differences - s.unknown, s.queues)} as predicted"]
    counts = {"with another owner": s.other_owner, "not yet moved": s.not_yet, "with unknown owners": s.unknown}
    parts += [f"{number} {outcome}" for outcome, number in counts.items() if number]
    parts += [f"{new} replaces {name}" for group in found.groups for name, new in group.placeholders.items()]
    columns = (*QUEUE_COLUMNS, *columns_from("ownersPredicted=predicted:clients ownersAfter=observed:clients outcome"))
    differences = _by_group("differences", "queues that differ from the prediction", columns, differ)
    queues = _by_group("queues", "queues, as predicted and as observed", columns, items)
    facts = ("; ".join(parts), f"{found.prediction} → {_side(found.after)}")
    sections, tables = (differences.unless_empty(), replace(queues, named_only=True)), (differences, queues)
    rows = Rows(_QUEUE_KEYS, [({"group": group.group}, queue) for group, queue in items])
    grave = ERROR if s.other_owner else WARNING if s.differences or s.unknown else "inOrder"
    return Report("rmqlb/diff-prediction", found, facts, sections, rows=rows, tables=tables, grave=grave)


def _facts(diff: model.SnapshotDiff) -> Iterator[str]:
    s, parts = diff.summary, [*_verdicts(diff)]
    groups, topics = counted(s.groups, "group"), counted(s.topics, "topic")
    if s.groups_changed:
        yield f"{s.groups_changed} of {groups} {'differs' if s.groups_changed == 1 else 'differ'}: {'; '.join(parts)}"
    else:
        same = "no difference" if not (s.topics_changed or parts) else "no group differs"
        yield "; ".join([f"{same}: {groups} and {topics} compared", *parts])
    times = [datetime.fromisoformat(side.taken_at) for side in (diff.before, diff.after) if side.taken_at is not None]
    ms = (times[1] - times[0]).total_seconds() * 1000 if len(times) > 1 else 0
    between = f", {duration(abs(ms))} {'later' if ms > 0 else 'earlier'}" if ms else ""
    yield f"{_side(diff.before)} → {_side(diff.after)}{between}"


def _verdicts(diff: model.SnapshotDiff) -> Iterator[str]:
    s = diff.summary
    changed = s.moved + s.newly_assigned
    same = s.groups_changed > s.groups_added + s.groups_removed and not (s.newly_unassigned or s.unexplained)
    if s.newly_unassigned:
        yield f"{counted(s.newly_unassigned, 'queue')} became unassigned"
    yield from _added_or_removed(s.groups_removed, s.groups_added, "group")
    if s.newly_duplicate_owners:
        yield f"{counted(s.newly_duplicate_owners, 'queue')} {have(s.newly_duplicate_owners)} duplicate owners now"
    if changed or same:
        how = "" if s.unexplained else ", all explained"
        yield f"{counted(changed, 'queue')} changed owner{how}" if changed else "no queue changed owner"
    yield from _added_or_removed(s.queues_removed, s.queues_added, "queue")
    if s.unexplained:
        yield f"{counted(s.unexplained, 'queue')} unexplained"
    if s.pending:
        yield f"{counted(s.pending, 'queue')} not yet with the predicted owners"
    if s.topics_changed and not s.groups_changed:
        yield f"{counted(s.topics_changed, 'topic')} differ{'s' if s.topics_changed == 1 else ''}"
    grown = sorted((g for g in diff.groups if (g.lag_growth or 0) > 0), key=lambda g: -(g.lag_growth or 0))
    if grown:
        more = f" and {counted(len(grown) - 1, 'other group')}" if len(grown) > 1 else ""
        yield f"lag +{s.lag_growth:,} in {grown[0].group}{more}"
    if s.offsets_back:
        yield f"offsets of {counted(s.offsets_back, 'queue')} went back"


def _added_or_removed(removed: int, added: int, noun: str) -> Iterator[str]:
    parts = [f"{counted(number, noun)} {what}" for number, what in ((added, "added"), (removed, "removed")) if number]
    yield from filter(None, [", ".join(parts)])


def _side(side: SnapshotSide) -> str:
    name = side.context or side.endpoint
    return name if side.taken_at is None else f"{name} ({side.taken_at})"


def _weight(group: model.GroupDiff) -> tuple[int, int, int]:
    bad = sum(queue.how in ("pending", "unexplained") for queue in group.queues)
    return -group.count("unassigned"), -bad, -len(group.queues)


def _group_rows(group: model.GroupDiff, topics: Mapping[str, model.TopicDiff]) -> Iterator[tuple[Cell, ...]]:
    name = group.group
    if group.change == "same":
        return
    if group.change in ("added", "removed"):
        consumers = getattr(group.after or group.before, "consumers", None)
        number = "consumers unknown" if consumers is None else counted(consumers, "consumer")
        severity = WARNING if group.after is None else INFO
        yield severity, name, f"group {group.change}", f"{number}, strategy {_strategies_text(group, 'after')}"
        return
    for explained in group.explanations:
        queues = [queue for queue in group.queues if (queue.how, queue.causes) == (explained.how, explained.causes)]
        what = "; ".join(_cause_text(cause, group, topics) for cause in explained.causes)
        yield _severity(queues), name, what or "no change that affects owners", _effect_text(explained, queues, group)
    effective = {cause for each in group.explanations for cause in each.causes}
    changes: dict[model.Cause, bool] = {
        "consumers": bool(group.joined or group.left or group.processes),
        "strategy": group.strategy_changed,
        "subscriptions": bool(group.topics_added or group.topics_removed),
    }
    ineffective = [cause for cause, is_there in changes.items() if is_there and cause not in effective]
    yield from ((INFO, name, _cause_text(cause, group, topics), _changes_text(())) for cause in ineffective)
    yield from ((INFO, name, text, "") for text in _settings_text(group.settings, "?"))


def _settings_text(settings: Sequence[model.SettingDiff], missing: str) -> list[str]:
    return [f"{each.name} {each.before or missing} → {each.after or missing}" for each in settings]


def _severity(queues: Sequence[model.QueueDiff]) -> Severity:
    if any(queue.change == "unassigned" or queue.got_duplicate_owners for queue in queues):
        return ERROR
    return WARNING if any(queue.how in ("pending", "unexplained") for queue in queues) else INFO


def _topic_row(topic: model.TopicDiff, groups: Sequence[model.GroupDiff]) -> tuple[Cell, ...]:
    own = ((group.group, [queue for queue in group.queues if queue.topic == topic.topic]) for group in groups)
    changed = ((name, [queue for queue in queues if queue.change in ("added", "removed")]) for name, queues in own)
    by_effect = grouped((_changes_text(queues), name) for name, queues in changed if queues)
    effect = f"read by {named(topic.groups)}" if topic.groups else "no group subscribes to it"
    if by_effect:
        effect = "; ".join(f"{named(by_effect[text])}: {text}" for text in sorted(by_effect))
    return topic.topic, _route_text(topic), effect


def _lag(groups: Sequence[model.GroupDiff]) -> Section:
    """Groups whose offsets differ; people see those whose lag grew most."""
    moved = [group for group in groups if any((group.lag_growth, group.produced, group.consumed, group.offsets_back))]
    keys = "group:text lagBefore@before.lag lagAfter@after.lag lagGrowth=growth produced consumed offsetsBack?"
    columns = columns_from(keys, "number")
    growths = [max(group.lag_growth or 0, 0) + group.offsets_back for group in moved]
    shown = worst(growths, min(_MOST_LAGGING, sum(growth > 0 for growth in growths)))
    section = section_of("lag", "lag", columns, moved, heads=1, brief=shown, chosen="where it grew most")
    return section if any(growths) else replace(section, brief=None, named_only=True)


def _queue_table(name: str, title: str, queues: Sequence[QueueOfGroup]) -> Section:
    found: list[model.QueueDiff] = [queue for _, queue in queues]
    predicted = any(queue.predicted_after not in (None, queue.owners_after) for queue in found)
    hidden = [] if predicted else ["predictedAfter"]
    hidden += [] if any(queue.change != "moved" for queue in found) else ["change"]
    columns = (
        *QUEUE_COLUMNS,
        *columns_from(
            "ownersBefore=before:clients ownersAfter=after:clients predictedAfter=predicted:clients change:change/3 "
            "how=explained_by causes/hidden",
            hidden=hidden,
            ownersBefore=lambda queue: NOT_THERE if queue.owners_before is None else queue.owners_before,
            ownersAfter=lambda queue: NOT_THERE if queue.owners_after is None else queue.owners_after,
            how=_explained_by,
            causes=lambda queue: ", ".join(queue.causes),
        ),
        Column("basis", "basis", quiet=True),
        *columns_from("lagBefore?/1 lagAfter?/2", "number"),
    )
    return _by_group(name, title, columns, queues)


def _by_group(name: str, title: str, columns: tuple[Column, ...], queues: Sequence[QueueOfGroup]) -> Section:
    cells = rows_of(columns, [queue for _, queue in queues])
    rows = tuple((group.group, *row) for (group, _), row in zip(queues, cells, strict=True))
    return Section(name, title, (_GROUP, *columns), rows, heads=4)


def _explained_by(queue: model.QueueDiff) -> str:
    causes = " and ".join(queue.causes)
    texts = {"predicted": causes, "converged": "the prediction before", "pending": f"{causes}, pending"}
    return texts.get(queue.how, queue.how)


def _cause_text(cause: model.Cause, group: model.GroupDiff, topics: Mapping[str, model.TopicDiff]) -> str:
    parts: list[str] = []
    if cause == "strategy":
        parts = [f"strategy {_strategies_text(group, 'before')} → {_strategies_text(group, 'after')}"]
    elif cause == "consumers":
        parts = [f"{sign} {named(ids)}" for sign, ids in (("+", group.joined), ("-", group.left)) if ids]
        processes = [f"{each.client_id} {each.before} → {each.after}" for each in group.processes]
        parts += [f"processes of {named(processes)}"] if processes else []
    elif cause == "subscriptions":
        verbs = {"subscribes to": group.topics_added, "no longer subscribes to": group.topics_removed}
        parts = [f"{verb} {named(names)}" for verb, names in verbs.items() if names]
        parts = parts or ["subscriptions of single consumers"]
    else:
        concerned = {queue.topic for queue in group.queues}
        for name, topic in topics.items():
            if name in concerned or group.group in topic.groups:
                parts.append(f"{name}: {_route_text(topic)}")
    return "; ".join(parts)


def _strategies_text(group: model.GroupDiff, which: str) -> str:
    sides = (group.before, group.after) if which == "before" else (group.after, group.before)
    known = next((each.strategies for each in sides if each is not None and each.strategies), ())
    return ", ".join(known) or ("AVG (assumed)" if group.strategy_assumed else "unknown")


def _effect_text(explained: model.Explained, queues: Sequence[model.QueueDiff], group: model.GroupDiff) -> str:
    strategy, counts = _strategies_text(group, "after"), _changes_text(queues)
    if explained.how == "pending":
        unassigned = sum(queue.change == "unassigned" for queue in queues)
        meanwhile = f"; {unassigned} of them unassigned" if unassigned else ""
        return f"{counted(len(queues), 'queue')} not yet with the owners that {strategy} predicts{meanwhile}"
    if explained.how == "converged":
        return f"{counts}, to the owners predicted before: the group had not converged"
    if explained.how == "predicted":
        return f"{counts}, as {strategy} predicts"
    return f"{counts}, unexplained" + (f": {group.not_predicted}" if group.not_predicted else "")


def _changes_text(queues: Iterable[model.QueueDiff]) -> str:
    """The counts of queues that moved, became unassigned and so on.

    >>> _changes_text([])
    'owners unchanged'
    """
    queues = list(queues)
    counts = Counter(queue.change for queue in queues)
    duplicate = sum(queue.got_duplicate_owners for queue in queues)
    changes = [change for change in _VERBS if counts[change]]
    if not changes:
        return f"{counted(counts['same'], 'queue')} had these owners already" if counts["same"] else "owners unchanged"
    first, *others = changes
    parts = [f"{counted(counts[first], 'queue')} {_VERBS[first]}"]
    parts += [f"{counts[change]} {_VERBS[change]}" for change in others]
    return ", ".join([*parts, f"{duplicate} with duplicate owners now"] if duplicate else parts)


def _route_text(topic: model.TopicDiff) -> str:
    if topic.change != "changed":
        return f"topic {topic.change}"
    return "; ".join([*map(_broker_text, topic.brokers), *_settings_text(topic.settings, "not set")])


def _broker_text(broker: model.BrokerDiff) -> str:
    before, after, name = broker.before, broker.after, broker.broker_name
    if before is not None and after is not None:
        return f"{name} {', '.join(_differences(before, after))}"
    there = after or before
    queues = "" if there is None else f" ({there.read_queue_nums} read, {there.write_queue_nums} write queues)"
    return f"{'+' if before is None else '-'} {name}{queues}"


def _differences(before: model.QueueCounts, after: model.QueueCounts) -> Iterator[str]:
    for kind in ("read", "write"):
        was, becomes = (getattr(each, f"{kind}_queue_nums") for each in (before, after))
        if was != becomes:
            yield f"{was} → {counted(becomes, f'{kind} queue')}"
    if before.perm != after.perm:
        yield f"{perm_text(before.perm)[:2]} → {perm_text(after.perm)[:2]}"
    if before.broker_addrs != after.broker_addrs:
        masters = [each.broker_addrs.get(str(MASTER_ID)) or "none" for each in (before, after)]
        yield f"master {' → '.join(masters)}" if masters[0] != masters[1] else "other slaves"
