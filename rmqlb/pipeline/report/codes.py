"""The codes of what the page finds: those of a diagnosis where it means the same; `rmqlb explain` knows all of them."""

from __future__ import annotations

from typing import NewType

PageCode = NewType("PageCode", str)

NO_CONSUMER_ONLINE = PageCode("no-consumer-online")
DUPLICATE_CLIENT_ID = PageCode("duplicate-client-id")
SPLIT_CONSUMER_VIEW = PageCode("split-consumer-view")
MIXED_SDKS = PageCode("mixed-sdks")
MIXED_STRATEGIES = PageCode("mixed-strategies")
SUBSCRIPTION_MISMATCH = PageCode("subscription-mismatch")
UNASSIGNED_QUEUES = PageCode("unassigned-queues")
DUPLICATE_OWNERS = PageCode("duplicate-owners")
MISMATCH = PageCode("mismatch")
POP_CONSUMPTION = PageCode("pop-consumption")
MORE_CONSUMERS_THAN_QUEUES = PageCode("more-consumers-than-queues")
IDLE_BY_STRATEGY = PageCode("idle-by-strategy")
UNEVEN_LAG = PageCode("uneven-lag")
IMBALANCED_GROUP = PageCode("imbalanced")
FLAPPING_GROUP = PageCode("flapping")
UNREAD_DOCUMENT = PageCode("quarantined")
REFUSED = PageCode("allocation")
NO_ROUTE = PageCode("no-route")
