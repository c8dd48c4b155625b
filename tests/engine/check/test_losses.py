"""What a loss moves is what a plan of the same loss moves."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from rmqlb.engine.plan.rebalance import plan_rebalance
from tests.support.builders import route, side

from .clusters import checked, cluster, members

CLASSES = {
    "AVG": "AllocateMessageQueueAveragely",
    "AVG_BY_CIRCLE": "AllocateMessageQueueAveragelyByCircle",
    "CONSISTENT_HASH": "AllocateMessageQueueConsistentHash",
}
IDS = st.lists(st.sampled_from("vwxyz"), min_size=1, max_size=6)
BROKERS = st.dictionaries(st.sampled_from("abc"), st.integers(0, 7), min_size=1)


@given(IDS, BROKERS, st.sampled_from(sorted(CLASSES)))
def test_the_worst_loss_is_the_worst_plan(ids: list[str], brokers: dict[str, int], strategy: str) -> None:
    here = route("T", 6, True, **brokers)
    before = side(" ".join(ids), here, strategy=strategy)
    without_member = [
        side(" ".join((Counter(ids) - Counter([lost])).elements()), here, strategy=strategy) for lost in set(ids)
    ]
    left = ({name: number for name, number in brokers.items() if name != lost} for lost in brokers)
    without_broker = [side(" ".join(ids), route("T", 6, True, **rest), strategy=strategy) for rest in left]
    snapshot = cluster(members(" ".join(ids), strategy=CLASSES[strategy]), routes=(here,))
    for limit, losses in (("movedOnConsumerLoss", without_member), ("movedOnBrokerLoss", without_broker)):
        plans = [plan_rebalance(None, before, after).summary for after in losses]
        shares = [plan.moved / (plan.before.queues - plan.removed) for plan in plans if plan.moved]
        (judgement,) = checked(snapshot, {limit: 1.0}).judged
        assert judgement.value == max(shares, default=0)
