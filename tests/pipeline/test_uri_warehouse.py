"""What a storage promises, the same in a folder, at file://, on a real HDFS and on an S3-compatible server."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.pipeline.documents import route, snapshot, write
from tests.support.pages import DOCS, blocks

from . import storages

pytestmark = pytest.mark.spark

STORY = "tests.pipeline.programs.on_a_storage"
LOCAL = ("--master", "local[2]")


@pytest.fixture(scope="module")
def hdfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with storages.hdfs(tmp_path_factory.mktemp("hdfs")) as running:
        yield running.uri


@pytest.fixture(
    scope="module",
    params=[
        "folder",
        "file",
        pytest.param("hdfs", marks=pytest.mark.slow),
        pytest.param("s3a", marks=pytest.mark.slow),
    ],
)
def story(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What the small tables did on one storage."""
    folder = tmp_path_factory.mktemp(request.param)
    if request.param == "s3a":
        with storages.s3() as (uri, conf):
            return storages.said(STORY, f"{uri}/story", conf=conf, cwd=folder)
    places = {"folder": str(folder), "file": f"file://{folder}"}
    place = places.get(request.param) or request.getfixturevalue("hdfs")
    return storages.said(STORY, f"{place}/story", cwd=folder)


def test_nothing_is_there_at_first(story: Any) -> None:
    names, said = story["empty"]
    assert names == []
    assert said.startswith("table-not-found: table others is not in ")


def test_tables_are_replaced_and_added_to(story: Any) -> None:
    seen, made_from = story["replaced_and_added"]
    assert [step[:4] for step in seen] == [
        [2, [1, 2], {"others": 2}, {"others": "run=000001"}],
        [1, [1, 2, 3], {"others": 3}, {"others": "run=000002"}],
        [1, [4], {"others": 1}, {"others": "run=000003"}],
        [0, [4], {"others": 1}, {"others": "run=000003"}],
    ]
    assert made_from
    assert max(jobs for *_, jobs in seen) <= 30


def test_rows_take_the_place_of_those_of_their_snapshot(story: Any) -> None:
    assert story["in_place_of_a_snapshot"] == [[["c", "s2", "c"], ["other", "s1", "e"]], {"things": 2}]


def test_a_run_that_failed_shows_nothing_and_the_next_is_not_built_upon_it(story: Any) -> None:
    said, numbers, things, numbers_after, things_after, aside = story["ends_badly"]
    assert said == "unexpected: no good"
    assert (numbers, things) == ([4], [["c", "s2", "c"], ["other", "s1", "e"]])
    assert (numbers_after, things_after) == ([4, 6], [["c", "s2", "c"], ["c", "s4", "f"], ["other", "s1", "e"]])
    assert aside == []


def test_a_reader_in_between_sees_the_state_of_before(story: Any) -> None:
    before = [[4, 6], [["c", "s2", "c"], ["c", "s4", "f"], ["other", "s1", "e"]]]
    assert story["read_in_between"] == [[before, before], [7], [[7], [["c", "s5", "g"]]]]


def test_of_two_writers_one_is_refused_before_any_job(story: Any) -> None:
    said, jobs, claims = story["two_writers"]
    assert said.startswith("warehouse-busy: another process is writing to ")
    assert jobs == 0
    assert claims == []


def test_rows_with_some_values_give_way_to_others(story: Any) -> None:
    narrowed, seen, shown, last = story["some_values_replaced"]
    assert narrowed == [["1", "2"], ["2", "4"], ["3"], [], [], ["4"]]
    assert seen == [
        [1, ["1", "2", "lost"], ["1", "2", "3", "4"]],
        [1, ["1", "2", "5"], ["1", "2", "3", "4"]],
        [0, ["1", "5"], ["1", "2", "5"]],
        [1, ["1", "5", "6"], ["1", "5"]],
    ]
    assert (shown, last) == (["1", "5", "6"], [3, {"c": "2"}])
    assert story["some_truths_replaced"] == [["3", "4"], {"held": 3}]


def test_a_table_of_an_earlier_version_is_migrated_or_refused(story: Any) -> None:
    said, before, added, after = story["another_version"]
    assert "has no column twice: another version of rmqlb wrote it" in said
    assert (before, added, after) == ([[1, 2]], 1, [[1, 2], [5, 11]])


def test_old_snapshots_are_removed_and_remembered(story: Any) -> None:
    assert story["old_ones_removed"] == [
        [[{"documents": 2, "forgotten": 1}, 1], [{"documents": 2, "forgotten": 1}, 0]],
        ["s0", "s2"],
        ["h1"],
    ]


def test_a_run_that_was_taken_over_or_came_second_shows_nothing(story: Any) -> None:
    if "one_that_was_taken_over" not in story:
        return  # a folder is the kernel's to lock: tests/pipeline/test_warehouse.py
    said, numbers = story["one_that_was_taken_over"]
    assert said.startswith("warehouse-busy: ")
    assert "another process has taken over" in said
    assert numbers == [7]
    said, numbers = story["late_commit_of_one_that_was_killed"]
    assert said.startswith("warehouse-busy: another process has written to ")
    assert numbers == [7]
    said, numbers, things = story["two_that_publish_one_run"]
    assert said.startswith("warehouse-busy: ")
    assert (numbers, things) == ([7], [["c", "s6", "h"]])


def test_files_do_not_pile_up_where_all_of_them_are_read(story: Any) -> None:
    rows, most, published, others_are_there = story["added_often"]
    assert rows == list(range(7))
    assert most <= 3
    assert published <= 3
    assert others_are_there


def test_odd_names_and_unknown_dates_survive(story: Any) -> None:
    assert story["odd_names"] == [True, True]


def test_a_compacted_table_is_the_same_in_fewer_files(story: Any) -> None:
    same, before, after = story["compacted"]
    assert same
    assert before > after == 1


def night(folder: Path, day: int) -> str:
    taken = f"2026-11-{day}T02:00:00Z"
    return write(folder / f"{day}", {"cluster=c/a.json": snapshot(taken, {"T": route(a=2)})})


def published(uri: str) -> dict[str, list[Any]]:
    """Every table's rows as the documentation has them read without Spark."""
    import duckdb
    from deltalake import DeltaTable

    connection = duckdb.connect()
    connection.register("named", DeltaTable(f"{uri}/_published").to_pyarrow_table())
    newest = connection.execute("SELECT name, max_by(tableVersion, run) FROM named GROUP BY name").fetchall()
    tables = {name: DeltaTable(f"{uri}/{name}", version=version).to_pyarrow_table() for name, version in newest}
    return {name: table.to_pylist() for name, table in tables.items()}


@pytest.mark.slow
def test_killed_in_the_middle_of_a_write_and_run_again(hdfs: str, tmp_path: Path) -> None:
    from deltalake import DeltaTable

    uri = f"{hdfs}/killed"
    first, second = night(tmp_path, 20), night(tmp_path, 21)
    storages.rmqlb("ingest", first, "-w", uri, *LOCAL, "--log-file", "log", cwd=tmp_path)
    before = published(uri)
    unpublished = DeltaTable(f"{uri}/documents").version()

    command = [sys.executable, "-m", "rmqlb", "pipeline", "ingest", second, "-w", uri, *LOCAL]
    command += [*storages.conf_options({}), "--log-file", str(tmp_path / "killed.log")]
    with subprocess.Popen(command, env=storages.with_delta(), start_new_session=True) as child:
        while child.poll() is None and DeltaTable(f"{uri}/documents").version() == unpublished:
            time.sleep(0.05)
        assert child.poll() is None
        os.kill(child.pid, signal.SIGKILL)
    assert DeltaTable(f"{uri}/documents").version() > unpublished
    assert published(uri) == before

    done = storages.rmqlb("ingest", first, second, "-w", uri, *LOCAL, "--log-file", "log", cwd=tmp_path)
    assert "2 found, 1 ingested, 1 known" in done.stdout
    assert sorted(row["date"].day for row in published(uri)["topics"]) == [20, 21]


@pytest.mark.slow
def test_the_documented_queries_see_whole_states(hdfs: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """On a table that has rows after an ingest: the others are asked in the same way."""
    uri = f"{hdfs}/queried"
    storages.rmqlb("ingest", night(tmp_path, 20), "-w", uri, *LOCAL, "--log-file", "log", cwd=tmp_path)
    by_duckdb, by_spark = (_of_topics(block, uri) for block in blocks(DOCS / "pipeline.md", "text"))
    exec(compile(by_duckdb, "docs/pipeline.md", "exec"), {})
    assert "│ T " in capsys.readouterr().out
    rows = storages.said("tests.pipeline.programs.in_spark_sql", by_spark, cwd=tmp_path)
    assert rows == [["c", "T"]]


def _of_topics(block: str, uri: str) -> str:
    """A query of the page, of another table."""
    there = block.replace("s3://bucket/fleet", uri).replace("s3a://bucket/fleet", uri).replace("scores", "topics")
    for asked, instead in ((', "group", imbalance, idle', ", topic"), (", `group`, imbalance, idle", ", topic")):
        there = there.replace(asked, instead)
    return there.replace("WHERE runs ORDER BY imbalance DESC", "ORDER BY topic")
