"""What happens over time: to groups, to messages that consumers receive, and to messages that producers send."""

from functools import partial
from typing import Any, get_args

from rmqlb.cli.common.declare import Panel, Text, Texts, about, command, own, written
from rmqlb.cli.common.group_options import RATE_HINT, ChangeFlags, MemberOptions
from rmqlb.cli.common.options import GroupsOptions, OutputOptions, SourceOptions
from rmqlb.cli.common.output_files import PictureOptions
from rmqlb.cli.common.reading import Reading
from rmqlb.cli.common.send_options import SendOptions
from rmqlb.cli.common.set_option import SettingsOptions, setting
from rmqlb.cli.common.show_or_watch import answer, show_verb
from rmqlb.cli.common.terminal import Terminal
from rmqlb.errors import UsageError
from rmqlb.model import simulate_receive as model
from rmqlb.model.limits import MOST_THREADS
from rmqlb.model.simulate_receive import ReceiveScenario

_CLIENTS: tuple[model.ReceiveClient, ...] = get_args(model.ReceiveClient)

_happens = Panel("Events")


class RebalanceFlags(PictureOptions, ChangeFlags, MemberOptions, GroupsOptions):
    explain: bool = written.flag("Explain the steps of each consumer.")
    events: Texts = _happens(
        "--event 'VERB WHO@TIME'", "Event such as 'leave ID@30s', or @FILE; repeatable. FILE has one event per line."
    )
    trials: Text = _happens("N", "Number of simulations with varied clock phases. They give p50, p95 and max.")
    duration: Text = setting("for=TIME")
    all_new: bool = setting("all-new")
    broadcasting: bool = setting("broadcasting")
    change_at: str = setting("change-at=TIME", "30s")
    consume_threads: int | None = setting("consume-threads=N", most=MOST_THREADS)
    trial: str = setting("trial=K", "0")
    fail_on: Texts = written(
        "CONDITION", "Exit 3 if a condition holds: 'longest-gap-ms>5000'. With --trials, p95 decides; repeatable."
    )

    def arguments(self) -> dict[str, Any]:
        from rmqlb.verbs.rebalance_events import event_texts

        return super().arguments() | {"events": event_texts(self.events or ())}


@command
def simulate_rebalance(source: SourceOptions, options: RebalanceFlags, output: OutputOptions) -> None:
    """Simulate groups while consumers and brokers change: gaps, overlaps and outages of queues.

    Examples:
      rmqlb simulate-rebalance -s examples/cluster.json --group order-svc --scale-to 5
      rmqlb simulate-rebalance -s examples/cluster.json -g order-svc --event 'crash #1@30s' --explain
      rmqlb simulate-rebalance -s examples/cluster.json -g order-svc --rate 500 --set consume-time=40ms
      --event 'rolling-restart *@30s, every 60s, down 15s' -o json
      rmqlb simulate-rebalance -s examples/cluster.json -g order-svc --event 'broker-down broker-b@30s-5m' --trials 20
      rmqlb simulate-rebalance -s examples/cluster.json -g '*' --event 'restart-broker broker-b@30s, down 1m'

    An event is VERB WHO@TIME, with times from the start of the simulation:
      join ID@T[, strategy S], join N@T with placeholder IDs
      leave ID@T, crash ID@T, host-loss ID@T, pull-stall ID@T
      freeze ID@T or ID@T-T: a stopped process, a long GC pause
      broker-down or broker-loss NAME@T or NAME@T-T[, with slaves]
      restart-broker NAME@T, down TIME[, with slaves]
      broker-up NAME@T, or NAME[:READ[:WRITE]]@T for a new broker
      route-change [TOPIC:][BROKER=]READ[/WRITE]@T, in queues per broker
      restart ID@T, down TIME[, as ID]
      rolling-restart ID…@T, every TIME, down TIME[, at once N]
      strategy-change S@T, every TIME, down TIME[, order ID…]

    ID may be a pattern, or #N for the N-th of the initial consumers, counting from 0.
    Restarts may end in ', by crash', ', new ids' and ', same ids'.

    Exit codes: 0 done, 2 usage, 3 a --fail-on condition is met, 4 group, topic or consumers are missing,
    5 endpoint unreachable.
    """
    from rmqlb.verbs.selection import select

    if options.svg is not None and select(options.group).several:
        raise UsageError("--svg needs one group", hint="name a group with --group", code="which-group")
    answer("simulate-rebalance", "rebalance_report", source, options, output, doing="simulating", hint=RATE_HINT)


_SIMPLE = "leave it out, or pass --type simple"


_group, _arrivals, _failing = map(Panel, ("Consumers", "Messages", "Failures"))


class ReceiveOptions(SettingsOptions):
    broker: Texts = about(
        "NAME:QUEUES", "Broker and its readable queues; repeatable. Brokers replace the source's route."
    )
    broker_version: str = setting("broker-version=VERSION", "5.5.0")
    priority_factor: Text = setting("priority-factor=0..100")
    priority_retry: str = setting("priority-retry=0..100", "0")
    type: str = _group(
        "simple|push|pop",
        "Consumer type: gRPC simple, gRPC push, or pop. A SimpleConsumer or a PushConsumer uses a Proxy; pop is a "
        "remoting client in POP mode.",
        "simple",
    )
    consumers: str = _group("N", "Consumers of the group.", "1")
    loops: Text = _group("N", "Parallel receives per SimpleConsumer; default: 1.")
    await_: Text = _group("TIME", "Await duration of a SimpleConsumer (awaitDuration); default: 20s.")
    invisible: Text = _group(
        "TIME",
        "Invisible time of a received message; default: 60s. Sets invisibleDuration of a receive, or popInvisibleTime "
        "of POP clients.",
    )
    batch: str = _group("N", "Maximum number of messages per receive.", "32")
    orderly: bool = _group.flag("Ordered consumption (FIFO).")
    consume_time: str = _group("TIME", "Processing time per message, until the ack.", "0s")
    error_pause: str = setting("error-pause=TIME", "0s")
    round_trip: str = _group("TIME", "Round-trip time of a request.", "1ms")
    rate: Texts = _arrivals(
        "[BROKER[:QUEUE]=]R",
        "Messages per second: in total, per broker or per queue. Default: so few that each message finds all receives "
        "idle; with failures, 10 per second; repeatable.",
    )
    messages: Text = _arrivals("N", "Number of messages to measure; default: as many as fit --for, or 1000.")
    for_: Text = _arrivals(
        "TIME",
        "Duration of the simulation. Later messages are not measured; default with failures: until 5 minutes after the "
        "last failure.",
    )
    seed: int = setting("seed=N", 1)
    fail: Texts = _failing(
        "BROKER[@FROM-TO][:KIND]", "Failing broker or pattern; repeatable. KIND is refused (the default) or timeout."
    )
    nameserver_notices: Text = setting("nameserver-notices=TIME|never")
    crash: Texts = _failing("N@TIME", "Crash consumer N (from 1) at TIME; repeatable.")
    target_wait: Text = _arrivals("TIME", "Find how many receives keep waits within TIME.")
    trials: Text = _arrivals("N", "Number of simulations with new random numbers.")
    trace: bool = written.flag("List every message.")
    fail_on: Texts = written("CONDITION", "Exit 3 if a condition holds: 'wait-p95[broker-b]>5s'; repeatable.")
    topic: Text = own("-t TOPIC", "Topic to receive from.", positional="TOPIC")

    def scenario(self) -> ReceiveScenario:
        """All that needs no route (raises UsageError)."""
        from rmqlb.verbs.amounts import count, duration_us, given, one_of

        usual, client = ReceiveScenario(), one_of(self.type, "--type", _CLIENTS)
        simple_only = {"--loops ": self.loops, "--await ": self.await_, "--set error-pause=": self.error_pause}
        for option, text in simple_only.items():
            if client != "simple" and text not in (None, "0s"):
                raise UsageError(f"{option}{text}: only a SimpleConsumer has this setting", hint=_SIMPLE)
        if client == "push" and self.invisible is not None:
            problem = f"--invisible {self.invisible}: for a PushConsumer, the Proxy sets and renews the invisible time"
            raise UsageError(problem, hint=_SIMPLE)
        if self.nameserver_notices is not None and self.nameserver_notices.lower() != "never":
            # wrong without a failure too
            duration_us(self.nameserver_notices, "--set nameserver-notices=", zero=True)
        return ReceiveScenario(
            client=client,
            consumers=count(self.consumers, "--consumers", most=model.MOST_RECEIVERS),
            loops=count(self.loops or "1", "--loops", most=model.MOST_LOOPS),
            await_us=given(duration_us, self.await_, "--await") or usual.await_us,
            invisible_us=given(duration_us, self.invisible, "--invisible") or usual.invisible_us,
            batch=count(self.batch, "--batch", most=model.MOST_BATCH),
            fifo=self.orderly,
            consume_us=duration_us(self.consume_time, "--consume-time", zero=True),
            error_pause_us=duration_us(self.error_pause, "--set error-pause=", zero=True),
            round_trip_us=duration_us(self.round_trip, "--round-trip", zero=True),
            messages=given(count, self.messages, "--messages", model.MOST_RECEIVED),
            duration_us=given(duration_us, self.for_, "--for"),
            crashes=self._crashes(),
            seed=self.seed,
            broker_version=self.broker_version,
            priority_factor=given(count, self.priority_factor, "--set priority-factor=", model.MOST_PERCENT, 0),
            priority_retry_percent=count(self.priority_retry, "--set priority-retry=", model.MOST_PERCENT, 0),
        )

    def _crashes(self) -> tuple[model.Crash, ...]:
        from rmqlb.verbs.amounts import count, duration_us
        from rmqlb.verbs.parse import must_differ

        found = []
        for text in self.crash or ():
            number, at, time = text.partition("@")
            if not at:
                raise UsageError(f"--crash {text}: expected N@TIME, as in 1@30s")
            consumer = count(number, f"--crash {text}: consumer", most=model.MOST_RECEIVERS)
            found.append(model.Crash(consumer, duration_us(time, f"--crash {text}:", zero=True)))
        must_differ(self.crash or (), [crash.consumer for crash in found], "--crash")
        return tuple(found)


@command
def simulate_receive(source: SourceOptions, options: ReceiveOptions, output: OutputOptions) -> None:
    """Simulate how long messages wait for gRPC and POP consumers.

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

    terminal = Terminal("simulate-receive", output)
    if options.broker and source.source is not None and source.active_context is None:
        raise UsageError("-s and --broker both name the brokers", hint="leave one of them out")
    notices = options.nameserver_notices
    simulated = partial(
        verb.simulate_receive,
        options.broker or partial(Reading, source, terminal),
        options.topic,
        options.scenario(),
        rates=options.rate or (),
        failures=lambda brokers, name: producer_values.failures(options.fail or (), brokers, name, notices),
        target_us=given(duration_us, options.target_wait, "--target-wait"),
        trials=given(count, options.trials, "--trials", model.MOST_RECEIVE_TRIALS, 2),
        trace=options.trace or "messages" in (output.section or ()),
        fail_on=options.fail_on or (),
    )
    hint = "no message was received: use the figure left"
    show_verb(simulated, "simulate_receive.receive_report", terminal, doing="simulating", hint=hint)


@command(without=("proxy",))
def simulate_send(source: SourceOptions, options: SendOptions, output: OutputOptions) -> None:
    """Simulate a producer while brokers fail: its queues, its retries, and the brokers it isolates.

    Examples:
      rmqlb simulate-send -s examples/cluster.json --topic OrderEvents --fail broker-b
      rmqlb simulate-send -s examples/cluster.json -t OrderEvents --fail broker-b:timeout --rate 9
      rmqlb simulate-send -s examples/cluster.json -t OrderEvents --fail broker-b@45s- --rate 9 --compare latency-fault
      rmqlb simulate-send -s examples/cluster.json -t OrderEvents --fail broker-b:timeout --fail-on 'lost>0' -o json
      rmqlb simulate-send -s examples/cluster.json -t OrderEvents --fail 'broker-*@#45-#60' --messages 100 -o jsonl

    A failure is BROKER[@FROM-TO][:KIND]. FROM and TO are times (45s, 1m30s) or message numbers (#45). KIND is refused
    (the default), timeout, slow=800ms, read-only, a store status, or the name or number of a RocketMQ response code.

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
