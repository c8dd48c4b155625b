"""Options of `simulate-send`.

Typer reads the annotations when the program starts, so they are values here, not text.
"""

from typing import Annotated

from msgspec import Struct

from rmqlb.cli.common.options import panel, shown_option
from rmqlb.model.limits import MOST_RETRIES, MOST_THREADS
from rmqlb.model.send_scenario import NEWEST

_failures = panel("Failures")
_load = panel("Load")
_producer = panel("Producer")
_sdk = panel("Producer: SDK")


class FailureOptions(Struct, frozen=True):
    """What goes wrong, and when the NameServer notices."""

    fail: Annotated[
        list[str] | None,
        _failures(metavar="BROKER[@FROM-TO][:KIND]", help="A broker, or a pattern of them, that fails; repeatable."),
    ] = None
    latency: Annotated[
        list[str] | None,
        _failures(
            metavar="[BROKER=]SPEC",
            help="How long a healthy broker takes: 3ms, lognormal(5ms,2) (median, sigma) or FILE.csv; default 1ms.",
        ),
    ] = None
    nameserver_notices: Annotated[
        str | None,
        _failures(
            metavar="TIME|never",
            help="When the NameServer drops a failed broker; default: at once (refused), 120s (timeout).",
        ),
    ] = None
    route_poll: Annotated[str, _failures(metavar="TIME", help="How often the producer asks for the route.")] = "30s"
    first_poll: Annotated[
        str | None,
        _failures(
            metavar="TIME|random", help="When it first does so; default: as the SDK does, Java after one such time."
        ),
    ] = None


class LoadOptions(Struct, frozen=True):
    """What is sent."""

    messages: Annotated[
        str | None, _load(metavar="N", help="How many messages; default: as many as fit --for, or 1000.")
    ] = None
    rate: Annotated[
        str | None,
        _load(metavar="R", help="Messages per second in all; default: each thread sends back to back."),
    ] = None
    for_: Annotated[
        str | None,
        _load(
            "--for",
            metavar="TIME",
            help="No message starts after this time. Default while brokers fail, without --messages: until route polls "
            "have shown the producer each failure and its end, at 10 messages per second if there is no --rate.",
        ),
    ] = None
    threads: Annotated[
        int, _load(min=1, max=MOST_THREADS, help="Sending threads, each with a round robin of its own.")
    ] = 1
    start_at: Annotated[
        str | None, _load(metavar="BROKER:QUEUE", help="The first pick of the first thread; default: random.")
    ] = None
    seed: Annotated[int, _load(help="Random seed.")] = 1
    keys: Annotated[
        str | None,
        _load(metavar="FILE|-", help="Message keys, one per line, for --selector hash and FILE.py:NAME"),
    ] = None
    key_type: Annotated[str, _load(metavar="string|int|long", help="What the application passes to the selector.")] = (
        "string"
    )


class ProducerOptions(Struct, frozen=True):
    """How the producer is configured; the defaults are the client's own."""

    client: Annotated[str, _producer(metavar="VERSION", help="Version of the RocketMQ client library.")] = NEWEST
    mode: Annotated[str, _producer(metavar="sync|async|oneway", help="How it sends.")] = "sync"
    latency_fault: Annotated[str, _producer(metavar="on|off", help="sendLatencyFaultEnable.")] = "off"
    detector: Annotated[str, _producer(metavar="on|off", help="startDetectorEnable (5.1.4 and newer).")] = "off"
    sdk: Annotated[
        list[str] | None,
        _sdk(
            metavar="SDK[@VERSION]",
            help="Whose producer, as go or go-grpc@5.1.4; several are compared. Default: java.",
        ),
    ] = None
    proxy_mode: Annotated[
        str,
        _sdk(metavar="local|cluster", help="How the Proxy of gRPC producers runs: in each broker, or by itself."),
    ] = "local"
    send_retries: Annotated[
        int | None,
        _producer(
            min=0,
            max=MOST_RETRIES,
            help="retryTimesWhenSendFailed, or its twin for async. Default: as the SDK has it, 2; go 3.",
        ),
    ] = None
    send_timeout: Annotated[str, _producer(metavar="TIME", help="sendMsgTimeout, for all attempts together.")] = "3s"
    send_timeout_per_request: Annotated[
        str | None, _producer(metavar="TIME", help="sendMsgMaxTimeoutPerRequest (5.3.3 and newer).")
    ] = None
    retry_not_store_ok: Annotated[bool, _producer("--retry-not-store-ok", help="retryAnotherBrokerWhenNotStoreOK.")] = (
        False
    )
    selector: Annotated[
        str | None,
        _producer(
            metavar="hash|random|machine-room|BROKER:QUEUE|FILE.py:NAME",
            help="The application picks the queue: one attempt, no retry. FILE.py is run; NAME(queues, key) returns "
            "one, where key is a line of --keys, otherwise the message's number.",
        ),
    ] = None
    exclude: Annotated[
        list[str] | None, _producer(metavar="BROKER", help="The producer leaves this broker out; repeatable.")
    ] = None
    latency_max: Annotated[
        str | None, _producer(metavar="MS,MS,…", help="Thresholds of latency fault, not the version's.")
    ] = None
    not_available_duration: Annotated[
        str | None, _producer(metavar="MS,MS,…", help="For how long each of them isolates.")
    ] = None


class WhatOptions(Struct, frozen=True):
    """What is shown of the simulation."""

    trace: Annotated[bool, shown_option("--trace", help="List attempts and lost messages; -o jsonl streams them.")] = (
        False
    )
    compare: Annotated[bool, shown_option("--compare", help="Latency fault off and on side by side.")] = False
    compare_clients: Annotated[bool, shown_option("--compare-clients", help="Every stretch of client versions.")] = (
        False
    )
    compare_sdks: Annotated[
        bool, shown_option("--compare-sdks", help="Producers of every SDK, or of those that --sdk names, side by side.")
    ] = False
    trials: Annotated[
        str | None, shown_option(metavar="N", help="Run N times with other random parts; confidence intervals.")
    ] = None
    precision: Annotated[
        str | None, shown_option(metavar="P", help="Stop the trials when each interval is ±P: 0.1%.")
    ] = None
    fail_on: Annotated[
        list[str] | None,
        shown_option(metavar="CONDITION", help="Exit 3 when it is met: 'lost>0', 'share[broker-a]>60%'; repeatable."),
    ] = None
