"""What was seen of a cluster, in one value: the only thing that sources hand to the engine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Literal

from msgspec import Struct, field
from msgspec.structs import replace

from rmqlb.errors import DataError
from rmqlb.model.group import ConsumerGroup, Seen
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.route import TopicRouteData
from rmqlb.model.system_names import is_system_group, is_system_topic


class Everything(Struct, frozen=True):
    """A whole cluster, or what patterns name of it.

    Attributes:
        topics: shell patterns of topic names; all topics without any.
        groups: shell patterns of group names; all groups without any.
        system: RocketMQ's own topics and groups too; one that is named in full is taken without.
    """

    topics: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    system: bool = False

    def takes_topic(self, topic: str) -> bool:
        """The topic is one of those named."""
        return _fits(topic, self.topics) and (self.system or topic in self.topics or not is_system_topic(topic))

    def takes_group(self, group: str) -> bool:
        """The group is one of those named."""
        return _fits(group, self.groups) and (self.system or group in self.groups or not is_system_group(group))


class Wanted(Struct, frozen=True):
    """Which parts of a cluster a command needs, so that a source reads no more.

    Attributes:
        topics: topic names, or None for those of the wanted groups.
        owners: who holds which queue now, and how far it has read.
        groups: groups at all; a dump of many need not build them for a route.
        everything: the whole cluster instead, or None.
        retry: the retry topic of the wanted groups too, where it has a route.
        several: the names of several consumer groups, where `group` is None.
    """

    topics: tuple[str, ...] | None = None
    group: str | None = None
    owners: bool = True
    groups: bool = True
    everything: Everything | None = None
    retry: bool = False
    several: tuple[str, ...] = ()

    @property
    def named(self) -> tuple[str, ...]:
        """The groups that are wanted by name."""
        return self.several if self.group is None else (self.group,)


class OffsetQuestion(Struct, frozen=True):
    """A queue that a consumer takes, of which its broker is asked what it would tell the consumer.

    Attributes:
        timestamps: moments, in milliseconds since 1970, one of which is the consumer's `consumeTimestamp`; none when
            that plays no part.
    """

    queue: MessageQueue
    address: str
    timestamps: tuple[int, ...] = ()


class RouteSighting(Struct, frozen=True, rename="camel"):
    """A topic's route, with where and when it was seen.

    Attributes:
        others: what other NameServers say, where they say something else; one that does not know the topic is there
            with an empty route.
    """

    route: TopicRouteData
    seen: Seen
    others: tuple[RouteSighting, ...] = ()


UnreadKind = Literal[
    "route", "group", "groups", "members", "member", "offsets", "stored-offsets", "name-server", "part", "other"
]
UNREAD_WORDS: Mapping[UnreadKind, str] = {
    "route": "route of topic {name}",
    "group": "group {name}",
    "groups": "groups of broker {name}",
    "members": "members of group {name} at broker {detail}",
    "member": "member of group {name} {detail}",
    "offsets": "offsets of group {name} at {detail}",
    "stored-offsets": "stored offsets of group {name} at {detail}",
    "name-server": "NameServer {name}",
    "part": "part {name}",
    "other": "{name}",
}
"""How a part that could not be read is called where people see it."""


class Unread(Struct, frozen=True):
    """A part that could not be read.

    Attributes:
        name: of the topic, group, broker (`groups`) or NameServer; the number of a redacted part; other parts in words.
        detail: of a group: the broker (`members`), the client ID (`member`), or the addresses of brokers.
    """

    kind: UnreadKind
    name: str
    reason: str
    detail: str | None = None

    @property
    def what(self) -> str:
        """The part, in words for people.

        >>> Unread("members", "g", "timed out", "b").what
        'members of group g at broker b'
        """
        return UNREAD_WORDS[self.kind].format(name=self.name, detail=self.detail)


class ClusterSnapshot(Struct, frozen=True):
    """A cluster, or the parts of it that were asked for.

    Attributes:
        kind: which kind of source: dashboard, dump, …
        endpoint: URL or path, never with a secret in it.
        taken_at: UTC, or None when the source does not tell.
        unread: parts that were asked for and could not be read.
        notes: what a reader of the source should know (leniencies used, documents passed over).
        context: the user's name for the endpoint, or None.
    """

    kind: str
    endpoint: str
    taken_at: datetime | None = None
    routes: Mapping[str, RouteSighting] = field(default_factory=dict)
    groups: Mapping[str, ConsumerGroup] = field(default_factory=dict)
    unread: tuple[Unread, ...] = ()
    notes: tuple[str, ...] = ()
    context: str | None = None

    def route(self, topic: str) -> TopicRouteData:
        """The route of a topic."""
        if topic in self.routes:
            return self.routes[topic].route
        raise DataError(
            f"topic {topic} is not in {self.endpoint}",
            hint=suggestion("topics", topic, self.routes),
            code="topic-not-found",
        )

    def group(self, group: str) -> ConsumerGroup:
        """A consumer group."""
        if group in self.groups:
            return self.groups[group]
        raise DataError(
            f"group {group} is not in {self.endpoint}",
            hint=suggestion("groups", group, self.groups),
            group=group,
            code="group-not-found",
        )

    def parts(self) -> Iterator[ClusterSnapshot]:
        """The snapshot in pieces: what concerns the whole of it, then each topic, then each group, by name."""
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


def close_names(name: str, names: Iterable[str]) -> str | None:
    """A hint that gives the names most like one that is not there; None when none is like it."""
    from difflib import get_close_matches

    close = get_close_matches(name, sorted(names), n=3)
    return "did you mean " + " or ".join(close) + "?" if close else None


def suggestion(kind: str, name: str, names: Iterable[str]) -> str:
    """A hint for a name that is not there: the names most like it, else the first ones there are."""
    known = sorted(names)
    if (close := close_names(name, known)) is not None:
        return close
    if not known:
        return f"there are no {kind}"
    return f"there are the {kind} {', '.join(known[:8])}" + (", …" if len(known) > 8 else "")
