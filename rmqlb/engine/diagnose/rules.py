"""The table of all rules, in the order in which equals are listed.

A new rule is a function in a file beside, a line here and a page in `views/explanations.toml`.
"""

from __future__ import annotations

from collections.abc import Iterator

from rmqlb.engine.diagnose import causes, kinds, offsets, owners
from rmqlb.engine.diagnose.hypotheses import Hypotheses
from rmqlb.engine.diagnose.rule import Check, DiagnosisRule
from rmqlb.errors import DataError
from rmqlb.model.diagnosis import GroupFinding


def _needs(what: str) -> Check:
    """A rule whose evidence no snapshot has yet: always unknown."""

    def check(_: Hypotheses) -> Iterator[GroupFinding]:
        raise DataError(f"the snapshot has no {what}")

    return check


_PROCESS_QUEUES = "process queues of its consumers"
_LOOKS = "further looks at its offsets"

RULES: tuple[DiagnosisRule, ...] = (
    DiagnosisRule("no-consumer-online", kinds.no_consumer_online),
    DiagnosisRule("behind-proxy", kinds.behind_proxy),
    DiagnosisRule("pop-consumption", kinds.pop_consumption),
    DiagnosisRule("duplicate-client-id", causes.duplicate_client_ids),
    DiagnosisRule("broker-unreachable-from-consumer", causes.broker_unreachable),
    DiagnosisRule("split-consumer-view", causes.split_consumer_view),
    DiagnosisRule("mixed-strategies", causes.mixed_strategies),
    DiagnosisRule("subscription-mismatch", causes.subscription_mismatch),
    DiagnosisRule("mixed-sdks", causes.mixed_sdks),
    DiagnosisRule("frozen-consumer", _needs("heartbeat times of its consumers")),
    DiagnosisRule("blocked-consumer", _needs(_PROCESS_QUEUES)),
    DiagnosisRule("flow-control", _needs(_PROCESS_QUEUES)),
    DiagnosisRule("pull-stopped", _needs(_PROCESS_QUEUES)),
    DiagnosisRule("head-blocked", _needs(_PROCESS_QUEUES)),
    DiagnosisRule("lock-lost", _needs(_PROCESS_QUEUES)),
    DiagnosisRule("dropped-but-consuming", _needs(_PROCESS_QUEUES)),
    DiagnosisRule("slow-consumer", _needs("consume times of its consumers")),
    DiagnosisRule("lag-growing", _needs(_LOOKS)),
    DiagnosisRule("lag-stalled", _needs(_LOOKS)),
    DiagnosisRule("offset-rewound", offsets.offset_rewound),
    DiagnosisRule("unassigned-queues", owners.unassigned_queues),
    DiagnosisRule("duplicate-owners", owners.duplicate_owners),
    DiagnosisRule("mismatch", owners.mismatch),
    DiagnosisRule("more-consumers-than-queues", owners.more_consumers_than_queues),
)
