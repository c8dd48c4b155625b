from rmqlb.cli.common.declare import Panel, Text, Texts, own, written
from rmqlb.cli.common.set_option import SettingsOptions, setting
from rmqlb.model.limits import MOST_RETRIES, MOST_THREADS

_failures, _load, _producer = map(Panel, ("Failures", "Load", "Producer"))


class SendOptions(SettingsOptions):
    topic: Text = own("-t TOPIC", "Topic to send to.", positional="TOPIC")
    fail: Texts = _failures("BROKER[@FROM-TO][:KIND]", "Failing broker or pattern; repeatable.")
    round_trip: Texts = _failures(
        "[BROKER=]SPEC",
        "Round-trip time of a healthy broker; default: 1ms. SPEC is a time such as 3ms, lognormal(5ms,2) with median "
        "and sigma, or FILE.csv.",
    )
    messages: Text = _load("N", "Number of messages to send; default: as many as fit --for, or 1000.")
    rate: Text = _load("R", "Messages per second over all threads; default: threads send back to back.")
    for_: Text = _load(
        "TIME",
        "Duration of the simulation. No message starts later. With --fail and without --messages, it lasts until route "
        "polls have shown the producer each failure and its end, at 10 messages per second if --rate is missing.",
    )
    keys: Text = _load("FILE|-", "Message keys, one per line. Used by --selector hash and FILE.py:NAME.", stdin="-")
    mode: str = _producer("sync|async|oneway", "Send mode: sync, async or oneway.", "sync")
    latency_fault: str = _producer("on|off", "Skip brokers that fail or answer slowly (sendLatencyFaultEnable).", "off")
    sdk: Texts = _producer(
        "SDK[@VERSION]",
        "Client library of the producers, such as java@4.9.7. Others are go or go-grpc@5.1.4; several are compared; "
        "default: java.",
    )
    send_retries: int | None = _producer(
        "",
        "Retries per message; default: 2, go 3. Sets retryTimesWhenSendFailed (SYNC) or retryTimesWhenSendAsyncFailed.",
        min=0,
        max=MOST_RETRIES,
    )
    send_timeout: str = _producer("TIME", "Timeout of a message with all its attempts. Sets sendMsgTimeout.", "3s")
    selector: Text = _producer(
        "hash|random|machine-room|BROKER:QUEUE|FILE.py:NAME",
        "Queue selector of the application. Each message then has one attempt and no retry. FILE.py is run; "
        "NAME(queues, key) returns a queue. The key is a line of --keys, otherwise the message number.",
    )
    compare: Texts = _producer(
        "latency-fault|clients|sdks",
        "Variants to compare side by side; repeatable. These are latency fault off and on, Java's versions, or SDKs.",
    )
    trials: Text = _load("N", "Number of simulations with new random numbers. The result has confidence intervals.")
    trace: bool = written.flag("List every attempt and lost message; -o jsonl streams them.")
    fail_on: Texts = written("CONDITION", "Exit 3 if a condition holds: 'lost>0', 'share[broker-a]>60%'; repeatable.")
    nameserver_notices: Text = setting("nameserver-notices=TIME|never")
    route_poll: str = setting("route-poll=TIME", "30s")
    first_poll: Text = setting("first-poll=TIME|random")
    threads: int = setting("threads=N", 1, most=MOST_THREADS)
    start_at: Text = setting("start-at=BROKER:QUEUE")
    seed: int = setting("seed=N", 1)
    key_type: str = setting("key-type=string|int|long", "string")
    detector: bool = setting("detector")
    proxy_mode: str = setting("proxy-mode=local|cluster", "local")
    send_timeout_per_request: Text = setting("send-timeout-per-request=TIME")
    retry_not_store_ok: bool = setting("retry-not-store-ok")
    exclude: Texts = setting("exclude=BROKER")
    priority: Texts = setting("priority=N|none")
    latency_max: Text = setting("latency-max=MS,MS,…")
    not_available_duration: Text = setting("not-available-duration=MS,MS,…")
    precision: Text = setting("precision=P")
