import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from rmqlb.cli.common.declare import Options, Text, shown
from rmqlb.cli.common.terminal import Terminal
from rmqlb.errors import UsageError
from rmqlb.model.result import Finding
from rmqlb.views.report import Report

if TYPE_CHECKING:
    from rmqlb.views.timeline import OverTime


class PictureOptions(Options):
    svg: Text = shown("FILE|-", "Write the picture as SVG; - is stdout.", for_verb=False)
    html: Text = shown("FILE|-", "Write picture and tables as one HTML page.", for_verb=False)

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
        from rmqlb.cli.common.output_files import write_whole
        from rmqlb.views.pictures import html_page, svg_picture

        with terminal.progress(verb="drawing") as progress:
            progress("the picture", 0, 0)
            picture = svg_picture(group, facts) if option == "--svg" else html_page(group, report, findings)
        if path == "-":
            terminal.write(picture)
        else:
            write_whole(path, picture, option)
            terminal.say(f"written to {path}")
