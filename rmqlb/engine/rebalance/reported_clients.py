"""The client libraries and consumer types of a group, as reported or given."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from rmqlb.engine.rebalance.profile import consumer_profile_of
from rmqlb.errors import UsageError
from rmqlb.model.client_versions import parse_version
from rmqlb.model.group import CONSUME_ACTIVELY, ConsumerGroup, ConsumerType
from rmqlb.model.group_scenario import GroupScenario
from rmqlb.model.result import Finding


def client_version(group: ConsumerGroup | None, given: str | None = None) -> tuple[str, tuple[Finding, ...]]:
    """The version whose rules Java follows: as given, or most reported (the older of equals), or the newest."""
    if given is not None:
        return given, ()
    connections = [connection for view in (group.lists if group else ()) for connection in view.connections]
    versions, rules = Counter[str](), set[str]()
    for version in (c.version for c in connections if c.language in (None, "JAVA")):  # others report none of theirs
        try:
            rules.add(consumer_profile_of(version or "").name)
        except UsageError:
            continue
        versions[".".join(map(str, parse_version(version or "")))] += 1
    if not versions:
        return GroupScenario().client_version, ()
    usual = min(versions, key=lambda version: (-versions[version], parse_version(version)))
    if len(rules) == 1:
        return usual, ()
    text = ", ".join(f"{version} ({number})" for version, number in versions.most_common())
    return usual, (Finding("mixed-versions", f"consumers report the versions {text}: all simulated as {usual}"),)


def orderly_findings(sdks: Iterable[str]) -> Iterator[Finding]:
    if "cpp" in sdks:
        text = "C++ consumers take an orderly queue first and lock it later; the simulation locks first, as Java does"
        yield Finding("other-language", text)


def consumer_types(
    group: ConsumerGroup | None, given: ConsumerType | None = None, given_of: Mapping[str, ConsumerType] | None = None
) -> tuple[ConsumerType, dict[str, ConsumerType], tuple[Finding, ...]]:
    """The type of most consumers, the type of each known consumer, and the findings about them.

    Brokers report only push or pull (`consumeType`), for the whole group by its last heartbeat. A consumer reports its
    own type.
    """
    if group is None:
        return given or "push", dict(given_of or {}), ()
    reported = {client_id: report.consumer_type for client_id, report in group.reports.items() if given is None}
    known = {client_id: kind for client_id, kind in {**reported, **(given_of or {})}.items() if kind is not None}
    usual: ConsumerType = given or ("lite-pull" if group.consume_type == CONSUME_ACTIVELY else "push")
    ids, findings = list(dict.fromkeys(group.client_ids or ())), []
    silent = [client_id for client_id in ids if client_id not in known]
    if group.consume_type == CONSUME_ACTIVELY and silent and given is None:
        text = "pulls, but does not report whether as DefaultMQPullConsumer or DefaultLitePullConsumer"
        how = "simulated as the latter; change this with --set consumer-type=ID=pull"
        findings.append(Finding("consumer-type-unknown", f"{silent[0]}{_more(silent)} {text}: {how}"))
    assigned = [client_id for client_id in ids if known.get(client_id, usual) == "assign"]
    if assigned:
        text = f"{assigned[0]}{_more(assigned)} assigns queues to itself (assign) and does not rebalance"
        effect = "brokers still list it, so the others leave it a share, which stays unread"
        findings.append(Finding("assigns-itself", f"{text}: {effect}"))
    return usual, known, tuple(findings)


def _more(ids: list[str]) -> str:
    return f" and {len(ids) - 1} more" if len(ids) > 1 else ""
