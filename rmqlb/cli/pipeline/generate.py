"""`rmqlb pipeline generate`."""

from typing import Annotated

from typer import Argument, Option

from rmqlb.cli.common.options import OutputOptions, command, panel

size_option = panel("Size")
kind_option = panel("What it is like")


@command
def generate(
    *,
    folder: Annotated[str, Argument(metavar="DIR", help="A folder that is empty or not there.", show_default=False)],
    output: OutputOptions,
    seed: Annotated[int, Option(help="Equal seeds give equal bytes.")] = 0,
    clusters: Annotated[int | None, size_option(help="How many; default 3, more when snapshots get too large.")] = None,
    brokers: Annotated[int, size_option(help="Of each cluster.")] = 4,
    topics: Annotated[int | None, size_option(help="In all; default a fifth of the pairs.")] = None,
    groups: Annotated[int | None, size_option(help="In all; default two in five pairs.")] = None,
    pairs: Annotated[int | None, size_option(help="Groups on topics in all; default 500.")] = None,
    queues: Annotated[int | None, size_option(help="Queues of all groups on all topics.")] = None,
    consumers: Annotated[float, size_option(help="Of a group, on average.")] = 5.0,
    days: Annotated[int, size_option(help="Nights, one snapshot of each cluster per night.")] = 1,
    first: Annotated[str, size_option(metavar="YYYY-MM-DD", help="The first night.")] = "2026-11-01",
    faults: Annotated[float, kind_option(help="Share of groups with something wrong.")] = 0.15,
    odd_names: Annotated[float, kind_option(help="Share of odd names.")] = 0.02,
    other_clients: Annotated[float, kind_option(help="Share of groups with Go, C++, mixed, POP, gRPC clients.")] = 0.1,
    churn: Annotated[float, kind_option(help="Share of groups whose consumers change in a night.")] = 0.1,
    observed: Annotated[bool, kind_option("--observed/--not-observed", help="Owners and offsets too.")] = True,
    retry_queues: Annotated[bool, kind_option("--retry-queues/--no-retry-queues", help="%RETRY% topics too.")] = True,
    bad_files: Annotated[int, kind_option(help="Damaged files among the good ones.")] = 0,
    layout: Annotated[
        str, kind_option(metavar="json.gz|json|jsonl", help="A file per night, or a line per night.")
    ] = "json.gz",
) -> None:
    """Generate a synthetic fleet from a seed: uneven sizes, odd names, faults, consumers that join and leave.

    Examples:
      rmqlb pipeline generate dumps --groups 200 --days 7

      rmqlb pipeline generate big --queues 2000000 --not-observed

    Exit codes: 0 done, 2 usage.
    """
    asked = {name: value for name, value in locals().items() if name not in ("folder", "output")}
    from rmqlb.cli.common.terminal import Terminal
    from rmqlb.model.snapshot import ClusterSnapshot
    from rmqlb.pipeline.synthetic import generate as synthetic
    from rmqlb.pipeline.synthetic.shape import FleetShape
    from rmqlb.verbs import amounts
    from rmqlb.views.pipeline_view import fleet_report

    terminal = Terminal("pipeline generate", output)
    shape = FleetShape(**{**asked, "first": amounts.day(first, "--first")})
    with terminal.progress(verb="writing") as progress:
        summary = synthetic.generate(shape, folder, progress)
    terminal.show(fleet_report(summary), ClusterSnapshot("generated", folder), ())
