"""Properties of several command lines together: the same in every format, again, apart, at another width, and undone.

Each check takes a case, its run, and `Runs` for further lines; it yields a sentence for each thing that is wrong, and
nothing where it does not apply.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from random import Random
from typing import Any

from msgspec.structs import replace

from fuzz.command_lines.alone import ALONE, read_as, tables_are_as_wide_as_the_terminal, text_is_harmless
from fuzz.command_lines.lines import PAGES, Case, Piece
from fuzz.command_lines.running import Ran, Runs
from fuzz.command_lines.sums import RESULTS
from fuzz.command_lines.values import PLACEHOLDER
from rmqlb.cli.results import figures_of
from rmqlb.views.formats.text import safe_cell, visible

Json = Any
Together = Callable[[Case, Ran, Runs], Iterator[str]]
NOT_THERE = "'-"
"""Stands in CSV for the owners of a queue that is not there, where an empty cell means nobody."""
_SHOW = ("--output", "--section", "--watch", "--every", "--samples", "--svg", "--html", "--to", *PAGES, "--redact-map")


def _data(runs: Runs, command: str, pieces: tuple[Piece, ...]) -> Json | None:
    """The data of the result in JSON; None where there is none."""
    text = runs.with_pieces(command, pieces, "--output", "json").stdout
    return read_as("json", text)["data"] if text else None


def _has_result(case: Case, ran: Ran) -> bool:
    return case.command in RESULTS and ran.code in (0, 3) and not case.has("--watch")


def the_same_again(case: Case, ran: Ran, runs: Runs) -> Iterator[str]:
    """Equal input gives equal bytes."""
    if not case.command.startswith("context") and not case.has("--watch", "--to", "--redact-map"):
        yield from _differences("run again", ran, runs(*case.words))


def the_same_apart(case: Case, ran: Ran, runs: Runs) -> Iterator[str]:
    """A process of its own prints the same."""
    if case.command.startswith("context") or case.has("--watch", "--to", "--redact-map"):
        return
    apart = runs.apart(*case.words)
    yield from _differences("as a process of its own", ran, apart)
    for check in ALONE:
        yield from check(case, apart)


def _differences(how: str, one: Ran, other: Ran) -> Iterator[str]:
    if one.code != other.code:
        yield f"{how}: exit code {one.code}, then {other.code}: {other.stderr[-300:]} {other.escaped}"
    for before, after in ((one.stderr, other.stderr), (one.stdout, other.stdout)):
        if before != after:
            lines = zip(before.splitlines(), after.splitlines(), strict=False)
            first = next(((a[:200], b[:200]) for a, b in lines if a != b), (len(before), len(after)))
            yield f"{how}: {first[0]!r}, then {first[1]!r}"


def a_terminal_shows_the_table(case: Case, ran: Ran, runs: Runs) -> Iterator[str]:
    """On a terminal it ends as in a pipe, and shows lines that fit, with nothing raw in them but colours."""
    if case.command not in RESULTS or case.has("--watch") or case.stdin:
        return
    pieces = (*case.without("--output", "--no-pager"), ("--output", "table"), ("--no-pager",))
    shown = replace(case, pieces=(*pieces, ("--color", "always")))
    piped, seen = runs(*shown.words), runs.on_a_terminal(*shown.words)
    if piped.code != seen.code:
        yield f"on a terminal it ends in {seen.code}, in a pipe in {piped.code}: {seen.stderr[-300:]}"
    for check in (text_is_harmless, tables_are_as_wide_as_the_terminal):
        yield from check(shown, seen)


def any_width_will_do(case: Case, ran: Ran, runs: Runs) -> Iterator[str]:
    """A table at other widths: the same exit code, no line longer than the terminal."""
    if case.command not in RESULTS or case.has("--watch"):
        return
    shown = replace(case, pieces=(*case.without("--output"), ("--output", "table")))
    for columns in (20, 40, 80, 160):
        other = runs(*shown.words, columns=columns)
        for check in (*ALONE[:4], tables_are_as_wide_as_the_terminal):
            yield from (f"{columns} columns: {each}" for each in check(replace(shown, columns=columns), other))
        if ran.code not in (2, other.code):
            yield f"-o table ends in {other.code}, -o {case.format} in {ran.code}: {other.stderr[-300:]}"


def json_and_yaml_hold_the_same(case: Case, ran: Ran, runs: Runs) -> Iterator[str]:
    if not _has_result(case, ran):
        return
    one, other = (runs.with_pieces(case.command, case.without(*_SHOW), "--output", form) for form in ("json", "yaml"))
    if one.code != other.code:
        yield f"-o json ends in {one.code}, -o yaml in {other.code}"
    elif one.stdout and read_as("json", one.stdout) != read_as("yaml", other.stdout):
        yield "the YAML holds another value than the JSON"


def tables_hold_what_json_holds(case: Case, ran: Ran, runs: Runs) -> Iterator[str]:
    """Each table as CSV has the cells of its list in the JSON."""
    if not _has_result(case, ran) or case.has("--changed"):
        return
    pieces = case.without(*_SHOW)
    data = _data(runs, case.command, pieces)
    if data is None or "groups" in data:  # of several groups, whose tables and conditions are of all of them
        return
    for section, rows in _lists(case.command, data).items():
        shown = runs.with_pieces(case.command, pieces, "--section", section, "--output", "csv").stdout
        if not shown:
            continue
        head, *body = read_as("csv", shown)
        if len(body) != len(rows):
            yield f"section {section} has {len(body)} rows, the JSON {len(rows)}"
            continue
        for cells, row in zip(body, rows, strict=True):
            for key, cell in zip(head, cells, strict=True):
                if key in row and not _same_cell(cell, row[key]):
                    yield f"section {section}, {key}: {cell!r} in the CSV, {row[key]!r} in the JSON"


def conditions_are_met_when_the_figure_says_so(case: Case, ran: Ran, runs: Runs) -> Iterator[str]:
    """`--fail-on` just at a figure: met with >= and <=, not met with > and <; the figure is that of the JSON."""
    names = [name for name in figures_of(case.command) if not name.endswith("[")]
    if not names or not _has_result(case, ran):
        return
    pieces = case.without(*_SHOW, "--fail-on", "--trials", "--set")
    name = Random(case.name).choice(names)
    data = _data(runs, case.command, (*pieces, ("--fail-on", f"{name}>=0")))
    if data is None or not data.get("conditions"):
        return
    value = data["conditions"][0]["value"]
    summary = data.get("summary") or {}
    if value is None or value < 0 or "e" in f"{value:.12g}" or summary.get("movedRange"):
        return  # without end, or true of some order of new client IDs
    places = (data.get("figures"), data.get("totals"), summary, summary.get("after"))
    key = re.sub(r"-([a-z])", lambda match: match[1].upper(), name)
    in_json = next((place[key] for place in places if place and key in place), value)
    if in_json is not None and "groups" not in data and f"{in_json:.12g}" != f"{value:.12g}":
        yield f"--fail-on {name} looks at {value}, the JSON says {in_json}"
    for sign, met in ((">=", True), ("<=", True), (">", False), ("<", False)):
        tried = runs.with_pieces(case.command, pieces, "--fail-on", f"{name}{sign}{value:.12g}", "--output", "json")
        if tried.code not in (3 if met else 0, 4):  # it is unknown for another group
            yield f"--fail-on {name}{sign}{value:.12g} ends in {tried.code}: {tried.stderr[-300:]}"


def adding_and_removing_is_nothing(case: Case, ran: Ran, runs: Runs) -> Iterator[str]:
    """The plan that adds a consumer is undone by the plan that removes it."""
    base = _plain_plan(case)
    if base is None:
        return
    ids, common = base
    more = ",".join([*ids, PLACEHOLDER])
    there = _data(runs, case.command, (*common, ("--consumers", ",".join(ids)), ("--add", PLACEHOLDER)))
    back = _data(runs, case.command, (*common, ("--consumers", more), ("--remove", PLACEHOLDER)))
    if there is None or back is None:
        yield from [] if there is back else ["one of adding and removing a consumer is refused"]
        return
    if any(_owners(there, key) != _owners(back, other) for key, other in (("Before", "After"), ("After", "Before"))):
        yield "the owners of adding are not those of removing"
    for name, other in (("moved", "moved"), ("newlyAssigned", "newlyUnassigned"), ("added", "removed")):
        if there["summary"][name] != back["summary"][other]:
            yield f"{name}: {there['summary'][name]} there, {back['summary'][other]} back"


def a_simulation_ends_where_its_plan_does(case: Case, ran: Ran, runs: Runs) -> Iterator[str]:
    """simulate-rebalance that converges has the owners of plan-rebalance, one joining or one leaving."""
    base = _plain_plan(case)
    if base is None:
        return
    ids, common = base
    common = (*common, ("--consumers", ",".join(ids)))
    leaves = len(case.words) % 2 and len(ids) > 1
    change = ("--remove", ids[0]) if leaves else ("--add", PLACEHOLDER)
    event = f"leave {ids[0]}@5s" if leaves else f"join {PLACEHOLDER}@5s"
    plan = _data(runs, case.command, (*common, change))
    simulated = _data(runs, "simulate-rebalance", (*common, ("--event", event)))
    if plan is None or simulated is None or simulated["figures"]["convergenceMs"] is None:
        return
    for queue in simulated["queues"]:
        ends, planned = queue["intervals"][-1]["owners"], _owners(plan, "After").get(_place(queue))
        if ends != planned:
            yield f"{_place(queue)} ends with {ends}, and is planned for {planned}"


def a_plan_begins_with_the_owners_shown(case: Case, ran: Ran, runs: Runs) -> Iterator[str]:
    """show-owners and plan-rebalance give the same owners under the same strategy."""
    base = _plain_plan(case)
    if base is None:
        return
    ids, common = base
    common = (*common, ("--consumers", ",".join(ids)))
    plan, shown = _data(runs, case.command, common), _data(runs, "show-owners", common)
    for queue in shown["queues"] if plan is not None and shown is not None else ():
        (owners,) = queue["owners"].values()
        planned = _owners(plan, "Before").get(_place(queue))
        if planned != owners:
            yield f"{_place(queue)}: shown with {owners}, planned from {planned}"


TOGETHER: Mapping[Together, float] = {
    the_same_again: 0.3,
    the_same_apart: 0.004,
    a_terminal_shows_the_table: 0.004,
    any_width_will_do: 0.15,
    json_and_yaml_hold_the_same: 0.1,
    tables_hold_what_json_holds: 0.15,
    conditions_are_met_when_the_figure_says_so: 0.4,
    adding_and_removing_is_nothing: 0.3,
    a_simulation_ends_where_its_plan_does: 0.3,
    a_plan_begins_with_the_owners_shown: 0.2,
}
"""Check → the share of cases that it is tried on."""


def _plain_plan(case: Case) -> tuple[list[str], tuple[Piece, ...]] | None:
    """Different consumers and the pieces of a plan under a strategy without settings; None where there is none."""
    if case.command != "plan-rebalance" or not case.made.is_snapshot or case.topic is None or case.has(*PAGES):
        return None
    ids = [each for each in dict.fromkeys(case.made.groups.get(case.group or "", ())) if "," not in each]
    strategy = ("AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH")[len(case.words) % 3]
    of_group = (("--group", case.group),) if case.group and len(case.words) % 2 else ()
    if not ids or case.topic.startswith("-") or (of_group and of_group[0][1].startswith("-")):
        return None
    return ids, (("--source", case.made.file), *of_group, ("--topic", case.topic), ("--strategy", strategy))


def _place(queue: Json) -> tuple[str, str, int]:
    return queue["topic"], queue["brokerName"], queue["queueId"]


def _owners(plan: Json, end: str) -> dict[tuple[str, str, int], list[str] | None]:
    return {
        (topic["topic"], queue["brokerName"], queue["queueId"]): queue[f"owners{end}"]
        for topic in plan["topics"]
        for queue in topic["queues"]
    }


_LISTS = {
    "show-consumers": "consumers",
    "simulate-rebalance": "queues consumers events",
    "simulate-send": "queues brokers failures",
    "simulate-receive": "brokers failures quantiles",
    "select-queue": "pairs sdks",
    "size-group": "curve candidates topics",
    "plan-topic": "steps",
    "plan-rollout": "choices",
    "check": "failed waived rules",
    "plan-rebalance": "consumers",
    "show-owners": "queues",
}
"""Command → its sections whose names are those of the lists."""


def _lists(command: str, data: Json) -> dict[str, list[Json]]:
    """Section → the list in the JSON that it shows."""
    found = {name: data[name] for name in _LISTS.get(command, "").split()}
    if command == "plan-rebalance":
        found["queues"] = [{"topic": topic["topic"], **each} for topic in data["topics"] for each in topic["queues"]]
    elif command == "show-route":
        found["brokers"] = [{"topic": topic["topic"], **each} for topic in data["topics"] for each in topic["brokers"]]
    elif command == "show-owners":
        found["summary"] = data["strategies"]
    elif command == "simulate-rebalance":
        found["summary"] = [{"name": name, "value": value} for name, value in data["figures"].items()]
    return found


def _same_cell(cell: str, value: Json) -> bool:
    """A cell of CSV and a value of JSON that say the same; nested values are not compared.

    Null in JSON is `never` in tables of failures, and `none` for a size that there is not.
    """
    if value is None:
        return cell in ("", "never", "none")
    if isinstance(value, list):
        is_flat = all(isinstance(each, str) for each in value)
        return not is_flat or (not value and cell == NOT_THERE) or _same_cell(cell, " ".join(value))
    if isinstance(value, bool | dict):
        return True
    if isinstance(value, int | float):
        return cell != "" and float(cell) == float(value)
    return cell == safe_cell(visible(value))
