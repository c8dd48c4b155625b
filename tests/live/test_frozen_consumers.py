from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.support.recorded_groups import Recording

from .cluster import RocketMQCluster
from .rebalance_log import START, Act, Group
from .test_simulated_rebalance import TOPIC, assert_as_foretold, lived_through

pytestmark = [pytest.mark.live, pytest.mark.slow]

# Brokers forget a client 120 to 130 s after its last heartbeat, and the others rebalance within 20 s after that.
LONG = 170.0
# Nobody notices.
SHORT = 40.0
# Brokers have forgotten the second connection that a client may have opened when it went on, and the group is at rest.
SECOND_CONNECTIONS_ARE_GONE = 160.0
FROZEN = (*START, Act("freeze", "c2", LONG), Act("unfreeze", "c2", SECOND_CONNECTIONS_ARE_GONE))


@pytest.fixture(scope="module")
def recordings(cluster: RocketMQCluster) -> Mapping[str, Recording]:
    short = (*START, Act("freeze", "c2", SHORT), Act("unfreeze", "c2"), Act("freeze", "c1", SHORT), Act("crash", "c1"))
    return lived_through(
        {
            "concurrent": (Group(cluster, "freeze-svc", TOPIC, 8), FROZEN),
            "short": (Group(cluster, "freeze-short-svc", TOPIC, 8), short),
        }
    )


@pytest.mark.parametrize("name", ["concurrent", "short"])
def test_a_group_with_a_frozen_member_goes_through_what_the_simulation_foretells(
    recordings: Mapping[str, Recording], name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert_as_foretold(recordings[name], capsys)


def test_a_frozen_member_of_version_4_goes_through_what_the_simulation_foretells(
    legacy_cluster: RocketMQCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    acts = (*START, Act("freeze", "c2", LONG), Act("unfreeze", "c2"))
    assert_as_foretold(Group(legacy_cluster, "freeze-svc", TOPIC, 8).live_through(acts), capsys)
