"""The client libraries by whose rules a result predicts."""

from __future__ import annotations

from typing import Annotated

from msgspec import Struct


class SdkUse(Struct, frozen=True, rename="camel"):
    """A client library of some of a group's consumers, and how well its rules are known."""

    sdk: Annotated[str, "its name: java, go or cpp"]
    library: Annotated[str, "its repository"]
    mirrors: Annotated[str, "the version whose rules are taken"]
    since: Annotated[str, "the oldest version that has the same rules"]
    vectors: Annotated[int, "answers of the library itself that the rules are held to"]
    live: Annotated[bool, "running groups of it are held to predictions too"]
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
