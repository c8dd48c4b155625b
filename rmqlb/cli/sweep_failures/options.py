"""The options of `sweep-failures`: what is looked at, what is lost, and what is held against it."""

from typing import Annotated

from msgspec import Struct
from typer import Option

from rmqlb.cli.common.options import panel, shown_option

lost_option = panel("What is lost")


class SweptOptions(Struct, frozen=True):
    """Which groups and topics are looked at; the whole cluster by default."""

    group: Annotated[
        list[str] | None,
        Option("-g", "--group", metavar="GLOB", help="Only these groups, and their topics; repeatable."),
    ] = None
    topic: Annotated[
        list[str] | None,
        Option("-t", "--topic", metavar="GLOB", help="Only these topics, and groups that consume them; repeatable."),
    ] = None
    orderly: Annotated[
        list[str] | None,
        Option(metavar="GLOB", help="Groups that consume in order, where consumers do not report it; repeatable."),
    ] = None


class LostOptions(Struct, frozen=True):
    """What is lost, and how much of it at once."""

    lose: Annotated[
        list[str] | None,
        lost_option(metavar="consumer|broker|master|host|zone", help="Only losses of this kind; repeatable."),
    ] = None
    at_once: Annotated[
        int, lost_option(metavar="N", min=1, max=2, help="2: single losses and pairs; 1: single ones.")
    ] = 2
    zone: Annotated[
        list[str] | None,
        lost_option(
            metavar="GLOB=ZONE",
            help="Zone of matching addresses, brokers or client IDs; a network as 10.1.0.0/16=ZONE; repeatable.",
        ),
    ] = None
    zones: Annotated[
        str | None, lost_option(metavar="FILE", help="Zones in YAML or JSON: zone to a pattern or a list of them.")
    ] = None


class HeldOptions(Struct, frozen=True):
    """The policy that each case has to meet, and the choice of cases to show."""

    policy: Annotated[
        str | None,
        Option(
            "-p", "--policy", metavar="FILE|-", help="Limits and waivers as rmqlb check has them; default: built in."
        ),
    ] = None
    today: Annotated[
        str | None, Option(metavar="YYYY-MM-DD", help="The day on which waivers are looked at; default: today.")
    ] = None
    print_policy: Annotated[
        bool, Option("--print-policy", help="Print the built-in policy as YAML with comments, to edit, and end.")
    ] = False
    jobs: Annotated[int, Option(metavar="N", min=1, max=256, help="Processes among which groups are divided.")] = 1
    html: Annotated[str | None, shown_option(metavar="FILE|-", help="Write all tables as one HTML page.")] = None
    fail_on: Annotated[
        list[str] | None,
        Option(metavar="CONDITION", help="Exit 3 when it is met: 'counterexamples>0', 'moved[G]>50%'; repeatable."),
    ] = None
