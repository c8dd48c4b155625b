"""The warehouse: all tables of a stage or none, one writer, nothing left over."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rmqlb.errors import DataError, UsageError
from rmqlb.pipeline.schemas import DOCUMENTS, MIGRATED, SCORES, WRITTEN_BY, Table, table
from rmqlb.pipeline.warehouse import Warehouse

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

THINGS = table("things", "thing string")
OTHERS = Table("others", {"number": "int"})


def things(spark: SparkSession, *rows: tuple[str | None, date | None, str, str]) -> DataFrame:
    return spark.createDataFrame(list(rows), THINGS.ddl)


def numbers(spark: SparkSession, *values: int) -> DataFrame:
    return spark.createDataFrame([(value,) for value in values], OTHERS.ddl)


def shown(spark: SparkSession, warehouse: Warehouse) -> list[int]:
    return sorted(row["number"] for row in warehouse.read(spark, OTHERS).collect())


def run_folders(warehouse: Warehouse) -> list[str]:
    return sorted(str(path.relative_to(warehouse.folder)) for path in Path(warehouse.folder).glob("*/run=*"))


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    return Warehouse(str(tmp_path / "wh"))


def test_a_table_is_replaced_or_added_to(spark: SparkSession, warehouse: Warehouse) -> None:
    with warehouse.writing() as writing:
        assert writing.replace(OTHERS, numbers(spark, 1, 2), {"things": "run-1"}) == 2
    with warehouse.writing() as writing:
        assert writing.add(OTHERS, numbers(spark, 3)) == 1
    assert shown(spark, warehouse) == [1, 2, 3]
    stored = warehouse.stored("others")
    assert stored is not None
    assert (stored.rows, stored.folders) == (3, ("run=000001", "run=000002"))
    with warehouse.writing() as writing:
        writing.replace(OTHERS, numbers(spark, 4), {"things": "run-2"})
    assert shown(spark, warehouse) == [4]
    assert warehouse.is_made_from(OTHERS, {"things": "run-2"})
    assert not warehouse.is_made_from(OTHERS, {"things": "run-1"})
    assert run_folders(warehouse) == ["others/run=000003"]
    assert warehouse.names() == ("others",)


def test_a_folder_may_be_named_as_a_pattern_of_spark(spark: SparkSession, tmp_path: Path) -> None:
    for name in ("w[1]", "w1", "{a,b} \\[*?]"):
        warehouse = Warehouse(str(tmp_path / name))
        rows = [(cluster, date(2026, 11, 21), "s", name) for cluster in ("one", "[two]")]
        with warehouse.writing() as writing:
            writing.replace(THINGS, things(spark, *rows))
        with warehouse.writing() as writing:
            writing.replace(THINGS, things(spark, rows[0]), where={"cluster": ("one",)})
        assert sorted(map(tuple, warehouse.read(spark, THINGS).collect())) == sorted(rows)
        found = warehouse.read(spark, THINGS, {"cluster": ("[two]",)}).collect()
        assert list(map(tuple, found)) == rows[1:]


def test_no_rows_make_a_table_and_change_none(spark: SparkSession, warehouse: Warehouse) -> None:
    for _ in range(2):
        with warehouse.writing() as writing:
            writing.add(OTHERS, numbers(spark))
    assert shown(spark, warehouse) == []
    assert warehouse.versions(OTHERS, THINGS) == {"others": "run=000001"}
    assert run_folders(warehouse) == ["others/run=000001"]


def test_rows_take_the_place_of_those_of_their_snapshot(spark: SparkSession, warehouse: Warehouse) -> None:
    with warehouse.writing() as writing:
        writing.add(THINGS, things(spark, ("c", None, "s1", "a"), ("c", None, "s1", "b"), ("c", None, "s2", "c")))
    for thing in ("d", "e"):
        with warehouse.writing() as writing:
            writing.add(THINGS, things(spark, ("other", None, "s1", thing)), instead_of=["s1"])
    found = sorted((row["cluster"], row["snapshot"], row["thing"]) for row in warehouse.read(spark, THINGS).collect())
    assert found == [("c", "s2", "c"), ("other", "s1", "e")]
    stored = warehouse.stored("things")
    assert stored is not None
    assert stored.rows == 2
    with warehouse.writing() as writing:
        writing.add(THINGS, things(spark), instead_of=["s2"])
    assert [row["thing"] for row in warehouse.read(spark, THINGS).collect()] == ["e"]


def test_nothing_shows_when_the_block_ends_badly(spark: SparkSession, warehouse: Warehouse) -> None:
    with warehouse.writing() as writing:
        writing.replace(OTHERS, numbers(spark, 1))

    def write_badly() -> None:
        with warehouse.writing() as writing:
            writing.replace(OTHERS, numbers(spark, 2))
            writing.add(THINGS, things(spark, ("c", None, "s", "a")))
            numbers(spark, 3).write.parquet(writing.aside("_work"))
            raise DataError("no good")

    with pytest.raises(DataError, match="no good"):
        write_badly()
    assert shown(spark, warehouse) == [1]
    assert warehouse.names() == ("others",)
    assert run_folders(warehouse) == ["others/run=000001"]


def test_what_is_aside_is_gone_afterwards(spark: SparkSession, warehouse: Warehouse) -> None:
    with warehouse.writing() as writing:
        numbers(spark, 3).write.parquet(writing.aside("_work"))
    assert run_folders(warehouse) == []


def test_left_overs_of_a_killed_run_go_and_what_is_not_ours_stays(spark: SparkSession, warehouse: Warehouse) -> None:
    with warehouse.writing() as writing:
        writing.replace(OTHERS, numbers(spark, 1))
    for folder in ("others/run=000002", "_work/run=000002", "mine/data", "others/notes"):
        (Path(warehouse.folder) / folder).mkdir(parents=True)
    assert shown(spark, warehouse) == [1]
    with warehouse.writing():
        pass
    kept = [
        path for path in ("others/run=000001", "mine/data", "others/notes") if (Path(warehouse.folder) / path).is_dir()
    ]
    assert kept == ["others/run=000001", "mine/data", "others/notes"]
    assert run_folders(warehouse) == ["others/run=000001"]


NAMES = ["a/b", "1", "01", "café", "x=y", "a%2Fb", "..", "A", " a ", 'q"\\{}[]*?:#', "\U0001f600", "a,b", "true"]


def test_odd_clusters_and_unknown_dates_survive_as_folders(spark: SparkSession, warehouse: Warehouse) -> None:
    days = [date(2026, 11, 21), None, date(1, 1, 1)]
    rows = [(name, day, "s", f"{name} {day}") for name in NAMES for day in days]
    with warehouse.writing() as writing:
        assert writing.replace(THINGS, things(spark, *rows)) == len(rows)
    found = {tuple(row) for row in warehouse.read(spark, THINGS).collect()}
    assert found == set(rows)


def test_a_table_that_is_not_there_is_an_error_that_says_how_to_make_it(
    spark: SparkSession, warehouse: Warehouse
) -> None:
    with pytest.raises(DataError, match=r"table others is not in .*wh") as caught:
        warehouse.read(spark, OTHERS)
    assert caught.value.hint == "write it first: rmqlb pipeline ingest"
    assert warehouse.read_or_empty(spark, OTHERS).collect() == []


def test_a_table_of_other_columns_is_refused(spark: SparkSession, warehouse: Warehouse) -> None:
    with warehouse.writing() as writing:
        writing.replace(OTHERS, numbers(spark, 1))
    more = Table("others", {"number": "int", "word": "string"})
    with pytest.raises(DataError, match=r"table others in .* has no column word"):
        warehouse.read(spark, more)


def test_a_lost_folder_is_said(spark: SparkSession, warehouse: Warehouse) -> None:
    with warehouse.writing() as writing:
        writing.replace(OTHERS, numbers(spark, 1))
    (Path(warehouse.folder) / "others/run=000001").rename(Path(warehouse.folder) / "elsewhere")
    with pytest.raises(DataError, match="run=000001 is gone, but table others needs it"):
        warehouse.read(spark, OTHERS)


@pytest.mark.parametrize(
    ("contents", "message"),
    [
        ({"schema": "rmqlb/warehouse", "formatVersion": 1}, "rmqlb/warehouse 1 is not what this program reads"),
        ({"schema": "rmqlb/warehouse", "formatVersion": 4}, "rmqlb/warehouse 4 is not what this program reads"),
        ({"schema": "another", "formatVersion": 2}, "another 2 is not what this program reads"),
        ([], "Expected `object`, got `array`"),
    ],
)
def test_a_folder_of_another_format_is_left_alone(warehouse: Warehouse, contents: object, message: str) -> None:
    folder = Path(warehouse.folder)
    (folder / "things/run=000001").mkdir(parents=True)
    (folder / "tables.json").write_text(json.dumps(contents))
    with pytest.raises(DataError, match=message), warehouse.writing():
        pass
    assert (folder / "things/run=000001").is_dir()


def test_only_one_process_writes_at_a_time(warehouse: Warehouse) -> None:
    os.makedirs(warehouse.folder)
    code = "import fcntl, sys; f = open(sys.argv[1], 'w'); fcntl.flock(f, fcntl.LOCK_EX); print('held', flush=True); sys.stdin.read()"
    lock = os.path.join(warehouse.folder, ".lock")
    with subprocess.Popen([sys.executable, "-c", code, lock], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        with pytest.raises(UsageError, match="another process is writing to"), warehouse.writing():
            pass
        other.kill()
        other.wait()
    with warehouse.writing(), open(lock, "rb") as file, pytest.raises(BlockingIOError):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_a_folder_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(DataError, match=r"cannot write to .*: Not a directory"),
        Warehouse(str(tmp_path / "file/wh")).writing(),
    ):
        pass


def test_a_table_that_is_not_there_names_the_stage_that_writes_it(spark: SparkSession, warehouse: Warehouse) -> None:
    for stage, tables in WRITTEN_BY.items():
        for named in tables:
            with pytest.raises(DataError) as caught:
                warehouse.read(spark, named)
            assert caught.value.hint == f"write it first: rmqlb pipeline {stage}"


@pytest.mark.parametrize(
    ("made", "hint"),
    [
        (SCORES, "rebuild it: rmqlb pipeline score --force"),
        (DOCUMENTS, "ingest the snapshots into another one: rmqlb pipeline run -w NEW PATH…"),
    ],
)
def test_what_another_version_wrote_is_told_with_what_rebuilds_it(
    spark: SparkSession, warehouse: Warehouse, made: Table, hint: str
) -> None:
    with warehouse.writing() as writing:
        writing.replace(Table(made.name, {"cluster": "string"}), spark.createDataFrame([("c",)], "cluster string"))
    with pytest.raises(DataError, match="another version of rmqlb wrote it") as caught:
        warehouse.read(spark, made)
    assert caught.value.hint == hint


def test_the_format_of_before_is_read_and_written_as_that_of_now(spark: SparkSession, warehouse: Warehouse) -> None:
    with warehouse.writing() as writing:
        writing.replace(OTHERS, numbers(spark, 1))
    with warehouse.writing() as writing:
        writing.add(OTHERS, numbers(spark, 2))
    path = Path(warehouse.folder) / "tables.json"
    written = json.loads(path.read_bytes())
    earlier = {key: value for key, value in written["tables"]["others"].items() if key not in ("run", "tableVersion")}
    path.write_text(json.dumps({**written, "formatVersion": 2, "tables": {"others": earlier}}))
    assert shown(spark, warehouse) == [1, 2]
    assert warehouse.versions(OTHERS) == {"others": "run=000002"}
    with warehouse.writing() as writing:
        writing.add(OTHERS, numbers(spark, 3))
    assert shown(spark, warehouse) == [1, 2, 3]
    assert json.loads(path.read_bytes())["formatVersion"] == 3


def test_a_column_that_was_not_written_before_is_what_the_schema_says_of_it(
    spark: SparkSession, warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    with warehouse.writing() as writing:
        writing.replace(OTHERS, numbers(spark, 1))
    more = Table("others", {"number": "int", "word": "string", "twice": "int"})
    monkeypatch.setitem(MIGRATED, "others", {"word": "null", "twice": "number * 2"})
    assert [tuple(row) for row in warehouse.read(spark, more).collect()] == [(1, None, 2)]
    with warehouse.writing() as writing:
        writing.add(more, spark.createDataFrame([(5, "five", 10)], more.ddl))
    assert sorted(tuple(row) for row in warehouse.read(spark, more).collect()) == [(1, None, 2), (5, "five", 10)]


def test_compacted_tables_have_the_same_rows_in_fewer_files_and_stay_the_same_version(
    spark: SparkSession, warehouse: Warehouse
) -> None:
    days = [date(2026, 11, 21), None]
    for number in range(3):
        with warehouse.writing() as writing:
            again = ["s1"] if number else []
            writing.add(THINGS, things(spark, *(("c", day, f"s{number}", "a") for day in days)), again)
            writing.add(OTHERS, numbers(spark, number))
    before = [sorted(map(repr, warehouse.read(spark, table).collect())) for table in (THINGS, OTHERS)]
    versions = warehouse.versions(THINGS, OTHERS)
    files = len(list(Path(warehouse.folder).rglob("*.parquet")))
    with warehouse.held():
        with warehouse.writing() as writing:
            writing.compact(spark, THINGS)
            writing.compact(spark, OTHERS)
        warehouse.forget()
    assert [sorted(map(repr, warehouse.read(spark, table).collect())) for table in (THINGS, OTHERS)] == before
    assert warehouse.versions(THINGS, OTHERS) == versions
    assert run_folders(warehouse) == ["others/run=000004", "things/run=000004"]
    assert len(list(Path(warehouse.folder).rglob("*.parquet"))) < files


def test_who_holds_a_warehouse_writes_more_than_once_and_another_not_at_all(
    spark: SparkSession, warehouse: Warehouse
) -> None:
    with warehouse.held():
        for number in (1, 2):
            with warehouse.writing() as writing:
                writing.add(OTHERS, numbers(spark, number))
        with pytest.raises(UsageError, match="another process is writing to"), Warehouse(warehouse.folder).held():
            pass
    with Warehouse(warehouse.folder).held():
        pass
    assert shown(spark, warehouse) == [1, 2]


@pytest.mark.parametrize("place", ["s3a:bucket", "hdfs:", "warehouse:2026"])
def test_a_scheme_without_a_place_is_neither(place: str) -> None:
    with pytest.raises(UsageError, match="neither a folder nor a URI") as caught:
        Warehouse(place)
    assert caught.value.hint is not None
    assert caught.value.hint.endswith(f"./{place}")


@pytest.mark.parametrize("place", ["hdfs://", "s3a://b/a b", "s3a://b/x?y", "s3a://b/*", "gs://b/`"])
def test_a_uri_that_no_table_can_have_is_refused(place: str) -> None:
    with pytest.raises(UsageError, match="not a URI for tables"):
        Warehouse(place)


@pytest.mark.parametrize("place", ["s3a://bucket/wh/", "hdfs://nn:8020/x", "file:///data/wh", "abfss://c@a.b/wh"])
def test_what_has_a_scheme_is_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    monkeypatch.chdir(tmp_path)
    warehouse = Warehouse(place)
    assert warehouse.needs_spark
    assert warehouse.folder == place.rstrip("/")
    assert os.listdir(tmp_path) == []


def test_only_the_partitions_that_are_named_are_replaced_and_read(spark: SparkSession, warehouse: Warehouse) -> None:
    first, second = date(2026, 11, 20), date(2026, 11, 21)
    rows = [("a/b", first, "s1", "1"), ("a/b", None, "s2", "2"), ("c", first, "s3", "3"), ("c", second, "s4", "4")]
    with warehouse.writing() as writing:
        writing.replace(THINGS, things(spark, *rows), {"c": "1"})

    def shown(where: dict[str, list[Any]] | None = None) -> list[str]:
        return sorted(row["thing"] for row in warehouse.read(spark, THINGS, where).collect())

    assert shown({"cluster": ["a/b"]}) == ["1", "2"]
    assert shown({"date": [None, second]}) == ["2", "4"]
    assert shown({"cluster": ["c"], "date": [first]}) == ["3"]
    assert shown({"cluster": ["none"]}) == shown({"cluster": []}) == []
    with warehouse.writing() as writing:
        made = writing.replace(THINGS, things(spark, ("c", second, "s5", "5")), {"c": "2"}, {"cluster": ["c"]})
        assert made == 1
        assert [row["thing"] for row in writing.read(spark, THINGS, {"cluster": ["c"]}).collect()] == ["5"]
        assert shown() == ["1", "2", "3", "4"]
    assert shown() == ["1", "2", "5"]
    stored = warehouse.stored("things")
    assert stored is not None
    assert (stored.rows, stored.made_from, stored.version) == (3, {"c": "2"}, "run=000002")
    assert not (Path(warehouse.folder) / "things/run=000001/cluster=c/date=2026-11-20").exists()
    with warehouse.writing() as writing:
        writing.replace(THINGS, things(spark), {"c": "3"}, {"cluster": ["a/b"]})
    assert shown() == ["5"]
    assert run_folders(warehouse) == ["things/run=000002", "things/run=000003"]
    stored = warehouse.stored("things")
    assert stored is not None
    assert (stored.rows, stored.version) == (1, "run=000003")


def test_rows_that_are_added_often_are_put_into_one_folder(spark: SparkSession, warehouse: Warehouse) -> None:
    for number in range(40):
        with warehouse.writing() as writing:
            assert writing.add(OTHERS, numbers(spark, number)) == 1
    assert shown(spark, warehouse) == list(range(40))
    stored = warehouse.stored("others")
    assert stored is not None
    assert (stored.rows, len(stored.folders)) == (40, 8)
