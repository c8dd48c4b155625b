"""`rmqlb sweep-failures`."""

from collections.abc import Iterator
from typing import Annotated

import typer
from msgspec import Struct
from typer import Option

from rmqlb.cli.common.options import OutputOptions, SourceOptions, StrategyOptions, command, panel
from rmqlb.cli.common.terminal import Terminal
from rmqlb.cli.exit_codes import ExitCode
from rmqlb.errors import UsageError

_lost_option = panel("What is lost")


class SweptOptions(Struct, frozen=True):
    groups: Annotated[
        list[str] | None,
        Option("-g", "--group", metavar="GLOB", help="Only these groups, and their topics; repeatable."),
    ] = None
    topics: Annotated[
        list[str] | None,
        Option("-t", "--topic", metavar="GLOB", help="Only these topics, and groups that consume them; repeatable."),
    ] = None
    orderly: Annotated[
        list[str] | None,
        Option(metavar="GLOB", help="Groups that consume in order, where consumers do not report it; repeatable."),
    ] = None
    lose: Annotated[
        list[str] | None,
        _lost_option(metavar="consumer|broker|master|host|zone", help="Only losses of this kind; repeatable."),
    ] = None
    at_once: Annotated[
        int, _lost_option(metavar="N", min=1, max=2, help="2: single losses and pairs; 1: single ones.")
    ] = 2
    zones: Annotated[
        list[str] | None,
        _lost_option(
            "--zone",
            metavar="GLOB=ZONE",
            help="Zone of matching addresses, brokers or client IDs; a network as 10.1.0.0/16=ZONE; repeatable.",
        ),
    ] = None
    zones_file: Annotated[
        str | None,
        _lost_option("--zones", metavar="FILE", help="Zones in YAML or JSON: zone to a pattern or a list of them."),
    ] = None


class HeldOptions(Struct, frozen=True):
    policy: Annotated[
        str | None,
        Option(
            "-p", "--policy", metavar="FILE|-", help="Limits and waivers as rmqlb check has them; default: built in."
        ),
    ] = None
    today: Annotated[str | None, Option(metavar="YYYY-MM-DD", help="The day for waivers; default: today.")] = None
    jobs: Annotated[int, Option(metavar="N", min=1, max=256, help="Processes among which groups are divided.")] = 1
    fail_on: Annotated[
        list[str] | None,
        Option(metavar="CONDITION", help="Exit 3 when it is met: 'counterexamples>0', 'moved[G]>50%'; repeatable."),
    ] = None


@command
def sweep_failures(
    *,
    source: SourceOptions,
    swept: SweptOptions,
    held: HeldOptions,
    print_policy: Annotated[
        bool, Option("--print-policy", help="Print the built-in policy as YAML with comments, to edit, and end.")
    ] = False,
    strategy_options: StrategyOptions,
    output: OutputOptions,
) -> None:
    """Try every loss of consumers, brokers, hosts and zones, alone and in pairs: the smallest that break a limit.

    Examples:
      rmqlb sweep-failures -s examples/cluster.json

      rmqlb sweep-failures -s examples/cluster.json -g 'order-*' --fail-on 'counterexamples>0'

      rmqlb sweep-failures -s examples/cluster.json --lose broker --lose zone --zones examples/zones.yaml

      rmqlb sweep-failures --print-policy

    A case is one loss or two at once. All cases are tried; cases that take the same of a group or topic are computed
    once. A counterexample is a case that breaks a limit while no smaller one does. Each comes with the command that
    shows it in full. The limits are those of a policy of rmqlb check.

    Exit codes: 0 done, 2 usage, 3 a --fail-on condition is met, 4 a name or pattern matches nothing, or nothing could
    be judged, 5 endpoint unreachable.
    """
    from functools import partial

    from msgspec.structs import asdict

    from rmqlb.cli.common.reading import Reader
    from rmqlb.cli.common.show_or_watch import show_once
    from rmqlb.sources.user_files.policy_file import built_in_text
    from rmqlb.verbs import sweep_failures as verb
    from rmqlb.views.sweep_failures import sweep_report

    terminal = Terminal("sweep-failures", output)
    if print_policy:
        if held.policy is not None:
            raise UsageError("--print-policy prints the built-in policy, and --policy names another one")
        terminal.write(built_in_text(verb.BUILT_IN))
        return
    inputs = (("-s -", source.source), ("--policy -", held.policy), ("--zones -", swept.zones_file))
    reading = [text for text, value in inputs if value == "-"]
    if len(reading) > 1:
        raise UsageError(f"{reading[0]} and {reading[1]} both read stdin")
    ask = partial(
        verb.sweep_failures,
        Reader(source, terminal),
        **asdict(swept),
        **asdict(held),
        strategy_options=strategy_options.texts,
        source_words=tuple(_source_words(source)),
    )
    hint = "leave the condition out to see the result"
    sweep = show_once(ask, sweep_report, terminal, verb="sweeping", unknown_hint=hint)
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
