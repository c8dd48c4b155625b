from collections.abc import Iterator
from typing import Any

import typer

from rmqlb.cli.common.declare import Panel, Text, Texts, command, own
from rmqlb.cli.common.options import OutputOptions, PolicyOptions, SourceOptions
from rmqlb.cli.common.show_or_watch import answer
from rmqlb.cli.common.terminal import Terminal
from rmqlb.cli.exit_codes import ExitCode

_lost = Panel("Failures")


class SweepOptions(PolicyOptions):
    groups: Texts = own(
        "-g --group GLOB",
        "Consumer groups by name or pattern ('pay-*'); default: all; repeatable. Their topics are included.",
        positional="GROUP",
    )
    topics: Texts = own(
        "-t --topic GLOB",
        "Topics by name or pattern ('pay-*'); default: all; repeatable. Groups that consume them are included.",
    )
    orderly_groups: Texts = own(
        "--orderly-group GLOB", "Groups with ordered consumption. Needed if consumers do not report it; repeatable."
    )
    lose: Texts = _lost("consumer|broker|master|host|zone", "Kind of failure to try; default: all; repeatable.")
    losses: int = _lost("N", "Maximum number of losses at once.", 2, min=1, max=2)
    zones: Texts = _lost(
        "--zone GLOB=ZONE",
        "Zone of matching addresses, brokers or client IDs. GLOB may be a network such as 10.1.0.0/16; repeatable.",
    )
    zones_file: Text = _lost(
        "--zones FILE", "Zone file in YAML or JSON. It maps each zone to a pattern or a list of patterns.", stdin="-"
    )
    jobs: int = own("N", "Number of worker processes.", 1, min=1, max=256)
    fail_on: Texts = own("CONDITION", "Exit 3 if a condition holds: 'counterexamples>0'; repeatable.")


@command
def sweep_failures(source: SourceOptions, swept: SweepOptions, output: OutputOptions) -> None:
    """Find the smallest failures that break a limit: consumers, brokers, hosts and zones, singly or in pairs.

    Examples:
      rmqlb sweep-failures -s examples/cluster.json
      rmqlb sweep-failures -s examples/cluster.json -g 'order-*' --fail-on 'counterexamples>0'
      rmqlb sweep-failures -s examples/cluster.json --lose broker --lose zone --zones examples/zones.yaml
      rmqlb sweep-failures --print-policy

    A case is one loss, or two losses at once. rmqlb tries all cases. A counterexample is a case that breaks a limit,
    unless a single loss of the case already breaks it. Each counterexample is listed with the command that shows it in
    full. The limits come from a policy, as for rmqlb check.

    Exit codes: 0 done, 2 usage, 3 a --fail-on condition is met, 4 a name or pattern matches nothing, or no case could
    be judged, 5 endpoint unreachable.
    """
    from rmqlb.verbs.sweep_failures import BUILT_IN

    if (text := swept.printed_policy(BUILT_IN)) is not None:
        Terminal("sweep-failures", output).write(text)
        return
    hint, words = "leave the condition out to see the result", tuple(_source_words(source))
    how: dict[str, Any] = {"doing": "sweeping", "hint": hint, "source_words": words}
    sweep = answer("sweep-failures", "sweep_report", source, swept, output, **how)
    if sweep.nothing_judged:
        raise typer.Exit(ExitCode.DATA)


def _source_words(source: SourceOptions) -> Iterator[str]:
    """What it takes to read the same source again; who reads it is for the environment or a context to say."""
    if source.active_context is not None:
        yield from ("--context", source.active_context.name)
        return
    yield from ("-s", source.source or "")
    for mapped in source.map_address or ():
        yield from ("--map-address", mapped)
    for option in ("ca_file", "client_cert", "client_key", "tls_name"):
        if (value := getattr(source, option)) is not None:
            yield from (f"--{option.replace('_', '-')}", value)
