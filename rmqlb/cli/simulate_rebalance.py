from typing import Any

from rmqlb.cli.common.declare import Panel, Text, Texts, command, shown
from rmqlb.cli.common.options import GroupsOptions, OutputOptions, SourceOptions
from rmqlb.cli.common.pictures import PictureOptions
from rmqlb.cli.common.reading import Reader, ask
from rmqlb.cli.common.simulation_options import RATE_HINT, MemberOptions
from rmqlb.cli.common.terminal import Terminal
from rmqlb.errors import UsageError

_happens, _trials = Panel("What happens"), Panel("Trials")


class RebalanceOptions(PictureOptions, MemberOptions, GroupsOptions):
    explain: bool = shown.flag("List what each consumer does when, and why.")
    events: Texts = _happens(
        "--event 'VERB WHO@TIME'", "Something that happens, as 'leave ID@30s', or @FILE with one per line; repeatable."
    )
    duration: Text = _happens("--for TIME", "Simulate for that time; default: until it has converged.")
    all_new: bool = _happens.flag("All consumers start at 0s; default: they have run for a while.")
    broadcasting: bool = _happens.flag("BROADCASTING; default: what the source says, or CLUSTERING.")
    trials: Text = _trials("N", "Also run N times with other phases of the clocks: p50, p95 and max.")
    trial: str = _trials("K", "Which of them to look at, from 0.", "0")
    seed: int = _trials("", "Random seed.", 1)
    fail_on: Texts = shown(
        "CONDITION", "Exit 3 when it is met: 'longest-gap-ms>5000', with --trials of 95 %; repeatable."
    )

    def arguments(self) -> dict[str, Any]:
        from rmqlb.verbs.rebalance_events import event_texts

        return super().arguments() | {"events": event_texts(self.events or ())}


@command
def simulate_rebalance(source: SourceOptions, options: RebalanceOptions, output: OutputOptions) -> None:
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
    from rmqlb.cli.common.pictures import draw
    from rmqlb.cli.common.show_or_watch import conditions_of, judge, require_known
    from rmqlb.model.simulate_rebalance import RebalanceResult
    from rmqlb.verbs import simulate_rebalance as verb
    from rmqlb.verbs.selection import select
    from rmqlb.views.simulate_rebalance import group_facts, rebalance_report

    terminal = Terminal("simulate-rebalance", output)
    options.check()
    for option in options.files if select(options.group).several else ():
        raise UsageError(f"{option}: the picture of which group?", hint="name one with --group", code="which-group")
    simulated = ask(verb.simulate_rebalance, Reader(source, terminal), options)
    with terminal.progress(verb="simulating") as progress:
        found = simulated(progress=progress)
    tried = conditions_of(found)
    require_known(tried, RATE_HINT)
    report = rebalance_report(found)
    if isinstance(found, RebalanceResult):
        draw(found, group_facts(found), report, found.meta.findings, options, terminal)
    if options.fill_stdout:
        terminal.warn(found.meta.findings)
    else:
        terminal.show(report, found.meta.snapshot, found.meta.findings)
    judge(tried, terminal)
