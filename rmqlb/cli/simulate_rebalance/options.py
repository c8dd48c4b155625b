"""The options of `simulate-rebalance` alone: what of the simulation is shown, and judged."""

from typing import Annotated

from rmqlb.cli.common.options import shown_option
from rmqlb.cli.common.pictures import PictureOptions


class ShowOptions(PictureOptions, frozen=True):
    """The pictures, and the conditions."""

    fail_on: Annotated[
        list[str] | None,
        shown_option(
            metavar="CONDITION",
            help="Exit 3 when it is met: 'longest-gap-ms>5000', with --trials of 95 %; repeatable.",
        ),
    ] = None
