"""The options of commands that show a moment, and can show it again and again."""

from typing import Annotated

from msgspec import Struct

from rmqlb.cli.common.options import output_option


class WatchOptions(Struct, frozen=True):
    """Whether to look again, and how often."""

    watch: Annotated[
        str | None,
        output_option(
            metavar="TIME", help="Look again every TIME until Ctrl-C; in a pipe, JSON lines of what changes."
        ),
    ] = None
    rounds: Annotated[int | None, output_option(min=1, metavar="N", help="With --watch: end after N looks.")] = None
