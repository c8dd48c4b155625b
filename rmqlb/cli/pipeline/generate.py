"""`rmqlb pipeline generate`.

Typer reads the annotations when the program starts, so they are values here, not text.
"""

from typing import Annotated

from typer import Argument, Option

from rmqlb.cli.common.options import OutputOptions, command

_SIZE, _KIND = "Size", "What it is like"


@command
def generate(
    *,
    folder: Annotated[str, Argument(metavar="DIR", help="A folder that is empty or not there.", show_default=False)],
    output: OutputOptions,
    seed: Annotated[int, Option(help="Equal seeds give equal bytes.")] = 0,
    clusters: Annotated[
        int | None,
        Option(help="How many; default 3, more when snapshots get too large.", rich_help_panel=_SIZE),
    ] = None,
    brokers: Annotated[int, Option(help="Of each cluster.", rich_help_panel=_SIZE)] = 4,
    topics: Annotated[int | None, Option(help="In all; default a fifth of the pairs.", rich_help_panel=_SIZE)] = None,
    groups: Annotated[int | None, Option(help="In all; default two in five pairs.", rich_help_panel=_SIZE)] = None,
    pairs: Annotated[int | None, Option(help="Groups on topics in all; default 500.", rich_help_panel=_SIZE)] = None,
    queues: Annotated[int | None, Option(help="Queues of all groups on all topics.", rich_help_panel=_SIZE)] = None,
    members: Annotated[float, Option(help="Of a group, on average.", rich_help_panel=_SIZE)] = 5.0,
    days: Annotated[int, Option(help="Nights, a snapshot of each cluster each.", rich_help_panel=_SIZE)] = 1,
    first: Annotated[str, Option(metavar="YYYY-MM-DD", help="The first night.", rich_help_panel=_SIZE)] = "2026-11-01",
    faults: Annotated[float, Option(help="Share of groups with something wrong.", rich_help_panel=_KIND)] = 0.15,
    odd_names: Annotated[float, Option(help="Share of odd names.", rich_help_panel=_KIND)] = 0.02,
    churn: Annotated[
        float, Option(help="Share of groups whose members change in a night.", rich_help_panel=_KIND)
    ] = 0.1,
    observed: Annotated[
        bool, Option("--observed/--not-observed", help="Owners and offsets too.", rich_help_panel=_KIND)
    ] = True,
    retry_queues: Annotated[
        bool, Option("--retry-queues/--no-retry-queues", help="%RETRY% topics too.", rich_help_panel=_KIND)
    ] = True,
    bad_files: Annotated[int, Option(help="Damaged files among the good ones.", rich_help_panel=_KIND)] = 0,
    layout: Annotated[
        str, Option(metavar="json.gz|json|jsonl", help="A file a night, or a line a night.", rich_help_panel=_KIND)
    ] = "json.gz",
) -> None:
    """Make up a realistic fleet from a seed: skewed sizes, odd names, faults, members that come and go.

    Examples:
      rmqlb pipeline generate dumps --groups 200 --days 7

      rmqlb pipeline generate big --queues 2000000 --not-observed

    Exit codes: 0 done, 2 usage.
    """
    from rmqlb.cli.pipeline.run_generate import run_generate

    shape = {name: value for name, value in locals().items() if name not in ("folder", "output", "run_generate")}
    run_generate(folder, shape, output)
