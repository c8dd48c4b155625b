"""Option values of `plan-rebalance` as typed, parsed. Each error names the option."""

from __future__ import annotations

from rmqlb.cli.common import parse as values
from rmqlb.cli.common.strategies import Strategies
from rmqlb.cli.plan_rebalance.options import PlanOptions
from rmqlb.engine.plan.changes import Changes
from rmqlb.errors import UsageError

ALL = "ALL"


def changes_of(options: PlanOptions, strategies: Strategies) -> Changes:
    """What changes."""
    return Changes(
        add=tuple(values.count_or_id(text, "--add") for text in options.add or ()),
        remove=tuple(values.count_or_id(text, "--remove") for text in options.remove or ()),
        replace=tuple(values.pair(text, "--replace") for text in options.replace_ or ()),
        to_strategy=strategies.optional(options.to_strategy, "--to-strategy"),
        add_brokers=tuple(values.new_broker(text, f"--add-broker {text}") for text in options.add_broker or ()),
        remove_brokers=tuple(options.remove_broker or ()),
        read_queues=values.queue_counts(options.read_queues or (), "--read-queues"),
        write_queues=values.queue_counts(options.write_queues or (), "--write-queues"),
    )


def strategy_before(options: PlanOptions, strategies: Strategies) -> str | None:
    """`--strategy` in RocketMQ's spelling."""
    typed = options.strategy or None
    given = ALL if typed and typed.upper() == ALL else strategies.optional(typed)
    if given == ALL and options.to_strategy is not None:
        raise UsageError("--strategy all and --to-strategy contradict each other", hint="name the strategy before")
    return given
