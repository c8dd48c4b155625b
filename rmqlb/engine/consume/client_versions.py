"""What the members of a group say of their client library."""

from __future__ import annotations

from collections import Counter

from rmqlb.engine.client_version import parse_version
from rmqlb.engine.consume.profile import consumer_profile_of
from rmqlb.errors import UsageError
from rmqlb.model.finding import Finding
from rmqlb.model.group import Connection, ConsumerGroup
from rmqlb.model.group_scenario import GroupScenario


def client_version(group: ConsumerGroup | None, given: str | None = None) -> tuple[str, tuple[Finding, ...]]:
    """The version whose rules a simulation follows, and what is worth a warning about it.

    Returns:
        The version that is said, else the one that most members report, of equals the older one, else the newest.
    """
    connections = [connection for view in (group.views if group else None) or () for connection in view.connections]
    findings = _languages(connections)
    if given is not None:
        return given, findings
    versions = Counter(_dotted(c.version) for c in connections if c.version is not None and _is_version(c.version))
    if not versions:
        return GroupScenario().client_version, findings
    usual = min(versions, key=lambda version: (-versions[version], parse_version(version)))
    if len({consumer_profile_of(version).name for version in versions}) > 1:
        text = ", ".join(f"{version} ({number})" for version, number in versions.most_common())
        finding = Finding("mixed-versions", f"members report the versions {text}: all are simulated as {usual}")
        findings = (*findings, finding)
    return usual, findings


def _languages(connections: list[Connection]) -> tuple[Finding, ...]:
    others = sorted({c.language for c in connections if c.language not in (None, "JAVA")})
    if not others:
        return ()
    return (Finding("other-language", f"members report {', '.join(others)}: they are simulated as Java clients are"),)


def _is_version(text: str) -> bool:
    try:
        consumer_profile_of(text)
    except UsageError:
        return False
    return True


def _dotted(version: str) -> str:
    return ".".join(map(str, parse_version(version)))
