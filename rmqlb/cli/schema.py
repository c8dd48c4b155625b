from typing import Annotated

from typer import Argument

from rmqlb.cli.common.declare import command
from rmqlb.cli.common.options import OutputOptions
from rmqlb.cli.common.terminal import Terminal
from rmqlb.errors import UsageError
from rmqlb.model.snapshot import ClusterSnapshot, suggestion


@command
def schema(
    *,
    of: Annotated[
        list[str] | None, Argument(metavar="[COMMAND]", help="Command or result name; default: list all.")
    ] = None,
    output: OutputOptions,
) -> None:
    """Print the JSON Schema (2020-12) of a command's JSON output.

    The schema is JSON by default, and YAML with -o yaml. Other formats list its keys.

    Examples:
      rmqlb schema
      rmqlb schema plan-rebalance
      rmqlb schema rmqlb/snapshot -o table

    Exit codes: 0 done, 2 the result does not exist.
    """
    from rmqlb.cli.results import RESULTS, result_names, result_of
    from rmqlb.views.formats.machine import as_json, as_yaml
    from rmqlb.views.json_schema import json_schema, keys_report, schemas_report

    here = ClusterSnapshot("built-in", "rmqlb")
    if not of:
        Terminal("schema", output).show(schemas_report(RESULTS), here, ())
        return
    name = " ".join(of)
    result = result_of(name)
    if result is None:
        raise UsageError(f"there is no result {name}", hint=suggestion("results", name, result_names()))
    terminal = Terminal("schema", output.but(output=output.output or "json"))
    wanted = json_schema(result)
    if terminal.format in ("json", "yaml"):
        terminal.write(as_json(wanted) if terminal.format == "json" else as_yaml(wanted))
    else:
        terminal.show(keys_report(wanted), here, ())
