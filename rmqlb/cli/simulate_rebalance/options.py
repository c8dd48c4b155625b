"""The options of `simulate-rebalance` alone: what of the simulation is shown, and judged."""

from typing import Annotated

from msgspec import Struct

from rmqlb.cli.common.options import shown_option


class ShowOptions(Struct, frozen=True):
    """The pictures, and the conditions."""

    svg: Annotated[str | None, shown_option(metavar="FILE|-", help="Write the picture as SVG; - is stdout.")] = None
    html: Annotated[str | None, shown_option(metavar="FILE|-", help="Write picture and tables as one HTML page.")] = (
        None
    )
    fail_on: Annotated[
        list[str] | None,
        shown_option(
            metavar="CONDITION",
            help="Exit 3 when it is met: 'longest-gap-ms>5000', with --trials of 95 %; repeatable.",
        ),
    ] = None
