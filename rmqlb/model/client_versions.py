"""Client libraries and the versions with the same rules, and versions as users type them."""

from __future__ import annotations

import re
from typing import Annotated

from msgspec import Struct

from rmqlb.errors import UsageError


class ClientVersions(Struct, frozen=True):
    """From the oldest to the newest version; None is open at that end.

    >>> str(ClientVersions("5.1.1", "5.1.3")), str(ClientVersions("5.3.3", None)), str(ClientVersions(None, None))
    ('5.1.1 to 5.1.3', '5.3.3 and newer', 'all versions')
    """

    oldest: str | None
    newest: str | None

    def __str__(self) -> str:
        if self.oldest is None:
            return "all versions" if self.newest is None else f"{self.newest} and older"
        if self.newest is None:
            return f"{self.oldest} and newer"
        return self.oldest if self.oldest == self.newest else f"{self.oldest} to {self.newest}"

    def up_to(self, newer: ClientVersions) -> ClientVersions:
        return ClientVersions(self.oldest, newer.newest)


Version = tuple[int, int, int]
OLDEST: Version = (4, 0, 0)
_VERSION = r"[vV]?(\d{1,3})[._](\d{1,3})(?:[._](\d{1,3}))?"


def parse_version(text: str, whose: str = "client", oldest: Version = OLDEST) -> Version:
    """Parse a version such as `5.3.2`, `4.9`, `V5_1_4`; UsageError when it is none, or too old."""
    match = re.fullmatch(_VERSION, text[:40].strip().removesuffix("_SNAPSHOT").removesuffix("-SNAPSHOT"))
    if match is None:
        from rmqlb.model.send_scenario import NEWEST

        raise UsageError(f"{text[:40]}: not a {whose} version", hint=f"write a version such as {NEWEST} or 4.9.7")
    version = int(match[1]), int(match[2]), int(match[3] or 0)
    if version < oldest:
        least = ".".join(map(str, oldest))
        rules = "4.7.1" if oldest == OLDEST else least
        raise UsageError(
            f"{text}: the rules of {whose}s older than {least} are not known",
            hint=f"the oldest known rules are those of {rules}",
        )
    return version


class SdkUse(Struct, frozen=True, rename="camel"):
    """A client library of some of a group's consumers, and how well its rules are known."""

    sdk: Annotated[str, "its name: java, go or cpp"]
    library: Annotated[str, "its repository"]
    mirrors: Annotated[str, "the version whose rules are taken"]
    since: Annotated[str, "the oldest version that has the same rules"]
    vectors: Annotated[int, "answers of the library itself with which the rules are tested"]
    live: Annotated[bool, "running groups of it are compared with predictions too"]
    consumers: Annotated[int, "how many consumers run it"]
    assumed: Annotated[int, "consumers whose library or its rules are unknown: this is the nearest"]

    @property
    def text(self) -> str:
        guess = f", {self.assumed} assumed" if self.assumed else ""
        return f"{self.sdk} {self.mirrors} ({self.consumers}{guess})"


def sdks_text(sdks: tuple[SdkUse, ...]) -> str:
    """All in a line; empty where all consumers run Java, or nothing is known."""
    if all(each.sdk == "java" and each.assumed in (0, each.consumers) for each in sdks):
        return ""
    return f"client {'library' if len(sdks) == 1 else 'libraries'} {', '.join(each.text for each in sdks)}"
