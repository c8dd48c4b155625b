"""Options of `simulate-send`.

Typer reads the annotations when the program starts, so they are values here, not text. `_field` declares an option that
sets a field of the scenario, and takes its help from there.
"""

from typing import Annotated, Any, get_type_hints

from msgspec import Struct

from rmqlb.cli.common.options import panel, shown_option
from rmqlb.model.limits import MOST_RETRIES, MOST_THREADS
from rmqlb.model.send_scenario import NEWEST, SendScenario

_failures = panel("Failures")
_load = panel("Load")
_producer = panel("Producer")
_sdk = panel("Producer: SDK")
_HINTS = get_type_hints(SendScenario, include_extras=True)


def _field(name: str, declare: Any, *, more: str = "", **keywords: Any) -> Any:
    text: str = next(each for each in _HINTS[name].__metadata__ if isinstance(each, str))
    start = text[0] if text.partition(" ")[0] != text.partition(" ")[0].lower() else text[0].upper()
    return declare(help=f"{start}{text[1:]}{more}.", **keywords)


class SendOptions(Struct, frozen=True):
    """What is sent, by which producer, what fails, and what is shown."""

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
    route_poll: Annotated[str, _field("poll_us", _failures, metavar="TIME")] = "30s"
    first_poll: Annotated[
        str | None,
        _failures(
            metavar="TIME|random", help="When it first does so; default: as the SDK does, Java after one such time."
        ),
    ] = None
    messages: Annotated[
        str | None, _load(metavar="N", help="Number of messages; default: as many as fit --for, or 1000.")
    ] = None
    rate: Annotated[str | None, _field("rate", _load, metavar="R")] = None
    for_: Annotated[
        str | None,
        _load(
            "--for",
            metavar="TIME",
            help="No message starts after this time. Default while brokers fail, without --messages: until route polls "
            "have shown the producer each failure and its end, at 10 messages per second if there is no --rate.",
        ),
    ] = None
    threads: Annotated[int, _field("threads", _load, min=1, max=MOST_THREADS)] = 1
    start_at: Annotated[str | None, _field("start_at", _load, metavar="BROKER:QUEUE")] = None
    seed: Annotated[int, _load(help="Random seed.")] = 1
    keys: Annotated[
        str | None,
        _load(metavar="FILE|-", help="Message keys, one per line, for --selector hash and FILE.py:NAME"),
    ] = None
    key_type: Annotated[str, _load(metavar="string|int|long", help="What the application passes to the selector.")] = (
        "string"
    )
    client: Annotated[str, _field("client_version", _producer, metavar="VERSION")] = NEWEST
    mode: Annotated[str, _field("mode", _producer, metavar="sync|async|oneway")] = "sync"
    latency_fault: Annotated[str, _field("latency_fault", _producer, metavar="on|off")] = "off"
    detector: Annotated[str, _field("detector", _producer, metavar="on|off")] = "off"
    sdk: Annotated[
        list[str] | None,
        _sdk(
            metavar="SDK[@VERSION]",
            help="Whose producer, as go or go-grpc@5.1.4; several are compared. Default: java.",
        ),
    ] = None
    proxy_mode: Annotated[str, _field("proxy_mode", _sdk, metavar="local|cluster")] = "local"
    send_retries: Annotated[
        int | None, _field("retries", _producer, min=0, max=MOST_RETRIES, more="; default: as the SDK has it, 2; go 3")
    ] = None
    send_timeout: Annotated[str, _field("timeout_ms", _producer, metavar="TIME")] = "3s"
    send_timeout_per_request: Annotated[str | None, _field("timeout_per_request_ms", _producer, metavar="TIME")] = None
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
    exclude: Annotated[list[str] | None, _field("exclude", _producer, metavar="BROKER", more="; repeatable")] = None
    latency_max: Annotated[str | None, _field("latency_max", _producer, metavar="MS,MS,…")] = None
    not_available_duration: Annotated[str | None, _field("not_available_duration", _producer, metavar="MS,MS,…")] = None
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
