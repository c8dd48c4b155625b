"""What is true of several command lines together: the same in every format, again, apart, at another width, and undone.

Each check takes a case, what came of it, and `Runs` to run further lines with; it yields a sentence for each thing that
is not so, and nothing where it does not apply.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import inf, isinf
from random import Random
from typing import Any, Literal, Protocol

from msgspec import Struct
from msgspec.structs import replace

from fuzz.command_lines.alone import (
    ALONE,
    read_as,
    result,
    tables_are_as_wide_as_the_terminal,
    text_is_harmless,
)
from fuzz.command_lines.figures import FIGURES, figure_places
from fuzz.command_lines.lines import PAGES, Case, Piece
from fuzz.command_lines.options import PLACEHOLDER
from fuzz.command_lines.running import Ran
from fuzz.command_lines.sums import SUMS
from rmqlb.views.formats.text import safe_cell, visible

Json = Any

NOT_THERE = "'-"
"""Stands in CSV for the owners of a queue that is not there, where an empty cell means nobody."""


Where = Literal["here", "apart", "terminal"]


class _Run(Protocol):
    def __call__(self, words: tuple[str, ...], *, columns: int, where: Where) -> Ran: ...


class Runs:
    """Runs command lines in the case's folder.

    Attributes:
        count: how many have been run.
    """

    def __init__(self, run: _Run, columns: int) -> None:
        self._run = run
        self._columns = columns
        self.count = 0

    def __call__(self, words: tuple[str, ...], *, columns: int | None = None, where: Where = "here") -> Ran:
        """Run one.

        Args:
            words: without the program.
            columns: of the terminal; those of the case by default.
            where: here, or as a process of its own, in a pipe (apart) or on a terminal.
        """
        self.count += 1
        return self._run(words, columns=columns or self._columns, where=where)

    def json(self, case: Case, pieces: tuple[Piece, ...]) -> Json | None:
        """The data of the result in JSON; None where there is none."""
        ran = self((*case.command.split(), *(word for piece in pieces for word in piece), "--output", "json"))
        shown = replace(case, pieces=(*pieces, ("--output", "json")))
        value = result(shown, ran)
        return None if value is None else value["data"]


class Together(Struct, frozen=True):
    """A check.

    Attributes:
        check: what it does.
        often: the share of cases that it is tried on.
    """

    check: Callable[[Case, Ran, Runs], Iterator[str]]
    often: float

    @property
    def __name__(self) -> str:
        return self.check.__name__


_SHOW = ("--output", "--section", "--watch", "--rounds", "--svg", "--html", "--to", *PAGES, "--redact-map")
_RESULTS = tuple(SUMS)


def the_same_again(case: Case, ran: Ran, runs: Runs) -> Iterator[str]:
    """Equal input gives equal bytes."""
    if case.command.startswith("context") or case.has("--watch") or case.has("--to") or case.has("--redact-map"):
        return
    again = runs(case.words)
    if (again.stdout, again.stderr, again.code) != (ran.stdout, ran.stderr, ran.code):
        yield f"run again it differs: {_first_difference(ran, again)}"


def the_same_apart(case: Case, ran: Ran, runs: Runs) -> Iterator[str]:
    """A process of its own says the same."""
    if case.command.startswith("context") or case.has("--watch") or case.has("--to") or case.has("--redact-map"):
        return
    apart = runs(case.words, where="apart")
    if (apart.stdout, apart.stderr, apart.code) != (ran.stdout, ran.stderr, ran.code):
        yield f"a process of its own differs: {apart.escaped} {_first_difference(ran, apart)}"
    for check in ALONE:
        yield from check(case, apart)


def a_terminal_shows_the_table(case: Case, ran: Ran, runs: Runs) -> Iterator[str]:
    """On a terminal it ends as in a pipe, and shows lines that fit, with nothing raw in them but colours."""
    if case.command not in _RESULTS or case.has("--watch") or case.stdin:
        return
    shown = replace(case, pieces=(*case.without("--output", "--no-pager"), ("--output", "table"), ("--no-pager",)))
    piped, seen = runs(shown.words), runs(shown.words, where="terminal")
    if piped.code != seen.code:
        yield f"on a terminal it ends in {seen.code}, in a pipe in {piped.code}: {seen.stderr[-300:]}"
    for check in (text_is_harmless, tables_are_as_wide_as_the_terminal):
        yield from check(shown, seen)


def any_width_will_do(case: Case, ran: Ran, runs: Runs) -> Iterator[str]:
    """A table at other widths: the same exit code, no line longer than the terminal."""
    if case.command not in _RESULTS or case.has("--watch"):
        return
    pieces = (*case.without("--output"), ("--output", "table"))
    shown = replace(case, pieces=pieces)
    for columns in (20, 40, 80, 160):
        other = runs(shown.words, columns=columns)
        for check in (*ALONE[:4], tables_are_as_wide_as_the_terminal):
            yield from (f"{columns} columns: {each}" for each in check(replace(shown, columns=columns), other))
        if ran.code != 2 and other.code != ran.code:  # noqa: PLR1714 - two questions
            yield f"-o table ends in {other.code}, -o {case.format} in {ran.code}: {other.stderr[-300:]}"


def json_and_yaml_say_the_same(case: Case, ran: Ran, runs: Runs) -> Iterator[str]:
    """Both formats hold the same value."""
    if case.command not in _RESULTS or ran.code not in (0, 3) or case.has("--watch"):
        return
    pieces = case.without(*_SHOW)
    texts = [runs((case.command, *_flat(pieces), "--output", form)) for form in ("json", "yaml")]
    if not texts[0].stdout or not texts[1].stdout:
        yield from [] if texts[0].code == texts[1].code else [f"exit codes {[each.code for each in texts]}"]
        return
    if read_as("json", texts[0].stdout) != read_as("yaml", texts[1].stdout):
        yield "the YAML holds another value than the JSON"


def tables_hold_what_json_holds(case: Case, ran: Ran, runs: Runs) -> Iterator[str]:
    """Each table as CSV has the cells of its list in the JSON, and so many rows as its markdown."""
    if case.command not in _RESULTS or ran.code not in (0, 3) or case.has("--watch") or case.has("--changed"):
        return
    pieces = case.without(*_SHOW)
    data = runs.json(case, pieces)
    if data is None or "groups" in data:  # of several groups, whose tables and conditions are of all of them
        return
    for section, rows in _lists(case.command, data).items():
        shown = runs((case.command, *_flat(pieces), "--section", section, "--output", "csv"))
        if not shown.stdout:
            continue
        head, *body = read_as("csv", shown.stdout)
        if len(body) != len(rows):
            yield f"section {section} has {len(body)} rows, the JSON {len(rows)}"
            continue
        common = [key for key in head if rows and key in rows[0]]
        for cells, row in zip(body, rows, strict=True):
            found = dict(zip(head, cells, strict=True))
            for key in common:
                if not _same_cell(found[key], row[key]):
                    yield f"section {section}, {key}: {found[key]!r} in the CSV, {row[key]!r} in the JSON"


def conditions_are_met_when_the_figure_says_so(case: Case, ran: Ran, runs: Runs) -> Iterator[str]:
    """`--fail-on` just at a figure of the JSON: met with >= and <=, not met with > and <."""
    if case.command not in FIGURES or ran.code not in (0, 3) or case.has("--watch"):
        return
    pieces = case.without(*_SHOW, "--fail-on")
    data = runs.json(case, pieces)
    if data is None or not _decides_alone(case, data):
        return
    if case.command == "plan-rebalance" and data["summary"]["movedRange"] is not None:
        yield from _met_in_any_order(data["summary"]["movedRange"], pieces, runs)
        return
    places = [(name, value) for name, value in figure_places(case.command, data) if value is not None]
    if not places:
        return
    name, value = Random(case.name).choice(places)
    text = "1000000" if isinf(value) else f"{value:.12g}"
    if "e" in text or value < 0:
        return
    for sign, met in ((">=", True), ("<=", value < inf), (">", value == inf), ("<", False)):
        condition = f"{name}{sign}{text}"
        tried = runs((case.command, *_flat(pieces), "--fail-on", condition, "--output", "json"))
        if tried.code != (3 if met else 0):
            yield f"--fail-on {condition} ends in {tried.code}; the JSON says {value!r}: {tried.stderr[-300:]}"
            continue
        told = read_as("json", tried.stdout)["data"]["conditions"][0]
        shown = inf if told["value"] is None else told["value"]
        if told["met"] != met or f"{shown:.12g}" != f"{value:.12g}":
            yield f"--fail-on {condition}: conditions say {told}"


def _decides_alone(case: Case, data: Json) -> bool:
    """A condition does so with the figures of the JSON: not with several groups."""
    of_several = "groups" in data and case.command != "show-groups"
    is_mean = case.command == "simulate-send" and data["trials"] is not None  # of which the JSON has shares
    return not (of_several or is_mean or data.get("conditions"))


def _met_in_any_order(moved: Json, pieces: tuple[Piece, ...], runs: Runs) -> Iterator[str]:
    """Where new client IDs may sort anywhere, a condition is met when one order meets it."""
    if not moved["complete"]:
        return
    fewest, most = moved["fewest"], moved["most"]
    for condition, met in (
        (f"moved>={most}", True),
        (f"moved>{most}", False),
        (f"moved<={fewest}", True),
        (f"moved<{fewest}", False),
    ):
        tried = runs(("plan-rebalance", *_flat(pieces), "--fail-on", condition, "--output", "json"))
        if tried.code != (3 if met else 0):
            yield f"--fail-on {condition} ends in {tried.code}, and {fewest} to {most} queues move"


def adding_and_removing_is_nothing(case: Case, ran: Ran, runs: Runs) -> Iterator[str]:
    """The plan that adds a consumer is undone by the plan that removes it."""
    base = _plain_plan(case)
    if base is None:
        return
    ids, common = base
    there = runs.json(case, (*common, ("--consumers", ",".join(ids)), ("--add", PLACEHOLDER)))
    back = runs.json(case, (*common, ("--consumers", ",".join([*ids, PLACEHOLDER])), ("--remove", PLACEHOLDER)))
    if there is None or back is None:
        if (there is None) != (back is None):
            yield "one of adding and removing a consumer is refused"
        return
    for key, other in (("Before", "After"), ("After", "Before")):
        if _owners(there, key) != _owners(back, other):
            yield f"owners {key.lower()} adding are not those {other.lower()} removing"
    for name, other in (("moved", "moved"), ("newlyAssigned", "newlyUnassigned"), ("added", "removed")):
        if there["summary"][name] != back["summary"][other]:
            yield f"{name}: {there['summary'][name]} there, {back['summary'][other]} back"


def a_simulation_ends_where_its_plan_does(case: Case, ran: Ran, runs: Runs) -> Iterator[str]:
    """simulate-rebalance that settles has the owners of plan-rebalance, one joining or one leaving."""
    base = _plain_plan(case)
    if base is None:
        return
    ids, common = base
    common = (*common, ("--consumers", ",".join(ids)))
    change = ("--remove", ids[0]) if len(case.words) % 2 and len(ids) > 1 else ("--add", PLACEHOLDER)
    event = f"leave {ids[0]}@5s" if change[0] == "--remove" else f"join {PLACEHOLDER}@5s"
    plan = runs.json(case, (*common, change))
    words = ("simulate-rebalance", *_flat(common), "--event", event, "--output", "json")
    simulated = result(replace(case, command="simulate-rebalance", pieces=(("--output", "json"),)), runs(words))
    if plan is None or simulated is None or simulated["data"]["figures"]["convergenceMs"] is None:
        return
    for queue in simulated["data"]["queues"]:
        place = queue["topic"], queue["brokerName"], queue["queueId"]
        ends, planned = queue["intervals"][-1]["owners"], _owners(plan, "After").get(place)
        if ends != planned:
            yield f"{place} ends with {ends}, and is planned for {planned}"


def a_plan_begins_with_the_owners_shown(case: Case, ran: Ran, runs: Runs) -> Iterator[str]:
    """show-owners and plan-rebalance give the same owners under the same strategy."""
    base = _plain_plan(case)
    if base is None:
        return
    ids, common = base
    common = (*common, ("--consumers", ",".join(ids)))
    plan = runs.json(case, common)
    words = ("show-owners", *_flat(common), "--output", "json")
    shown = result(replace(case, command="show-owners", pieces=(("--output", "json"),)), runs(words))
    if plan is None or shown is None:
        return
    for queue in shown["data"]["queues"]:
        place = queue["topic"], queue["brokerName"], queue["queueId"]
        (owners,) = queue["owners"].values()
        if _owners(plan, "Before").get(place) != owners:
            yield f"{place}: shown with {owners}, planned from {_owners(plan, 'Before').get(place)}"


TOGETHER: tuple[Together, ...] = (
    Together(the_same_again, 0.3),
    Together(the_same_apart, 0.004),
    Together(a_terminal_shows_the_table, 0.004),
    Together(any_width_will_do, 0.15),
    Together(json_and_yaml_say_the_same, 0.1),
    Together(tables_hold_what_json_holds, 0.15),
    Together(conditions_are_met_when_the_figure_says_so, 0.4),
    Together(adding_and_removing_is_nothing, 0.3),
    Together(a_simulation_ends_where_its_plan_does, 0.3),
    Together(a_plan_begins_with_the_owners_shown, 0.2),
)


def _flat(pieces: tuple[Piece, ...]) -> tuple[str, ...]:
    return tuple(word for piece in pieces for word in piece)


def _first_difference(one: Ran, other: Ran) -> str:
    if one.code != other.code:
        return f"exit code {one.code}, then {other.code}: {other.stderr[-300:]}"
    for name in ("stderr", "stdout"):
        lines = zip(getattr(one, name).splitlines(), getattr(other, name).splitlines(), strict=False)
        found = next(((a, b) for a, b in lines if a != b), None)
        if found:
            return f"{name}: {found[0][:200]!r}, then {found[1][:200]!r}"
    return f"in length: {len(one.stdout)} and {len(other.stdout)}"


def _plain_plan(case: Case) -> tuple[list[str], tuple[Piece, ...]] | None:
    """Different members and the pieces of a plan under a strategy without settings; None where there is none."""
    if case.command != "plan-rebalance" or not case.made.is_snapshot or case.topic is None:
        return None
    ids = [each for each in dict.fromkeys(case.made.groups.get(case.group or "", ())) if "," not in each]
    if not ids or case.is_page:
        return None
    strategy = ("AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH")[len(case.words) % 3]
    of_group = (("--group", case.group),) if case.group and len(case.words) % 2 else ()
    topic = case.topic if not case.topic.startswith("-") else None
    if topic is None or (of_group and of_group[0][1].startswith("-")):
        return None
    return ids, (("--source", case.made.cluster), *of_group, ("--topic", topic), ("--strategy", strategy))


def _owners(plan: Json, end: str) -> dict[tuple[str, str, int], list[str] | None]:
    return {
        (topic["topic"], queue["brokerName"], queue["queueId"]): queue[f"owners{end}"]
        for topic in plan["topics"]
        for queue in topic["queues"]
    }


_OWN_LISTS = {
    "simulate-send": ("queues", "brokers", "failures"),
    "simulate-receive": ("brokers", "failures", "quantiles"),
    "select-queue": ("pairs", "sdks"),
    "size-group": ("curve", "candidates", "topics"),
    "plan-topic": ("steps",),
}
"""Command → its sections whose names are those of the lists."""


def _lists(command: str, data: Json) -> dict[str, list[Json]]:
    """Section → the list in the JSON that it shows."""
    if command == "plan-rebalance":
        queues = [{"topic": topic["topic"], **queue} for topic in data["topics"] for queue in topic["queues"]]
        return {"queues": queues, "consumers": data["consumers"]}
    if command == "show-consumers":
        return {"consumers": data["consumers"]}
    if command == "show-owners":
        return {"queues": data["queues"], "summary": data["strategies"]}
    if command == "show-route":
        brokers = [{"topic": topic["topic"], **broker} for topic in data["topics"] for broker in topic["brokers"]]
        return {"brokers": brokers}
    if command == "simulate-rebalance":
        figures = [{"name": name, "value": value} for name, value in data["figures"].items()]
        return {"queues": data["queues"], "consumers": data["consumers"], "events": data["events"], "summary": figures}
    if command in _OWN_LISTS:
        return {name: data[name] for name in _OWN_LISTS[command]}
    if command == "plan-rollout":
        return {"choices": data["choices"]}
    return {"failed": data["failed"], "waived": data["waived"], "rules": data["rules"]}


def _same_cell(cell: str, value: Json) -> bool:
    """A cell of CSV and a value of JSON that say the same; nested values are not compared.

    What has never been is null in JSON, and `never` in tables of failures; a size that there is not is `none`.
    """
    if value is None:
        return cell in ("", "never", "none")
    if isinstance(value, list):
        if not value and cell == NOT_THERE:
            return True
        if any(not isinstance(each, str) for each in value):
            return True
        value = " ".join(value)
    if isinstance(value, bool | dict):
        return True
    if isinstance(value, int | float):
        return cell != "" and float(cell) == float(value)
    return cell == safe_cell(visible(value))
