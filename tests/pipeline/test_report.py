import os
import re
from collections.abc import Mapping
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pytest
from msgspec.structs import replace
from pyspark.sql import SparkSession

from rmqlb.engine.allocate.rules import NAMES
from rmqlb.errors import DataError, UsageError
from rmqlb.pipeline import tables as t
from rmqlb.pipeline.report.figures import (
    WINDOW,
    Answers,
    Nights,
    Thresholds,
    answers,
    literal,
    page_name,
    queries,
    thresholds_of,
    verdict_of,
)
from rmqlb.pipeline.report.page import cluster_page, fleet_page, scripts, write
from rmqlb.pipeline.warehouse import Warehouse
from rmqlb.sources.user_files.policy_file import parse_policy
from tests.support.mismatches import refusal
from tests.views.shown import parsed

from .report_fleet import BEFORE, FIRST, HOSTILE, NIGHT, Rows, answered, duck, figure, finding, fleet, mark, snapshot
from .report_fleet import write_warehouse as written

pytestmark = [pytest.mark.spark, pytest.mark.slow]

NIGHTS = Nights(NIGHT, BEFORE, FIRST)
CLUSTERS = ("east", "north", "west")


class Page:
    """What a page of a fleet shows: its first line, and by heading the cells of its table and its query."""

    def __init__(self, text: str) -> None:
        self.tables: dict[str, list[list[str]]] = {}
        self.queries: dict[str, str] = {}
        self.headings: list[str] = []
        root = parsed(text)
        (self.line,) = ("".join(each.itertext()) for each in root.iter("p") if each.get("class", "").startswith("line"))
        self.links = [link.get("href", "") for link in root.iter("a")]
        self.tags = {element.tag for element in root.iter()}
        for element in root.iter():
            if element.tag in ("h2", "h3"):
                self.headings.append("".join(element.itertext()))
            elif element.tag == "tr":
                self.tables.setdefault(self.headings[-1], []).append(["".join(cell.itertext()) for cell in element])
            elif element.tag == "pre" and self.headings:
                self.queries[self.headings[-1]] = self.queries.get(self.headings[-1], "") + "".join(element.itertext())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("sample"), fleet())


def ask(spark: SparkSession, folder: Path, nights: Nights = NIGHTS, thresholds: Thresholds | None = None) -> Answers:
    warehouse = Warehouse(spark.newSession(), str(folder))
    window = [day for day in warehouse.whole_nights() if nights.since <= day <= nights.night]
    return answers(warehouse, nights, window, thresholds or Thresholds())


@pytest.fixture(scope="module")
def found(spark: SparkSession, folder: Path) -> Answers:
    return ask(spark, folder)


def plain(row: Mapping[str, Any]) -> list[Any]:
    values = (str(value) if isinstance(value, date) else value for value in row.values())
    return [round(value, 9) if isinstance(value, float) else value for value in values]


def unequal(found: Answers) -> list[str]:
    """The queries whose rows on a page are not what DuckDB says to the text that the page shows."""
    connection = duck(found)
    wrong = []
    for query in found.queries.values():
        for scope in (None, *(row["cluster"] for row in found.of("clusters"))):
            ours, theirs = (
                [plain(row) for row in rows]
                for rows in (found.of(query.name, scope), answered(connection, query, scope))
            )
            is_sum_of_nothing = query.per == () and not ours
            if ours != theirs and not is_sum_of_nothing:
                wrong.append(f"{query.name} of {scope}: {ours} for {theirs}")
    return wrong


def test_each_query_gives_on_spark_what_duckdb_gives_for_the_text_on_the_page(found: Answers) -> None:
    assert unequal(found) == []
    empty = [query for query in found.queries if not found.of(query)]
    assert empty == [], "the sample shows no row of these"


def test_the_pages_of_a_judged_fleet_are_what_duckdb_says(spark: SparkSession, judged: Warehouse) -> None:
    nights = judged.whole_nights()
    found = ask(spark, Path(judged.place), Nights(nights[-1], nights[-2], nights[0]))
    assert unequal(found) == []
    assert found.of("worst")
    assert all(row["command"].startswith("rmqlb ") for row in found.of("worst"))


def test_every_query_runs_in_spark_sql_as_the_page_shows_it(spark: SparkSession, found: Answers) -> None:
    own = spark.newSession()
    texts = scripts(found)
    for text in (*texts["Spark SQL"].splitlines(), texts["both, for findings"]):
        own.sql(text.rstrip(";"))
    for query in ("worst", "rejected", "strategies"):
        rows = [plain(row.asDict(recursive=True)) for row in own.sql(found.queries[query].shown("east")).collect()]
        assert rows == [plain(row) for row in found.of(query, "east")]


def test_the_first_line_says_what_is_new_gone_and_stays(found: Answers) -> None:
    verdict = verdict_of(found, "index.html")
    assert verdict.line == (
        "2026-11-21: 5 new findings, 1 gone, 1 stays; 1 finding without a previous night; "
        "policy: 1 limit failed, 2 incomplete, 1 waived; 1 cluster silent; 2 documents rejected; 3 clusters, 7 groups"
    )
    assert verdict.silent == ("south",)
    found_of = [(one.cluster, one.errors, one.new, one.gone, one.stays) for one in verdict.clusters]
    assert found_of == [("east", 2, 2, 0, 1), ("north", 1, 0, 0, 0), ("west", 0, 1, 1, 0)]
    assert sum(one.errors for one in verdict.clusters) == verdict.errors - 1, "one is of a rule of the fleet"


STATES: dict[str, tuple[str | None, tuple[dict[str, Any], ...]]] = {
    "in both nights": ("stays", ({"day": BEFORE}, {"day": NIGHT, "message": "worse"})),
    "tonight only": ("new", ({"day": NIGHT},)), "yesterday only": ("gone", ({"day": BEFORE},)),
    "longer ago": (None, ({"day": FIRST},)), "info": (None, ({"day": NIGHT, "severity": "info"},)),
    "waived now": ("waived", ({"day": BEFORE}, {"day": NIGHT, "verdict": "waived"})),
    "waiver ended": ("new", ({"day": BEFORE, "verdict": "waived"}, {"day": NIGHT, "verdict": "failed"})),
    "waiver not needed": (None, ({"day": BEFORE, "verdict": "waived"},)),
}  # fmt: skip


def test_a_finding_is_new_gone_or_stays(tmp_path: Path, spark: SparkSession) -> None:
    rows = [finding("c", "g", code, **each) for code, (_, several) in STATES.items() for each in several]
    folder = written(tmp_path, {t.Findings: rows, t.Snapshots: [snapshot("c", BEFORE), snapshot("c")]})
    found = ask(spark, folder)
    states = dict(duck(found).sql("SELECT code, state FROM news").fetchall())
    assert states == {code: state for code, (state, _) in STATES.items() if state is not None}
    assert [row["message"] for row in found.of("gone")] == ["yesterday only in g"]
    counted = found.of("findings")[0]
    assert [counted[state] for state in ("new", "gone", "stays", "waived")] == [2, 1, 1, 1]


def test_what_a_silent_cluster_had_is_not_gone_and_a_new_one_has_no_news(spark: SparkSession, tmp_path: Path) -> None:
    rows = [finding("silent", "g", "a", BEFORE), finding("fresh", "g", "a")]
    folder = written(tmp_path, {t.Findings: rows, t.Snapshots: [snapshot("silent", BEFORE), snapshot("fresh")]})
    verdict = verdict_of(ask(spark, folder), "")
    assert (verdict.new, verdict.gone, verdict.first, verdict.silent) == (0, 0, 1, ("silent",))


def test_a_page_shows_the_first_rows_and_counts_the_others(spark: SparkSession, tmp_path: Path) -> None:
    rows = [figure(cluster, f"g{at:02}", maxLagPerConsumer=20000 + at) for cluster in "ab" for at in range(25)]
    rows = [{**row, "lagAtLeast": row["maxLagPerConsumer"]} for row in rows]
    found = ask(spark, written(tmp_path, {t.Figures: rows, t.Snapshots: [snapshot("a"), snapshot("b")]}))
    assert (len(found.of("lag")), found.count("lag")) == (20, 50)
    assert (len(found.of("lag", "b")), found.count("lag", "b")) == (20, 25)
    assert [row["group"] for row in found.of("lag")[:3]] == ["g24", "g24", "g23"]
    assert "and 30 more" in fleet_page(found, verdict_of(found, ""))


def test_thresholds_keep_what_is_small_off_the_page_and_a_policy_sets_them(found: Answers) -> None:
    assert [row["group"] for row in found.of("lag")] == ["orders"], "5 and 7 messages are no signal"
    assert [row["group"] for row in found.of("imbalanced")] == ["skewed"], "of orders no consumer has twice the mean"
    text = "rules: [{name: a, groups: ['*'], limits: {lag: 5, imbalance: 2.2, idle: 1}}, "
    text += "{name: b, groups: [x], limits: {lag: 9, strategies: [AVG]}}]"
    assert thresholds_of(parse_policy(text, "policy", NAMES)) == Thresholds(lag=5, imbalance=2.2)
    assert thresholds_of(None) == Thresholds()
    assert ">= 2.2" in queries(Thresholds(imbalance=2.2))["imbalanced"].where
    assert [thresholds_of(None, compared).nights for compared in (1, 3, 6, 30)] == [3, 3, 5, 17]


LISTED: tuple[tuple[str, dict[str, Any], bool, bool], ...] = (  # figures, whether lag and imbalance are listed
    ("many quiet queues", {"queues": 400, "maxQueuesPerConsumer": 100, "maxLagPerConsumer": 90_000}, False, False),
    ("a slow consumer", {"queues": 400, "maxQueuesPerConsumer": 100, "maxLagPerConsumer": 1_000_000}, True, False),
    ("lag unknown in part", {"maxQueuesPerConsumer": 1, "maxLagPerConsumer": None, "lagAtLeast": 40_000}, True, False),
    ("a queue more than consumers", {"consumers": 8, "queues": 9, "maxQueuesPerConsumer": 2}, False, False),
    ("few queues", {"consumers": 8, "queues": 9, "maxQueuesPerConsumer": 6}, False, False),
    ("all remainders to one", {"consumers": 8, "queues": 16, "maxQueuesPerConsumer": 10}, False, True),
)


def test_lists_leave_out_what_size_and_rounding_cause(spark: SparkSession, tmp_path: Path) -> None:
    rows = [
        {
            **figure("c", name),
            **more,
            "imbalance": 2.0,
            "meanQueuesPerConsumer": more.get("queues", 4) / more.get("consumers", 4),
        }
        for name, more, *_ in LISTED
    ]
    rows.append(figure("c", "more consumers than queues", idle=3, consumers=7))
    found = ask(spark, written(tmp_path, {t.Figures: rows, t.Snapshots: [snapshot("c")]}))
    assert not found.of("owners")
    assert {row["group"] for row in found.of("lag")} == {name for name, _, lag, _ in LISTED if lag}
    assert {row["group"] for row in found.of("imbalanced")} == {name for name, *_, listed in LISTED if listed}


PARTS = (
    "Worst groups", "New and gone findings", "Policy", "Clusters", "Last nights", "Changes", "Groups", "Strategies", "Failures",
    "Topics without a writable broker", "Groups that do not share queues by a strategy", "Rejected documents", "Run the queries",
)  # fmt: skip


def test_the_page_of_the_fleet(found: Answers) -> None:
    verdict = verdict_of(found, "index.html")
    page = Page(fleet_page(found, verdict))
    assert page.line == verdict.line
    assert [each for each in page.headings if each not in page.tables] == [*PARTS]
    assert len(page.headings) == len(PARTS) + len(page.tables) == 36
    worst = "Groups with errors first, then by affected queues"
    title, first = (", ".join(row) for row in page.tables[worst][:2])
    assert title == "cluster, group, errors, warnings, new, queues, finding, codes, command"
    assert first == (
        "east, orders, 1, 1, 1, 3, unassigned-queues in orders, slow-consumer, unassigned-queues, "
        "rmqlb diagnose -g orders -s snapshots/cluster=east"
    )
    silent = page.tables["Silent clusters: no snapshot of 2026-11-21"]
    assert silent[1] == ["south", "2026-11-20", "south reported nothing"]
    lag = page.tables["Groups with a lag of 10,000 messages or more per queue"][1]
    assert lag == ["east", "orders", "2", "4", "50,000", "40,000", "80%"]
    assert page.tables["POP, Proxy and broadcasting groups"][1][:5] == ["east", "pop", "CONSUME_POP", "CLUSTERING", "2"]
    assert {page_name(cluster) for cluster in CLUSTERS} <= set(page.links)
    for heading, rows in page.tables.items():
        assert (page.queries[heading][:7], len({len(row) for row in rows})) == ("SELECT ", 1), heading
    assert {"script", "img", "iframe", "form"}.isdisjoint(page.tags)
    assert "svg" in page.tags


def test_the_page_of_a_cluster_is_about_it_alone(found: Answers) -> None:
    (west,) = (one for one in verdict_of(found, "").clusters if one.cluster == "west")
    text = cluster_page(found, west)
    page = Page(text)
    assert page.line == "2026-11-21: 1 new finding, 1 gone, 0 stay; policy: 0 limits failed, 1 incomplete, 1 waived"
    assert not re.search(r"\beast\b", text)
    assert page.tables["Gone since 2026-11-20"][1][-1] == "idle-consumers"
    assert "t.cluster = 'west'" in page.queries["Gone since 2026-11-20"]
    assert all("cluster" not in rows[0] for rows in page.tables.values() if rows[0] != ["cluster"])


def test_the_first_night_has_nothing_new_or_gone(spark: SparkSession, tmp_path: Path) -> None:
    rows: Rows = {t.Findings: [finding("a", "g", "b")], t.Snapshots: [snapshot("a")], t.Figures: [figure("a", "g")]}
    folder = written(tmp_path, rows, [NIGHT])
    found = ask(spark, folder, Nights(NIGHT, None, NIGHT))
    verdict = verdict_of(found, "")
    assert verdict.line == "2026-11-21: 1 finding (1 error) in the first night; 1 cluster, 1 group"
    assert not {"New and gone findings", "Changes"} & set(Page(fleet_page(found, verdict)).headings)


def test_a_name_as_a_literal_is_the_name_in_both_engines(spark: SparkSession) -> None:
    connection = duckdb.connect()
    names = [*HOSTILE, "it's", "a\\'b\\\\", "%_", "${x}", "\\u0041"]
    texts = [f"SELECT {literal(name)} AS name" for name in names]
    assert [connection.sql(text).fetchall()[0][0] for text in texts] == names
    assert [row[0] for text in texts for row in spark.sql(text).collect()] == names


def test_pages_of_unchanged_tables_are_not_written(spark: SparkSession, tmp_path: Path) -> None:
    folder, to = written(tmp_path / "warehouse", fleet()), tmp_path / "out"
    warehouse = Warehouse(spark, str(folder))
    first = write(spark, warehouse, to)
    times = {path.name: path.stat().st_mtime_ns for path in to.iterdir()}
    assert sorted(times) == [*(f"cluster-{name}.html" for name in CLUSTERS), "index.html", "verdict.json"]
    jobs = len(spark.sparkContext.statusTracker().getJobIdsForGroup())
    again = write(spark, warehouse, to)
    assert again == replace(first, unchanged=True)
    assert len(spark.sparkContext.statusTracker().getJobIdsForGroup()) == jobs

    mark(folder, NIGHT, "2")  # judged again, with the same rows
    assert not write(spark, warehouse, to).unchanged
    changed = {path.name for path in to.iterdir() if path.stat().st_mtime_ns != times[path.name]}
    assert changed == {"verdict.json"}

    os.remove(to / "cluster-west.html")
    write(spark, warehouse, to)
    assert (to / "cluster-west.html").exists()
    policy = parse_policy("rules: [{name: a, groups: ['*'], limits: {lag: 5}}]", "policy", NAMES)
    assert not write(spark, warehouse, to, policy).unchanged
    assert "Groups with a lag of 5 messages or more" in (to / "index.html").read_text()


def test_the_page_of_a_cluster_that_fell_silent_goes(spark: SparkSession, tmp_path: Path) -> None:
    folder, to = tmp_path / "warehouse", tmp_path / "out"
    written(folder, {t.Snapshots: [snapshot("a", BEFORE), snapshot("b", BEFORE), snapshot("a")]}, [BEFORE])
    warehouse = Warehouse(spark, str(folder))
    write(spark, warehouse, to)
    (to / "notes.txt").write_text("mine")
    mark(folder, NIGHT)
    assert write(spark, warehouse, to).silent == ("b",)
    assert sorted(os.listdir(to)) == ["cluster-a.html", "index.html", "notes.txt", "verdict.json"]


def test_a_long_past_costs_nothing(spark: SparkSession, tmp_path: Path) -> None:
    days = [NIGHT - timedelta(days=number) for number in range(WINDOW + 3)]
    rows: Rows = {t.Figures: [figure("a", "g", day) for day in days], t.Snapshots: [snapshot("a", day) for day in days]}
    warehouse = Warehouse(spark, str(written(tmp_path / "warehouse", rows, days)))
    spark.sparkContext.setJobGroup("past", "past")
    write(spark, warehouse, tmp_path / "out")
    assert len(spark.sparkContext.statusTracker().getJobIdsForGroup("past")) <= 1
    nights = Page((tmp_path / "out" / "index.html").read_text()).tables["Groups as they run, night by night"]
    assert len(nights) == 1 + WINDOW


def test_what_cannot_be_reported_on_is_said(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no complete night"):
        write(spark, Warehouse(spark, str(tmp_path / "none")), tmp_path / "out")
    warehouse = Warehouse(spark, str(written(tmp_path / "warehouse", {t.Snapshots: [snapshot("a")]}, [NIGHT])))
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "index.html").write_text("my site")
    assert "not a report of rmqlb" in refusal(UsageError, write, spark, warehouse, tmp_path / "site").message
    (tmp_path / "file").write_text("")
    assert "--to" in refusal(UsageError, write, spark, warehouse, tmp_path / "file").message
