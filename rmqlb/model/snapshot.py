"""An observed cluster in one value, the only thing that sources hand to the engine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from functools import cached_property
from typing import Literal

from msgspec import Struct, field
from msgspec.structs import replace

from rmqlb.errors import DataError
from rmqlb.model.group import ConsumerGroup, Seen, is_system_group, is_system_topic
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.route import BrokerData, TopicRouteData


class Everything(Struct, frozen=True):
    """A whole cluster, or the parts that match patterns."""

    topics: tuple[str, ...] = ()  # shell patterns of topic names; all topics without any
    groups: tuple[str, ...] = ()  # shell patterns of group names; all groups without any
    system: bool = False  # RocketMQ's own topics and groups too; one that is named in full is taken without
    of_groups: bool = False  # only the topics that these groups read

    def takes_topic(self, topic: str) -> bool:
        return _fits(topic, self.topics) and (self.system or topic in self.topics or not is_system_topic(topic))

    def takes_group(self, group: str) -> bool:
        return _fits(group, self.groups) and (self.system or group in self.groups or not is_system_group(group))


class Wanted(Struct, frozen=True):
    """The parts of a cluster that a command needs, so that a source reads no more."""

    topics: tuple[str, ...] | None = None  # topic names, or None for those of the wanted groups
    group: str | None = None
    owners: bool = True  # current owners and offsets of queues
    groups: bool = True  # groups at all; a file with many need not build them for a route
    everything: Everything | None = None  # the whole cluster instead, or None
    retry: bool = False  # the retry topic of the wanted groups too, where it has a route
    evidence: bool = False  # consumers' reports on each queue and topic, for a diagnosis
    several: tuple[str, ...] = ()
    spaced: bool = False  # at least 1 s between a consumer's answer and its next request, as with evidence
    unasked: frozenset[str] = frozenset()  # client IDs without a request for their queues

    @property
    def named(self) -> tuple[str, ...]:
        return self.several if self.group is None else (self.group,)

    @property
    def only_topic(self) -> str | None:
        """The topic of a route that does not name its own."""
        return self.topics[0] if self.topics is not None and len(self.topics) == 1 else None

    def groups_among(self, present: Iterable[str]) -> tuple[str, ...]:
        """The named groups, and in place of each pattern its matches without RocketMQ's own groups; each once.

        >>> Wanted(several=("b", "a*")).groups_among(("ab", "aa", "%RETRY%a", "c"))
        ('b', 'aa', 'ab')
        """
        known = sorted(name for name in present if not is_system_group(name))
        chosen = ([n for n in known if _fits(n, (name,))] if is_pattern(name) else [name] for name in self.named)
        return tuple(dict.fromkeys(name for some in chosen for name in some))


class OffsetQuestion(Struct, frozen=True):
    """A question to a queue's broker about its answers to a consumer that takes the queue."""

    queue: MessageQueue
    address: str
    timestamps: tuple[int, ...] = ()  # possible `consumeTimestamp`s of the consumer, ms since 1970; none if irrelevant


class AssignmentQuestion(Struct, frozen=True):
    """A question to a broker for a consumer's queues of a topic."""

    topic: str
    client_id: str
    strategy: str  # the name that the consumer sends
    broker_name: str
    address: str  # of that broker


class AssignmentAnswer(Struct, frozen=True):
    mode: str | None  # PULL or POP; None where no queue says it
    queues: frozenset[MessageQueue] | None  # None where the broker assigns nothing, and the consumer keeps its queues


class RouteSighting(Struct, frozen=True, rename="camel"):
    """A topic's route, with where and when it was seen."""

    route: TopicRouteData
    seen: Seen
    others: tuple[RouteSighting, ...] = ()  # differing routes of other NameServers, empty where the topic is unknown


UnreadKind = Literal[
    "route", "group", "groups", "members", "member", "link", "offsets", "stored-offsets", "name-server", "proxy",
    "part", "other",
]  # fmt: skip
UNREAD_WORDS: Mapping[UnreadKind, str] = {
    "route": "route of topic {name}",
    "group": "group {name}",
    "groups": "groups of broker {name}",
    "members": "consumers of group {name} at broker {detail}",
    "offsets": "offsets of group {name} at {detail}",
    "stored-offsets": "stored offsets of group {name} at {detail}",
    "member": "consumer {detail} of group {name}",
    "link": "consumer {detail} in group {name}",
    "name-server": "NameServer {name}",
    "proxy": "consumers of Proxy {name}",
    "part": "part {name}",
    "other": "{name}",
}  # names of unread parts for people, in the order in which they are listed


class Unread(Struct, frozen=True, rename="camel", omit_defaults=True):
    kind: UnreadKind
    name: str  # topic, group, broker (`groups`), NameServer, Proxy, number of a redacted part, or words
    reason: str
    # of a group: the broker (`members`), the client ID (`member`), both (`link`, see `through`), or brokers' addresses
    detail: str | None = None
    no_answer: bool = False  # it was asked, and did not answer in time

    @property
    def is_of_server(self) -> bool:
        return self.no_answer and self.kind not in ("member", "link")

    @property
    def what(self) -> str:
        """The part, in words for people."""
        return UNREAD_WORDS[self.kind].format(name=self.name, detail=self.detail)


def is_ghost(reason: str) -> bool:
    """A Java client's answer that it does not run the group (`ClientRemotingProcessor.getConsumerRunningInfo`)."""
    return "not exist in this consumer" in reason


_THROUGH = " through "


def unread_link(group: str, reason: str, client_id: str, address: str) -> Unread:
    """A consumer that answers only through another broker than this."""
    return Unread("link", group, reason, f"{client_id}{_THROUGH}{address}", no_answer=True)


def through(part: Unread) -> tuple[str, str]:
    """The client ID and the broker's address of a `link`."""
    client_id, _, address = (part.detail or "").rpartition(_THROUGH)
    return client_id, address


class Gaps(Struct, frozen=True):
    """The parts of a snapshot that could not be read, by name."""

    topics: Mapping[str, str]  # topic → why its route was not read
    groups: Mapping[str, str]  # group → why it was not read
    members: Mapping[str, str]  # group → which broker did not report its consumers, and why
    unlisted: str | None  # why further groups may exist; None if none can
    proxies: str | None  # which Proxy did not report its consumers, and why; None when all did


class ClusterSnapshot(Struct, frozen=True, dict=True):
    kind: str  # which kind of source: dashboard, dump, …
    endpoint: str  # URL or path, never with a secret in it
    taken_at: datetime | None = None  # UTC, or None when the source does not report it
    routes: Mapping[str, RouteSighting] = field(default_factory=dict)
    groups: Mapping[str, ConsumerGroup] = field(default_factory=dict)
    unread: tuple[Unread, ...] = ()  # parts that were asked for and could not be read
    notes: tuple[str, ...] = ()  # what users of the source should know (leniencies used, documents skipped)
    context: str | None = None  # the user's name for the endpoint, or None
    own_groups: int = 0  # RocketMQ's own groups, which a reading of the whole cluster leaves out

    def route(self, topic: str) -> TopicRouteData:
        if topic in self.routes:
            return self.routes[topic].route
        raise not_in("topic", topic, self.routes, self.endpoint)

    def group(self, group: str) -> ConsumerGroup:
        if group in self.groups:
            return self.groups[group]
        raise not_in("group", group, self.groups, self.endpoint)

    @cached_property
    def gaps(self) -> Gaps:
        topics: dict[str, str] = {}
        groups: dict[str, str] = {}
        members: dict[str, str] = {}
        unlisted = proxies = None
        for part in self.unread:
            if part.kind in ("route", "group"):
                (topics if part.kind == "route" else groups)[part.name] = part.reason
            elif part.kind == "members":
                members[part.name] = f"broker {part.detail} did not report its consumers: {part.reason}"
            elif part.kind == "groups":
                unlisted = f"broker {part.name} did not list its groups: {part.reason}"
            elif part.kind == "proxy":
                proxies = f"Proxy {part.name} did not report its consumers: {part.reason}"
        return Gaps(topics, groups, members, unlisted, proxies)

    @property
    def brokers(self) -> list[BrokerData]:
        return [broker for sighting in self.routes.values() for broker in sighting.route.broker_datas]

    @property
    def own_topics(self) -> set[str]:
        """Topics named like a broker or a cluster, which every broker creates (`TopicConfigManager`)."""
        return {name for broker in self.brokers for name in (broker.broker_name, broker.cluster)}

    def parts(self) -> Iterator[ClusterSnapshot]:
        """The snapshot in pieces: the common part, then each topic, then each group, by name."""
        piece = replace(self, routes={}, groups={})
        yield piece
        piece = replace(piece, unread=(), notes=())
        for topic, sighting in sorted(self.routes.items()):
            yield replace(piece, routes={topic: sighting})
        for name, group in sorted(self.groups.items()):
            yield replace(piece, groups={name: group})


def _fits(name: str, globs: tuple[str, ...]) -> bool:
    from fnmatch import fnmatchcase

    return not globs or any(fnmatchcase(name, glob) for glob in globs)


def is_pattern(name: str) -> bool:
    return not {*name}.isdisjoint("*?[")


def close_names(name: str, names: Iterable[str]) -> str | None:
    """A hint with the names most like a missing one; None without any."""
    from difflib import get_close_matches

    close = get_close_matches(name, sorted(names), n=3)
    return "did you mean " + " or ".join(close) + "?" if close else None


def not_in(kind: Literal["topic", "group"], name: str, known: Iterable[str], endpoint: str) -> DataError:
    text, hint = f"{kind} {name} is not in {endpoint}", suggestion(f"{kind}s", name, known)
    if kind == "topic":
        return DataError(text, hint=hint, code="topic-not-found")
    return DataError(text, hint=hint, group=name, code="group-not-found")


def suggestion(kind: str, name: str, names: Iterable[str]) -> str:
    """A hint for a missing name: the most similar names, otherwise the first ones."""
    known = sorted(names)
    if (close := close_names(name, known)) is not None:
        return close
    if not known:
        return f"there are no {kind}"
    return f"known {kind}: {', '.join(known[:8])}" + (", …" if len(known) > 8 else "")
