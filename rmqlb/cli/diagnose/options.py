"""The options of `diagnose`: which groups, how often they are read, and what fails."""

from typing import Annotated

from msgspec import Struct
from typer import Option

from rmqlb.cli.common.options import panel

looks_option = panel("Looks")


class DiagnoseOptions(Struct, frozen=True):
    """Which groups, and what fails."""

    group: Annotated[
        list[str] | None,
        Option("-g", "--group", metavar="GROUP", help="Consumer groups, by name or as 'pay-*'; repeatable."),
    ] = None
    all_groups: Annotated[bool, Option("--all-groups", help="All groups, RocketMQ's own left out.")] = False
    fail_on: Annotated[
        str | None, Option(metavar="error|warning", help="Exit 3 when a finding is at least so grave.")
    ] = None


class LookOptions(Struct, frozen=True):
    """How often the groups are read, and what is read before and besides."""

    earlier: Annotated[
        list[str] | None,
        looks_option(
            metavar="FILE|-", help="An earlier snapshot of the same cluster, which shows what changes; repeatable."
        ),
    ] = None
    interval: Annotated[
        str, looks_option(metavar="TIME", help="Of a running cluster: the time from one look to the next.")
    ] = "10s"
    looks: Annotated[
        int,
        looks_option(
            min=1, max=10, metavar="N", help="At most so many looks; as few as decide what a change over time decides."
        ),
    ] = 3
    stacks: Annotated[
        bool, looks_option("--stacks", help="Ask blocked consumers for the stack traces of their consume threads.")
    ] = False
