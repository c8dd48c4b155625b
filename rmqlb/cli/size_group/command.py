"""`rmqlb size-group`.

Typer reads the annotations when the program starts, so they are values here, not text.
"""

from rmqlb.cli.common.options import OutputOptions, SourceOptions, StrategyOptions, command
from rmqlb.cli.common.terminal import Terminal
from rmqlb.cli.size_group.options import (
    FutureIdOptions,
    LimitOptions,
    ShowSizeOptions,
    SizedGroupOptions,
    WhichSizesOptions,
    WorkOptions,
)


@command
def size_group(
    *,
    source: SourceOptions,
    which: SizedGroupOptions,
    limits: LimitOptions,
    sizes: WhichSizesOptions,
    work: WorkOptions,
    ids: FutureIdOptions,
    strategy_options: StrategyOptions,
    what: ShowSizeOptions,
    output: OutputOptions,
) -> None:
    """Find the fewest consumers, and queues, with which a group is as balanced and as robust as asked.

    Examples:
      rmqlb size-group -s examples/cluster.json --group order-svc

      rmqlb size-group -s examples/cluster.json -g order-svc --max-imbalance 1.1 --no-idle --survive 1 --consumers 2..40

      rmqlb size-group -s examples/cluster.json -g order-svc --rate 500 --consume-time 40ms --survive-broker

      rmqlb size-group -s examples/cluster.json -g order-svc --queues-per-broker 4..32 --consumers 8..12 -o json
      --fail-on unsatisfied

    Exit codes: 0 done, 2 usage, 3 a --fail-on condition is met, 4 group, topic or rates are not there,
    5 endpoint unreachable.
    """
    from rmqlb.cli.size_group.run import run

    run(source, which, limits, sizes, work, ids, strategy_options, what, Terminal("size-group", output))
