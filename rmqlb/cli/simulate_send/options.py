"""The options of `simulate-send`: what fails, what is sent, and how the producer is configured."""

from typing import Annotated

from msgspec import Struct
from typer import Option

from rmqlb.model.limits import MOST_RETRIES, MOST_THREADS
from rmqlb.model.send_scenario import NEWEST

FAILURES, LOAD, PRODUCER = "Failures", "Load", "Producer"


class FailureOptions(Struct, frozen=True):
    """What goes wrong, and when the NameServer notices."""

    fail: Annotated[
        list[str] | None,
        Option(
            metavar="BROKER[@FROM-TO][:KIND]",
            help="A broker, or a pattern of them, that fails; repeatable.",
            rich_help_panel=FAILURES,
        ),
    ] = None
    latency: Annotated[
        list[str] | None,
        Option(
            metavar="[BROKER=]SPEC",
            help="How long a healthy broker takes: 3ms, lognormal(5ms,2) (median, sigma) or FILE.csv; else 1ms.",
            rich_help_panel=FAILURES,
        ),
    ] = None
    nameserver_notices: Annotated[
        str | None,
        Option(
            metavar="TIME|never",
            help="When the NameServer drops a failed broker; else at once (refused), 120s (timeout).",
            rich_help_panel=FAILURES,
        ),
    ] = None
    route_poll: Annotated[
        str, Option(metavar="TIME", help="How often the producer asks for the route.", rich_help_panel=FAILURES)
    ] = "30s"
    first_poll: Annotated[
        str | None,
        Option(
            metavar="TIME|random", help="When it first does so; else after one such time.", rich_help_panel=FAILURES
        ),
    ] = None


class LoadOptions(Struct, frozen=True):
    """What is sent."""

    messages: Annotated[
        str | None,
        Option(metavar="N", help="How many messages; else 1000, or as many as fit --for.", rich_help_panel=LOAD),
    ] = None
    rate: Annotated[
        str | None,
        Option(
            metavar="R", help="Messages a second in all; else each thread sends back to back.", rich_help_panel=LOAD
        ),
    ] = None
    for_: Annotated[
        str | None, Option("--for", metavar="TIME", help="No message starts after this time.", rich_help_panel=LOAD)
    ] = None
    threads: Annotated[
        int,
        Option(
            min=1, max=MOST_THREADS, help="Sending threads, each with a round robin of its own.", rich_help_panel=LOAD
        ),
    ] = 1
    start_at: Annotated[
        str | None,
        Option(metavar="BROKER:QUEUE", help="The first pick of the first thread; else random.", rich_help_panel=LOAD),
    ] = None
    seed: Annotated[int, Option(help="Of everything random.", rich_help_panel=LOAD)] = 1
    keys: Annotated[
        str | None,
        Option(
            metavar="FILE|-",
            help="Message keys, one a line, for --selector hash, FILE.py:NAME and expr:…",
            rich_help_panel=LOAD,
        ),
    ] = None
    key_type: Annotated[
        str,
        Option(metavar="string|int|long", help="What the application passes to the selector.", rich_help_panel=LOAD),
    ] = "string"


class ProducerOptions(Struct, frozen=True):
    """How the producer is configured; the defaults are the client's own."""

    client: Annotated[
        str, Option(metavar="VERSION", help="Version of the RocketMQ client library.", rich_help_panel=PRODUCER)
    ] = NEWEST
    mode: Annotated[str, Option(metavar="sync|async|oneway", help="How it sends.", rich_help_panel=PRODUCER)] = "sync"
    latency_fault: Annotated[
        str, Option(metavar="on|off", help="sendLatencyFaultEnable.", rich_help_panel=PRODUCER)
    ] = "off"
    detector: Annotated[
        str, Option(metavar="on|off", help="startDetectorEnable (5.1.4 and newer).", rich_help_panel=PRODUCER)
    ] = "off"
    retries: Annotated[
        int,
        Option(
            min=0, max=MOST_RETRIES, help="retryTimesWhenSendFailed, or its twin for async.", rich_help_panel=PRODUCER
        ),
    ] = 2
    timeout: Annotated[
        str, Option(metavar="TIME", help="sendMsgTimeout, for all attempts together.", rich_help_panel=PRODUCER)
    ] = "3s"
    timeout_per_request: Annotated[
        str | None,
        Option(metavar="TIME", help="sendMsgMaxTimeoutPerRequest (5.3.3 and newer).", rich_help_panel=PRODUCER),
    ] = None
    retry_not_store_ok: Annotated[
        bool, Option("--retry-not-store-ok", help="retryAnotherBrokerWhenNotStoreOK.", rich_help_panel=PRODUCER)
    ] = False
    selector: Annotated[
        str | None,
        Option(
            metavar="hash|random|machine-room|BROKER:QUEUE|FILE.py:NAME|expr:E",
            help="The application picks the queue: one attempt, no retry. FILE.py is run; NAME(queues, key) returns "
            "one. E is Java's arithmetic of arg (the key, else the message's number) and n queues: expr:arg % n.",
            rich_help_panel=PRODUCER,
        ),
    ] = None
    exclude: Annotated[
        list[str] | None,
        Option(metavar="BROKER", help="The producer leaves this broker out; repeatable.", rich_help_panel=PRODUCER),
    ] = None
    latency_max: Annotated[
        str | None,
        Option(metavar="MS,MS,…", help="Thresholds of latency fault, not the version's.", rich_help_panel=PRODUCER),
    ] = None
    not_available_duration: Annotated[
        str | None,
        Option(metavar="MS,MS,…", help="For how long each of them isolates.", rich_help_panel=PRODUCER),
    ] = None
