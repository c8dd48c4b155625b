"""The commands as a user types them: the whole program, on a small synthetic fleet."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rmqlb.pipeline import schemas
from rmqlb.pipeline.synthetic.generate import generate
from rmqlb.pipeline.synthetic.shape import FleetShape
from tests.support.pages import DOCS, blocks
from tests.support.schemas import must_fit

from .quick_java import QUICK_JAVA
from .spark_servers import ConnectServer, StandaloneCluster

if TYPE_CHECKING:
    import duckdb

pytestmark = pytest.mark.spark

ROOT = Path(__file__).parent.parent.parent
LITTLE = ("--trials", "20", "--consumers", "1")
QUICK = f"spark.driver.extraJavaOptions={QUICK_JAVA}"
FLEET = FleetShape(seed=3, groups=24, days=2, bad_files=2, odd_names=0.2)


def rmqlb(*arguments: str, code: int = 0, **environment: str) -> subprocess.CompletedProcess[str]:
    """The program, off a terminal."""
    state = tempfile.gettempdir()
    env = {**os.environ, "PYTHONPATH": str(ROOT), "XDG_STATE_HOME": state, **environment}
    done = subprocess.run(
        [sys.executable, "-m", "rmqlb", "pipeline", *arguments],
        capture_output=True,
        text=True,
        check=False,
        env=env,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == code, done.stderr
    return done


@pytest.fixture(scope="module")
def dumps(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fleet") / "dumps"
    generate(FLEET, str(folder))
    return folder


@pytest.fixture(scope="module")
def ran(dumps: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any], str]:
    """A warehouse after `run`, the JSON it printed, and its talk."""
    warehouse = tmp_path_factory.mktemp("ran") / "warehouse"
    done = rmqlb(
        *("run", str(dumps), "-w", str(warehouse), *LITTLE, "-o", "json", "--master", "local[2]", "--conf", QUICK),
        *("--to", str(warehouse.parent / "report")),
        XDG_STATE_HOME=str(warehouse.parent),
    )
    return warehouse, json.loads(done.stdout), done.stderr


def query(warehouse: Path, text: str, **tables: str) -> list[Any]:
    """Ask DuckDB, a reader that is not ours; `{name}` stands for a table."""
    import duckdb

    connection: duckdb.DuckDBPyConnection = duckdb.connect()
    named = {
        name: f"read_parquet('{warehouse}/{table}/**/*.parquet', hive_partitioning=true)"
        for name, table in tables.items()
    }
    return connection.execute(text.format(**named)).fetchall()


def test_run_does_every_stage_and_says_what_it_wrote(ran: tuple[Path, dict[str, Any], str]) -> None:
    warehouse, printed, talk = ran
    assert printed["schema"] == "rmqlb/pipeline"
    must_fit(printed)
    stages = printed["data"]["stages"]
    assert [stage["stage"] for stage in stages] == [
        *("ingest", "allocate", "score", "what-if", "size", "sweep", "producers", "history", "report")
    ]
    counts = stages[0]["counts"]
    assert counts["quarantined"] == FLEET.bad_files
    assert counts["found"] == counts["ingested"] + FLEET.bad_files
    stands_out = stages[-1]["counts"]
    assert stands_out["quarantinedDocuments"] == FLEET.bad_files
    idle = query(warehouse, "SELECT sum(idle), sum(unassigned), count(*) FROM {t} WHERE runs", t="scores")
    assert [(stands_out["idleConsumers"], stands_out["unassignedQueuesPredicted"], stands_out["groups"])] == idle
    assert [finding["code"] for finding in printed["findings"]] == ["quarantined", "info"]
    assert (warehouse.parent / "report" / "index.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert [line for line in talk.splitlines() if not line.startswith("running ")] == []
    (log,) = (warehouse.parent / "rmqlb").iterdir()
    assert (log.stat().st_size > 0, log.name.startswith("spark-warehouse-")) == (True, True)
    assert sorted(path.name for path in warehouse.iterdir() if path.is_file()) == [".lock", "tables.json"]


def test_the_query_of_the_page_is_answered(
    ran: tuple[Path, dict[str, Any], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (asked,) = blocks(DOCS / "pipeline.md", "sql")
    monkeypatch.chdir(ran[0].parent)
    most = [imbalance for _, _, imbalance, _ in query(ran[0], asked)]
    assert most
    assert most == sorted(most, reverse=True)


def test_another_reader_of_parquet_sees_the_same_rows(ran: tuple[Path, dict[str, Any], str]) -> None:
    warehouse, printed, _ = ran
    written = {table["table"]: table["rows"] for stage in printed["data"]["stages"][:-1] for table in stage["tables"]}
    compared = 0
    for table in schemas.ALL:
        if written[table.name] and table.name != "quarantine":
            [[rows]] = query(warehouse, "SELECT count(*) FROM {t}", t=table.name)
            assert rows == written[table.name], table.name
            compared += 1
    assert compared > 15
    worst = query(warehouse, "SELECT max(imbalance) FROM {t} WHERE runs", t="scores")
    imbalances = query(
        warehouse,
        "SELECT max(imbalance) FROM (SELECT max(l.queues) / avg(l.queues) AS imbalance FROM {l} l "
        'JOIN {s} s USING (cluster, "group", strategy) WHERE s.runs GROUP BY cluster, "group", strategy)',
        l="loads",
        s="scores",
    )
    assert worst[0][0] == pytest.approx(imbalances[0][0])


def test_a_second_run_has_nothing_to_do(ran: tuple[Path, dict[str, Any], str], dumps: Path) -> None:
    warehouse = ran[0]
    before = (warehouse / "tables.json").read_bytes()
    done = rmqlb(
        *("run", str(dumps), "-w", str(warehouse), *LITTLE, "-o", "json", "--master", "local[2]", "--conf", QUICK),
        *("--to", str(warehouse.parent / "report")),
    )
    states = {stage["stage"]: stage["state"] for stage in json.loads(done.stdout)["data"]["stages"]}
    assert set(states.values()) == {"unchanged"}
    assert re.sub(rb'"last": \d+', b"", (warehouse / "tables.json").read_bytes()) == re.sub(
        rb'"last": \d+', b"", before
    )


def test_a_stage_asks_for_the_one_before_it(tmp_path: Path) -> None:
    (tmp_path / "w").mkdir()
    done = rmqlb("allocate", "-w", str(tmp_path / "w"), "--conf", QUICK, code=4)
    last = done.stderr.splitlines()[-2:]
    assert last[0].startswith("error: table clusters is not in ")
    assert last[1] == "hint: write it first: rmqlb pipeline ingest"


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("ingest", "x"), 2, "error: no warehouse"),
        (("score", "-w", "nowhere"), 4, "error: there is no warehouse nowhere"),
        (("ingest", "x", "-w", "s3a:bucket/wh"), 2, "error: --warehouse s3a:bucket/wh: neither a folder nor a URI"),
        (("compact", "-w", ".", "--keep", "soon"), 2, "error: --keep soon: not a number of days"),
        (("ingest", "nothing-here", "-w", "w"), 4, "error: "),
        (("sweep", "-w", "w", "--limit", "color=1"), 2, "error: --limit color=1: there is no limit color"),
        (("sweep", "-w", "w", "--limit", "idle=no"), 2, "error: --limit idle=no: expected LIMIT=NUMBER"),
        (("size", "-w", "w", "--max-imbalance", "0.5"), 2, "error: --max-imbalance 0.5: 1 is perfectly even"),
        (("size", "-w", "w", "--survive", "-1"), 2, "error: --survive -1: "),
        (("run", "-w", ".", "--only", "color=red"), 2, "error: --only color=red: expected "),
        (("run", "-w", ".", "--as-of", "yesterday"), 2, "error: --as-of yesterday: not a date"),
        (("run", "-w", ".", "--strategy", "MACHINE_ROOM_NEARBY"), 2, "error: --strategy MACHINE_ROOM_NEARBY-AVG: "),
        (
            ("run", "-w", ".", "--strategy", "CONFIG", "--strategy-option", "queues=none.yaml"),
            2,
            "error: --strategy-option queues=none.yaml: ",
        ),
        (("run", "-w", ".", "--master", "mesos://x"), 2, "error: --master mesos://x: "),
        (("run", "-w", ".", "--conf", "x=y"), 2, "error: --conf x=y: "),
        (("run", "-w", ".", "--fail", "a@5s-1s"), 2, "error: --fail a@5s-1s: the window ends before it starts"),
        (("generate", "new", "--first", "soon"), 2, "error: --first soon: not a date"),
        (("generate", "new", "--brokers", "0"), 2, "error: "),
    ],
)
def test_what_cannot_be_done_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], code: int, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    done = rmqlb(*arguments, code=code)
    lines = [line for line in done.stderr.splitlines() if not line.startswith("running ")]
    assert lines[0].startswith(message)
    assert len(lines) <= 2
    assert done.stdout == ""


def test_a_full_disk_is_one_line_and_the_tables_of_before_stay(dumps: Path, tmp_path: Path) -> None:
    """A file system of its own, of a few megabytes."""
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1500k", "tmpfs", str(disk)], check=False).returncode:
        pytest.fail("cannot mount a small file system here")
    try:
        small = [str(path) for path in sorted(dumps.glob("cluster=fleet-a/date=2026-11-01/snap*"))]
        rmqlb("ingest", *small, "-w", str(disk / "w"), "--conf", QUICK, "--log-file", str(tmp_path / "log"))
        before = (disk / "w" / "tables.json").read_bytes()
        (disk / "ballast").write_bytes(b"x" * (shutil.disk_usage(disk).free - 40_000))
        done = rmqlb(
            *("ingest", str(dumps), "-w", str(disk / "w"), "--conf", QUICK, "--log-file", str(tmp_path / "log")),
            code=1,
        )
        lines = [line for line in done.stderr.splitlines() if not line.startswith("running ")]
        assert lines[0].startswith("error: the disk is full [")
        assert (disk / "w" / "tables.json").read_bytes() == before
        (disk / "ballast").unlink()
        printed = rmqlb("allocate", "-w", str(disk / "w"), "--conf", QUICK, "--log-file", str(tmp_path / "log"), "-q")
        assert "assignments" in printed.stdout
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)


def test_compact_keeps_the_rows_and_forgets_what_is_old(
    ran: tuple[Path, dict[str, Any], str], dumps: Path, tmp_path: Path
) -> None:
    warehouse = tmp_path / "warehouse"
    shutil.copytree(ran[0], warehouse)
    options = ("-w", str(warehouse), "-o", "json", "--master", "local[2]", "--conf", QUICK)
    before = {name: rows for name, rows in rows_of(warehouse).items() if name in ("scores", "sessions", "documents")}
    rmqlb("compact", *options)
    after = rows_of(warehouse)
    assert {name: after[name] for name in before} == before
    assert json.loads(rmqlb("score", *options).stdout)["data"]["stages"][0]["state"] == "unchanged"

    removed = json.loads(rmqlb("compact", "--keep", "1d", *options).stdout)["data"]["stages"][0]
    assert removed["counts"] == {"removedSnapshots": 0}
    later = tmp_path / "later"
    generate(FleetShape(seed=3, groups=24, days=3), str(later))
    for night in later.glob("cluster=*/date=2026-11-0[12]"):
        shutil.rmtree(night)  # another fleet's first nights are there already
    rmqlb("ingest", str(later), *options)
    removed = json.loads(rmqlb("compact", "--keep", "1d", *options).stdout)["data"]["stages"][0]
    dates = query(warehouse, "SELECT DISTINCT date FROM {t} ORDER BY date", t="documents")
    assert removed["counts"]["removedSnapshots"] > 0
    assert [day.day for (day,) in dates] == [2, 3]
    counts = json.loads(rmqlb("ingest", str(later), str(dumps), *options).stdout)["data"]["stages"][0]["counts"]
    assert (counts["ingested"], counts["known"] > 0) == (0, True)


def rows_of(warehouse: Path) -> dict[str, list[str]]:
    """Every table's rows as sorted lines; a table without rows has no file."""
    found = {}
    for table in schemas.ALL:
        if table.name != "quarantine" and any((warehouse / table.name).rglob("*.parquet")):
            rows = query(warehouse, "SELECT * EXCLUDE (run) FROM {t}", t=table.name)
            found[table.name] = sorted(map(repr, rows))
    return found


def must_equal(warehouse: Path, other: Path) -> None:
    """Both warehouses have the same rows in every table."""
    here, there = rows_of(warehouse), rows_of(other)
    assert set(there) == set(here)
    for name, rows in here.items():
        assert there[name] == rows, name
    assert len(here) > 18


@pytest.mark.slow
def test_spark_submit_on_a_cluster_gives_the_same_tables(
    ran: tuple[Path, dict[str, Any], str], dumps: Path, tmp_path: Path, standalone_cluster: StandaloneCluster
) -> None:
    import pyspark

    submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    warehouse = tmp_path / "warehouse"
    command = [
        *(str(submit), "--master", standalone_cluster.master, "--conf", "spark.driver.host=127.0.0.1"),
        *("--conf", "spark.driver.bindAddress=127.0.0.1", "--conf", "spark.ui.enabled=false"),
        *("--conf", "spark.sql.shuffle.partitions=4", "--conf", "spark.executor.memory=800m", "--conf", QUICK),
        *("--conf", f"spark.pyspark.python={sys.executable}", str(ROOT / "rmqlb" / "__main__.py")),
        *("pipeline", "run", str(dumps), "-w", str(warehouse), *LITTLE, "-o", "json"),
        *("--log-file", str(tmp_path / "log"), "--to", str(tmp_path / "report")),
    ]
    env = {**os.environ, "PYTHONPATH": str(ROOT), "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=env, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stderr[-3000:]
    must_equal(ran[0], warehouse)


@pytest.mark.slow
def test_spark_connect_gives_the_same_tables(
    ran: tuple[Path, dict[str, Any], str], dumps: Path, tmp_path: Path, connect_server: ConnectServer
) -> None:
    warehouse = tmp_path / "warehouse"
    to = str(tmp_path / "report")
    rmqlb("run", str(dumps), "-w", str(warehouse), *LITTLE, "-o", "json", "--master", connect_server.master, "--to", to)
    must_equal(ran[0], warehouse)
