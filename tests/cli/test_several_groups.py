import csv
import io
import re
from pathlib import Path

from tests.support.builders import snapshot_text
from tests.support.mismatches import every_case

from .run import EXAMPLE, ROOT, changed_example, envelope_of, error_of, run

SOURCE = ("-s", EXAMPLE)
FAULTS = ("-s", str(ROOT / "examples" / "four-groups.yaml"))
PLAN, SHOW = ("plan-rebalance", "--add", "1"), ("show-owners", "--strategy", "AVG")
SIMULATE = ("simulate-rebalance", "--event", "leave #0@10s")
GROUPS = ("order-svc", "bill-svc")
BOTH = ("-g", "order-svc", "-g", "bill-svc")
CONSUMERS, SIZE = ("show-consumers",), ("size-group",)
each_command = every_case("command", [PLAN, SHOW, SIMULATE], ids=lambda command: command[0])
every_command = every_case("command", [PLAN, SHOW, SIMULATE, CONSUMERS, SIZE], ids=lambda command: command[0])


@every_command
def test_each_group_is_done_as_if_it_were_alone_and_once(command: tuple[str, ...]) -> None:
    several = envelope_of(*command, *SOURCE, *BOTH)
    alone = [envelope_of(*command, *SOURCE, "-g", group) for group in GROUPS]
    assert several["schema"] == f"{alone[0]['schema']}-of-groups"
    assert several["data"]["groups"] == [one["data"] for one in alone]
    assert several["data"]["summary"]["groups"] == 2
    assert envelope_of(*command, *SOURCE, *BOTH, "-g", "order-svc") == several
    assert envelope_of(*command, *SOURCE, "-g", "order-svc", "-g", "order-svc") == alone[0]


@every_case("command", [PLAN, SHOW, CONSUMERS, SIZE])
def test_a_pattern_is_the_groups_that_it_matches_in_the_order_of_their_names(command: tuple[str, ...]) -> None:
    named = envelope_of(*command, *FAULTS, "-g", "calm-svc", "-g", "mix-svc", "-g", "slow-svc")
    for patterns in (("[cms]*-svc",), ("calm-svc", "mix*", "slow-svc", "m?x-svc")):
        given = [part for pattern in patterns for part in ("-g", pattern)]
        assert envelope_of(*command, *FAULTS, *given) == named
    one = envelope_of(*command, *FAULTS, "-g", "cal*")
    assert (one["schema"].endswith("-of-groups"), one["data"]["summary"]["groups"]) == (True, 1)


def test_a_group_with_which_nothing_can_be_done_is_left_out_of_a_pattern(tmp_path: Path) -> None:
    gone = {"group": "gone-svc", "topics": ["Skewed"], "views": [], "queues": []}
    path = changed_example(tmp_path, lambda document: document["data"]["groups"].append(gone))
    value = envelope_of("show-owners", "-s", path, "-g", "*-svc")
    assert [group["group"] for group in value["data"]["groups"]] == ["audit-svc", "bill-svc", "order-svc"]
    (left,) = (finding for finding in value["findings"] if finding["code"] == "group-left-out")
    assert (left["group"], left["message"].startswith("group gone-svc is left out: ")) == ("gone-svc", True)
    named = error_of(run("show-owners", "-s", path, "-g", "gone-svc", "-g", "order*").stderr)
    alone = error_of(run("show-owners", "-s", path, "-g", "gone*").stderr)
    assert named.message == alone.message
    assert "gone-svc" in named.message


def test_the_summary_is_the_sum_and_the_first_line_says_it() -> None:
    data = envelope_of(*PLAN, *SOURCE, *BOTH)["data"]
    total, summaries = data["summary"], [group["summary"] for group in data["groups"]]
    for key in ("moved", "newlyAssigned", "newlyUnassigned", "added", "removed", "unassigned", "duplicateOwners"):
        assert total[key] == sum(summary[key] for summary in summaries), key
    fewest, most = (sum(summary["movedRange"][end] for summary in summaries) for end in ("fewest", "most"))
    assert total["movedRange"] == {"fewest": fewest, "most": most, "complete": True}
    lines = run(*PLAN, *SOURCE, *BOTH, "--all", "-o", "plain").stdout.splitlines()
    assert lines[0].startswith(f"2 groups: {fewest} to {most} of 34 queues move")
    assert {"order-svc: queues", "bill-svc: consumers"} <= set(lines)


def test_the_worst_group_is_first_on_a_screen() -> None:
    line = ("show-owners", *FAULTS, "-g", "*", "--strategy", "AVG")
    lines = run(*line, "-o", "table").stdout
    assert lines.startswith("4 groups: 6 of 32 queues are unassigned; 2 of 32 queues have duplicate owners;")
    rows = [row.split()[:2] for row in lines.split("\ngroups")[1].splitlines()[3:7]]
    assert rows == [["✗", "dup-svc"], ["✗", "mix-svc"], ["✓", "calm-svc"], ["✓", "slow-svc"]]
    data = envelope_of(*line)["data"]
    assert [group["group"] for group in data["groups"]] == ["calm-svc", "dup-svc", "mix-svc", "slow-svc"]
    assert data["summary"]["observedUnassigned"] == 6


@every_case("command", [PLAN, SHOW, CONSUMERS, SIZE])
def test_a_screen_has_a_line_per_group_and_all_tables_on_request(command: tuple[str, ...]) -> None:
    line = (*command, *SOURCE, "-g", "*-svc", "-o", "table")
    for width in (80, 100, 120):
        lines = run(*line, env={"COLUMNS": str(width)}).stdout.splitlines()
        assert (len(lines) <= 40, max(map(len, lines)) <= width) == (True, True)
    whole = run(*line, "--all").stdout
    for group in ("order-svc", "bill-svc", "audit-svc"):
        assert any(f"\n{group}: {title}" in whole for title in ("queues", "owners", "consumers", "sizes under"))
        assert re.search(rf"^ *{group}\b.*: |^ *{group} has ", whole, re.MULTILINE)


@each_command
@every_case("section", ["queues", "consumers", "summary"])
def test_a_table_of_a_program_has_the_groups_in_its_first_column(command: tuple[str, ...], section: str) -> None:
    def rows(*groups: str) -> list[list[str]]:
        text = run(*command, *SOURCE, *groups, "--section", section, "-o", "csv").stdout
        return list(csv.reader(io.StringIO(text, newline="")))

    several, alone = rows(*BOTH), {group: rows("-g", group) for group in GROUPS}
    assert several[0] == ["group", *alone["order-svc"][0]]
    assert several[1:] == [[group, *row] for group in GROUPS for row in alone[group][1:]]


@every_case(("command", "table"), [("show-consumers", "consumers"), ("size-group", "curve")])
def test_the_consumers_and_the_sizes_of_groups_are_one_table(command: str, table: str) -> None:
    several, alone = (
        [*csv.reader(io.StringIO(run(command, *SOURCE, *groups, "--section", table, "-o", "csv").stdout))]
        for groups in (BOTH, ("-g", "order-svc"))
    )
    assert several[0] == ["group", *alone[0]]
    assert several[1 : len(alone)] == [["order-svc", *row] for row in alone[1:]]
    assert {row[0] for row in several[len(alone) :]} == {"bill-svc"}


def test_the_summaries_of_consumers_and_sizes_count_the_groups() -> None:
    consumers = envelope_of("show-consumers", *FAULTS, "-g", "*")["data"]["summary"]
    assert (consumers["withErrors"], consumers["lagging"], consumers["inOrder"]) == (2, 1, 1)
    sizes = envelope_of("size-group", *SOURCE, "-g", "*", "--survive", "1")["data"]["summary"]
    assert sizes == {"groups": 3, "satisfiedNow": 1, "unsatisfiedNow": 1, "withoutAnswer": 2}
    ran = run("size-group", *SOURCE, *BOTH, "--fail-on", "consumers>0")
    assert (ran.code, "condition met: consumers>0 in group bill-svc" in ran.stderr) == (3, True)


PLAN_ONE = ("plan-rebalance", "--add", "1")
RETRY_COMMANDS = [
    (*PLAN_ONE, "--include-retry"),
    ("show-owners", "--include-retry"),
    ("simulate-rebalance", "--event", "join z@10s", "--include-retry"),
]


@every_case("command", RETRY_COMMANDS, ids=" ".join)
@every_case("topics", [["T"], ["%RETRY%g", "T"], None])
@every_case("named", ["", "-t T", "-t T -t %RETRY%g", "-t T -g g"])
def test_the_retry_topic_is_always_taken(command: tuple[str, ...], topics: list[str] | None, named: str) -> None:
    def shown(*routes: str) -> tuple[set[str], list[str]]:
        text = snapshot_text(*routes, clientIds=["a@1", "b@1"], topics=topics)
        document = envelope_of(*command, "-s", "-", *options, stdin=text)
        rows = document["data"]["topics" if command[0] == PLAN_ONE[0] else "queues"]
        return {row["topic"] for row in rows}, [finding["code"] for finding in document["findings"]]

    options = named.split()
    found, codes = shown("%RETRY%g", "T")
    assert (found, "not-subscribed" in codes) == ({"%RETRY%g", "T"}, False)
    if topics is not None:
        options = options[:2]
        found, codes = shown("T")
        assert (found, codes.count("no-route")) == ({"T"}, 1)
