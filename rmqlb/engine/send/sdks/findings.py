"""What is odd about the SDKs that producers run: rules that are assumed, and SDKs of which nothing can be said."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rmqlb.engine.send.sdks.profile import sdk
from rmqlb.model.finding import INFO, Finding
from rmqlb.model.key_queues import KeyedSdk


def assumed_findings(names: Sequence[str]) -> Iterator[Finding]:
    """SDKs and versions that were not read, of those that were asked for."""
    for chosen in map(sdk, names):
        if chosen.assumed:
            yield _assumed(chosen.text, chosen.mirrors)


def keyed_findings(sdks: Sequence[KeyedSdk]) -> Iterator[Finding]:
    """The same of SDKs whose producers send keys, and those of which it is unknown where their keys go."""
    for each in sdks:
        if each.assumed:
            yield _assumed(each.sdk, each.mirrors)
        if each.unknown is not None:
            yield Finding("unpredictable-sdk", f"where keys of {each.sdk} go is unknown: {each.unknown}", severity=INFO)


def _assumed(name: str, mirrors: str) -> Finding:
    text = f"{name} was not read: its rules are taken to be those of {mirrors}"
    return Finding("assumed-sdk", text, severity=INFO)
