"""Options of `simulate-send`; one that sets a field of the scenario takes its help from there."""

from typing import get_type_hints

from rmqlb.cli.common.declare import Options, Panel, Text, Texts, own, shown
from rmqlb.model.limits import MOST_RETRIES, MOST_THREADS
from rmqlb.model.send_scenario import NEWEST, SendScenario

_failures, _load, _producer, _sdk = map(Panel, ("Failures", "Load", "Producer", "Producer: SDK"))
_HINTS = get_type_hints(SendScenario, include_extras=True)


def _help(field: str, more: str = "") -> str:
    text: str = next(each for each in _HINTS[field].__metadata__ if isinstance(each, str))
    start = text[0] if text.partition(" ")[0] != text.partition(" ")[0].lower() else text[0].upper()
    return f"{start}{text[1:]}{more}."


class SendOptions(Options):
    topic: Text = own("-t TOPIC", "The topic that is sent to.", positional="TOPIC")
    fail: Texts = _failures("BROKER[@FROM-TO][:KIND]", "A broker, or a pattern of them, that fails; repeatable.")
    latency: Texts = _failures(
        "[BROKER=]SPEC",
        "How long a healthy broker takes: 3ms, lognormal(5ms,2) (median, sigma) or FILE.csv; default 1ms.",
    )
    nameserver_notices: Text = _failures(
        "TIME|never", "When the NameServer drops a failed broker; default: at once (refused), 120s (timeout)."
    )
    route_poll: str = _failures("TIME", _help("poll_us"), "30s")
    first_poll: Text = _failures(
        "TIME|random", "When it first does so; default: as the SDK does, Java after one such time."
    )
    messages: Text = _load("N", "Number of messages; default: as many as fit --for, or 1000.")
    rate: Text = _load("R", _help("rate"))
    for_: Text = _load(
        "TIME",
        "No message starts after this time. Default while brokers fail, without --messages: until route polls "
        "have shown the producer each failure and its end, at 10 messages per second if there is no --rate.",
    )
    threads: int = _load("", _help("threads"), 1, min=1, max=MOST_THREADS)
    start_at: Text = _load("BROKER:QUEUE", _help("start_at"))
    seed: int = _load("", "Random seed.", 1)
    keys: Text = _load("FILE|-", "Message keys, one per line, for --selector hash and FILE.py:NAME", stdin="-")
    key_type: str = _load("string|int|long", "What the application passes to the selector.", "string")
    client: str = _producer("VERSION", _help("client_version"), NEWEST)
    mode: str = _producer("sync|async|oneway", _help("mode"), "sync")
    latency_fault: str = _producer("on|off", _help("latency_fault"), "off")
    detector: str = _producer("on|off", _help("detector"), "off")
    sdk: Texts = _sdk("SDK[@VERSION]", "Whose producer, as go or go-grpc@5.1.4; several are compared. Default: java.")
    proxy_mode: str = _sdk("local|cluster", _help("proxy_mode"), "local")
    send_retries: int | None = _producer(
        "", _help("retries", "; default: as the SDK has it, 2; go 3"), min=0, max=MOST_RETRIES
    )
    send_timeout: str = _producer("TIME", _help("timeout_ms"), "3s")
    send_timeout_per_request: Text = _producer("TIME", _help("timeout_per_request_ms"))
    retry_not_store_ok: bool = _producer.flag("retryAnotherBrokerWhenNotStoreOK.")
    selector: Text = _producer(
        "hash|random|machine-room|BROKER:QUEUE|FILE.py:NAME",
        "The application picks the queue: one attempt, no retry. FILE.py is run; NAME(queues, key) returns "
        "one, where key is a line of --keys, otherwise the message's number.",
    )
    exclude: Texts = _producer("BROKER", _help("exclude", "; repeatable"))
    latency_max: Text = _producer("MS,MS,…", _help("latency_max"))
    not_available_duration: Text = _producer("MS,MS,…", _help("not_available_duration"))
    trace: bool = shown.flag("List attempts and lost messages; -o jsonl streams them.")
    compare: bool = shown.flag("Latency fault off and on side by side.")
    compare_clients: bool = shown.flag("Every stretch of client versions.")
    compare_sdks: bool = shown.flag("Producers of every SDK, or of those that --sdk names, side by side.")
    trials: Text = shown("N", "Run N times with other random parts; confidence intervals.")
    precision: Text = shown("P", "Stop the trials when each interval is ±P: 0.1%.")
    fail_on: Texts = shown("CONDITION", "Exit 3 when it is met: 'lost>0', 'share[broker-a]>60%'; repeatable.")
