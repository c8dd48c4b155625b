"""`rmqlb pipeline ingest`."""

from typing import Annotated

from typer import Argument, Option

from rmqlb.cli.common.options import OutputOptions, command
from rmqlb.cli.pipeline.options import OnlyOptions, StageOptions


@command
def ingest(
    *,
    paths: Annotated[list[str], Argument(metavar="PATH…", help="Files, folders, patterns, URLs.", show_default=False)],
    cluster: Annotated[
        str | None,
        Option(
            metavar="NAME",
            help="The cluster that they are of; default: cluster=NAME in the path, otherwise its brokers' cluster.",
        ),
    ] = None,
    which: OnlyOptions,
    stage: StageOptions,
    output: OutputOptions,
) -> None:
    """Read snapshots and routes into typed tables; what cannot be read goes to the table quarantine.

    A path is a file, a folder, a pattern or a URL that Spark knows, of rmqlb's snapshots (JSON, YAML, JSON lines, gzip)
    or of raw routes. Files are known again by name, size and time, documents by their content, and change nothing;
    --force opens all files. A file that says something else about the same time takes the place of what it said.

    Examples:
      rmqlb pipeline ingest -w warehouse dumps/

      rmqlb pipeline ingest -w warehouse --cluster east 'east/2026-11-*.json.gz'

    Exit codes: 0 done, 2 usage, 4 nothing is there to read, 5 master or storage cannot be reached.
    """
    from rmqlb.cli.pipeline.run_stages import run_stages

    run_stages(["ingest"], which, stage, output, inputs=tuple(paths), cluster=cluster)
