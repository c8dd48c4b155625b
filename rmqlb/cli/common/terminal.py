"""The terminal: the one object that writes. Data goes to stdout, everything else to stderr."""

import os
import sys
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal, Self

from msgspec import Struct

from rmqlb.cli.common.options import OutputOptions
from rmqlb.errors import UsageError
from rmqlb.model.result import Finding, TriedCondition
from rmqlb.model.snapshot import ClusterSnapshot, suggestion
from rmqlb.views.formats.palette import encodable
from rmqlb.views.formats.text import cut_to_width, visible, width
from rmqlb.views.report import FOR_PEOPLE, FORMATS, SCREENS, Report

if TYPE_CHECKING:
    from rich.console import Console

    from rmqlb.cli.common.output_files import PageOptions

_NO_TABLES = ("jsonl", "prometheus")
_PIPE_WIDTH = 100_000
"""Nothing is ever cut or wrapped in a pipe."""
_LEAST_WIDTH = 20
"""Narrower terminals break the lines themselves, for there is no room for a name and its figures."""
_MANY_ROWS = 500
"""Fewer are drawn before anybody wonders."""
_USUAL_WIDTH = 80


class StatusLine:
    """The line on stderr that work writes again and again; the innermost work that is open has it.

    A line must fit the terminal, for a carriage return takes back no line above it.
    """

    def __init__(self) -> None:
        self.open: list[Progress] = []
        self._shown = 0

    def write(self, line: str) -> None:
        now = width(line)
        sys.stderr.write("\r" + line + " " * (self._shown - now))
        sys.stderr.flush()
        self._shown = now

    def clear(self) -> None:
        if self._shown:
            self.write("")
            sys.stderr.write("\r")
            sys.stderr.flush()


class Progress:
    """Shows what is done, how far, and the time left: in the line (live), or in a line per stage."""

    def __init__(
        self, manner: Literal["live", "stages", "silent"], verb: str = "reading", status: StatusLine | None = None
    ) -> None:
        self._manner, self._verb, self._status = manner, verb, status or StatusLine()
        self.line = cut_to_width(verb, _room()) if manner == "live" else ""
        self._stage, self._began = "", 0.0

    def __call__(self, what: str, done: int, total: int) -> None:
        """Show that the next of `total` parts is under way; 0 is an unknown total."""
        now = time.monotonic()
        if what != self._stage:
            self._stage, self._began = what, now
            if self._manner == "stages":
                sys.stderr.write(visible(f"{self._verb} {what}{f': {total}' if total else ''}") + "\n")
        if self._manner == "live":
            count = f": {min(done + 1, total)} of {total}" if total else f": {done + 1}" if done else ""
            left = (now - self._began) / done * (total - done) if done and total else 0.0
            end = f"{count}, about {left:.0f} s left" if left >= 1 else count
            room = _room()
            name = cut_to_width(visible(f"{self._verb} {what}"), room - len(end))
            self.line = cut_to_width(f"{name}{end}", room)
            self._status.write(self.line)

    def __enter__(self) -> Self:
        self._status.clear()
        self._status.open.append(self)
        if self.line:
            self._status.write(self.line)
        return self

    def __exit__(self, *_: object) -> None:
        self._status.clear()
        self._status.open.remove(self)
        if self._status.open and (around := self._status.open[-1].line):
            self._status.write(around)


def _room() -> int:
    """How wide a line may be: the cursor stays on it."""
    try:
        columns = os.get_terminal_size(sys.stderr.fileno()).columns
    except (OSError, ValueError):
        columns = 0
    return (columns or _USUAL_WIDTH) - 1


class SnapshotView(Struct, frozen=True):
    """What a command sees at one moment; a report that is watched has rows."""

    report: Report
    snapshot: ClusterSnapshot
    findings: tuple[Finding, ...]
    tried: tuple[TriedCondition, ...] = ()


class Terminal:
    """Where a command's result, findings and progress go; `repeating` is set when the command repeats its work.

    Args:
        files: the options of a command that also writes its result as a page or a picture.
    """

    def __init__(
        self,
        command: str,
        options: OutputOptions,
        more_formats: tuple[str, ...] = (),
        files: "PageOptions | None" = None,
    ) -> None:
        self._command = command
        self._options = options
        self._files = {} if files is None else files.files
        if files is not None:
            files.check()
        self.repeating = False
        self._status = StatusLine()
        self.format = options.output or ("table" if sys.stdout.isatty() else "plain")
        known = (*FORMATS, *more_formats)
        if self.format not in known:
            raise UsageError(f"unknown format {self.format}", hint=suggestion("formats", self.format, known))
        if options.section:
            from rmqlb.cli.results import check_sections

            check_sections(command, options.section)
            self._check_lines()

    @property
    def writes_data_alone(self) -> bool:
        """Whether only the data of a report is written, so that the report needs no table."""
        return self.format in ("json", "yaml") and not self._options.section and not self._files

    def show(self, report: Report, snapshot: ClusterSnapshot, findings: Iterable[Finding]) -> None:
        """Write the result to stdout, and its findings to stderr unless they are part of the format."""
        findings = tuple(findings)
        if self.fills_stdout(report, snapshot, findings):
            self.warn(findings)
            return
        chosen = self.chosen(report, findings)
        with self.progress(verb="writing") as progress:
            if sum(len(section.rows) for section in chosen.sections) > _MANY_ROWS:
                progress("the result", 0, 0)
            text = self.text(chosen, snapshot, findings)
        if self.format in FOR_PEOPLE:
            text = encodable(text, sys.stdout.encoding)
        if self.format not in FOR_PEOPLE or self._options.no_pager or not sys.stdout.isatty() or not _paged(text):
            self.write(text)
        if self.format not in ("json", "yaml", *SCREENS):
            self.warn(findings)

    def fills_stdout(self, report: Report, snapshot: ClusterSnapshot, findings: tuple[Finding, ...]) -> bool:
        """Write the page and the picture that are asked for; True when one of them is all that stdout may have."""
        for option, path in self._files.items():
            with self.progress(verb="drawing") as progress:
                progress("the picture" if option == "--svg" else "the page", 0, 0)
                if option == "--svg":
                    from rmqlb.views.pictures import svg_picture

                    text = svg_picture(report)
                else:
                    from rmqlb.views.formats.html_page import html_page

                    text = html_page(report, self._command, snapshot, findings)
            if path == "-":
                self.write(text)
            else:
                from rmqlb.cli.common.output_files import write_whole

                write_whole(path, text, option)
                self.say(f"written to {path}")
        return "-" in self._files.values()

    def chosen(self, report: Report, findings: Iterable[Finding] = ()) -> Report:
        """The chosen sections of a report, with the findings that belong to the format."""
        wanted = tuple(self._options.section or ())
        self._check_lines()
        names = tuple(section.name for section in report.sections)
        for name in wanted:
            if name not in names:
                raise UsageError(f"--section {name}: not in this result", hint=suggestion("sections", name, names))
        screen = self.format in FOR_PEOPLE
        chosen = report.only(wanted, screen=screen, everything=self._options.all and screen)
        return chosen.with_findings(findings) if self.format in SCREENS and not self._options.quiet else chosen

    def _check_lines(self) -> None:
        if self._options.section and self.format in _NO_TABLES:
            raise UsageError(f"--section chooses tables, but -o {self.format} has none", hint="leave one of them out")

    def warn(self, findings: Iterable[Finding]) -> None:
        if not self._options.quiet:
            sys.stdout.flush()
            for finding in findings:
                self.say(finding.line)

    def head(self, line: str) -> None:
        """Where the result comes from, on stderr; JSON and YAML have it in the document."""
        if not self._options.quiet and not self.repeating and self.format not in ("json", "yaml"):
            self.say(line)

    def say(self, line: str) -> None:
        self.pause_progress()
        sys.stderr.write(visible(line) + "\n")

    def progress(self, *, stages: bool = False, verb: str = "reading", beside_rows: bool = False) -> Progress:
        """A progress line on a terminal; otherwise a line per stage, or nothing; nothing next to rows on a terminal."""
        if self._options.quiet or self.repeating or (beside_rows and sys.stdout.isatty()):
            return Progress("silent", verb)
        manner: Literal["live", "stages", "silent"] = "stages" if stages else "silent"
        return Progress("live" if sys.stderr.isatty() else manner, verb, self._status)

    def pause_progress(self) -> None:
        """Make room on stderr for something else, such as a question; the next part is shown again."""
        self._status.clear()

    def must_redraw_or_stream(self) -> None:
        """Choose the format of something that is shown again and again: tables on a terminal, JSON lines elsewhere."""
        on_terminal = sys.stdout.isatty()
        for option in self._files:
            raise UsageError(
                f"--watch shows the result repeatedly, but {option} writes it once", hint="leave one of them out"
            )
        if self._options.output in (None, "json"):
            self.format = "table" if on_terminal and self._options.output is None else "jsonl"
        if self.format != "jsonl" and not (self.format in ("table", "wide") and on_terminal):
            hint = "tables need a terminal; -o json prints one line per change"
            raise UsageError(f"--watch cannot show {self.format}{'' if on_terminal else ' in a pipe'}", hint=hint)

    def text(self, report: Report, snapshot: ClusterSnapshot, findings: Iterable[Finding]) -> str:
        if self.format in ("table", "wide") or (self.format == "plain" and self._has_colour()):
            return drawn(report, self.console())
        if self.format in ("plain", "markdown"):
            from rmqlb.views.formats.people import as_plain

            return as_plain(report, is_markdown=self.format == "markdown")
        if self.format == "prometheus":
            from rmqlb.views.metrics import as_prometheus, metrics_of

            return as_prometheus(metrics_of(report, self._command, snapshot, findings))
        from rmqlb.views.formats.machine import as_csv, as_json, as_json_lines, as_yaml, envelope

        match self.format:
            case "jsonl":
                return as_json_lines(report.rows or ())
            case "csv":
                return as_csv(report.table)
        write = as_json if self.format == "json" else as_yaml
        return write(envelope(report, self._command, snapshot, findings))

    def write(self, text: str) -> None:
        if self.format == "csv" and hasattr(sys.stdout, "reconfigure"):
            sys.stdout.reconfigure(newline="")
        sys.stdout.write(text)

    def console(self) -> "Console":
        from rich.console import Console

        colour = self._has_colour()
        arguments: dict[str, Any] = {"force_terminal": True} if colour else {"color_system": None}
        if colour and (os.environ.get("TERM", "dumb") in ("dumb", "unknown") or not sys.stdout.isatty()):
            arguments["color_system"] = "standard"
        columns = os.environ.get("COLUMNS", "")
        has_columns = columns.isdecimal() and int(columns) > 0
        if not has_columns:  # rich would draw everything in the 0 columns of COLUMNS=0
            arguments["_environ"] = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
        if self.format == "plain" or not (has_columns or sys.stdout.isatty()):
            arguments["width"] = _PIPE_WIDTH
        console = Console(file=sys.stdout, highlight=False, markup=False, emoji=False, no_color=not colour, **arguments)
        console.width = _PIPE_WIDTH if self.format == "wide" else max(console.width, _LEAST_WIDTH)
        return console

    def _has_colour(self) -> bool:
        """Whether `--color` means colour: auto is as NO_COLOR and FORCE_COLOR say, otherwise a terminal's tables."""
        choice, forced = self._options.color, os.environ.get("FORCE_COLOR", "")
        if choice != "auto":
            return choice == "always"
        if os.environ.get("NO_COLOR") or forced == "0":
            return False
        return bool(forced) or (sys.stdout.isatty() and self.format != "plain" and os.environ.get("TERM") != "dumb")


def drawn(report: Report, console: "Console") -> str:
    from rmqlb.views.formats.people import print_tables

    with console.capture() as capture:
        print_tables(report, console)
    return capture.get()


def _paged(text: str) -> bool:
    """Show a text that is longer than the screen through RMQLB_PAGER, otherwise PAGER, otherwise less.

    False when the text is to be written: it is short, or there is no pager (`cat`, an empty name, a program that is not
    there, a dumb terminal). The text has no other escape sequences than rich's colours.
    """
    import pydoc
    import re
    import shutil

    command = os.environ.get("RMQLB_PAGER", os.environ.get("PAGER", "less"))
    program = command.split(maxsplit=1)[:1] or ["cat"]
    if program == ["cat"] or not shutil.which(program[0]) or os.environ.get("TERM", "dumb") == "dumb":
        return False
    size = shutil.get_terminal_size()
    lengths = [len(line) for line in re.sub("\x1b\\[[0-9;]*m", "", text).splitlines()]
    if sum(max(1, -(-length // max(size.columns, 1))) for length in lengths) < size.lines:
        return False
    os.environ.setdefault("LESS", "FRX")  # ends when all fits, lets colours pass, leaves the text where it is
    pydoc.pipepager(text, command)
    return True
