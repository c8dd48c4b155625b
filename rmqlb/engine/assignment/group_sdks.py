"""Which client library each of a group's consumers runs: as named, as its connection says, or Java, assumed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct, field

from rmqlb.engine.allocate.sdks import JAVA, SDKS, SdkGuess, sdk_named, sdk_of_connection
from rmqlb.engine.assignment.consumers import is_grpc
from rmqlb.model.finding import INFO, Finding
from rmqlb.model.group import Connection, ConsumerGroup


class GroupSdks(Struct, frozen=True):
    """A group's client libraries, by name.

    Attributes:
        usual: of most consumers, and so of those to come.
        sdk_of: client id → its own, where it is another one.
        findings: what is assumed, and that there are several.
    """

    usual: str = JAVA.name
    sdk_of: Mapping[str, str] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()


def group_sdks(
    group: ConsumerGroup | None,
    client_ids: Iterable[str],
    *,
    given: str | None = None,
    given_of: Mapping[str, str] | None = None,
) -> GroupSdks:
    """The libraries of these consumers (raises UsageError).

    Args:
        group: the group as it was seen, if it was.
        client_ids: the consumers that take part.
        given: what the user says that all of them run, such as `go` or `go@2.1.2`; before what connections say.
        given_of: client id → what the user says that it runs, before all.
    """
    ids = dict.fromkeys(client_ids)
    connections = {} if group is None or given is not None else _connections(group)
    guesses: dict[str, SdkGuess] = {}
    for client_id in ids:
        named = (given_of or {}).get(client_id, given)
        seen = connections.get(client_id, Connection(client_id))
        guesses[client_id] = sdk_of_connection(seen.language, seen.version) if named is None else sdk_named(named)
    numbers = Counter[str](guess.sdk.name for guess in guesses.values())
    usual = max(SDKS, key=lambda name: numbers[name]) if numbers else sdk_named(given or JAVA.name).sdk.name
    told = {i: text for i, text in _told(connections, given, given_of or {}, ids).items() if guesses[i].assumed}
    findings = [*_assumed(guesses, told), *_mixed(guesses, numbers, usual)]
    to_come = {i: sdk_named(text) for i, text in (given_of or {}).items() if i not in ids}
    others = {i: guess.sdk.name for i, guess in (guesses | to_come).items() if guess.sdk.name != usual}
    return GroupSdks(usual, others, tuple(findings))


def _connections(group: ConsumerGroup) -> dict[str, Connection]:
    """Client id → a connection of it, if there is one, that tells its language."""
    found: dict[str, Connection] = {}
    for view in group.views or ():
        for connection in view.connections:
            if connection.language is not None:
                found.setdefault(connection.client_id, connection)
    return found


def _told(
    connections: Mapping[str, Connection], given: str | None, given_of: Mapping[str, str], ids: Iterable[str]
) -> dict[str, str]:
    """Client id → what it or the user says that it runs, of those of which either says anything."""
    said = {i: given_of.get(i, given) for i in ids}
    reported = {i: f"{its.language} {its.version or ''}".strip() for i, its in connections.items()}
    return {i: text for i in ids if (text := said[i] or reported.get(i)) is not None}


def _assumed(guesses: Mapping[str, SdkGuess], told: Mapping[str, str]) -> Iterator[Finding]:
    """A finding for each library that stands in for others; of gRPC clients, which own nothing, none."""
    for name, sdk in SDKS.items():
        ids = tuple(i for i in told if guesses[i].sdk.name == name and not is_grpc(i))
        if ids:
            texts = ", ".join(sorted({told[i] for i in ids}))
            yield Finding(
                "assumed-sdk",
                f"consumers run {texts}, whose rules are not known: predicted by those of {sdk}, the nearest",
                severity=INFO,
                consumers=ids,
            )


def _mixed(guesses: Mapping[str, SdkGuess], numbers: Counter[str], usual: str) -> Iterator[Finding]:
    if len(numbers) > 1:
        texts = ", ".join(f"{name} ({number})" for name, number in numbers.most_common())
        yield Finding(
            "mixed-sdks",
            f"consumers run different client libraries: {texts}; each computes its own share by its own rules, so that "
            "queues can be unassigned or have duplicate owners",
            consumers=tuple(i for i, guess in guesses.items() if guess.sdk.name != usual),
        )
