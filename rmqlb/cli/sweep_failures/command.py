"""`rmqlb sweep-failures`."""

from rmqlb.cli.common.options import OutputOptions, SourceOptions, StrategyOptions, command
from rmqlb.cli.common.terminal import Terminal
from rmqlb.cli.sweep_failures.options import HeldOptions, LostOptions, SweptOptions


@command
def sweep_failures(
    source: SourceOptions,
    chosen: SweptOptions,
    lost: LostOptions,
    held: HeldOptions,
    strategy_options: StrategyOptions,
    output: OutputOptions,
) -> None:
    """Try every loss of consumers, brokers, hosts and zones, alone and in pairs: the least that break a limit.

    Examples:
      rmqlb sweep-failures -s examples/cluster.json

      rmqlb sweep-failures -s examples/cluster.json -g 'order-*' --fail-on 'counterexamples>0'

      rmqlb sweep-failures -s examples/cluster.json --lose broker --lose zone --zones examples/zones.yaml

      rmqlb sweep-failures --print-policy

    A case is one loss or two at once; all are tried, and those that take the same of a group or topic are computed
    once. A counterexample is a case that breaks a limit while none that takes less does; each comes with the command
    that shows it in full. The limits are those of a policy of rmqlb check.

    Exit codes: 0 done, 2 usage, 3 a --fail-on condition is met, 4 a name or pattern matches nothing, or nothing could
    be judged, 5 endpoint unreachable.
    """
    from rmqlb.cli.sweep_failures.run import run

    run(source, chosen, lost, held, strategy_options, Terminal("sweep-failures", output))
