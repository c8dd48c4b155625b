"""Snapshots of a running cluster through the pipeline: what it says each member owns is what the clients hold.

Needs the packages of rmqlb[pipeline].
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from rmqlb.cli.main import app

from .cluster import RocketMQCluster
from .members import running_members
from .test_members_own_what_the_strategies_say import FIRST_MEMBERS, JOINER, TOPICS
from .test_rmqlb_reads_the_cluster import Owners, settled

pytestmark = [pytest.mark.live, pytest.mark.slow]

GROUP = "fleet-svc"


def pipeline(*arguments: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "rmqlb", "pipeline", *arguments, "-o", "json", "-q"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stderr
    value: dict[str, Any] = json.loads(done.stdout)
    return value


def rows(warehouse: Path, table: str) -> list[dict[str, Any]]:
    import pyarrow.parquet as pq

    found: list[dict[str, Any]] = pq.read_table(str(warehouse / table)).to_pylist()
    return found


def test_the_fleets_owners_are_those_of_the_running_clients(cluster: RocketMQCluster, tmp_path: Path) -> None:
    dumps, warehouse = tmp_path / "dumps", tmp_path / "warehouse"
    dumps.mkdir()
    held: list[Owners] = []

    def take(night: str) -> None:
        held.append(settled(members, GROUP, cluster))
        to = str(dumps / f"{night}.json")
        source = f"rocketmq://{cluster.name_server}"
        result = CliRunner().invoke(app, ["fetch-routes", "-s", source, "--system", "--to", to])
        assert result.exit_code == 0, result.stderr

    with running_members(cluster, GROUP, "AVG_BY_CIRCLE", TOPICS, FIRST_MEMBERS) as members:
        take("first")
        members.join(JOINER)
        take("second")
    printed = pipeline("run", str(dumps), "-w", str(warehouse), "--to", str(tmp_path / "page"))
    assert (printed["data"]["files"], printed["data"]["snapshots"]) == (2, 2)

    # Both snapshots are of one night: the last one counts.
    now = {queue: owners for queue, owners in held[1].items() if not queue[0].startswith("%RETRY%")}
    ours = [row for row in rows(warehouse, "assignments") if row["group"] == GROUP and row["runs"]]
    assert {(row["topic"], row["brokerName"], row["queueId"]): [row["owner"]] for row in ours} == now
    assert not any(row["mismatch"] for row in ours)

    [figures] = [row for row in rows(warehouse, "figures") if row["group"] == GROUP and row["runs"]]
    loads = Counter(owner for owners in now.values() for owner in owners)
    assert (figures["strategy"], figures["origin"], figures["mismatches"]) == ("AVG_BY_CIRCLE", "reported", 0)
    assert figures["maxQueuesPerConsumer"] == max(loads.values())
    assert figures["minQueuesPerConsumer"] == min(loads.values())
