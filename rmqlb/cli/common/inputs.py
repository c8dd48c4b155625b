"""What commands have in common before they call the engine: the snapshot, the group, its topics and members."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache

from msgspec import Struct
from msgspec.structs import replace

from rmqlb.cli.common import amounts
from rmqlb.cli.common import parse as values
from rmqlb.cli.common.known_names import remember
from rmqlb.cli.common.options import GroupOptions, SourceOptions
from rmqlb.cli.common.secret_prompts import password, secret_key, security_token
from rmqlb.cli.common.terminal import Terminal
from rmqlb.engine.assignment.consumers import member_findings, must_rebalance, rebalanced_members, shared_id_findings
from rmqlb.engine.assignment.pop_and_proxy import must_be_listed, nobody_online, proxy_findings, pulled_routes
from rmqlb.engine.route_findings import sighting_findings, unreadable_findings
from rmqlb.engine.source_findings import no_route_findings, source_findings
from rmqlb.errors import DataError, UsageError
from rmqlb.model.finding import Finding
from rmqlb.model.group import BROADCASTING, RETRY_PREFIX, ConsumerGroup, States, retry_topic
from rmqlb.model.group_scenario import known_consume_from
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.plan import MovedRange
from rmqlb.model.route import TopicRouteData
from rmqlb.model.snapshot import ClusterSnapshot, OffsetQuestion, Wanted, suggestion
from rmqlb.model.words import counted
from rmqlb.sources.opening import Access, open_source
from rmqlb.sources.source_text import is_live


class GroupOnTopics(Struct, frozen=True):
    """A group with its topics and members, ready to be planned."""

    name: str | None  # the group's name, or None when the source names none
    group: ConsumerGroup | None
    routes: tuple[TopicRouteData, ...]  # the topics to plan, in the order asked for, else by name
    client_ids: tuple[str, ...]  # its members, duplicates kept
    placeholders: tuple[str, ...]
    assumed: bool
    findings: tuple[Finding, ...]

    @property
    def broadcasting(self) -> bool:
        return self.group is not None and self.group.message_model == BROADCASTING

    @property
    def queues(self) -> list[MessageQueue]:
        """Those that its consumers share out, topic by topic."""
        return [queue for route in self.routes for queue in route.subscribe_queues()]

    @property
    def states(self) -> States:
        return self.group.queues if self.group else {}

    @property
    def consume_from(self) -> str:
        return known_consume_from(self.group.consume_from_where if self.group else None)

    @property
    def title(self) -> str:
        return "the group" if self.name is None else f"group {self.name}"

    @property
    def subscribed(self) -> dict[str, frozenset[str]]:
        """Client id → the topics it subscribes to, of the members that say so."""
        reports = self.group.reports if self.group else {}
        return {client_id: report.topics for client_id, report in reports.items() if report.topics is not None}


class Reader:
    """A source, asked as often as is wanted."""

    def __init__(self, options: SourceOptions, terminal: Terminal, *, stages: bool = False) -> None:
        if options.source is None:
            hint = "name rocketmq://HOST:9876, a Dashboard's URL, a file or - with -s, or set RMQLB_SOURCE or --context"
            raise UsageError("no source", hint=hint, code="no-source")
        self._text = options.source
        self._options = options
        self._terminal = terminal
        self._stages = stages and is_live(options.source)
        self._access = access(options, terminal)

    def __call__(self, wanted: Wanted) -> ClusterSnapshot:
        source, context = open_source(self._text, self._access), self._options.active_context
        if context is not None:
            self._terminal.head(f"context {context.name}: {context.source}")
        elif self._options.ignored_context_note is not None:
            self._terminal.head(self._options.ignored_context_note)
        with self._terminal.progress(stages=self._stages) as progress:
            snapshot = source.fetch(wanted, progress)
        if not self._terminal.repeating:
            remember(snapshot, self._text, wanted.everything)
        return snapshot if context is None else replace(snapshot, context=context.name)

    def ask_offsets(self, group: str, questions: Sequence[OffsetQuestion]) -> States | None:
        """What brokers tell a consumer of a group that takes these queues; None where they cannot be asked."""
        with self._terminal.progress() as progress:
            return open_source(self._text, self._access).ask_offsets(group, questions, progress)


def fetch(options: SourceOptions, wanted: Wanted, terminal: Terminal, *, stages: bool = False) -> ClusterSnapshot:
    """The wanted parts of the source."""
    return Reader(options, terminal, stages=stages)(wanted)


def access(options: SourceOptions, terminal: Terminal) -> Access:
    """How to reach the source; a secret is asked for when it is needed, and once."""

    @cache
    def asked_password(user: str) -> str:
        terminal.pause_progress()
        return password(user, options)

    @cache
    def asked_secret_key() -> str:
        terminal.pause_progress()
        return secret_key(options)

    return Access(
        user=options.user,
        password=asked_password,
        ca_file=options.ca_file,
        timeout=amounts.seconds(options.source_timeout, "--source-timeout"),
        retries=options.source_retries,
        max_bytes=amounts.byte_count(options.max_size, "--max-size"),
        access_key=options.access_key,
        secret_key=asked_secret_key,
        security_token=security_token(options),
        client_cert=options.client_cert,
        client_key=options.client_key,
        tls_name=options.tls_name,
        map_address=tuple(options.map_address or ()),
    )


def wanted_for(options: SourceOptions, which: GroupOptions) -> Wanted:
    """What a plan needs; a live source is only asked for what is named."""
    if is_live(options.source) and which.group is None and not (which.consumers and which.topic):
        raise UsageError(
            "which group?", hint="name it with --group, or name --topic and --consumers", code="which-group"
        )
    if options.source == "-" and which.consumers == "@-":
        raise UsageError("-s - and --consumers @- both read stdin")
    topics = tuple(dict.fromkeys(which.topic)) if which.topic else None
    return Wanted(topics, which.group, retry=which.include_retry)


def wanted_for_each(options: SourceOptions, each: Sequence[GroupOptions]) -> Wanted:
    """What plans of several groups need, in one reading."""
    wanted = wanted_for(options, each[0])
    return replace(wanted, group=None, several=tuple(one.group or "" for one in each)) if len(each) > 1 else wanted


def group_on_topics(snapshot: ClusterSnapshot, which: GroupOptions, *, broadcasting_too: bool = False) -> GroupOnTopics:
    """The group to plan, its topics and members."""
    consumers = which.consumers
    seen = _group(snapshot, which.group, consumers)
    if seen is not None:
        must_rebalance(seen, broadcasting_too=broadcasting_too)
        must_be_listed(seen, assumed=consumers is not None)
        seen = seen.without_foreign_offsets
    routes, findings = _routes(snapshot, seen, which)
    if seen is None and which.group is not None and snapshot.groups:
        close = suggestion("groups", which.group, snapshot.groups)
        text = f"group {which.group} is not in {snapshot.endpoint}; {close}"
        findings.append(Finding("group-not-seen", text, which.group))
    if seen is not None:
        routes, left_out = pulled_routes(seen, routes)
        findings += [*left_out, *proxy_findings(seen), *_subscription(seen, routes)]
    if consumers is not None:
        client_ids, invented = values.members(consumers)
        findings += list(shared_id_findings(client_ids))
        placeholders = client_ids if invented else ()
    elif seen is None:
        raise DataError(
            "the source holds no group's consumers",
            hint="name them with --consumers ID,ID,… or @FILE, or a number",
            code="consumers-unknown",
        )
    else:
        client_ids, placeholders = rebalanced_members(seen, broadcasting_too=broadcasting_too), ()
        findings += list(member_findings(seen))
    if placeholders:
        findings.append(
            Finding("placeholder-ids", "the consumers are placeholders: real ones have other IDs, and sort by them")
        )
    sightings = (snapshot.routes[route.topic] for route in routes)
    findings += (finding for sighting in sightings for finding in sighting_findings(sighting))
    findings += source_findings(snapshot)
    findings += (finding for route in routes for finding in unreadable_findings(route))
    return GroupOnTopics(
        name=seen.group if seen else which.group,
        group=seen,
        routes=routes,
        client_ids=client_ids,
        placeholders=placeholders,
        assumed=consumers is not None,
        findings=tuple(findings),
    )


def placeholder_finding(moved: tuple[int, MovedRange | None] | None = None) -> Finding:
    """The finding of invented ids; `moved` of a plan: how many queues move with those shown, and with any."""
    text = "placeholder client IDs sort behind IP addresses"
    if moved is None:
        return Finding("placeholder-ids", f"{text}; a real process has another ID, and other queues may move")
    shown, over_places = moved
    if over_places is None:
        text = "not the order of client ids decides, but their text"
    elif over_places.fewest == over_places.most and over_places.complete:
        return Finding("placeholder-ids", f"{text}; wherever the real ones sort, {counted(shown, 'queue')} move")
    moves = counted(shown, "move")
    return Finding(
        "placeholder-ids", f"{text}: the tables show {moves} with placeholders; name the real ones with --add ID"
    )


def no_strategy(option: str, found: GroupOnTopics) -> UsageError:
    """The error for a strategy where none is asked."""
    return UsageError(
        f"{option}: {found.title} is BROADCASTING, and no strategy decides who reads a queue",
        hint=f"leave {option} out, or look at CLUSTERING: --group OTHER-NAME --topic T --consumers ID,ID,…",
        group=found.name,
    )


def only_group(snapshot: ClusterSnapshot, name: str | None) -> ConsumerGroup:
    """The group of that name, or the only one (raises DataError, UsageError)."""
    found = _group(snapshot, name, None)
    if found is None:
        raise DataError(
            f"no consumer group is in {snapshot.endpoint}",
            hint="fetch-routes writes a snapshot with groups and their consumers",
            code="consumers-unknown",
        )
    return found


def _group(snapshot: ClusterSnapshot, name: str | None, consumers: str | None) -> ConsumerGroup | None:
    if name is not None:
        return snapshot.groups.get(name) if consumers is not None else snapshot.group(name)
    if len(snapshot.groups) > 1 and consumers is None:
        names = ", ".join(sorted(snapshot.groups)[:8])
        raise UsageError("which group?", hint=f"name it with --group; the source holds {names}", code="which-group")
    return next(iter(snapshot.groups.values())) if len(snapshot.groups) == 1 else None


def _routes(
    snapshot: ClusterSnapshot, group: ConsumerGroup | None, which: GroupOptions
) -> tuple[tuple[TopicRouteData, ...], list[Finding]]:
    retry, untaken = _retry(snapshot, group, which)
    if which.topic:
        return _distinct((*(snapshot.route(topic) for topic in which.topic), *retry)), untaken
    if group is None or group.topics is None:
        return _distinct((*_only_route(snapshot, group, retry), *retry)), untaken
    own = retry_topic(group.group)
    names = [topic for topic in group.topics if which.include_retry or not topic.startswith(RETRY_PREFIX)]
    findings = untaken + no_route_findings(group.group, [topic for topic in names if topic != own], snapshot)
    routes = _distinct((*(snapshot.routes[topic].route for topic in names if topic in snapshot.routes), *retry))
    if not routes:
        raise _no_route(snapshot, group, names)
    return routes, findings


def _distinct(routes: Iterable[TopicRouteData]) -> tuple[TopicRouteData, ...]:
    return tuple({route.topic: route for route in routes}.values())


def _retry(
    snapshot: ClusterSnapshot, group: ConsumerGroup | None, which: GroupOptions
) -> tuple[list[TopicRouteData], list[Finding]]:
    """The route of the group's retry topic where it is asked for, or why it is not taken."""
    name = group.group if group is not None else which.group
    if not which.include_retry:
        return [], []
    if name is None:
        raise UsageError("--include-retry: of which group?", hint="name it with --group", code="which-group")
    topic = retry_topic(name)
    if group is not None and not group.subscribes_to(topic):
        why = "it is BROADCASTING" if group.message_model == BROADCASTING else "it pulls"
        text = f"--include-retry: group {name} does not subscribe to {topic}: {why}"
        return [], [Finding("not-subscribed", text, name)]
    if topic not in snapshot.routes:
        return [], [Finding("no-route", f"--include-retry: the route of {topic} is not in {snapshot.endpoint}", name)]
    return [snapshot.routes[topic].route], []


def _no_route(snapshot: ClusterSnapshot, group: ConsumerGroup, names: Sequence[str]) -> DataError:
    if names:
        what = f"no route of a topic of group {group.group} is in {snapshot.endpoint}"
        hint = suggestion("topics", names[0], snapshot.routes)
        return DataError(what, hint=hint, group=group.group, code="topic-not-found")
    if group.topics:
        what, hint = (
            f"only its retry topic is known of group {group.group}",
            "--include-retry takes it; or name a topic",
        )
    else:
        what, hint = f"group {group.group} subscribes to no topic", "to see what would be if it did, name a topic"
    return DataError(what, hint=f"{hint} with --topic", group=group.group, code="topic-not-found")


def _only_route(
    snapshot: ClusterSnapshot, group: ConsumerGroup | None, but: Sequence[TopicRouteData]
) -> tuple[TopicRouteData, ...]:
    names = sorted(snapshot.routes.keys() - {route.topic for route in but})
    if not names and group is not None and group.views == ():
        raise nobody_online(group.group, group, "its topics are not known; name one with --topic")
    if not names:
        raise DataError(
            f"no route is in {snapshot.endpoint}", hint="a plan needs the route of a topic", code="topic-not-found"
        )
    if len(names) > 1:
        listed = ", ".join(names[:8])
        raise UsageError("which topic?", hint=f"name it with --topic; the source holds {listed}", code="which-topic")
    return (snapshot.routes[names[0]].route,)


def _subscription(group: ConsumerGroup, routes: Sequence[TopicRouteData]) -> list[Finding]:
    """Brokers keep the last heartbeat's topics; of members whose subscriptions differ, others may have more."""
    return [
        Finding("not-subscribed", f"group {group.group} does not subscribe to topic {route.topic}", group.group)
        for route in routes
        if group.views != () and not group.subscribes_to(route.topic)
    ]
