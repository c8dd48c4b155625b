"""The options of commands that show a moment, and can show it again and again.

Typer reads the annotations when the program starts, so they are values here, not text.
"""

from typing import Annotated

from msgspec import Struct
from typer import Option

from rmqlb.cli.common.options import OUTPUT


class WatchOptions(Struct, frozen=True):
    """Whether to look again, and how often."""

    watch: Annotated[
        str | None,
        Option(
            metavar="TIME",
            help="Look again every TIME until Ctrl-C; in a pipe, JSON lines of what changes.",
            rich_help_panel=OUTPUT,
        ),
    ] = None
    rounds: Annotated[
        int | None, Option(min=1, metavar="N", help="With --watch: end after N looks.", rich_help_panel=OUTPUT)
    ] = None
