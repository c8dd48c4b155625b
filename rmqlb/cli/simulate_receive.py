"""`rmqlb simulate-receive`."""

from typing import Annotated, get_args

from msgspec import Struct
from typer import Option

from rmqlb.cli.common.options import OutputOptions, SourceOptions, about_option, command, panel, shown_option
from rmqlb.cli.common.terminal import Terminal
from rmqlb.errors import UsageError
from rmqlb.model.send_scenario import NEWEST
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

_receiver_option = panel("Consumers")
_arrivals_option = panel("Messages")
_failing_option = panel("Failures")
_CLIENTS: tuple[ReceiveClient, ...] = get_args(ReceiveClient)
_SIMPLE = "leave it out, or --type simple"


class ScenarioOptions(Struct, frozen=True):
    """The brokers, the group's consumers, what arrives, and what goes wrong."""

    broker: Annotated[
        list[str] | None,
        about_option(
            metavar="NAME:QUEUES", help="A broker and its readable queues, instead of a source's route; repeatable."
        ),
    ] = None
    broker_version: Annotated[
        str,
        about_option(
            metavar="VERSION",
            help="Version of the brokers: up to 5.3.4 they go through their queues upward, from 5.4.0 on downward.",
        ),
    ] = NEWEST
    type: Annotated[
        str,
        _receiver_option(
            metavar="simple|push|pop",
            help="gRPC SimpleConsumer or PushConsumer through a Proxy, or remoting clients in POP mode.",
        ),
    ] = "simple"
    processes: Annotated[str, _receiver_option(metavar="N", help="How many consumers the group has.")] = "1"
    loops: Annotated[
        str | None, _receiver_option(metavar="N", help="Receives in parallel of each SimpleConsumer; default: 1.")
    ] = None
    await_: Annotated[
        str | None,
        _receiver_option("--await", metavar="TIME", help="awaitDuration of a SimpleConsumer; default: 20s."),
    ] = None
    invisible: Annotated[
        str | None,
        _receiver_option(
            metavar="TIME", help="invisibleDuration of a receive, or popInvisibleTime of POP clients; default: 60s."
        ),
    ] = None
    batch: Annotated[str, _receiver_option(metavar="N", help="Most messages of one receive.")] = "32"
    fifo: Annotated[bool, _receiver_option("--fifo", help="The group consumes in order.")] = False
    consume_time: Annotated[
        str, _receiver_option(metavar="TIME", help="How long the application takes for a message, then acknowledged.")
    ] = "0s"
    error_pause: Annotated[
        str | None,
        _receiver_option(metavar="TIME", help="What a SimpleConsumer's loop waits after an error; default: nothing."),
    ] = None
    round_trip: Annotated[
        str, _receiver_option(metavar="TIME", help="How long a request and its answer are under way.")
    ] = "1ms"
    rate: Annotated[
        list[str] | None,
        _arrivals_option(
            metavar="[BROKER[:QUEUE]=]R",
            help="Messages per second of all queues together, of a broker or of a queue; repeatable. Default: so rare "
            "that each finds all receives idle; 10 per second while something fails.",
        ),
    ] = None
    messages: Annotated[
        str | None,
        _arrivals_option(metavar="N", help="How many messages are measured; default: as many as fit --for, or 1000."),
    ] = None
    for_: Annotated[
        str | None,
        _arrivals_option(
            "--for",
            metavar="TIME",
            help="Measure what arrives until then; default while something fails: 5 minutes after the last of it.",
        ),
    ] = None
    seed: Annotated[int, _arrivals_option(help="Random seed.")] = 1
    fail: Annotated[
        list[str] | None,
        _failing_option(
            metavar="BROKER[@FROM-TO][:KIND]",
            help="A broker, or a pattern of them, that fails: refused (the default) or timeout; repeatable.",
        ),
    ] = None
    nameserver_notices: Annotated[
        str | None,
        _failing_option(
            metavar="TIME|never",
            help="When the NameServer drops a failed broker; default: at once (refused), 120s (timeout).",
        ),
    ] = None
    crash: Annotated[
        list[str] | None,
        _failing_option(metavar="N@TIME", help="Consumer N (from 1) dies at this time; repeatable."),
    ] = None

    def scenario(self) -> ReceiveScenario:
        """All that needs no route (raises UsageError)."""
        from rmqlb.verbs.amounts import count, duration_us, one_of

        usual, client = ReceiveScenario(), one_of(self.type, "--type", _CLIENTS)
        simple_only = {"--loops": self.loops, "--await": self.await_, "--error-pause": self.error_pause}
        for option, text in simple_only.items():
            if client != "simple" and text is not None:
                raise UsageError(f"{option} {text}: only a SimpleConsumer has it", hint=_SIMPLE)
        if client == "push" and self.invisible is not None:
            problem = f"--invisible {self.invisible}: the Proxy decides it for a PushConsumer, and renews it"
            raise UsageError(problem, hint=_SIMPLE)
        if self.nameserver_notices is not None and self.nameserver_notices.lower() != "never":
            duration_us(self.nameserver_notices, "--nameserver-notices", zero=True)  # wrong without a failure too
        return ReceiveScenario(
            client=client,
            consumers=count(self.processes, "--processes", most=MOST_RECEIVERS),
            loops=count(self.loops or "1", "--loops", most=MOST_LOOPS),
            await_us=usual.await_us if self.await_ is None else duration_us(self.await_, "--await"),
            invisible_us=usual.invisible_us if self.invisible is None else duration_us(self.invisible, "--invisible"),
            batch=count(self.batch, "--batch", most=MOST_BATCH),
            fifo=self.fifo,
            consume_us=duration_us(self.consume_time, "--consume-time", zero=True),
            error_pause_us=duration_us(self.error_pause or "0s", "--error-pause", zero=True),
            round_trip_us=duration_us(self.round_trip, "--round-trip", zero=True),
            messages=None if self.messages is None else count(self.messages, "--messages", most=MOST_RECEIVED),
            duration_us=None if self.for_ is None else duration_us(self.for_, "--for"),
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


class ReceiveWhatOptions(Struct, frozen=True):
    """What is asked and shown."""

    target_wait: Annotated[
        str | None,
        shown_option(metavar="TIME", help="How many receives in parallel keep every wait within this time."),
    ] = None
    trials: Annotated[
        str | None, shown_option(metavar="N", help="Waits over N simulations with other random parts.")
    ] = None
    trace: Annotated[bool, shown_option("--trace", help="List every message.")] = False
    fail_on: Annotated[
        list[str] | None,
        shown_option(
            metavar="CONDITION", help="Exit 3 when it is met: 'wait-max>1s', 'wait-p95[broker-b]>5s'; repeatable."
        ),
    ] = None


@command
def simulate_receive(
    source: SourceOptions,
    options: ScenarioOptions,
    output: OutputOptions,
    what: ReceiveWhatOptions,
    topic: Annotated[
        str | None, Option("-t", "--topic", metavar="TOPIC", help="The topic that is received from.")
    ] = None,
) -> None:
    """Simulate how long messages wait for consumers that receive: gRPC clients through a Proxy, and POP.

    Examples:
      rmqlb simulate-receive -s examples/cluster.json --topic OrderEvents --target-wait 1s

      rmqlb simulate-receive --broker broker-a:8 --broker broker-b:8 --loops 4 --rate 50 --for 10m

      rmqlb simulate-receive -s examples/cluster.json -t OrderEvents --type push --fail broker-b@30s-5m

      rmqlb simulate-receive -s examples/cluster.json -t OrderEvents --processes 2 --crash 1@1m --consume-time 20ms

    Exit codes: 0 done, 2 usage, 3 a --fail-on condition is met, 4 no route or no queue to receive from,
    5 endpoint unreachable.
    """
    from functools import partial

    from rmqlb.cli.common import producer_values
    from rmqlb.cli.common.reading import Reader
    from rmqlb.cli.common.show_or_watch import show_once
    from rmqlb.verbs import simulate_receive as verb
    from rmqlb.verbs.amounts import count, duration_us
    from rmqlb.views.simulate_receive import receive_report

    terminal = Terminal("simulate-receive", output)
    if options.broker and source.source is not None and source.active_context is None:
        raise UsageError("-s and --broker both say which brokers there are", hint="leave one of them out")
    notices, trials, target = options.nameserver_notices, what.trials, what.target_wait
    ask = partial(
        verb.simulate_receive,
        options.broker or partial(Reader, source, terminal),
        topic,
        options.scenario(),
        rates=options.rate or (),
        failures=lambda brokers, name: producer_values.failures(options.fail or (), brokers, name, notices),
        target_us=None if target is None else duration_us(target, "--target-wait"),
        trials=None if trials is None else count(trials, "--trials", most=MOST_RECEIVE_TRIALS, least=2),
        trace=what.trace or "messages" in (output.section or ()),
        fail_on=what.fail_on or (),
    )
    show_once(ask, receive_report, terminal, verb="simulating", unknown_hint="no message is received: ask for left")
