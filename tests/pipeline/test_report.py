"""The report of small warehouses whose rows are written by hand."""

from __future__ import annotations

import csv
import datetime as dt
import io
import json
import os
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import pyarrow.parquet as pq
import pytest

from rmqlb.errors import DataError, UsageError
from rmqlb.pipeline.producers.send_rows import SendSchedule
from rmqlb.pipeline.producers.send_tables import write_sends
from rmqlb.pipeline.report.contents import Figures, facts, figures, sections
from rmqlb.pipeline.report.export import export, summarise_what_if
from rmqlb.pipeline.report.frames import Tables
from rmqlb.pipeline.report.page import Grid
from rmqlb.pipeline.report.subject_pop import PopGroup
from rmqlb.pipeline.report.subject_sends import SendTotals
from rmqlb.pipeline.report.write import ReportSummary, write_report
from rmqlb.pipeline.schemas import (
    DOCUMENTS,
    FLEET,
    GROUPS,
    POP_QUEUES,
    QUARANTINE,
    SCORES,
    TOPICS,
    TREND,
    WHAT_IF,
    WHAT_IF_SUMMARY,
)
from rmqlb.pipeline.warehouse import Warehouse
from tests.pipeline.report_rows import DAY, HOSTILE, KEY, Row, fleet, score, send, what_if, write
from tests.pipeline_rows.send_shapes import told_of, topic_row
from tests.support.builders import route

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

Found = Callable[..., Figures]


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    return Warehouse(str(tmp_path / "warehouse"))


@pytest.fixture
def found(spark: SparkSession, warehouse: Warehouse) -> Found:
    """The figures of a fleet in which some tables are replaced."""

    def find(top: int = 20, **rows: list[Row]) -> Figures:
        known = fleet()
        write(spark, warehouse, {name: (known[name][0], its) for name, its in rows.items()})
        return figures(Tables(spark, warehouse), top, ())

    return find


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.fixture(scope="module")
def whole(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[ReportSummary, Path]:
    """The report of a warehouse that has every table."""
    warehouse = Warehouse(str(tmp_path_factory.mktemp("whole") / "warehouse"))
    write(spark, warehouse, fleet())
    folder = Path(warehouse.folder, "report")
    return write_report(spark, warehouse, str(folder)), folder


def test_the_files_of_a_report(whole: tuple[ReportSummary, Path]) -> None:
    summary, folder = whole
    names = sorted({*fleet(), "what_if_summary", "overview", "cluster_summary"} - {"documents", "clusters", "files"})
    written = files(folder)
    assert sorted(written) == sorted(
        ["index.html", "report.json", "duckdb.sql", "spark.sql", "warehouse-duckdb.sql", "warehouse-spark.sql"]
        + [f"csv/{name}.csv" for name in names if name != "what_if"]
        + [f"parquet/{name}/part-00000.parquet" for name in names]
    )
    assert json.loads(written["report.json"])["tables"]["what_if"] == {"rows": 4, "inCsv": False}
    assert summary.page == str(folder / "index.html")
    assert {table.name: table.rows for table in summary.tables}["trend"] == 2
    counts = {"clusters": 1, "groups": 1, "quarantined documents": 1}
    assert {words: summary.facts[words] for words in counts} == counts
    assert [name for name in os.listdir(folder.parent) if "report" in name] == ["report"]


def test_csv_is_written_byte_for_byte_as_rmqlb_writes_it(
    spark: SparkSession, warehouse: Warehouse, tmp_path: Path
) -> None:
    seen = {
        "group": "b,c",
        "processes": 4,
        "queues": 8,
        "meanQueuesPerConsumer": 2.0,
        "maxQueuesPerConsumer": 3,
        "imbalance": 1.5,
        "idle": 0,
        "unassigned": 0,
    }
    later = {**KEY, "takenAt": dt.datetime(2026, 3, 2, 1, 2, 3, 400_000, dt.UTC), **seen, "lag": 2**53 + 1}
    rows = [later, {**KEY, "group": "=1+1", "processes": None}, {**KEY, "group": 'say "a"\n'}]
    refused = [{"file": "@x", "position": 1, "hash": "ab", "bytes": 0, "reason": "not\x1b JSON"}]
    write(spark, warehouse, {"trend": (TREND, rows), "quarantine": (QUARANTINE, refused)})
    write_report(spark, warehouse, str(tmp_path / "report"))

    assert files(tmp_path / "report" / "csv") == {
        "quarantine.csv": b"file,position,hash,bytes,reason\r\n'@x,1,ab,0,not\\x1b JSON\r\n",
        "trend.csv": b"cluster,date,snapshot,takenAt,group,processes,queues,meanQueuesPerConsumer,"
        b"maxQueuesPerConsumer,imbalance,idle,unassigned,lag\r\n"
        b"east,2026-03-02,s1,,'=1+1,,,,,,,,\r\n"
        b'east,2026-03-02,s1,,"say ""a""\\n",,,,,,,,\r\n'
        b'east,2026-03-02,s1,2026-03-02T01:02:03.400000Z,"b,c",4,8,2.0,3,1.5,0,0,9007199254740993\r\n',
    }


def test_parquet_has_the_rows_and_columns_of_the_warehouse(
    spark: SparkSession, warehouse: Warehouse, tmp_path: Path
) -> None:
    rows = [score("b"), score("a"), score("a", "CONSISTENT_HASH", runs=False)]
    write(spark, warehouse, {"scores": (SCORES, rows)})
    write_report(spark, warehouse, str(tmp_path / "report"))

    read = pq.read_table(str(tmp_path / "report" / "parquet" / "scores")).to_pylist()
    assert [list(row) for row in read] == [list(SCORES.columns)] * 3
    expected = [{column: row.get(column) for column in SCORES.columns} for row in (rows[1], rows[2], rows[0])]
    assert read == expected


def test_a_table_beyond_a_spreadsheet_is_parquet_only(
    spark: SparkSession, warehouse: Warehouse, tmp_path: Path
) -> None:
    write(spark, warehouse, {"scores": (SCORES, [score("a"), score("b")]), "trend": fleet()["trend"]})
    exported = export(Tables(spark, warehouse), (), str(tmp_path), most_rows=1)
    written = [("overview", 2, False), ("scores", 2, False), ("trend", 2, False)]
    assert [(table.name, table.rows, table.in_csv) for table in exported] == written
    assert pq.read_table(str(tmp_path / "parquet" / "scores")).num_rows == 2
    assert os.listdir(tmp_path / "csv") == []


def test_what_if_is_summed_up_over_groups(spark: SparkSession) -> None:
    rows = [
        what_if("a", "consumers", "+1", moved=2, maxQueuesPerConsumerAfter=3, lagMoved=5),
        what_if("b", "consumers", "+1", moved=4, maxQueuesPerConsumerAfter=1, lagMoved=None),
        what_if("a", "consumers", "-1", moved=9),
    ]
    frame = spark.createDataFrame([tuple(row.get(name) for name in WHAT_IF.columns) for row in rows], WHAT_IF.ddl)
    summed = summarise_what_if(frame)
    assert summed.columns == list(WHAT_IF_SUMMARY.columns)
    assert {
        row.subject: (row.groups, row.moved, row.maxQueuesPerConsumerAfter, row.lagMoved, row.lagUnknown)
        for row in summed.collect()
    } == {
        "+1": (2, 6, 3, 5, 1),
        "-1": (1, 9, 2, None, 1),
    }


def test_equal_tables_give_equal_bytes(
    spark: SparkSession, warehouse: Warehouse, whole: tuple[ReportSummary, Path], tmp_path: Path
) -> None:
    backwards = {key: (table, rows[::-1]) for key, (table, rows) in fleet().items()}
    write(spark, warehouse, backwards)
    write_report(spark, warehouse, str(tmp_path / "report"))
    ours, others = files(tmp_path / "report"), files(whole[1])
    of_its_place = {name for name in ours if name.startswith("warehouse-")} | {"report.json"}
    assert len(of_its_place) == 3
    assert {name: text for name, text in ours.items() if name not in of_its_place} == {
        name: text for name, text in others.items() if name not in of_its_place
    }


class Parts(HTMLParser):
    """The tags of a page, its texts, and its attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.ids: list[str] = []
        self.attributes: set[str] = set()
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.ids += [value or "" for name, value in attrs if name == "id"]

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def parts(page: str) -> Parts:
    found = Parts()
    found.feed(page)
    found.close()
    return found


def pictures(page: str) -> list[str]:
    return [f"<svg{piece.partition('</svg>')[0]}</svg>" for piece in page.split("<svg")[1:]]


def test_the_page_has_a_section_for_every_table_and_stands_alone(whole: tuple[ReportSummary, Path]) -> None:
    page = (whole[1] / "index.html").read_text(encoding="utf-8")
    read = parts(page)
    for title in (
        "Clusters",
        "Groups",
        "Queues unassigned or with duplicate owners",
        "Most imbalanced groups",
        "Imbalance under each strategy",
        "Idle consumers",
        "Lag that waits for one consumer",
        "Under another strategy",
        "With more or fewer consumers",
        "The broker whose loss costs most",
        "How many consumers a group should have",
        "Limits that a single loss breaks",
        "Producers while brokers fail",
        "Queues moved per day",
        "Flapping groups",
        "Processes that join and leave",
        "Imbalance over time",
        "Groups over time",
        "Documents that could not be read",
        "The tables",
    ):
        assert read.texts.count(title) >= 2, title  # in the contents and as a heading
    assert "Nothing:" not in page
    assert "http:" not in page.replace("http-equiv", "")
    assert "https:" not in page
    assert "url(" not in page.replace("url(#", "")
    assert not read.tags & {"script", "link", "img", "iframe", "object", "embed", "base", "form"}
    assert not {name for name in read.attributes if name.startswith("on") or name in ("src", "srcset")}
    assert "default-src 'none'" in page
    assert len(read.ids) == len(set(read.ids))
    assert len(pictures(page)) == 14


def test_pictures_are_xml_with_a_title_and_a_description(whole: tuple[ReportSummary, Path]) -> None:
    for picture in pictures((whole[1] / "index.html").read_text(encoding="utf-8")):
        svg = ET.fromstring(picture)
        assert svg.tag == "svg"
        assert svg.get("role") == "img"
        named = {element.get("id"): element.text for element in svg if element.tag in ("title", "desc")}
        assert list(named) == (svg.get("aria-labelledby") or "").split()
        assert all(named.values())


def test_hostile_names_are_harmless(
    spark: SparkSession, warehouse: Warehouse, whole: tuple[ReportSummary, Path], tmp_path: Path
) -> None:
    write(spark, warehouse, fleet(*HOSTILE))
    write_report(spark, warehouse, str(tmp_path / "report"))
    page = (tmp_path / "report" / "index.html").read_text(encoding="utf-8")
    twin = parts((whole[1] / "index.html").read_text(encoding="utf-8"))

    read = parts(page)
    assert (read.tags, read.attributes - {"title"}) == (twin.tags, twin.attributes)
    assert len(read.ids) == len(set(read.ids))
    assert max(map(len, read.texts)) <= max(map(len, twin.texts))  # a long name buries nothing
    assert all(char.isprintable() or char in "\n\u202f" for char in page)
    assert all(ET.fromstring(picture) is not None for picture in pictures(page))
    for path in (tmp_path / "report" / "csv").iterdir():
        text = path.read_bytes().decode("utf-8")
        assert all(char.isprintable() or char in "\r\n\u202f\ufffe\uffff" for char in text)
        cells = [cell for row in csv.reader(io.StringIO(text)) for cell in row]
        assert not [cell for cell in cells if cell.startswith(("=", "@", "\t", "\r", "\n"))]


def test_an_empty_warehouse_is_one_clear_error(spark: SparkSession, warehouse: Warehouse, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="has no tables to report on") as caught:
        write_report(spark, warehouse, str(tmp_path / "report"))
    assert caught.value.hint == "make them first: rmqlb pipeline run"
    assert not (tmp_path / "report").exists()

    write(spark, warehouse, {"documents": (DOCUMENTS, [])})
    with pytest.raises(DataError, match="has no tables to report on"):
        write_report(spark, warehouse, str(tmp_path / "report"))


def test_tables_without_rows_say_nothing_in_one_line(spark: SparkSession, warehouse: Warehouse, tmp_path: Path) -> None:
    write(spark, warehouse, {name: (table, []) for name, (table, _) in fleet().items()})
    summary = write_report(spark, warehouse, str(tmp_path / "report"))
    page = (tmp_path / "report" / "index.html").read_text(encoding="utf-8")
    assert set(summary.facts.values()) == {0}
    assert page.count("<p>Nothing: ") == 16
    assert "<svg" not in page


def test_what_is_not_there_has_no_section(spark: SparkSession, warehouse: Warehouse, tmp_path: Path) -> None:
    write(spark, warehouse, {"moves": fleet()["moves"]})
    summary = write_report(spark, warehouse, str(tmp_path / "report"))
    page = (tmp_path / "report" / "index.html").read_text(encoding="utf-8")
    assert re.findall("<h2[^>]*>(.*?)</h2>", page) == ["Queues moved per day", "The tables"]
    assert summary.facts == {"clusters": 0}


def test_the_snapshot_that_was_scored_of_each_cluster_is_what_is_shown(
    found: Found, spark: SparkSession, warehouse: Warehouse
) -> None:
    west = {"cluster": "west", "snapshot": "s1"}
    unscored = {**KEY, "date": DAY + dt.timedelta(days=1), "snapshot": "zz-unscored", "snapshots": 2, "untimed": 1}
    write(spark, warehouse, {"groups": (GROUPS, [{**KEY, "group": "of zz", "snapshot": "zz-unscored"}])})
    shown = found(clusters=[unscored], scores=[{**score("now"), "snapshot": "late"}, {**score("other"), **west}])
    assert shown.worst is not None
    assert (shown.worst.totals.groups, shown.number_left_out) == (2, 0)
    assert [(one.cluster, one.snapshots, one.judged_date, one.groups) for one in shown.clusters] == [
        ("east", 3, DAY, 1),
        ("west", None, DAY, 1),
    ]
    assert {fact.what: fact.value for fact in facts(shown)}["clusters out of date"] == 1


def test_groups_are_ranked_by_each_fault_under_the_strategy_that_they_run(found: Found) -> None:
    shown = found(
        scores=[
            score("even"),
            score("imbalanced", maxQueuesPerConsumer=6),
            score("more imbalanced", "CONSISTENT_HASH", maxQueuesPerConsumer=7),
            score("more imbalanced", "AVG", runs=False, maxQueuesPerConsumer=8, unassigned=4),
            score("idle", consumers=20, queues=8, idle=12, maxQueuesPerConsumer=1, meanQueuesPerConsumer=0.4),
            score("unassigned", unassigned=3, duplicateOwners=1),
            score("waiting", lag=100, maxLagPerConsumer=51),
            score("alone", consumers=1, lag=100, maxLagPerConsumer=100),
            score("nothing to read", queues=0, maxQueuesPerConsumer=0, meanQueuesPerConsumer=1.0, imbalance=None),
        ],
    )
    assert shown.worst is not None
    totals = shown.worst.totals
    assert (totals.groups, totals.imbalanced, totals.with_idle, totals.idle, totals.surplus) == (8, 3, 1, 12, 12)
    assert (totals.with_unassigned, totals.unassigned, totals.duplicate_owners, totals.on_one_consumer) == (1, 3, 1, 1)
    assert [one.group for one in shown.worst.imbalanced] == ["more imbalanced", "imbalanced"]
    assert [one.group for one in shown.worst.idle] == ["idle"]
    assert [one.group for one in shown.worst.unassigned] == ["unassigned"]
    assert [(one.group, one.lag_share) for one in shown.worst.one_consumer] == [("waiting", 0.51)]


def test_groups_whose_observed_owners_differ_from_the_predicted_ones(
    found: Found, spark: SparkSession, warehouse: Warehouse
) -> None:
    held = [{"place": 0, "owners": []}, {"place": 1, "owners": ["a", "b"]}, {"place": 2, "owners": ["a"]}]
    topic = {"topic": "t", "subscribe": [], "absent": [], "lags": []}
    groups = [
        {**KEY, "group": "stuck", "topics": [{**topic, "owners": held}, {**topic, "owners": held[:1]}]},
        {**KEY, "group": "swapped", "topics": [{**topic, "owners": held[2:]}]},
        {**KEY, "group": "as predicted", "topics": [{**topic, "owners": held[2:]}]},
        {**KEY, "group": "not observed", "topics": [{**topic, "owners": None}]},
    ]
    write(spark, warehouse, {"fleet": (FLEET, groups)})
    shown = found(
        scores=[
            score("as predicted", observed=1, mismatches=0),
            score("not observed", observed=0, mismatches=0),
            score("stuck", observed=4, mismatches=3),
            score("stuck", "AVG_BY_CIRCLE", runs=False, observed=4, mismatches=4),
            score("swapped", observed=1, mismatches=1),
        ]
    )
    assert shown.worst is not None
    totals = shown.worst.totals
    assert (totals.observed, totals.mismatches, totals.with_mismatches) == (6, 4, 2)
    assert (totals.observed_unassigned, totals.observed_duplicate_owners) == (2, 1)
    assert [
        (one.group, one.mismatches, one.observed_unassigned, one.observed_duplicate_owners)
        for one in shown.worst.mismatches
    ] == [("stuck", 3, 2, 1), ("swapped", 1, 0, 0)]
    assert {fact.what: fact.value for fact in facts(shown)}["unassigned queues observed"] == 2
    said = {section.name: section.seen[0] for section in sections(shown)}
    assert said["unassigned"] == "Nothing: under the strategy that each group runs, each queue has one owner."
    assert "Of 6 queues" in said["mismatches"]
    assert "2 had no owner, 1 had several" in said["mismatches"]


def test_what_may_be_the_cause_is_known_of_each_group(found: Found, spark: SparkSession, warehouse: Warehouse) -> None:
    topic = {"topic": "t", "subscribe": [{"brokerName": "a", "queues": 4}], "absent": [], "lags": [], "owners": None}
    two = {**topic, "subscribe": [{"brokerName": "a", "queues": 4}, {"brokerName": "b", "queues": 3}]}
    fleet_rows = [
        {**KEY, "group": "plain", "clientIds": ["a", "b"], "topics": [topic, two]},
        {**KEY, "group": "twice", "clientIds": ["a", "a", "b"], "topics": [topic]},
        {**KEY, "group": "apart", "clientIds": ["a", "b"], "topics": [topic, {**topic, "absent": ["b"]}]},
    ]
    group_rows = [
        {**KEY, "group": "plain", "hasSplitView": False, "mixedStrategies": False},
        {**KEY, "group": "twice", "hasSplitView": True, "mixedStrategies": False},
        {**KEY, "group": "apart", "hasSplitView": False, "mixedStrategies": True},
    ]
    write(spark, warehouse, {"fleet": (FLEET, fleet_rows), "groups": (GROUPS, group_rows)})
    shown = found(scores=[score(name) for name in ("plain", "twice", "apart", "unknown")])
    assert shown.worst is not None
    assert {
        one.group: (
            one.most_queues,
            one.has_duplicate_client_ids,
            one.mixed_subscriptions,
            one.has_split_view,
            one.mixed_strategies,
        )
        for one in shown.worst.groups
    } == {
        "plain": (7, False, False, False, False),
        "twice": (4, True, False, True, False),
        "apart": (4, False, True, False, True),
        "unknown": (None, None, None, None, None),
    }


def test_groups_in_no_figure_have_their_reason_and_a_snapshot_of_one_file_is_named(
    found: Found, spark: SparkSession, warehouse: Warehouse
) -> None:
    broadcast = {"problem": "it is BROADCASTING", "problemCode": "broadcasting-group"}
    rows: dict[str, Row] = {"a": {}, "refused": {}, "broadcast": broadcast, "idle": {}, "offline": {"processes": 0}}
    groups = [{**KEY, "group": name, **row} for name, row in rows.items()]
    refused = {**KEY, "group": "refused", "topic": "t", "strategy": "CONFIG", "reason": "no lists"}
    write(spark, warehouse, {"groups": (GROUPS, groups)})
    document = {**KEY, "file": "dumps/a.json", "position": 1}
    files = [{"file": "dumps/a.json", "documents": 1}]
    shown = found(scores=[score("a")], refusals=[refused], documents=[document], files=files)
    assert [(one.group, one.left_out, one.code) for one in shown.left_out or ()] == [
        ("broadcast", "it is BROADCASTING", "broadcasting-group"),
        ("idle", "it subscribes to no topic that has a route", "no-route"),
        ("offline", "no broker lists a consumer of it", "no-consumer-online"),
        ("refused", "no lists", "allocation"),
    ]
    assert (shown.number_left_out, shown.files) == (4, {"east": "dumps/a.json"})
    both = found(scores=[score("a")], documents=[document, {**document, "position": 2}])
    assert both.files == {}
    several = [{"file": "dumps/a.json", "documents": 2}]
    assert found(scores=[score("a")], documents=[document], files=several).files == {}
    assert found(top=1, scores=[score("a")]).number_left_out == 4


def test_who_may_read_by_pop_is_summed_up_of_the_last_snapshot(
    found: Found, spark: SparkSession, warehouse: Warehouse
) -> None:
    def row(group: str, broker: str, consumers: list[str] | None, **more: Any) -> Row:
        of_topic = {"group": group, "topic": "T", "strategy": "AVG", "popShareQueueNums": [1, -1]}
        queue = {"brokerName": broker, "queueId": 0, "consumers": consumers}
        return {**KEY, "assumedPopShare": False, **of_topic, **queue, **more}

    groups = [
        {**KEY, "group": name, "problem": "by POP", "problemCode": "pop-consumption"}
        for name in ("g", "grpc", "unseen")
    ]
    of_g = [row("g", "a", ["x", "y"]), row("g", "b", ["y", "z"]), row("g", "c", [])]
    unseen = row("unseen", "a", None, assumedPopShare=True, popShareQueueNums=[-1])
    proxied = row("grpc", "a", None, strategy=None, popShareQueueNums=[])
    rows = [proxied, *of_g, unseen, row("earlier", "a", ["x"], snapshot="s0")]
    write(spark, warehouse, {"groups": (GROUPS, groups), "pop_queues": (POP_QUEUES, rows)})
    assert found(scores=[score("a")]).by_pop == (
        PopGroup("east", "g", "T", "AVG", "1, -1", 3, 0, 1),
        PopGroup("east", "grpc", "T", None, None, None, None, None),
        PopGroup("east", "unseen", "T", "AVG", "-1 (assumed)", None, None, None),
    )


def test_unknown_owners_are_no_good_news(found: Found) -> None:
    shown = found(scores=[score("a")])
    assert "unassigned queues observed" not in {fact.what for fact in facts(shown)}
    said = {section.name: section.seen for section in sections(shown)}
    assert said["mismatches"] == ("Unknown: the snapshots report no owners.",)


def test_lists_are_cut_to_the_first_rows(found: Found) -> None:
    shown = found(top=2, scores=[score(f"g{number}", idle=number) for number in range(5)])
    assert shown.worst is not None
    assert [one.group for one in shown.worst.idle] == ["g4", "g3"]
    assert shown.worst.totals.with_idle == 4


def test_imbalance_is_counted_in_bins_for_each_strategy(found: Found) -> None:
    shown = found(
        scores=[
            *(score(f"g{number}", imbalance=imbalance) for number, imbalance in enumerate((1.0, 1.1, 1.25, 4.0, 5.0))),
            score("g0", "CONFIG", runs=False, imbalance=None),
        ],
        refusals=[{**KEY, "group": "g1", "topic": "t", "strategy": "CONFIG", "reason": "no queues"}],
    )
    assert shown.strategies is not None
    avg, config = shown.strategies
    assert (avg.strategy, avg.groups, avg.running, avg.balanced) == ("AVG", 5, 5, 3)
    assert avg.bins == (1, 1, 1, 0, 0, 1, 1)
    assert (avg.p50, avg.max) == (1.25, 5.0)
    assert (config.groups, config.running, config.balanced, config.p50) == (1, 0, 0, None)
    assert [(one.strategy, one.refused) for one in shown.refused or ()] == [("CONFIG", 1)]


def test_other_strategies_are_held_against_the_one_that_runs(found: Found) -> None:
    shown = found(
        scores=[score("a", maxQueuesPerConsumer=5), score("b"), score("a", "AVG_BY_CIRCLE", runs=False)],
        what_if=[
            what_if("a", "strategy", "AVG_BY_CIRCLE", "AVG_BY_CIRCLE", maxQueuesPerConsumerAfter=3, moved=6),
            what_if("a", "strategy", "CONSISTENT_HASH", "CONSISTENT_HASH", maxQueuesPerConsumerAfter=3, moved=4),
            what_if("b", "strategy", "AVG_BY_CIRCLE", "AVG_BY_CIRCLE", maxQueuesPerConsumerAfter=2),
            what_if("b", "strategy", "CONSISTENT_HASH", "CONSISTENT_HASH", maxQueuesPerConsumerAfter=4),
            {**what_if("a", "strategy", "AVG", "AVG", maxQueuesPerConsumerAfter=1), "strategy": "AVG_BY_CIRCLE"},
        ],
    )
    assert shown.strategy_changes is not None
    assert [(one.strategy_after, one.better, one.same, one.worse, one.moved) for one in shown.strategy_changes] == [
        ("AVG_BY_CIRCLE", 1, 1, 0, 6),
        ("CONSISTENT_HASH", 1, 0, 1, 4),
    ]
    assert [(one.group, one.strategy_after, one.gain) for one in shown.gains] == [("a", "CONSISTENT_HASH", 2)]


def test_changes_of_consumers_come_in_the_order_of_their_number(found: Found) -> None:
    shown = found(
        scores=[score("a"), score("b")],
        what_if=[what_if(group, "consumers", subject, moved=3) for group in "ab" for subject in ("+10", "+2", "-1")],
    )
    assert shown.consumer_changes is not None
    assert [(one.subject, one.groups, one.queues, one.moved) for one in shown.consumer_changes] == [
        ("-1", 2, 16, 6),
        ("+2", 2, 16, 6),
        ("+10", 2, 16, 6),
    ]


def test_the_worst_broker_is_the_one_that_stops_most_topics(found: Found) -> None:
    loss = {"readableQueuesBefore": 4, "readableQueuesAfter": 4, "writableQueuesBefore": 4}
    shown = found(
        scores=[score("a"), score("b")],
        what_if=[
            what_if("a", "broker-lost", "busy", moved=8, removed=4, lagMoved=5),
            what_if("b", "broker-lost", "busy"),
            what_if("a", "broker-lost", "only", moved=1),
        ],
        broker_losses=[
            {**KEY, "brokerName": "busy", "topic": "t", **loss, "writableQueuesAfter": 2},
            {**KEY, "brokerName": "only", "topic": "t", **loss, "writableQueuesAfter": 0},
            {**KEY, "brokerName": "only", "topic": "u", **loss, "writableQueuesAfter": 1},
        ],
    )
    assert shown.brokers is not None
    assert [(one.broker_name, one.without_write, one.topics, one.groups, one.moved) for one in shown.brokers] == [
        ("only", 1, 2, 1, 1),
        ("busy", 0, 1, 1, 8),
    ]
    assert [one.lag_moved for one in shown.brokers] == [None, 5]


def test_producers_are_summed_up_by_scenario(found: Found) -> None:
    share = {"scenario": "broker-a dies", "latencyFault": False}
    shown = found(
        sends=[send("t", 3.0), send("u", 0.0), send("t", 1.0, latency_fault=True)],
        send_shares=[
            {**KEY, "topic": "t", **share, "brokerName": "a", "attempts": 30.0, "failures": 3.0},
            {**KEY, "topic": "u", **share, "brokerName": "b", "attempts": 10.0, "failures": 0.0},
        ],
    )
    assert shown.scenarios is not None
    assert [(one.latency_fault, one.topics, one.losing, one.messages, one.lost) for one in shown.scenarios] == [
        (False, 2, 1, 2000.0, 3.0),
        (True, 1, 1, 1000.0, 1.0),
    ]
    assert [(one.topic, one.lost) for one in shown.losing] == [("t", 3.0), ("t", 1.0)]
    assert [(one.broker_name, one.share) for one in shown.broker_sends] == [("a", 0.75), ("b", 0.25)]


def test_scenarios_that_the_page_does_not_list_are_in_its_sums(found: Found) -> None:
    rows = [{**send("t", 1.0), "scenario": f"broker-{n:03} dies"} for n in range(102)]
    shown = found(sends=[*rows, {**send("t", 2.0), "scenario": "the last by name"}])
    assert shown.scenarios is not None
    assert (len(shown.scenarios), shown.scenarios[0].scenario) == (100, "the last by name")
    assert shown.send_totals == SendTotals(103_000.0, 104.0)


def test_scenarios_of_one_name_are_told_by_cluster(found: Found) -> None:
    shown = found(sends=[send("t", 3.0), {**send("t", 1.0), "cluster": "other"}])
    assert [(one.cluster, one.topics, one.messages, one.lost) for one in shown.scenarios or ()] == [
        (KEY["cluster"], 1, 1000.0, 3.0),
        ("other", 1, 1000.0, 1.0),
    ]


def test_the_page_counts_the_messages_that_simulate_send_counts(spark: SparkSession, warehouse: Warehouse) -> None:
    routes = [route("One", a=4), route("Two", a=4, b=2)]
    rows = [{**KEY, **topic_row(each)} for each in routes]
    frame = spark.createDataFrame([[row[name] for name in TOPICS.columns] for row in rows], TOPICS.ddl)
    with warehouse.writing() as writing:
        write_sends(frame, SendSchedule(trials=5), writing)
    shown = {one.name: one for one in sections(figures(Tables(spark, warehouse), 20, ()))}["producers"]
    one, two = (told_of(each, "a@30s-", 5)["trials"] for each in routes)
    assert (one["messages"]["mean"], one["lost"]["mean"], two["lost"]["mean"]) == (1200, 900, 0)
    # Broker a of both topics, then broker b of the other one, all with the same load.
    assert shown.seen[0] == "Of 3,600 simulated messages 900.00 are lost on average over the trials."
    named: list[list[dict[str, Any]]] = [
        [dict(zip(_titles(grid), row, strict=True)) for row in grid.rows] for grid in shown.grids
    ]
    by_scenario, losing, by_broker = named
    assert [(row["scenario"], row["messages"], row["lost"], row["of all"]) for row in by_scenario] == [
        ("a", 2400, 900, 900 / 2400),
        ("b", 1200, 0, 0),
    ]
    assert by_scenario[0]["retries"] == pytest.approx(one["retries"]["mean"] + two["retries"]["mean"])
    assert [(row["topic"], row["messages"], row["lost"], row["low"], row["high"]) for row in losing] == [
        ("One", 1200, *(one["lost"][name] for name in ("mean", "low", "high")))
    ]
    failed = {(row["broker"], row["scenario"]): row["failed"] for row in by_broker}
    # No attempt fails elsewhere, and one that fails is a retry or a lost message.
    assert failed["a", "a"] == pytest.approx(by_scenario[0]["retries"] + 900)


def _titles(grid: Grid) -> list[str]:
    return [title for title, _ in grid.columns]


def test_history_is_summed_up_by_day(found: Found) -> None:
    before = DAY - dt.timedelta(days=1)
    counts = {"moved": 2, "newlyUnassigned": 1, "newlyAssigned": 0, "observed": 8}
    restless = {"cluster": "east", "moved": 5, "queues": 1, "days": 1, "movedPerDay": 5.0}
    seen = {"cluster": "east", "idle": 1, "unassigned": 0}
    shown = found(
        top=1,
        moves=[{"cluster": cluster, "date": DAY, "group": "g", **counts} for cluster in ("east", "west")]
        + [{"cluster": "east", "date": before, "group": "g", **counts}],
        churn=[
            {"cluster": "east", "date": DAY, "group": "g", "joined": 1, "left": 0},
            {"cluster": "east", "date": before, "group": "g", "joined": None, "left": None},
        ],
        flapping=[
            {**restless, "group": "calm", "returns": 0, "flaps": False},
            {**restless, "group": "restless", "returns": 3, "flaps": True},
            {**restless, "group": "less", "returns": 2, "flaps": True},
        ],
        trend=[
            {
                **seen,
                "date": DAY,
                "snapshot": "s1",
                "takenAt": dt.datetime(2026, 3, 2, 1, tzinfo=dt.UTC),
                "group": "g",
                "imbalance": 9.0,
            },
            {
                **seen,
                "date": DAY,
                "snapshot": "s0",
                "takenAt": dt.datetime(2026, 3, 2, 2, tzinfo=dt.UTC),
                "group": "g",
                "imbalance": 1.0,
            },
            {
                **seen,
                "date": DAY,
                "snapshot": "s0",
                "takenAt": dt.datetime(2026, 3, 2, 2, tzinfo=dt.UTC),
                "group": "h",
                "imbalance": 2.0,
            },
        ],
    )
    assert shown.moves is not None
    assert [(one.date, one.moved, one.observed) for one in shown.moves] == [(before, 2, 8), (DAY, 4, 16)]
    assert shown.churn is not None
    assert [(one.joined, one.left) for one in shown.churn] == [(1, 0)]
    assert shown.flapping is not None
    assert ([one.group for one in shown.flapping], shown.flaps) == (["restless"], 2)
    assert shown.trend is not None
    assert [(one.groups, one.p50, one.idle) for one in shown.trend] == [(2, 1.5, 2)]


def test_a_report_takes_the_place_of_an_earlier_one(spark: SparkSession, warehouse: Warehouse, tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "report"
    write(spark, warehouse, {"moves": fleet()["moves"]})
    write_report(spark, warehouse, str(folder))
    write(spark, warehouse, {"churn": fleet()["churn"], "moves": (fleet()["moves"][0], [])})
    write_report(spark, warehouse, str(folder))
    assert sorted(os.listdir(folder / "csv")) == ["churn.csv", "moves.csv"]
    assert (folder / "csv" / "moves.csv").read_bytes().count(b"\r\n") == 1
    assert os.listdir(tmp_path / "deep") == ["report"]


def test_a_folder_with_other_things_is_left_alone(spark: SparkSession, warehouse: Warehouse, tmp_path: Path) -> None:
    write(spark, warehouse, {"moves": fleet()["moves"]})
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "letter.txt").write_text("dear")
    for place in (tmp_path / "home", tmp_path / "home" / "letter.txt", Path(warehouse.folder)):
        with pytest.raises(UsageError, match="holds something that is not a report"):
            write_report(spark, warehouse, str(place))
    assert files(tmp_path / "home") == {"letter.txt": b"dear"}
    assert warehouse.names() == ("moves",)
