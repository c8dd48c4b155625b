import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from rmqlb.cli.common.declare import Options, Text, written
from rmqlb.cli.common.terminal import Terminal
from rmqlb.errors import UsageError
from rmqlb.model.result import Finding
from rmqlb.model.snapshot import ClusterSnapshot
from rmqlb.sources.atomic_file import replace_file
from rmqlb.views.envelope import Envelope
from rmqlb.views.report import Report

if TYPE_CHECKING:
    from rmqlb.views.timeline import OverTime


def write_whole(path: str, text: str, option: str, *, mode: int | None = None) -> None:
    """Replace a file: an interrupt leaves the old file or the new one (raises UsageError).

    A symbolic link is replaced, not followed. A device or a pipe is written to as it is.

    Args:
        mode: who may open the file; None keeps the mode of the old file, or takes that of the umask.
    """
    try:
        if os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path):
            with open(path, "w", encoding="utf-8") as special:
                special.write(text)
        else:
            replace_file(path, text, mode=mode)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UsageError(f"{option} {path}: {reason}", code="cannot-write") from None


def snapshot_report(snapshot: ClusterSnapshot) -> Report:
    from rmqlb.sources.formats.snapshot_file import to_document

    return Report("rmqlb/snapshot", to_document(snapshot), (), ())


def snapshot_envelope(snapshot: ClusterSnapshot, findings: Sequence[Finding], command: str) -> Envelope:
    from rmqlb.views.formats.machine import envelope

    return envelope(snapshot_report(snapshot), command, snapshot, findings)


def snapshot_text(snapshot: ClusterSnapshot, findings: Sequence[Finding], command: str) -> str:
    """The text of a snapshot file, which `-s` and the pipeline read."""
    from rmqlb.views.formats.machine import as_json

    return as_json(snapshot_envelope(snapshot, findings, command))


class PictureOptions(Options):
    svg: Text = written("FILE|-", "Write the picture as SVG; - is stdout.", for_verb=False)
    html: Text = written("FILE|-", "Write picture and tables as one HTML page.", for_verb=False)

    @property
    def files(self) -> dict[str, str]:
        """Option → its file, of those that are given."""
        return {option: path for option, path in (("--svg", self.svg), ("--html", self.html)) if path is not None}

    @property
    def fill_stdout(self) -> bool:
        """A picture is on stdout, so that nothing else may be."""
        return "-" in self.files.values()

    def check(self) -> None:
        """Refuse two pictures on stdout, and a folder that is not there, before anything is read."""
        if self.svg == "-" and self.html == "-":
            raise UsageError("--svg - and --html - both write to stdout")
        for option, path in self.files.items():
            try:
                os.stat(os.path.join(os.path.dirname(path) or ".", "."))
            except (OSError, ValueError) as error:
                reason = getattr(error, "strerror", None) or error
                raise UsageError(f"{option} {path}: {reason}", code="cannot-write") from None


def draw(
    group: "OverTime",
    facts: Sequence[str],
    report: Report,
    findings: Iterable[Finding],
    to: PictureOptions,
    terminal: Terminal,
) -> None:
    """Write the pictures that are asked for; the facts stand above the one without tables."""
    for option, path in to.files.items():
        from rmqlb.views.pictures import html_page, svg_picture

        with terminal.progress(verb="drawing") as progress:
            progress("the picture", 0, 0)
            picture = svg_picture(group, facts) if option == "--svg" else html_page(group, report, findings)
        if path == "-":
            terminal.write(picture)
        else:
            write_whole(path, picture, option)
            terminal.say(f"written to {path}")
