"""Every command on a running cluster, in eight loops side by side, under faulthandler: none dies, and each ends as it must.

`STRESS_RUNS=5000 python -m pytest -m live tests/live/test_stress.py` has that many processes instead of the usual number.
"""

from __future__ import annotations

import os

import pytest

from tests.hardening import stress, walk

from .cluster import RocketMQCluster
from .members import running_members
from .test_rmqlb_reads_the_cluster import FIRST_MEMBERS, TOPICS, settled

pytestmark = [pytest.mark.live, pytest.mark.slow]

RUNS = int(os.environ.get("STRESS_RUNS", "240"))
GROUP = "stress-svc"
# Eight loops leave the consumers, on the same two cores, little time to answer.
PATIENCE = "60s"


def test_no_process_of_many_that_read_the_cluster_at_once_dies(cluster: RocketMQCluster) -> None:
    source = ("-s", f"rocketmq://{cluster.name_server}", "--source-timeout", PATIENCE)
    lines = [
        *stress.reading(source, GROUP, "OrderEvents", {"check": walk.CODES["check"]}),
        stress.Line(("diff", source[1], walk.ON_TWO_SNAPSHOTS["diff"][1], *source[2:])),
        *stress.WITHOUT_A_SOURCE,
    ]
    assert {line.words[0] for line in lines} == {*walk.commands()} - {"pipeline"}  # which has tests of its own
    with running_members(cluster, GROUP, "AVG", [*TOPICS], FIRST_MEMBERS) as members:
        settled(members, GROUP, cluster)
        assert stress.stress(lines, RUNS) == []
