"""Every command on a running cluster, in eight loops side by side, under faulthandler: none dies, and each ends as it must.

`STRESS_RUNS=5000 python -m pytest -m live tests/live/test_stress.py` has that many processes instead of the usual number.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle, islice

import pytest

from tests.cli.run import ROOT, environment
from tests.hardening import walk

from .cluster import RocketMQCluster
from .members import running_members
from .test_rmqlb_reads_the_cluster import FIRST_MEMBERS, TOPICS, settled

pytestmark = [pytest.mark.live, pytest.mark.slow]

RUNS = int(os.environ.get("STRESS_RUNS", "240"))
LOOPS = 8
GROUP = "stress-svc"
# Eight loops leave the consumers, on the same two cores, little time to answer.
PATIENCE = "60s"
WITHOUT_A_SOURCE = ("options",), ("schema",), ("explain", "no-master"), ("config", "show"), ("context", "list")


def command_lines(name_server: str) -> Iterator[tuple[str, ...]]:
    source = ("-s", f"rocketmq://{name_server}", "--source-timeout", PATIENCE)
    for name, more in walk.READING.items():
        on_a_topic = ("--topic", "OrderEvents") if name in walk.ON_A_TOPIC else ()
        yield name, *source, *(("--group", GROUP) if name in walk.ON_A_GROUP else on_a_topic), *more
    yield "diff", source[1], walk.ON_TWO_SNAPSHOTS["diff"][1], *source[2:]
    yield "doctor", *source
    yield from WITHOUT_A_SOURCE


def failure(words: tuple[str, ...]) -> str | None:
    line = [sys.executable, "-X", "faulthandler", "-m", "rmqlb", *words]
    done = subprocess.run(line, capture_output=True, cwd=ROOT, env=environment(), timeout=600, check=False)
    stderr = done.stderr.decode()
    code = walk.CODES["check"] if words[0] == "check" else 0
    is_bad = done.returncode != code or "Traceback" in stderr or "Fatal Python error" in stderr
    return f"{words}: {done.returncode}\n{stderr}" if is_bad else None


def test_no_process_of_many_that_read_the_cluster_at_once_dies(cluster: RocketMQCluster) -> None:
    lines = [*command_lines(cluster.name_server)]
    of_their_own = {"pipeline", "record", "completion"}  # which have other tests
    assert {words[0] for words in lines} == {*walk.commands()} - of_their_own
    with running_members(cluster, GROUP, "AVG", [*TOPICS], FIRST_MEMBERS) as members, ThreadPoolExecutor(LOOPS) as pool:
        settled(members, GROUP, cluster)
        assert [found for found in pool.map(failure, islice(cycle(lines), RUNS)) if found] == []
