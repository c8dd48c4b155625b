"""Ingest on Spark: exact rows of every table, what is known, what is put aside, and that counts agree."""

from __future__ import annotations

import gzip
import json
import os
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from rmqlb.errors import DataError
from rmqlb.pipeline import schemas
from rmqlb.pipeline.ingest.arrow_udf import read_files
from rmqlb.pipeline.ingest.document_ids import digest, pieces_id
from rmqlb.pipeline.ingest.ingest_report import IngestReport, require_equal
from rmqlb.pipeline.ingest.ingest_stage import _Ingest, ingest, latest
from rmqlb.pipeline.ingest.input_files import Found, PathLabels
from rmqlb.pipeline.row_filter import RowFilter
from rmqlb.pipeline.spark.progress import StageProgress
from rmqlb.pipeline.warehouse import Warehouse
from tests.pipeline.documents import connections, progress, route, snapshot, write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

GROUP = {
    "clientIds": ["y", "x"],
    "messageModel": "CLUSTERING",
    "topics": ["T"],
    "queues": [
        {"topic": "T", "brokerName": "b", "queueId": 0, "owners": ["y"], "brokerOffset": 9, "consumerOffset": 4},
        {"topic": "T", "brokerName": "a", "queueId": 7, "owners": []},
    ],
    "reports": [{"clientId": "x", "topics": [], "strategyClass": "AllocateMessageQueueAveragely"}],
}
WHOLE = snapshot(topics={"T": route(a=2, b=1)}, group=GROUP)
TABLES = {table.name: table for table in (*schemas.INGESTED, schemas.QUARANTINE)}


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    return Warehouse(str(tmp_path / "warehouse"))


@pytest.fixture
def dumps(tmp_path: Path) -> Path:
    return tmp_path / "dumps"


def rows(spark: SparkSession, warehouse: Warehouse, name: str) -> list[tuple[Any, ...]]:
    frame = warehouse.read(spark, TABLES[name])
    if "takenAt" in frame.columns:  # as Python's own time zone does not matter
        frame = frame.withColumn("takenAt", frame["takenAt"].cast("string"))
    return sorted((tuple(row) for row in frame.collect()), key=repr)


def counts(report: IngestReport) -> tuple[int, int, int, int]:
    return report.found, report.ingested, report.known, report.quarantined


def test_a_snapshot_becomes_these_rows(spark: SparkSession, warehouse: Warehouse, dumps: Path) -> None:
    root = write(dumps, {"night.json": WHOLE})
    report = ingest(spark, warehouse, [root])
    hash_ = digest(WHOLE)
    key = ("c1", date(2026, 11, 21), hash_[:16])
    run = [("a", 2), ("b", 1)]
    expected: dict[str, list[tuple[Any, ...]]] = {
        "documents": [(*key, f"{root}/night.json", 1, hash_, "snapshot", "2026-11-21 02:00:00", 1, 1)],
        "topics": [(*key, "T", run, run, None, None, False)],
        "queues": [(*key, "T", "a", 0, 0, 0), (*key, "T", "a", 1, 1, 1), (*key, "T", "b", 0, 2, 2)],
        "brokers": [(*key, "a", "c1", {0: "a:10911"}, True), (*key, "b", "c1", {0: "b:10911"}, True)],
        "groups": [(*key, "g", None, "CLUSTERING", None, 2, False, "AVG", False, None, None)],
        "processes": [
            (*key, "g", 0, "x", None, None, "AVG", "AllocateMessageQueueAveragely"),
            (*key, "g", 1, "y", None, None, None, None),
        ],
        "subscriptions": [(*key, "g", "T", True, ["x"])],
        "owners": [(*key, "g", "T", "a", 7, None, []), (*key, "g", "T", "b", 0, 2, ["y"])],
        "offsets": [(*key, "g", "T", "b", 0, 2, 9, 4, 5, None)],
        "pop_queues": [],
        "fleet": [
            (*key, "g", "AVG", 3, ["x", "y"], [("java", True)] * 2, [("T", run, ["x"], [(2, 5)], [(2, ["y"])])], [])
        ],
        "quarantine": [],
    }
    found = {name: rows(spark, warehouse, name) for name in TABLES}
    assert found == expected
    written = {name: len(its) for name, its in expected.items()}
    assert report == IngestReport(1, 0, 1, 1, 0, 0, 0, {**written, "files": 1, "clusters": 1})


def test_what_is_known_changes_nothing(spark: SparkSession, warehouse: Warehouse, dumps: Path) -> None:
    files: dict[str, str | bytes] = {
        "a/x.json": WHOLE,
        "b/same.json.gz": gzip.compress(WHOLE.encode()),
        "c/route.json": '{"U": {"queueDatas": []}}',
    }
    root = write(dumps, {**files, "bad.json": "{"})
    assert counts(ingest(spark, warehouse, [root])) == (4, 2, 1, 1)
    before, first = warehouse.versions(*TABLES.values()), {name: rows(spark, warehouse, name) for name in TABLES}
    assert counts(ingest(spark, warehouse, [root])) == (4, 0, 3, 1)
    copy = write(dumps / "d", {"copy.json": WHOLE})
    assert counts(ingest(spark, warehouse, [copy])) == (1, 0, 1, 0)
    assert {name: rows(spark, warehouse, name) for name in TABLES} == first
    assert warehouse.versions(*TABLES.values()) == before
    assert warehouse.rows(schemas.FILES) == {"files": 5}


def test_bad_documents_are_put_aside_among_good_ones(spark: SparkSession, warehouse: Warehouse, dumps: Path) -> None:
    night = [snapshot(f"2026-11-{day}T02:00:00Z", {"T": route(a=1)}) for day in (20, 21, 22)]
    future = night[0].replace('"1.0"', '"3.0"')
    too_long = snapshot(None, {"T": route(cluster="x" * 300, a=1)})
    root = write(
        dumps,
        {
            "lines.jsonl": f"{night[0]}\n{night[1][:-9]}\n\n{night[1]}\n{night[2][:40]}",
            "damaged.json.gz": gzip.compress(night[2].encode())[:-6],
            "empty.json": "",
            "field.json": snapshot(topics={"T": None}),
            "future.yaml": future,
            "large.json": snapshot(
                group={"queues": [{"topic": "T", "brokerName": "a", "queueId": 2**40, "owners": []}]}
            ),
            "long.json": too_long,
            "noise.bin": b"\xff\xfe\x00",
        },
    )
    report = ingest(spark, warehouse, [root])
    assert counts(report) == (11, 2, 0, 9)
    assert {row[2] for row in rows(spark, warehouse, "documents")} == {digest(night[0])[:16], digest(night[1])[:16]}
    assert [row[3] for row in rows(spark, warehouse, "topics")] == ["T", "T"]
    reasons = {
        (row[0].removeprefix(f"{root}/"), row[1]): row[4].replace(root, "")
        for row in rows(spark, warehouse, "quarantine")
    }
    assert reasons == {
        ("lines.jsonl", 2): f"/lines.jsonl, document 2, line 1, column {len(night[1]) - 8}: the text ends too early",
        ("lines.jsonl", 4): "/lines.jsonl, document 4, line 1, column 41: the text ends too early",
        ("damaged.json.gz", 1): "/damaged.json.gz: the compressed data is cut short",
        ("empty.json", 1): "/empty.json is empty; expected a snapshot, a route or a Dashboard response",
        ("field.json", 1): "/field.json: Expected object, got null at $.data.topics[0].route",
        (
            "future.yaml",
            1,
        ): "/future.yaml: snapshot format 3.0 is newer than this program reads (2.0); use a newer rmqlb",
        ("large.json", 1): "ArrowInvalid: Value 1099511627776 too large to fit in C integer type",
        ("long.json", 1): f"the cluster's name '{'x' * 40}' cannot be that of a folder; call it otherwise",
        ("noise.bin", 1): "/noise.bin, byte 0: it is not UTF-8 text",
    }
    sizes = {Path(row[0]).name: (row[2], row[3]) for row in rows(spark, warehouse, "quarantine")}
    assert sizes["noise.bin"] == (digest(b"\xff\xfe\x00"), 3)


def test_a_first_ingest_of_nothing_that_can_be_read_is_told_and_makes_empty_tables(
    spark: SparkSession, warehouse: Warehouse, dumps: Path
) -> None:
    root = write(dumps, {"a.json": "{"})
    assert counts(ingest(spark, warehouse, [root])) == (1, 0, 0, 1)
    assert warehouse.rows(schemas.CLUSTERS, schemas.DOCUMENTS, schemas.QUARANTINE) == {
        "clusters": 0,
        "documents": 0,
        "quarantine": 1,
    }


def test_a_document_that_was_put_aside_is_not_put_aside_twice(
    spark: SparkSession, warehouse: Warehouse, dumps: Path
) -> None:
    root = write(dumps, {"a.json": "{", "b.json": WHOLE})
    ingest(spark, warehouse, [root])
    before = warehouse.versions(*TABLES.values())
    assert counts(ingest(spark, warehouse, [root])) == (2, 0, 1, 1)
    assert warehouse.versions(*TABLES.values()) == before
    write(dumps, {"a.json": snapshot("2026-11-22T02:00:00Z")})
    assert counts(ingest(spark, warehouse, [root])) == (2, 1, 1, 0)
    assert len(rows(spark, warehouse, "quarantine")) == 1


def test_pieces_of_a_folder_make_one_snapshot_also_over_two_runs(
    spark: SparkSession, warehouse: Warehouse, dumps: Path
) -> None:
    root = write(
        dumps,
        {
            "date=2026-11-20/1-members.json": connections("g", "x"),
            "date=2026-11-20/2-queues.json": progress("g", a="x"),
        },
    )
    assert counts(ingest(spark, warehouse, [root])) == (2, 2, 0, 0)
    name = pieces_id(PathLabels(f"{root}/date=2026-11-20", None, date(2026, 11, 20)))
    key = ("unknown", date(2026, 11, 20), name)
    assert rows(spark, warehouse, "owners") == [(*key, "g", "T", "a", 0, None, ["x"])]
    assert rows(spark, warehouse, "processes") == [(*key, "g", 0, "x", "JAVA", None, None, None)]

    write(
        dumps,
        {"date=2026-11-20/topic=T/route.json": json.dumps(route(a=1)), "date=2026-11-20/3.json": progress("g", b="y")},
    )
    assert counts(ingest(spark, warehouse, [root])) == (4, 2, 2, 0)
    key = ("c1", date(2026, 11, 20), name)
    assert rows(spark, warehouse, "owners") == [
        (*key, "g", "T", "a", 0, 0, ["x"]),
        (*key, "g", "T", "b", 0, None, ["y"]),
    ]
    assert [row[:4] for row in rows(spark, warehouse, "topics")] == [(*key, "T")]
    assert [row[:4] for row in rows(spark, warehouse, "groups")] == [(*key, "g")]
    assert {row[:3] for row in rows(spark, warehouse, "documents")} == {key}
    stored = warehouse.stored("documents")
    assert stored is not None
    assert stored.rows == 4


def test_of_two_pieces_about_one_topic_the_later_counts(spark: SparkSession, warehouse: Warehouse, dumps: Path) -> None:
    def a_route(number: int) -> str:
        return f'{{"T": {json.dumps(route(a=number))}}}'

    root = write(dumps, {"2.json": a_route(2), "1.jsonl": f"{a_route(3)}\n{a_route(1)}"})
    ingest(spark, warehouse, [f"{root}/1.jsonl"])
    assert len(rows(spark, warehouse, "queues")) == 1
    ingest(spark, warehouse, [root])
    assert len(rows(spark, warehouse, "queues")) == 2


def test_equal_pieces_of_two_nights_topics_or_folders_are_both_taken(
    spark: SparkSession, warehouse: Warehouse, dumps: Path
) -> None:
    body = json.dumps(route(a=1))
    places = ["date=2026-11-20/topic=T", "date=2026-11-20/topic=U", "date=2026-11-21/topic=T", "x/topic=T"]
    root = write(dumps, {f"{place}/route.json": body for place in places})
    assert counts(ingest(spark, warehouse, [root])) == (4, 4, 0, 0)
    assert sorted((str(row[1]), row[3]) for row in rows(spark, warehouse, "topics")) == [
        ("2026-11-20", "T"),
        ("2026-11-20", "U"),
        ("2026-11-21", "T"),
        ("None", "T"),
    ]


def test_the_cluster_is_as_the_user_says_else_the_path_else_the_brokers(
    spark: SparkSession, warehouse: Warehouse, dumps: Path
) -> None:
    nights = [snapshot(f"2026-11-{day}T02:00:00Z", {"T": route(a=1)}) for day in range(10, 14)]
    write(
        dumps,
        {"cluster=pay%2Feu/1.json": nights[0], "2.json": nights[1], "3.json": snapshot(None), "said/4.json": nights[3]},
    )
    ingest(spark, warehouse, [f"{dumps}/*.json", f"{dumps}/cluster=*"])
    ingest(spark, warehouse, [f"{dumps}/said"], cluster="x=y")
    found = {Path(row[3]).name: row[:2] for row in rows(spark, warehouse, "documents")}
    assert found == {
        "1.json": ("pay/eu", date(2026, 11, 10)),
        "2.json": ("c1", date(2026, 11, 11)),
        "3.json": ("unknown", None),
        "4.json": ("x=y", date(2026, 11, 13)),
    }


def test_only_leaves_whole_documents_out_and_they_can_come_later(
    spark: SparkSession, warehouse: Warehouse, dumps: Path
) -> None:
    nights = {f"{day}.json": snapshot(f"2026-11-{day}T02:00:00Z", {"T": route(a=1)}) for day in (20, 21)}
    root = write(dumps, {**nights, "pieces/1.json": connections("g", "x")})
    report = ingest(
        spark, warehouse, [root], only=RowFilter(cluster=("c*",), date=(date(2026, 11, 21),), topic=("none",))
    )
    assert (*counts(report), report.skipped) == (3, 1, 0, 0, 2)
    assert [row[1] for row in rows(spark, warehouse, "topics")] == [date(2026, 11, 21)]
    report = ingest(spark, warehouse, [root])
    assert (*counts(report), report.skipped) == (3, 2, 1, 0, 0)


def test_files_that_spark_reads_itself_are_read_the_same(
    spark: SparkSession, warehouse: Warehouse, dumps: Path
) -> None:
    root = write(
        dumps,
        {
            "cluster=a%2Fb/date=2026-11-20/x.json": snapshot(None),
            "y.json.gz": gzip.compress(WHOLE.encode()),
            "t-02:00.json": WHOLE,
        },
    )
    with warehouse.writing() as writing:
        report = _Ingest(spark, warehouse, writing, StageProgress()).run(
            Found((), (), 0, (f"file:{root}",)), None, RowFilter()
        )
    assert (report.files, *counts(report)) == (3, 3, 2, 0, 1)
    assert [row[:2] for row in rows(spark, warehouse, "documents")] == [
        ("a/b", date(2026, 11, 20)),
        ("c1", date(2026, 11, 21)),
    ]
    (bad,) = rows(spark, warehouse, "quarantine")
    assert bad == (f"file:{root}/t-02:00.json", 1, None, len(WHOLE), f"Spark cannot read file:{root}/t-02:00.json")


def test_what_is_no_regular_file_is_put_aside_unread(tmp_path: Path) -> None:
    (tmp_path / "device.json").symlink_to(os.devnull)  # as a pipe is, for which a test would wait
    (tmp_path / "whole.json").write_text(WHOLE)
    files = [
        {"path": f"{tmp_path}/{name}", "length": 0, "modified": None, "content": None}
        for name in ("device.json", "whole.json")
    ]
    read = pa.Table.from_batches(read_files(None, "1.0", iter([pa.RecordBatch.from_pylist(files)])))
    heads = [head for head in read.column("head").to_pylist() if head]
    assert [(head["outcome"], head["reason"]) for head in heads] == [
        ("quarantined", f"{tmp_path}/device.json is no regular file"),
        ("read", None),
    ]


@pytest.mark.parametrize("url", ["nofs://bucket/x", "hdfs:///missing"])
def test_a_url_that_spark_cannot_read_is_one_line(spark: SparkSession, warehouse: Warehouse, url: str) -> None:
    with pytest.raises(DataError) as caught:
        ingest(spark, warehouse, [url])
    assert caught.value.message.startswith(url)
    assert "\n" not in caught.value.message


def test_an_empty_folder_is_one_line_and_makes_no_warehouse(
    spark: SparkSession, warehouse: Warehouse, dumps: Path
) -> None:
    dumps.mkdir()
    with pytest.raises(DataError, match="there is no file to read"):
        ingest(spark, warehouse, [str(dumps)])
    assert not Path(warehouse.folder).exists()


def test_a_warehouse_that_cannot_be_written_is_one_line(spark: SparkSession, dumps: Path) -> None:
    root = write(dumps, {"a.json": WHOLE})
    with pytest.raises(DataError, match=r"cannot write to .*a\.json/wh: Not a directory"):
        ingest(spark, Warehouse(f"{root}/a.json/wh"), [root])


def test_counts_that_differ_are_an_error_that_names_both() -> None:
    require_equal({"topics": (3, 3)})
    with pytest.raises(DataError, match="topics: 3 went in and 2 came out; the warehouse is as it was"):
        require_equal({"files": (1, 1), "topics": (3, 2)})


def test_the_latest_snapshot_of_each_cluster(spark: SparkSession) -> None:
    def document(cluster: str, name: str, day: int | None, hour: int | None = None) -> tuple[Any, ...]:
        taken_at = datetime(2026, 11, day, hour, tzinfo=UTC) if day and hour else None
        return (cluster, date(2026, 11, day) if day else None, name, "f", 1, "h", "snapshot", taken_at, 0, 0)

    frame = spark.createDataFrame(
        [
            document("a", "z-undated", None),
            document("a", "early", 20, 3),
            document("a", "late", 20, 4),
            document("a", "path", 20),
            document("b", "s1", None),
            document("b", "s2", None),
            document("c", "y", 21, 2),
            document("c", "x", 21, 2),
            document("c", "old", 19),
        ],
        schemas.DOCUMENTS.ddl,
    )
    assert sorted(tuple(row) for row in latest(frame).collect()) == [
        ("a", date(2026, 11, 20), "late"),
        ("b", None, "s2"),
        ("c", date(2026, 11, 21), "y"),
    ]
    assert sorted(tuple(row) for row in latest(frame, date(2026, 11, 20)).collect()) == [
        ("a", date(2026, 11, 20), "late"),
        ("c", date(2026, 11, 19), "old"),
    ]
