"""The findings on a group, for every verb: a code, a severity and a count mean the same everywhere."""

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from rmqlb.engine import source_findings as of_source
from rmqlb.engine.assignment.consumers import broadcasting_finding, shared_id_findings, unusual_findings
from rmqlb.engine.assignment.detect import mismatch_findings, owner_findings
from rmqlb.engine.diagnose.case import Case
from rmqlb.engine.diagnose.diagnose import ONE_SAMPLE, findings_of, suspicions
from rmqlb.engine.group import Group, assumption, known
from rmqlb.errors import DataError, RmqlbError
from rmqlb.model.diagnosis import CODES, GroupFinding, group_finding
from rmqlb.model.group import BROADCASTING, ConsumerGroup, retry_topic
from rmqlb.model.message_queue import sort_client_ids
from rmqlb.model.result import INFO, SEVERITIES, Finding, named
from rmqlb.model.snapshot import ClusterSnapshot, Unread, suggestion

_OWNERS = ("unassigned-queues", "duplicate-owners", "mismatch")
_OF_CONSUMPTION = (
    *("no-consumer-online", "frozen-consumer", "blocked-consumer", "head-blocked", "pull-stopped", "lock-lost"),
    *("dropped-but-consuming", "flow-control", "consume-failing", "hot-queue", "clock-ahead"),
)  # codes about consumption, not about owners
_LONGEST_READ_MS = 60_000  # a consumer may have started while its group was read, up to this time after its begin


def group_findings(group: Group, unread: Sequence[Unread]) -> tuple[GroupFinding, ...]:
    """All findings and suspicions on a group of a snapshot, the worst first; `unread` are its unread parts."""
    case = Case(group)
    # The findings on its routes name topics without readable queues.
    found = [each for each in findings_of(case, ONE_SAMPLE) if each.code != "no-read-queues"]
    others = [*of_source.unread_findings(unread), *_others(group)]
    if group.shares and not any(finding.explains or finding.code in _OWNERS for finding in found):
        others += known(lambda: [*_unexplained(group)]) or []
    found += (group_finding(finding, group.name or "") for finding in others)
    codes = {each.code for each in found}
    found += (each for each in suspicions(case) if each.code not in codes)
    return tuple(sorted(dict.fromkeys(found), key=lambda finding: SEVERITIES.index(finding.severity)))


def planning_findings(group: Group, *, pop: bool = True) -> tuple[Finding, ...]:
    """The findings that limit trust in a prediction for the group, the worst first.

    Without `pop` a finding says that topics consumed by POP are left out.
    """
    if group.assumed or group.seen is None:
        found = [*_of_given(group), *_of_routes(group), *group.strategy.findings]
    else:
        as_reported = replace(assumption(group.snapshot, group.name or ""), topics=group.given.topics)
        is_reported = as_reported == group.given  # then its computed facts hold
        reported = group if is_reported else Group(group.snapshot, group.name, group.settings, as_reported)
        hidden = [*_hidden(group)]  # with evidence, instead of the rule's finding
        left_out = (*_OF_CONSUMPTION, *(each.code for each in hidden))
        found = [each.brief for each in group_findings(reported, ()) if each.code not in left_out]
        found += [*hidden, *_not_subscribed(group, group.seen)]
        found += group.strategy.findings if group.given.strategy is not None else ()
        if not pop and group.popped_routes:
            names = ", ".join(route.topic for route in group.popped_routes)
            text = f"left out: {names}, which {group.title} consumes by POP, so no consumer owns their queues"
            found = [each for each in found if each.code != "pop-consumption"]
            found.append(Finding("pop-consumption", text, group.name, INFO))
        if group.given.sdk is not None or group.given.sdk_of:
            found = [each for each in found if each.code != "mixed-sdks"]
    found += group.sdks.findings
    return tuple(dict.fromkeys((*found, *group_source_findings(group.snapshot, group))))


def group_source_findings(snapshot: ClusterSnapshot, group: Group) -> Iterator[Finding]:
    """Notes of the source and unread parts, without those of other groups and their topics."""
    topics = known(lambda: group.topics)

    def concerns(part: Unread) -> bool:
        if part.kind == "route":
            return topics is None or part.name in topics
        return part.kind in ("groups", "name-server", "proxy", "part", "other") or part.name == group.name

    yield from of_source.source_findings(snapshot, concerns)


def _unexplained(group: Group) -> Iterator[Finding]:
    """Findings on owners whose cause is unknown (raises RmqlbError)."""
    states, owned = group.group.queues, known(lambda: group.ownership)
    if owned is not None and owned.basis != "observed":
        yield from owner_findings(owned.owners, group.title, group.name, owned.basis, states)
    if group.basis != "assumed":
        yield from mismatch_findings(group.predicted, group.members.name, states)


def _others(group: Group) -> Iterator[Finding]:
    seen = group.group
    if group.refusal is not None and group.refusal.code not in CODES:
        yield _finding(group.refusal)
    elif seen.message_model == BROADCASTING:
        yield broadcasting_finding(group.title, group.name)
    if group.unsettled and group.refusal is None:
        yield _finding(group.unsettled_error)
    yield from unusual_findings(seen)
    at = seen.seen.at or group.snapshot.taken_at
    if at is not None:
        latest = at.timestamp() * 1000 + _LONGEST_READ_MS
        starts = {i: report.started_at for i, report in seen.reports.items() if report.started_at is not None}
        ahead = sort_client_ids(i for i, start in starts.items() if start > latest)
        text = f"{group.title}: {named(ahead)} report a start time in the future: clock ahead of this computer's"
        yield from [Finding("clock-ahead", text, group.name, INFO, tuple(ahead))] if ahead else ()
    yield from _of_routes(group)
    if group.shares and not group.unsettled:
        try:
            yield from (finding for finding in group.strategy.findings if finding.code not in CODES)
            _ = group.predicted
        except RmqlbError as error:
            if error.code != DataError.code:  # another finding says what is missing
                yield _finding(error)


def _finding(error: RmqlbError) -> Finding:
    return Finding(error.code, error.message, error.group, INFO)


def _hidden(group: Group) -> Iterator[Finding]:
    if "hidden" in group.refusals:
        yield _finding(group.refusals["hidden"])


def _of_routes(group: Group) -> Iterator[Finding]:
    topics, snapshot = known(lambda: group.topics) or (), group.snapshot
    yield from of_source.no_route_findings(group.name or "", topics, snapshot)
    for sighting in (snapshot.routes[topic] for topic in topics if topic in snapshot.routes):
        yield from of_source.sighting_findings(sighting)
        yield from of_source.unreadable_findings(sighting.route)


def _of_given(group: Group) -> Iterator[Finding]:
    names = group.snapshot.groups
    if group.name is not None and group.name not in names and names:
        close = suggestion("groups", group.name, names)
        yield Finding("group-not-seen", f"group {group.name} is not in {group.snapshot.endpoint}; {close}", group.name)
    yield from shared_id_findings(group.given.client_ids or ())
    if group.placeholders:
        text = "the consumers are placeholders; real client IDs may sort differently"
        yield Finding("placeholder-ids", text, severity=INFO)
    if group.seen is not None:
        yield from _hidden(group)
        yield from _not_subscribed(group, group.seen)


def _not_subscribed(group: Group, seen: ConsumerGroup) -> Iterator[Finding]:
    if group.given.retry and group.name is not None and retry_topic(group.name) not in group.topics:
        topic = retry_topic(group.name)
        if not seen.subscribes_to(topic):
            why = "it is BROADCASTING" if seen.message_model == BROADCASTING else "it pulls"
            text = f"--include-retry: {group.title} does not subscribe to {topic}: {why}"
            yield Finding("not-subscribed", text, group.name)
        else:
            text = f"--include-retry: the route of {topic} is not in {group.snapshot.endpoint}"
            yield Finding("no-route", text, group.name)
    for topic in group.given.topics:
        if (seen.views != () or seen.client_ids) and not seen.subscribes_to(topic):
            yield Finding("not-subscribed", f"{group.title} does not subscribe to topic {topic}", group.name)
