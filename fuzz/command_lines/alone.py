"""Properties of every command line by itself: exit codes, errors, formats, schemas, harmless text, widths.

Each check takes a case and its run, and yields a sentence for each thing that is wrong.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterator
from functools import cache
from itertools import pairwise
from typing import Any
from xml.etree import ElementTree as ET

import yaml

from fuzz.command_lines.lines import Case
from fuzz.command_lines.running import Ran
from rmqlb.views.explanations import explanations
from rmqlb.views.formats.text import visible, width
from tests.support.openmetrics import read_metrics
from tests.support.schemas import problems
from tools.manual.tree import command_tree

Check = Callable[[Case, Ran], Iterator[str]]

_ERROR = re.compile(r"error: [^\n]* \[([a-z-]+)\]\n(?:hint: [^\n]*\n)?\Z")
_TALK = re.compile(
    r"(warning|info|failed|incomplete|condition met|context [^:]*|reading|made|simulating|(.* )?written to)\b"
)
_COMMAND = re.compile(r"\s*(\S.*?\s{2,})?(rmqlb|mqadmin) ")  # after its label, if any
_FORMULA = re.compile(r" *[=+\-@\t\r\n＝＋－＠]")
_NUMBER = re.compile(r"-?\d+(\.\d+)?([eE][+-]?\d+)?%?|-?(inf|nan)")
_FAILED = (2, 4, 5)
_COLOUR = re.compile("\x1b\\[[0-9;]*m")


def _uncoloured(case: Case, text: str) -> str:
    """The text without the colours that the line asks for."""
    return _COLOUR.sub("", text) if case.value("--color") == "always" else text


def nothing_escapes(case: Case, ran: Ran) -> Iterator[str]:
    """No exception, no trace, no end by a signal, none after too long."""
    if ran.escaped:
        yield f"an exception came out of {case.command}: {ran.escaped[-1500:]}"
    if "Traceback (most recent call last)" in ran.stderr + ran.stdout:
        yield "a trace was printed"


def exit_code_is_documented(case: Case, ran: Ran) -> Iterator[str]:
    """The code is one that the command's help tells of, and never 1."""
    if ran.code not in _documented(case.command) or ran.code == 1:
        yield f"exit code {ran.code} is not in the help of {case.command}: {ran.stderr[-500:]}"


def error_is_one_line_of_its_class(case: Case, ran: Ran) -> Iterator[str]:
    """An error has one line, a code that `explain` knows, and that code's exit code; with JSON it is JSON."""
    found = error_code(case, ran)
    if found is None:
        if ran.code == 2 or (ran.code == 5 and case.command != "doctor"):  # which says what fails in its answer
            yield f"exit code {ran.code} without an error: {ran.stderr[-500:]!r}"
        return
    known = _explained().get(found)
    if known is None:
        yield f"error code {found} is not explained"
    elif known.exit_code is not None and known.exit_code != ran.code:
        yield f"error code {found} ends in {ran.code}, not in {known.exit_code}"
    if ran.stdout and case.format != "jsonl":
        yield f"an error, and something on stdout: {ran.stdout[:200]!r}"


def stderr_is_talk(case: Case, ran: Ran) -> Iterator[str]:
    """Each line says what it is; with -q nothing but the end is said."""
    if ran.code in _FAILED and error_code(case, ran) is not None:
        return
    for line in ran.stderr.splitlines():
        if not _TALK.match(line):
            yield f"stderr says {line[:300]!r}"
        elif case.has("--quiet") and line.startswith(("warning", "info")):
            yield f"stderr says in spite of --quiet: {line[:300]!r}"


def stdout_is_the_format(case: Case, ran: Ran) -> Iterator[str]:
    """What is on stdout can be read as what it is."""
    if not ran.stdout or case.shows_no_result:
        return
    try:
        read_as(case.format, ran.stdout)
    except (ValueError, yaml.YAMLError, ET.ParseError, csv.Error) as error:
        yield f"stdout is not {case.format}: {error}"


def json_fits_its_schema(case: Case, ran: Ran) -> Iterator[str]:
    """JSON and YAML have the keys that `rmqlb schema` tells of, and no others."""
    value = result(case, ran)
    if value is None or (case.command == "schema" and "$schema" in value):
        return
    yield from problems(value)[:3]
    if "command" in value and value["command"] != case.command:
        yield f"the command is called {value['command']}"


def lines_fit_their_schema(case: Case, ran: Ran) -> Iterator[str]:
    """Lines of JSON are objects; of attempts and changes they have their schema's keys."""
    if case.format != "jsonl" or case.shows_no_result:
        return
    for line in ran.stdout.splitlines()[:20]:
        value = json.loads(line)
        if not isinstance(value, dict):
            yield f"a line is no object: {line[:200]}"
        elif case.has("--watch"):
            yield from problems(value, "rmqlb/change")[:3]
        elif case.command == "simulate-send":
            yield from problems(value, "rmqlb/lost-message" if "reason" in value else "rmqlb/attempt")[:3]


def text_is_harmless(case: Case, ran: Ran) -> Iterator[str]:
    """No control, direction or invisible character stands raw on stdout or stderr."""
    usual = "\r\n" if case.format == "csv" else "\n"
    for where, text in (("stdout", ran.stdout), ("stderr", ran.stderr)):
        bare = _uncoloured(case, text).translate(dict.fromkeys(map(ord, usual)))
        if visible(bare) != bare:
            yield f"{where} has a raw character: {next(c for c in bare if visible(c) != c)!r}"


def cells_are_no_formulas(case: Case, ran: Ran) -> Iterator[str]:
    """No cell of CSV is run by a spreadsheet."""
    if not _is_table_for_programs(case):
        return
    for row in read_table(ran.stdout):
        for cell in row:
            if _FORMULA.match(cell) and not _NUMBER.fullmatch(cell):
                yield f"a cell is a formula: {cell[:100]!r}"


def tables_are_as_wide_as_the_terminal(case: Case, ran: Ran) -> Iterator[str]:
    """No line of a table is longer than COLUMNS."""
    if case.format != "table" or case.shows_no_result:
        return
    for before, line in pairwise(["", *_uncoloured(case, ran.stdout).splitlines()]):
        # A command to copy stays one line, which the terminal folds, or its lines end with a backslash.
        is_command = " \\" in (before[-2:], line[-2:]) or _COMMAND.match(line) is not None
        if width(line.rstrip()) > case.columns and not is_command:
            yield f"a line takes {width(line.rstrip())} columns of {case.columns}: {line!r}"
            return


def tables_of_a_row_have_its_columns(case: Case, ran: Ran) -> Iterator[str]:
    """Every row of CSV has as many cells as the head."""
    if _is_table_for_programs(case):
        rows = read_table(ran.stdout)
        if len({len(row) for row in rows}) > 1:
            yield "rows differ in their number of cells"


ALONE: tuple[Check, ...] = (
    nothing_escapes,
    exit_code_is_documented,
    error_is_one_line_of_its_class,
    stderr_is_talk,
    stdout_is_the_format,
    json_fits_its_schema,
    lines_fit_their_schema,
    text_is_harmless,
    cells_are_no_formulas,
    tables_are_as_wide_as_the_terminal,
    tables_of_a_row_have_its_columns,
)


def result(case: Case, ran: Ran) -> Any:
    """The JSON or YAML on stdout as a value; None when there is none, or it cannot be read."""
    if case.format not in ("json", "yaml") or not ran.stdout or case.shows_no_result:
        return None
    try:
        return read_as(case.format, ran.stdout)
    except (ValueError, yaml.YAMLError):
        return None


def error_code(case: Case, ran: Ran) -> str | None:
    """The code of the error that stderr ends in, or None."""
    if ran.code not in _FAILED:
        return None
    last = ran.stderr.splitlines()[-1:] or [""]
    if last[0].startswith('{"schema"'):
        value = json.loads(last[0])
        wrong = [*problems(value, "rmqlb/error")]
        if wrong or value["error"]["exitCode"] != ran.code:
            return f"of another exit code or shape: {wrong or value}"
        return str(value["error"]["code"])
    match = _ERROR.search(ran.stderr)
    if match and case.format == "json" and case.has("--output"):
        return "an error in words in spite of -o json"
    return match[1] if match else None


def read_as(form: str, text: str) -> Any:
    """The text read as this format (raises ValueError, YAMLError, ParseError)."""
    if form in ("json", "sarif"):
        return json.loads(text)
    if form == "jsonl":
        return [json.loads(line) for line in text.splitlines()]
    if form == "yaml":
        return yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    if form == "prometheus":
        return read_metrics(text)
    if form == "junit":
        return ET.fromstring(text)
    if form == "csv":
        return read_table(text)
    return text


def read_table(text: str) -> list[list[str]]:
    """The rows of CSV, the head first."""
    return list(csv.reader(io.StringIO(text, newline=""), strict=True))


def _is_table_for_programs(case: Case) -> bool:
    return case.format == "csv" and not case.shows_no_result


_explained = cache(explanations)


@cache
def _documented(command: str) -> set[int]:
    page = next(each for each in command_tree().all() if " ".join(each.path) == command)
    return {int(code) for code, _ in page.help.exit_codes}
