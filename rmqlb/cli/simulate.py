"""What happens over time: to groups, to messages that consumers receive, and to messages that producers send."""

from functools import partial
from typing import Any, get_args

from rmqlb.cli.common.change_options import ChangeOptions
from rmqlb.cli.common.declare import Panel, Text, Texts, about, command, own, written
from rmqlb.cli.common.options import GroupsOptions, OutputOptions, SourceOptions
from rmqlb.cli.common.output_files import PictureOptions
from rmqlb.cli.common.reading import Reader, ask
from rmqlb.cli.common.send_options import SendOptions
from rmqlb.cli.common.set_option import SettingsOptions, setting
from rmqlb.cli.common.show_or_watch import show_verb
from rmqlb.cli.common.simulation_options import RATE_HINT, MemberOptions
from rmqlb.cli.common.terminal import Terminal
from rmqlb.errors import UsageError
from rmqlb.model.simulate_receive import (
    MOST_BATCH,
    MOST_LOOPS,
    MOST_RECEIVE_TRIALS,
    MOST_RECEIVED,
    MOST_RECEIVERS,
    Crash,
    ReceiveClient,
    ReceiveScenario,
)

_CLIENTS: tuple[ReceiveClient, ...] = get_args(ReceiveClient)

_happens = Panel("What happens")


class RebalanceOptions(PictureOptions, ChangeOptions, MemberOptions, GroupsOptions):
    explain: bool = written.flag("List what each consumer does when, and why.")
    events: Texts = _happens(
        "--event 'VERB WHO@TIME'", "Something that happens, as 'leave ID@30s', or @FILE with one per line; repeatable."
    )
    trials: Text = _happens("N", "Also run N times with other phases of the clocks: p50, p95 and max.")
    duration: Text = setting("for")
    all_new: bool = setting("all-new")
    broadcasting: bool = setting("broadcasting")
    change_at: str = setting("change-at")
    trial: str = setting("trial")
    fail_on: Texts = written(
        "CONDITION", "Exit 3 when it is met: 'longest-gap-ms>5000', with --trials of 95 %; repeatable."
    )

    def arguments(self) -> dict[str, Any]:
        from rmqlb.verbs.rebalance_events import event_texts

        return super().arguments() | {"events": event_texts(self.events or ())}


@command
def simulate_rebalance(source: SourceOptions, options: RebalanceOptions, output: OutputOptions) -> None:
    """Simulate groups while consumers and brokers come and go: gaps, overlaps and outages of their queues.

    Examples:
      rmqlb simulate-rebalance -s examples/cluster.json --group order-svc --scale-to 5
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

    Exit codes: 0 done, 2 usage, 3 a --fail-on condition is met, 4 group, topic or consumers are not there,
    5 endpoint unreachable.
    """
    from rmqlb.cli.common.show_or_watch import conditions_of, judge, require_known
    from rmqlb.verbs import simulate_rebalance as verb
    from rmqlb.verbs.selection import select
    from rmqlb.views.simulate_rebalance import rebalance_report

    terminal = Terminal("simulate-rebalance", output, files=options)
    if options.svg is not None and select(options.group).several:
        raise UsageError("--svg: the picture of which group?", hint="name one with --group", code="which-group")
    simulated = ask(verb.simulate_rebalance, Reader(source, terminal), options)
    with terminal.progress(verb="simulating") as progress:
        found = simulated(progress=progress)
    tried = conditions_of(found)
    require_known(tried, RATE_HINT)
    terminal.show(rebalance_report(found), found.meta.snapshot, found.meta.findings)
    judge(tried, terminal)


_SIMPLE = "leave it out, or --type simple"


_group, _arrivals, _failing = map(Panel, ("Consumers", "Messages", "Failures"))


class ReceiveOptions(SettingsOptions):
    broker: Texts = about("NAME:QUEUES", "A broker and its readable queues, instead of a source's route; repeatable.")
    broker_version: str = setting("broker-version")
    type: str = _group(
        "simple|push|pop",
        "gRPC SimpleConsumer or PushConsumer through a Proxy, or remoting clients in POP mode.",
        "simple",
    )
    consumers: str = _group("N", "How many consumers the group has.", "1")
    loops: Text = _group("N", "Receives in parallel of each SimpleConsumer; default: 1.")
    await_: Text = _group("TIME", "awaitDuration of a SimpleConsumer; default: 20s.")
    invisible: Text = _group(
        "TIME", "invisibleDuration of a receive, or popInvisibleTime of POP clients; default: 60s."
    )
    batch: str = _group("N", "Most messages of one receive.", "32")
    orderly: bool = _group.flag("The group consumes in order (FIFO).")
    consume_time: str = _group("TIME", "How long the application takes for a message, then acknowledged.", "0s")
    error_pause: str = setting("error-pause")
    round_trip: str = _group("TIME", "How long a request and its answer are under way.", "1ms")
    rate: Texts = _arrivals(
        "[BROKER[:QUEUE]=]R",
        "Messages per second of all queues together, of a broker or of a queue; repeatable. Default: so rare "
        "that each finds all receives idle; 10 per second while something fails.",
    )
    messages: Text = _arrivals("N", "How many messages are measured; default: as many as fit --for, or 1000.")
    for_: Text = _arrivals(
        "TIME", "Measure what arrives until then; default while something fails: 5 minutes after the last of it."
    )
    seed: int = setting("seed")
    fail: Texts = _failing(
        "BROKER[@FROM-TO][:KIND]",
        "A broker, or a pattern of them, that fails: refused (the default) or timeout; repeatable.",
    )
    nameserver_notices: Text = setting("nameserver-notices")
    crash: Texts = _failing("N@TIME", "Consumer N (from 1) dies at this time; repeatable.")
    target_wait: Text = _arrivals("TIME", "How many receives in parallel keep every wait within this time.")
    trials: Text = _arrivals("N", "Waits over N simulations with other random parts.")
    trace: bool = written.flag("List every message.")
    fail_on: Texts = written("CONDITION", "Exit 3 when it is met: 'wait-max>1s', 'wait-p95[broker-b]>5s'; repeatable.")
    topic: Text = own("-t TOPIC", "The topic that is received from.", positional="TOPIC")

    def scenario(self) -> ReceiveScenario:
        """All that needs no route (raises UsageError)."""
        from rmqlb.verbs.amounts import count, duration_us, given, one_of
        from rmqlb.verbs.settings import read_setting

        usual, client = ReceiveScenario(), one_of(self.type, "--type", _CLIENTS)
        simple_only = {"--loops ": self.loops, "--await ": self.await_, "--set error-pause=": self.error_pause}
        for option, text in simple_only.items():
            if client != "simple" and text not in (None, "0s"):
                raise UsageError(f"{option}{text}: only a SimpleConsumer has it", hint=_SIMPLE)
        if client == "push" and self.invisible is not None:
            problem = f"--invisible {self.invisible}: the Proxy decides it for a PushConsumer, and renews it"
            raise UsageError(problem, hint=_SIMPLE)
        if self.nameserver_notices is not None and self.nameserver_notices.lower() != "never":
            read_setting(
                "nameserver-notices", duration_us, self.nameserver_notices, zero=True
            )  # wrong without a failure too
        return ReceiveScenario(
            client=client,
            consumers=count(self.consumers, "--consumers", most=MOST_RECEIVERS),
            loops=count(self.loops or "1", "--loops", most=MOST_LOOPS),
            await_us=given(duration_us, self.await_, "--await") or usual.await_us,
            invisible_us=given(duration_us, self.invisible, "--invisible") or usual.invisible_us,
            batch=count(self.batch, "--batch", most=MOST_BATCH),
            fifo=self.orderly,
            consume_us=duration_us(self.consume_time, "--consume-time", zero=True),
            error_pause_us=read_setting("error-pause", duration_us, self.error_pause, zero=True),
            round_trip_us=duration_us(self.round_trip, "--round-trip", zero=True),
            messages=given(count, self.messages, "--messages", MOST_RECEIVED),
            duration_us=given(duration_us, self.for_, "--for"),
            crashes=self._crashes(),
            seed=self.seed,
            broker_version=self.broker_version,
        )

    def _crashes(self) -> tuple[Crash, ...]:
        from rmqlb.verbs.amounts import count, duration_us
        from rmqlb.verbs.parse import must_differ

        found = []
        for text in self.crash or ():
            number, at, time = text.partition("@")
            if not at:
                raise UsageError(f"--crash {text}: expected N@TIME, as in 1@30s")
            consumer = count(number, f"--crash {text}: consumer", most=MOST_RECEIVERS)
            found.append(Crash(consumer, duration_us(time, f"--crash {text}:", zero=True)))
        must_differ(self.crash or (), [crash.consumer for crash in found], "--crash")
        return tuple(found)


@command
def simulate_receive(source: SourceOptions, options: ReceiveOptions, output: OutputOptions) -> None:
    """Simulate how long messages wait for consumers that receive: gRPC clients through a Proxy, and POP.

    Examples:
      rmqlb simulate-receive -s examples/cluster.json --topic OrderEvents --target-wait 1s
      rmqlb simulate-receive --broker broker-a:8 --broker broker-b:8 --loops 4 --rate 50 --for 10m
      rmqlb simulate-receive -s examples/cluster.json -t OrderEvents --type push --fail broker-b@30s-5m
      rmqlb simulate-receive -s examples/cluster.json -t OrderEvents --consumers 2 --crash 1@1m --consume-time 20ms

    Exit codes: 0 done, 2 usage, 3 a --fail-on condition is met, 4 no route or no queue to receive from,
    5 endpoint unreachable.
    """
    from rmqlb.cli.common import producer_values
    from rmqlb.verbs import simulate_receive as verb
    from rmqlb.verbs.amounts import count, duration_us, given
    from rmqlb.views.simulate_receive import receive_report

    terminal = Terminal("simulate-receive", output)
    if options.broker and source.source is not None and source.active_context is None:
        raise UsageError("-s and --broker both say which brokers there are", hint="leave one of them out")
    notices = options.nameserver_notices
    simulated = partial(
        verb.simulate_receive,
        options.broker or partial(Reader, source, terminal),
        options.topic,
        options.scenario(),
        rates=options.rate or (),
        failures=lambda brokers, name: producer_values.failures(options.fail or (), brokers, name, notices),
        target_us=given(duration_us, options.target_wait, "--target-wait"),
        trials=given(count, options.trials, "--trials", MOST_RECEIVE_TRIALS, 2),
        trace=options.trace or "messages" in (output.section or ()),
        fail_on=options.fail_on or (),
    )
    hint = "no message is received: ask for left"
    show_verb(simulated, receive_report, terminal, verb="simulating", unknown_hint=hint)


@command(without=("proxy",))
def simulate_send(source: SourceOptions, options: SendOptions, output: OutputOptions) -> None:
    """Simulate a producer while brokers fail: the queues it picks, its retries, and the brokers it isolates.

    Examples:
      rmqlb simulate-send -s examples/cluster.json --topic OrderEvents --fail broker-b
      rmqlb simulate-send -s examples/cluster.json -t OrderEvents --fail broker-b@45s- --rate 9 --compare latency-fault
      rmqlb simulate-send -s examples/cluster.json -t OrderEvents --fail broker-b:timeout --fail-on 'lost>0' -o json
      rmqlb simulate-send -s examples/cluster.json -t OrderEvents --fail 'broker-*@#45-#60' --messages 100 -o jsonl

    A failure is BROKER[@FROM-TO][:KIND]. FROM and TO are times (45s, 1m30s) or message numbers (#45); KIND is
    refused (the default), timeout, slow=800ms, read-only, a store status or a response code by RocketMQ's name or
    number.

    Exit codes: 0 done, 2 usage, 3 a --fail-on condition is met, 4 no route or no queue to write to,
    5 endpoint unreachable.
    """
    from rmqlb.cli.common.send_question import answer, read_question
    from rmqlb.engine.send.findings import SEND_FIGURES
    from rmqlb.verbs import parse

    terminal = Terminal("simulate-send", output, more_formats=("jsonl",))
    conditions = parse.conditions(options.fail_on, SEND_FIGURES)
    question = read_question(source, parse.named_topic(options.topic), options, terminal)
    answer(question, terminal, conditions, trace=options.trace or "attempts" in (output.section or ()))
