"""`rmqlb simulate-rebalance`."""

from rmqlb.cli.common.group_simulation.options import (
    EventOptions,
    GroupSimulationOptions,
    GroupsOverTimeOptions,
    MemberOptions,
    MembersStrategy,
    TrialOptions,
)
from rmqlb.cli.common.options import OutputOptions, SourceOptions, StrategyOptions, command
from rmqlb.cli.common.terminal import Terminal
from rmqlb.cli.simulate_rebalance.options import ShowOptions


@command
def simulate_rebalance(
    *,
    source: SourceOptions,
    which: GroupsOverTimeOptions,
    happens: EventOptions,
    configured: MemberOptions,
    dice: TrialOptions,
    strategy_options: StrategyOptions,
    output: OutputOptions,
    strategy: MembersStrategy = None,
    what: ShowOptions,
) -> None:
    """Simulate groups while consumers and brokers come and go: gaps, overlaps and outages of their queues.

    Examples:
      rmqlb simulate-rebalance -s examples/cluster.json --group order-svc --event 'join 192.0.2.2@inst3@30s'

      rmqlb simulate-rebalance -s examples/cluster.json -g order-svc --event 'crash #1@30s' --explain --trials 100

      rmqlb simulate-rebalance -s examples/cluster.json -g order-svc --rate 500
      --event 'rolling-restart *@30s, every 60s, down 15s' -o json

      rmqlb simulate-rebalance -s examples/cluster.json -g order-svc --event 'broker-down broker-b@30s-5m' --orderly

      rmqlb simulate-rebalance -s examples/cluster.json -g '*' --event 'restart-broker broker-b@30s, down 1m'

    An event is VERB WHO@TIME, times counting from the start:
      join ID@T[, strategy S], join N@T with placeholder IDs
      leave ID@T, crash ID@T, host-loss ID@T, pull-stall ID@T
      freeze ID@T or ID@T-T: a stopped process, a long GC pause
      broker-down NAME@T or NAME@T-T[, with slaves], broker-loss the same
      restart-broker NAME@T, down TIME[, with slaves]
      broker-up NAME@T, a new one NAME[:READ[:WRITE]]@T
      route-change [TOPIC:][BROKER=]READ[/WRITE]@T, in queues per broker
      restart ID@T, down TIME[, as ID]
      rolling-restart ID…@T, every TIME, down TIME[, at once N]
      strategy-change S@T, every TIME, down TIME[, order ID…]

    ID may be a pattern, or #N, the N-th of the first consumers from 0 on.
    Restarts may end in ', by crash', ', new ids' and ', same ids'.

    Timers: rebalance-wait, rebalance-min, route-poll, heartbeat, persist,
    pull-delay, pull-idle, pull-hold, lock-renewal, lock-life, lock-retry,
    unlock-delay, release-wait, channel-expiry, broker-scan, socket-idle,
    notify-batch, rpc-timeout, nameserver-expiry, nameserver-scan, registration,
    start, connect, close.

    Exit codes: 0 done, 2 usage, 3 a --fail-on condition is met, 4 group, topic or consumers are not there,
    5 endpoint unreachable.
    """
    from msgspec.structs import replace

    from rmqlb.cli.common.group_simulation.expand_events import event_texts
    from rmqlb.cli.simulate_rebalance.run import run

    happens = replace(happens, event=list(event_texts(happens.event or ())))
    options = GroupSimulationOptions(source, configured, strategy_options, dice.seed, happens)
    run(options, which, strategy, dice, what, Terminal("simulate-rebalance", output))
