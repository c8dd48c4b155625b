"""The table of all rules, causes before what comes of them: the order in which equals are listed.

A new rule is a function in a file beside, a line here and a page in `views/explanations.toml`.
"""

from __future__ import annotations

from rmqlb.engine.diagnose import (
    brokers,
    causes,
    flow,
    frozen,
    gone,
    heads,
    kinds,
    lags,
    listeners,
    locks,
    offsets,
    owners,
    pulls,
    sdks,
    slow,
    stale,
)
from rmqlb.engine.diagnose.rule import DiagnosisRule

RULES: tuple[DiagnosisRule, ...] = (
    DiagnosisRule("broker-silent", brokers.broker_silent),
    DiagnosisRule("broker-gone", brokers.broker_gone),
    DiagnosisRule("no-consumer-online", kinds.no_consumer_online),
    DiagnosisRule("behind-proxy", kinds.behind_proxy),
    DiagnosisRule("pop-consumption", kinds.pop_consumption),
    DiagnosisRule("duplicate-client-id", causes.duplicate_client_ids),
    DiagnosisRule("broker-unreachable-from-consumer", causes.broker_unreachable),
    DiagnosisRule("stale-connections", stale.stale_connections),
    DiagnosisRule("split-consumer-view", causes.split_consumer_view),
    DiagnosisRule("mixed-strategies", causes.mixed_strategies),
    DiagnosisRule("subscription-mismatch", causes.subscription_mismatch),
    DiagnosisRule("mixed-sdks", sdks.mixed_sdks),
    DiagnosisRule("frozen-consumer", frozen.frozen_consumer),
    DiagnosisRule("blocked-consumer", listeners.blocked_consumer),
    DiagnosisRule("head-blocked", heads.head_blocked),
    DiagnosisRule("pull-stopped", pulls.pull_stopped),
    DiagnosisRule("lock-lost", locks.lock_lost),
    DiagnosisRule("dropped-but-consuming", locks.dropped_but_consuming),
    DiagnosisRule("consumer-gone", gone.consumer_gone),
    DiagnosisRule("unassigned-queues", owners.unassigned_queues),
    DiagnosisRule("duplicate-owners", owners.duplicate_owners),
    DiagnosisRule("mismatch", owners.mismatch),
    DiagnosisRule("slow-consumer", slow.slow_consumer),
    DiagnosisRule("flow-control", flow.flow_control),
    DiagnosisRule("lag-growing", lags.lag_growing),
    DiagnosisRule("lag-stalled", lags.lag_stalled),
    DiagnosisRule("offset-rewound", offsets.offset_rewound),
    DiagnosisRule("more-consumers-than-queues", owners.more_consumers_than_queues),
    DiagnosisRule("idle-by-strategy", owners.idle_by_strategy),
)

_OF_LOOKS = ("slow-consumer", "lag-growing", "lag-stalled", "offset-rewound")
ONE_LOOK: tuple[DiagnosisRule, ...] = tuple(rule for rule in RULES if rule.code not in _OF_LOOKS)
"""The rules that may find something in a single look."""
