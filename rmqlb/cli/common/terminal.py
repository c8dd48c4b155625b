"""The terminal: the one object that writes. Data goes to stdout, talk to stderr."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from rmqlb.cli.common.options import OutputOptions
from rmqlb.cli.common.progress import Progress
from rmqlb.cli.settings import check_value
from rmqlb.errors import UsageError
from rmqlb.model.condition import TriedCondition
from rmqlb.model.finding import Finding
from rmqlb.model.snapshot import ClusterSnapshot, suggestion
from rmqlb.views.formats.palette import encodable
from rmqlb.views.formats.text import visible
from rmqlb.views.report import FORMATS, SCREENS, Report

if TYPE_CHECKING:
    from rich.console import Console

FOR_PEOPLE = ("table", "plain", "markdown")
"""The formats that are looked at; programs read the others."""
_NO_TABLES = ("jsonl", "prometheus")
_NO_EDGE = 100_000
"""The width of a pipe: nothing is ever cut or wrapped there."""
_LEAST_WIDTH = 20
"""Narrower terminals break the lines themselves, for there is no room for a name and its figures."""
_MANY_ROWS = 500
"""Fewer are drawn before anybody wonders."""


class SnapshotView(Struct, frozen=True):
    """What a command sees at one moment; a report of it that is watched has rows."""

    report: Report
    snapshot: ClusterSnapshot
    findings: tuple[Finding, ...]
    tried: tuple[TriedCondition, ...] = ()


class Terminal:
    """Where a command's result, findings and progress go; `repeating` is set when it does the same once more."""

    def __init__(self, command: str, options: OutputOptions, more_formats: tuple[str, ...] = ()) -> None:
        self._command = command
        self._options = options
        self.repeating = False
        self._progress = Progress("silent")
        self.format = options.output or ("table" if sys.stdout.isatty() else "plain")
        known = (*FORMATS, *more_formats)
        if self.format not in known:
            raise UsageError(f"unknown format {self.format}", hint=suggestion("formats", self.format, known))
        check_value("color", options.color, "--color")
        if options.section:
            from rmqlb.cli.results import check_sections

            check_sections(command, options.section)
            self._check_lines()

    def show(self, report: Report, snapshot: ClusterSnapshot, findings: Iterable[Finding]) -> None:
        """Write the result to stdout, and its findings to stderr unless they are part of the format."""
        findings = tuple(findings)
        chosen = self.chosen(report, findings)
        with self.progress(verb="writing") as progress:
            if sum(len(section.rows) for section in chosen.sections) > _MANY_ROWS:
                progress("the result", 0, 0)
            text = self._drawn(chosen) if self.format == "table" else self.text(chosen, snapshot, findings)
        if self.format in FOR_PEOPLE:
            text = encodable(text, sys.stdout.encoding)
        if self.format in FOR_PEOPLE and sys.stdout.isatty() and not self._options.no_pager:
            from rmqlb.cli.common.pager import page

            page(text, self.write)
        else:
            self.write(text)
        if self.format not in ("json", "yaml", *SCREENS):
            self.warn(findings)

    def chosen(self, report: Report, findings: Iterable[Finding] = ()) -> Report:
        """What is shown of a report, with the findings that the format tells itself."""
        wanted = tuple(self._options.section or ())
        self._check_lines()
        names = tuple(section.name for section in report.sections)
        for name in wanted:
            if name not in names:
                raise UsageError(f"--section {name}: not in this result", hint=suggestion("sections", name, names))
        screen = self.format in SCREENS
        chosen = report.only(wanted, screen=screen, everything=self._options.all and self.format in FOR_PEOPLE)
        return chosen.told(findings) if screen and not self._options.quiet else chosen

    def _check_lines(self) -> None:
        if self._options.section and self.format in _NO_TABLES:
            raise UsageError(f"--section chooses tables, and -o {self.format} shows none", hint="leave one of them out")

    def warn(self, findings: Iterable[Finding]) -> None:
        if not self._options.quiet:
            sys.stdout.flush()
            for finding in findings:
                self.say(finding.line)

    def head(self, line: str) -> None:
        """Where the result comes from, on stderr; JSON and YAML say it themselves."""
        if not self._options.quiet and not self.repeating and self.format not in ("json", "yaml"):
            self.say(line)

    def say(self, line: str) -> None:
        sys.stderr.write(visible(line) + "\n")

    def progress(self, *, stages: bool = False, verb: str = "reading", beside_rows: bool = False) -> Progress:
        """What to show meanwhile: off a terminal a line per stage, or nothing; nothing beside rows on a terminal."""
        if self._options.quiet or self.repeating or (beside_rows and sys.stdout.isatty()):
            return Progress("silent", verb)
        self._progress = Progress("live" if sys.stderr.isatty() else "stages" if stages else "silent", verb)
        return self._progress

    def pause_progress(self) -> None:
        """Make room on stderr for something else, such as a question; the next part is shown again."""
        self._progress.clear()

    def must_redraw_or_stream(self) -> None:
        """Choose the format of something that is shown again and again: tables on a terminal, JSON lines elsewhere."""
        on_terminal = sys.stdout.isatty()
        if self._options.output in (None, "json"):
            self.format = "table" if on_terminal and self._options.output is None else "jsonl"
        if self.format != "jsonl" and not (self.format == "table" and on_terminal):
            raise UsageError(
                f"--watch cannot show {self.format}{'' if on_terminal else ' in a pipe'}",
                hint="tables are redrawn on a terminal; -o json is a line a change, anywhere",
            )

    def text(self, report: Report, snapshot: ClusterSnapshot, findings: Iterable[Finding]) -> str:
        if self.format in ("json", "yaml"):
            from rmqlb.views.formats.machine import as_json, as_yaml, envelope

            value = envelope(report, self._command, snapshot, findings)
            return as_json(value) if self.format == "json" else as_yaml(value)
        if self.format == "jsonl":
            from rmqlb.views.formats.machine import as_json_lines

            return as_json_lines(report.rows or ())
        if self.format == "prometheus":
            from rmqlb.views.metrics import as_prometheus, metrics_of

            return as_prometheus(metrics_of(report, self._command, snapshot, findings))
        if self.format == "csv":
            from rmqlb.views.formats.machine import as_csv

            return as_csv(report.table)
        from rmqlb.views.formats.people import as_plain

        return as_plain(report, is_markdown=self.format == "markdown")

    def write(self, text: str) -> None:
        if self.format == "csv" and hasattr(sys.stdout, "reconfigure"):
            sys.stdout.reconfigure(newline="")
        sys.stdout.write(text)

    def _drawn(self, report: Report) -> str:
        from rmqlb.views.formats.people import print_tables

        console = self.console()
        with console.capture() as capture:
            print_tables(report, console)
        return capture.get()

    def console(self) -> Console:
        from rich.console import Console

        stream = sys.stdout
        colour = _has_colour(self._options.color)
        arguments: dict[str, Any] = {"force_terminal": True} if colour else {"color_system": None}
        if colour and (os.environ.get("TERM", "dumb") in ("dumb", "unknown") or not stream.isatty()):
            arguments["color_system"] = "standard"
        if not _columns_wanted():
            # rich would draw everything in the 0 columns of COLUMNS=0.
            arguments["_environ"] = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
            if not stream.isatty():
                arguments["width"] = _NO_EDGE
        console = Console(file=stream, highlight=False, markup=False, emoji=False, no_color=not colour, **arguments)
        console.width = max(console.width, _LEAST_WIDTH)
        return console


def _columns_wanted() -> bool:
    """Whether the environment's COLUMNS names a width: 0, or what is no number, counts as not set."""
    text = os.environ.get("COLUMNS", "")
    return text.isdecimal() and int(text) > 0


def _has_colour(choice: str) -> bool:
    """What `--color` means for stdout: auto is as NO_COLOR and FORCE_COLOR say, otherwise on a terminal."""
    forced = os.environ.get("FORCE_COLOR", "")
    if choice != "auto":
        return choice == "always"
    if os.environ.get("NO_COLOR") or forced == "0":
        return False
    return bool(forced) or (sys.stdout.isatty() and os.environ.get("TERM") != "dumb")
