"""Which client library each of a group's consumers runs: as named, as its connection says, or Java, assumed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct, field

from rmqlb.engine.allocate.sdks import JAVA, SDKS, SdkGuess, sdk_named, sdk_of_connection
from rmqlb.model.finding import INFO, WARNING, Finding
from rmqlb.model.group import Connection, ConsumerGroup, is_grpc
from rmqlb.model.sdk_use import SdkUse
from rmqlb.model.words import counted


class GroupSdks(Struct, frozen=True):
    """A group's client libraries, by name.

    Attributes:
        usual: of most consumers, and so of those to come.
        sdk_of: client id → its own, where it is another one.
        assumed: the client ids whose library is not known, or of which no rules are: these are the nearest ones.
        findings: which libraries that are named have the rules of another one.
    """

    usual: str = JAVA.name
    sdk_of: Mapping[str, str] = field(default_factory=dict)
    assumed: frozenset[str] = frozenset()
    findings: tuple[Finding, ...] = ()

    def numbers(self, client_ids: Iterable[str]) -> Counter[str]:
        """Library → how many of these consumers run it."""
        return Counter(self.sdk_of.get(client_id, self.usual) for client_id in client_ids)

    def uses(self, client_ids: Iterable[str]) -> tuple[SdkUse, ...]:
        """What those of these consumers run that own queues, the most usual library first."""
        ids = tuple(each for each in dict.fromkeys(client_ids) if not is_grpc(each))
        numbers = self.numbers(ids)
        guessed = self.numbers(self.assumed.intersection(ids))
        return tuple(
            SdkUse(name, sdk.library, sdk.newest, sdk.oldest, sdk.vectors, sdk.live, numbers[name], guessed[name])
            for name, sdk in SDKS.items()
            if numbers[name]
        )


def group_sdks(
    group: ConsumerGroup | None,
    client_ids: Iterable[str],
    *,
    given: str | None = None,
    given_of: Mapping[str, str] | None = None,
) -> GroupSdks:
    """The libraries of these consumers, gRPC clients left out, which own no queue (raises UsageError).

    Args:
        group: the group as it was seen, if it was.
        client_ids: the consumers that take part.
        given: what the user says that all of them run, such as `go` or `go@2.1.2`; before what connections say.
        given_of: client id → what the user says that it runs, before all.
    """
    ids = dict.fromkeys(client_id for client_id in client_ids if not is_grpc(client_id))
    connections = {} if group is None or given is not None else group.connection_of
    guesses: dict[str, SdkGuess] = {}
    for client_id in ids:
        named = (given_of or {}).get(client_id, given)
        seen = connections.get(client_id, Connection(client_id))
        guesses[client_id] = sdk_of_connection(seen.language, seen.version) if named is None else sdk_named(named)
    numbers = Counter[str](guess.sdk.name for guess in guesses.values())
    usual = usual_sdk(numbers) if numbers else sdk_named(given or JAVA.name).sdk.name
    told = {i: text for i, text in _told(connections, given, given_of or {}, ids).items() if guesses[i].assumed}
    to_come = {i: sdk_named(text) for i, text in (given_of or {}).items() if i not in ids}
    others = {i: guess.sdk.name for i, guess in (guesses | to_come).items() if guess.sdk.name != usual}
    assumed = frozenset(i for i, guess in (guesses | to_come).items() if guess.assumed)
    return GroupSdks(usual, others, assumed, tuple(_assumed(guesses, told)))


def usual_sdk(numbers: Mapping[str, int]) -> str:
    """The library of most consumers, given how many run each; of equals the first of `SDKS`.

    >>> usual_sdk({"go": 2, "cpp": 1}), usual_sdk({"go": 1, "java": 1})
    ('go', 'java')
    """
    return max(SDKS, key=lambda name: numbers.get(name, 0))


def _told(
    connections: Mapping[str, Connection], given: str | None, given_of: Mapping[str, str], ids: Iterable[str]
) -> dict[str, str]:
    """Client id → what it or the user says that it runs, of those of which either says anything."""
    said = {i: given_of.get(i, given) for i in ids}
    told = {i: its for i, its in connections.items() if its.language is not None}
    reported = {i: f"{its.language} {its.version or ''}".strip() for i, its in told.items()}
    return {i: text for i in ids if (text := said[i] or reported.get(i)) is not None}


def _assumed(guesses: Mapping[str, SdkGuess], told: Mapping[str, str]) -> Iterator[Finding]:
    """A finding for each library that stands in for others."""
    for name, sdk in SDKS.items():
        ids = tuple(i for i in told if guesses[i].sdk.name == name)
        if ids:
            texts = ", ".join(sorted({told[i] for i in ids}))
            yield Finding(
                "assumed-sdk",
                f"consumers run {texts}, whose rules are not known: predicted by those of {sdk}, the nearest",
                severity=INFO,
                consumers=ids,
            )


def mixed_finding(sdks: GroupSdks, client_ids: Iterable[str], *, unassigned: int, several: int) -> Iterator[Finding]:
    """A finding when these consumers run several libraries, as grave as what is predicted of their queues.

    Args:
        unassigned: queues without an owner, with the strategy that they run.
        several: queues with duplicate owners.
    """
    ids = tuple(each for each in dict.fromkeys(client_ids) if not is_grpc(each))
    numbers = sdks.numbers(ids)
    if len(numbers) > 1:
        texts = ", ".join(f"{name} ({number})" for name, number in numbers.most_common())
        is_bad = unassigned or several
        what = (
            f"{counted(unassigned, 'queue')} unassigned and {several} with duplicate owners, as predicted"
            if is_bad
            else "each queue has one owner all the same"
        )
        yield Finding(
            "mixed-sdks",
            f"consumers run different client libraries: {texts}; each computes its own share by its own rules: {what}",
            severity=WARNING if is_bad else INFO,
            consumers=tuple(i for i in ids if sdks.sdk_of.get(i, sdks.usual) != sdks.usual),
        )
