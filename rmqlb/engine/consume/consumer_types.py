"""Which of RocketMQ's consumers the members of a group are: what they report, what brokers say, what users say."""

from __future__ import annotations

from collections.abc import Mapping

from rmqlb.model.finding import Finding
from rmqlb.model.group import CONSUME_ACTIVELY, ConsumerGroup, ConsumerType


def consumer_types(
    group: ConsumerGroup | None, given: ConsumerType | None = None, given_of: Mapping[str, ConsumerType] | None = None
) -> tuple[ConsumerType, dict[str, ConsumerType], tuple[Finding, ...]]:
    """The type of most members, that of each member that is known, and what is worth a warning about them.

    Brokers tell push from pull only (`consumeType`), and of the group as a whole: the last heartbeat counts. A member
    tells which it is.
    """
    if group is None:
        return given or "push", dict(given_of or {}), ()
    reported = {
        client_id: report.consumer_type
        for client_id, report in group.reports.items()
        if report.consumer_type is not None and given is None
    }
    known = {**reported, **(given_of or {})}
    usual: ConsumerType = given or ("lite-pull" if group.consume_type == CONSUME_ACTIVELY else "push")
    return usual, known, tuple(_findings(group, usual, known, is_given=given is not None))


def _findings(
    group: ConsumerGroup, usual: ConsumerType, known: Mapping[str, ConsumerType], *, is_given: bool
) -> list[Finding]:
    found = []
    ids = list(dict.fromkeys(group.client_ids or ()))
    silent = [client_id for client_id in ids if client_id not in known]
    if group.consume_type == CONSUME_ACTIVELY and silent and not is_given:
        found.append(
            Finding(
                "consumer-type-unknown",
                f"{silent[0]}{_more(silent)} pulls, and does not say whether as DefaultMQPullConsumer or "
                "DefaultLitePullConsumer: simulated as the latter; --consumer-type ID=pull says otherwise",
            )
        )
    assigned = [client_id for client_id in ids if known.get(client_id, usual) == "assign"]
    if assigned:
        found.append(
            Finding(
                "assigns-itself",
                f"{assigned[0]}{_more(assigned)} assigns itself queues (assign) and takes no part in the rebalance: "
                "brokers list it all the same, so that the others leave it a share that nobody reads",
            )
        )
    return found


def _more(ids: list[str]) -> str:
    return f" and {len(ids) - 1} more" if len(ids) > 1 else ""
