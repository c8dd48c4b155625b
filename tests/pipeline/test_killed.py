import os
import signal
import subprocess
import sys
import time
from datetime import date
from pathlib import Path

import pytest

from rmqlb.errors import DataError
from rmqlb.pipeline.tables import Snapshots
from rmqlb.pipeline.warehouse import Warehouse

from .running import ASKED, everything, ingest_files, judge_nights, rows

pytestmark = [pytest.mark.spark, pytest.mark.slow]

PROGRAM = """
import os, sys, time
from rmqlb.pipeline import warehouse as home
from rmqlb.pipeline.spark import SparkSettings, spark_session
from tests.pipeline.running import ASKED, ingest_files, judge_nights

place, snapshots, method, count = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
calls = 0
before = getattr(home.Warehouse, method)

def stopping(*given, **named):
    global calls
    calls += 1
    if calls == count:
        open(place + ".reached", "w").close()
        time.sleep(600)
    return before(*given, **named)

setattr(home.Warehouse, method, stopping)
with spark_session(SparkSettings("local[2]", log_file=place + ".log")) as spark:
    warehouse = home.Warehouse(spark, place)
    ingest_files(warehouse, snapshots)
    judge_nights(warehouse, ASKED)
"""
STEPS = {
    "before anything of ingest is written": ("unmark", 1),
    "with some tables of ingest": ("replace", 3),
    "between two nights' marks of ingest": ("mark", 2),
    "with judged rows": ("unmark", 3),
    "with some tables of judge": ("replace", 6),
    "before the changes": ("replace", 9),
    "between two nights' marks": ("mark", 4),
}


@pytest.mark.parametrize("step", STEPS)
def test_the_same_command_again_repairs(step: str, judged: Warehouse, fleet: Path, tmp_path: Path) -> None:
    place = str(tmp_path / "warehouse")
    method, count = STEPS[step]
    line = [sys.executable, "-c", PROGRAM, place, str(fleet), method, str(count)]
    with subprocess.Popen(line, start_new_session=True, stderr=subprocess.DEVNULL) as child:
        end = time.monotonic() + 300
        while child.poll() is None and not os.path.exists(f"{place}.reached") and time.monotonic() < end:
            time.sleep(0.05)
        assert os.path.exists(f"{place}.reached")
        os.killpg(child.pid, signal.SIGKILL)
    warehouse = Warehouse(judged.spark, place)
    assert len(warehouse.whole_nights()) < 2
    with warehouse.writing() as interrupted:
        assert interrupted
    ingest_files(warehouse, fleet)
    judge_nights(warehouse, ASKED)
    assert everything(warehouse) == everything(judged)
    assert warehouse.nights() == judged.nights()
    assert not os.path.exists(f"{place}/_staging")


def test_one_process_writes_at_a_time(warehouse: Warehouse) -> None:
    busy = pytest.raises(DataError, match=r"process \d+ on .* is writing to this warehouse")
    with warehouse.writing(), busy, warehouse.writing():
        pass
    with warehouse.writing():
        pass


def test_a_writer_elsewhere_is_known_by_its_file(judged: Warehouse, tmp_path: Path) -> None:
    elsewhere = Warehouse(judged.spark, f"file:{tmp_path}/wh")
    writer = tmp_path / "wh" / "_writer"
    with elsewhere._claimed(), pytest.raises(DataError, match="is writing"), elsewhere._claimed():
        pass
    assert not writer.exists()
    writer.parent.mkdir(exist_ok=True)
    gone = subprocess.Popen(["true"])
    gone.wait()
    writer.write_text(f'{{"host": "{os.uname().nodename}", "pid": {gone.pid}}}')
    with elsewhere._claimed():
        assert str(os.getpid()) in writer.read_text()
    writer.write_text('{"host": "another-machine", "pid": 1}')
    with pytest.raises(DataError) as raised, elsewhere._claimed():
        pass
    assert str(raised.value.hint).endswith(f"delete file:{writer}")


def test_a_warehouse_at_a_uri_has_the_same_rows(judged: Warehouse, fleet: Path, tmp_path: Path) -> None:
    """A URI is read and written by Hadoop alone, its input files included."""
    elsewhere = Warehouse(judged.spark, f"file:{tmp_path}/wh")
    second = date(2026, 11, 2)
    files = sorted(str(path) for path in fleet.glob(f"*/date={second}"))
    assert ingest_files(elsewhere, *files).ingested == (second,)
    local = {row["snapshot"] for row in rows(judged, Snapshots, second)}
    assert {row["snapshot"] for row in rows(elsewhere, Snapshots)} == local
