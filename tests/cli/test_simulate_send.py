"""`simulate-send` as it is typed: the examples, the formats, and one clear line for each mistake."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rmqlb.cli.exit_codes import ExitCode
from tests.cli.run import EXAMPLE, run, start
from tests.support.mismatches import every_case

BASE = ("simulate-send", "-s", EXAMPLE, "--topic", "OrderEvents")
ATTEMPT = {"message", "attempt", "thread", "atMs", "brokerName", "queueId", "outcome", "tookMs"}


def data(*args: str, code: int = 0) -> dict[str, Any]:
    ran = run(*BASE, *args, "-o", "json")
    assert ran.code == code, ran.stderr
    value = json.loads(ran.stdout)
    assert (value["schema"], value["command"]) == ("rmqlb/send", "simulate-send")
    found: dict[str, Any] = value["data"]
    return found


def test_json_has_the_promised_keys() -> None:
    found = data("--fail", "broker-b", "--start-at", "broker-a:7", "--messages", "3")
    assert found.keys() >= {"attempts", "queues", "brokers", "totals"}
    assert all(set(attempt) == ATTEMPT for attempt in found["attempts"])
    assert [(a["message"], a["attempt"], a["brokerName"], a["queueId"], a["outcome"]) for a in found["attempts"]] == [
        (1, 1, "broker-a", 7, "SEND_OK"),
        (2, 1, "broker-b", 0, "RemotingConnectException"),
        (2, 2, "broker-a", 0, "SEND_OK"),
        (3, 1, "broker-a", 1, "SEND_OK"),
    ]
    assert found["totals"]["messages"] == 3


@every_case(
    ("fail", "count", "kind"),
    [
        ("broker-b", 1, "refused"),
        ("broker-*", 2, "refused"),
        ("broker-b:timeout", 1, "timeout"),
        ("broker-b@45s-1m30s", 1, "refused"),
        ("broker-b@45s-1m30s:slow=800ms", 1, "slow"),
        ("broker-b@#45-#60:FLUSH_DISK_TIMEOUT", 1, "status"),
        ("broker-b@-90:read-only", 1, "read-only"),
        ("broker-b@10s-:system_busy", 1, "code"),
        ("broker-b:14", 1, "code"),
        ("broker-b@#45-2m:refused=5ms", 1, "refused"),
    ],
)
def test_failures_as_they_are_typed(fail: str, count: int, kind: str) -> None:
    found = data("--fail", fail, "--messages", "10")
    assert [failure["kind"] for failure in found["failures"]] == [kind] * count


def test_compare_shows_both_sides() -> None:
    ran = run(*BASE, "--fail", "broker-b", "--compare", "-o", "plain", "--section", "totals")
    assert "latency fault off    latency fault on" in ran.stdout
    found = data("--fail", "broker-b", "--compare", "--latency-fault", "on")
    assert [side["latencyFault"] for side in found["comparison"]] == [False, True]
    assert found["comparison"][1]["totals"] == found["totals"]


def test_compare_clients_puts_like_versions_together_for_people() -> None:
    args = ("--fail", "broker-b", "--latency-fault", "on", "--rate", "10", "--for", "1m", "--compare-clients")
    ran = run(*BASE, *args, "-o", "plain", "--section", "clients")
    assert "5.1.4 and newer" in ran.stdout
    assert "5.1.3 and older" in ran.stdout
    clients = data(*args)["clients"]
    assert [client["profile"] for client in clients][:2] == ["5.3.3 and newer", "5.3.2"]
    assert len(clients) == 15


def test_jsonl_streams_each_attempt() -> None:
    ran = run(*BASE, "--fail", "broker-b", "--messages", "3000", "-o", "jsonl", "-q")
    lines = [json.loads(line) for line in ran.stdout.splitlines()]
    assert len(lines) == 3000 + 375
    assert all(set(line) == ATTEMPT for line in lines)
    assert ran.stderr == ""
    assert run(*BASE, "--compare", "-o", "jsonl").code == ExitCode.USAGE


LOSSES = {
    "after attempts": ("--fail", "broker-*@#3-#5", "--send-retries", "1", "--messages", "6"),
    "without an attempt": ("--fail", "broker-*:read-only", "--route-poll", "1s", "--rate", "1", "--messages", "4"),
    "of an ASYNC send": (
        "--fail",
        "broker-a",
        "--mode",
        "async",
        "--rate",
        "10",
        "--send-retries",
        "0",
        "--messages",
        "40",
    ),
    "unnoticed": ("--fail", "broker-a", "--mode", "oneway", "--rate", "10", "--messages", "20"),
}


@every_case("name", LOSSES)
def test_traced_jsonl_says_what_the_application_gets_as_json_does(name: str) -> None:
    whole = data(*LOSSES[name], "--trace")
    lines = [json.loads(line) for line in run(*BASE, *LOSSES[name], "--trace", "-o", "jsonl", "-q").stdout.splitlines()]
    assert [line for line in lines if "reason" not in line] == whole["attempts"]
    assert [line for line in lines if "reason" in line] == whole["lostMessages"] != []
    for at, line in enumerate(lines):
        if "reason" in line:
            assert line["message"] not in [later["message"] for later in lines[at + 1 :]]


def test_conditions_end_with_three() -> None:
    assert run(*BASE, "--fail", "broker-*", "--fail-on", "lost>0").code == ExitCode.CONDITION
    ran = run(*BASE, "--fail", "broker-b", "--fail-on", "share[broker-a]>60%", "-q")
    assert (ran.code, "condition met: share[broker-a]>60% (it is 100)" in ran.stderr) == (ExitCode.CONDITION, True)
    many = run(*BASE, "--fail", "broker-*", "--messages", "1234567", "--fail-on", "lost>1234566", "-q")
    assert many.stderr == "condition met: lost>1234566 (it is 1234567)\n"
    assert run(*BASE, "--fail", "broker-b", "--fail-on", "lost>0").code == ExitCode.OK
    assert run(*BASE, "--fail", "broker-*", "-o", "jsonl", "--fail-on", "lost>0").code == ExitCode.CONDITION


@every_case(
    ("args", "messages", "seconds", "rate"),
    [
        (("--fail", "broker-b"), 600, 60, 10),
        (("--fail", "broker-b@45s-"), 900, 90, 10),
        (("--fail", "broker-b:timeout"), 1800, 180, 10),
        (("--fail", "broker-b", "--rate", "7/m"), 7, 60, 7 / 60),
        (("--fail", "broker-b", "--nameserver-notices", "never"), 300, 30, 10),
        (("--fail", "broker-b", "--for", "20s"), None, 20, None),
        (("--fail", "broker-b", "--messages", "16"), 16, None, None),
        ((), 1000, None, None),
    ],
)
def test_without_messages_and_time_it_lasts_until_route_polls_have_told(
    args: tuple[str, ...], messages: int | None, seconds: int | None, rate: float | None
) -> None:
    scenario = data(*args)["scenario"]
    assert scenario["messages"] == messages
    assert scenario["durationMs"] == (None if seconds is None else 1000 * seconds)
    assert scenario["ratePerSecond"] == rate
    told = "[assumed-rate]" in run(*BASE, *args).stderr
    assert told == (rate == 10)


def test_keys_show_how_they_spread_and_which_are_hot(tmp_path: Path) -> None:
    keys = tmp_path / "keys.txt"
    keys.write_text("order-1\n" * 60 + "".join(f"k{i}\n" for i in range(40)))
    found = data("--selector", "hash", "--keys", str(keys))
    assert found["totals"]["messages"] == 100
    assert (found["keys"]["distinct"], found["keys"]["messages"]) == (41, 100)
    hottest = found["keys"]["hottest"][0]
    assert (hottest["key"], hottest["messages"]) == ("order-1", 60)


@every_case(("key", "kind"), [("1_0", "int"), ("2147483648", "int"), ("1_0", "long"), ("1.0", "long")])
def test_a_number_that_java_does_not_read_is_no_key(key: str, kind: str) -> None:
    ran = run(*BASE, "--selector", "hash", "--keys", "-", "--key-type", kind, stdin=key)
    assert (
        ran.stderr
        == f"error: --keys -: line 1: '{key}' is not {'an int' if kind == 'int' else 'a long'} of Java [data]\n"
    )


def test_keys_come_from_a_pipe_too() -> None:
    ran = run(*BASE, "--selector", "hash", "--keys", "-", "-o", "json", stdin="7\n-1\n")
    assert [(a["brokerName"], a["queueId"]) for a in json.loads(ran.stdout)["data"]["attempts"]] == [
        ("broker-a", 7),
        ("broker-a", 4),
    ]
    as_int = run(*BASE, "--selector", "hash", "--keys", "-", "--key-type", "int", "-o", "json", stdin="7\n-1\n")
    assert [a["queueId"] for a in json.loads(as_int.stdout)["data"]["attempts"]] == [7, 1]
    as_long = run(*BASE, "--selector", "hash", "--keys", "-", "--key-type", "long", "-o", "json", stdin="7\n-1\n")
    assert [a["queueId"] for a in json.loads(as_long.stdout)["data"]["attempts"]] == [7, 0]


def test_latencies_from_a_csv(tmp_path: Path) -> None:
    samples = tmp_path / "latency.csv"
    samples.write_text("brokerName,latencyMs\nbroker-a,2\nbroker-a,4\nbroker-b,600\n")
    found = data("--latency", str(samples), "--messages", "200", "--latency-fault", "on")
    took: dict[str, set[float]] = {a["brokerName"]: set() for a in found["attempts"]}
    for attempt in found["attempts"]:
        took[attempt["brokerName"]].add(attempt["tookMs"])
    assert took == {"broker-a": {2, 4}, "broker-b": {600}}
    assert {b["brokerName"]: b["isolations"] > 0 for b in found["brokers"]} == {"broker-a": False, "broker-b": True}


def test_a_topic_that_does_not_exist_takes_the_template() -> None:
    template = json.dumps(
        {
            "TBW102": {
                "queueDatas": [{"brokerName": "broker-a", "readQueueNums": 8, "writeQueueNums": 8, "perm": 7}],
                "brokerDatas": [{"brokerName": "broker-a", "cluster": "c", "brokerAddrs": {"0": "10.0.0.1:10911"}}],
            }
        }
    )
    ran = run("simulate-send", "-s", "-", "--topic", "New", "-o", "json", stdin=template)
    value = json.loads(ran.stdout)
    assert [queue["queueId"] for queue in value["data"]["queues"]] == [0, 1, 2, 3]
    assert "new-topic" in [finding["code"] for finding in value["findings"]]


MISTAKES = [
    (("-o", "jsonl", "--section", "totals"), 2, "--section chooses tables, and -o jsonl shows none", "leave one"),
    (
        ("--fail", "broker-c"),
        2,
        "--fail broker-c: topic OrderEvents has no broker broker-c",
        "did you mean broker-b or broker-a?",
    ),
    (("--fail", "broker-b@90s-45s"), 2, "--fail broker-b@90s-45s: the window ends before it starts", ""),
    (("--fail", "broker-b@#9-#9"), 2, "--fail broker-b@#9-#9: the window ends before it starts", ""),
    (
        ("--fail", "broker-b@45s"),
        2,
        "--fail broker-b@45s: 45s is not a window",
        "write @45s-1m30s, @45s- for from then on",
    ),
    (("--fail", "broker-b@x-y"), 2, "--fail broker-b@x-y: x: not a time", ""),
    (("--fail", "broker-b:gone"), 2, "--fail broker-b:gone: there is no failure gone", ""),
    (("--fail", "broker-b:FLUSH_DISK"), 2, "there is no failure FLUSH_DISK", "did you mean FLUSH_DISK_TIMEOUT"),
    (("--fail", "broker-b:slow"), 2, "--fail broker-b:slow: how slow?", "write :slow=800ms"),
    (("--fail", "broker-b:timeout=3s"), 2, "timeout takes no value", ""),
    (("--fail", "broker-b:SUCCESS"), 2, "SUCCESS is no failure", ""),
    (("--messages", "-5"), 2, "--messages -5: not a number from 1 to 1e12", ""),
    (("--messages", "1e99"), 2, "--messages 1e99: not a number", ""),
    (("--messages", "1_"), 2, "--messages 1_: not a number", ""),
    (("--messages", "1__0"), 2, "--messages 1__0: not a number", ""),
    (("--rate", "0"), 2, "--rate 0: not a rate", "write 100, 2.5/s or 30/m"),
    (("--for", "10x"), 2, "--for 10x: not a time", ""),
    (("--send-timeout", "1.5ms"), 2, "--send-timeout 1.5ms: the client counts whole milliseconds", ""),
    (("--threads", "0"), 2, "invalid value for '--threads'", ""),
    (("--latency", "broker-b=fast"), 2, "--latency broker-b=fast: not a latency", ""),
    (("--latency", "broker-x=3ms"), 2, "--latency broker-x=3ms: topic OrderEvents has no broker broker-x", ""),
    (("--latency", "lognormal(5ms,99)"), 2, "sigma is not between 0 and 10", ""),
    (("--latency", "no-such.csv"), 2, "--latency no-such.csv: No such file or directory", ""),
    (("--client", "3.2.6"), 2, "3.2.6: clients older than 4.0.0 are not known", ""),
    (("--client", "newest"), 2, "newest: not a client version", ""),
    (("--mode", "batch"), 2, "--mode batch: write sync, async or oneway", ""),
    (("--mode", "async"), 2, "mode async needs a rate", "give --rate"),
    (("--latency-fault", "maybe"), 2, "--latency-fault maybe: write on or off", ""),
    (("--latency-max", "50,x"), 2, "--latency-max 50,x: not milliseconds", ""),
    (("--latency-max", "100,50"), 2, "--latency-max 100,50: the numbers must rise", ""),
    (("--latency-max", "100"), 2, "1 thresholds of latency and 7 isolations", ""),
    (
        ("--start-at", "broker-a:99"),
        2,
        "--start-at broker-a:99: not in the producer's list of 16 queues",
        "did you mean broker-a:",
    ),
    (("--start-at", "broker-a"), 2, "--start-at broker-a: expected BROKER:QUEUE", ""),
    (("--exclude", "broker-z"), 2, "--exclude broker-z: topic OrderEvents has no such broker", ""),
    (("--exclude", "broker-a", "--exclude", "broker-b"), 4, "every broker with a queue for producers is excluded", ""),
    (("--selector", "hash"), 2, "--selector hash needs keys", ""),
    (("--selector", "hsh"), 2, "--selector hsh: neither a selector nor BROKER:QUEUE", "did you mean hash?"),
    (("--keys", "x"), 2, "--keys goes with --selector hash", ""),
    (("--nameserver-notices", "soon", "--fail", "broker-b"), 2, "--nameserver-notices soon: not a time", ""),
    (("--fail-on", "share[broker-x]>1%"), 2, "topic OrderEvents has no broker broker-x", ""),
    (("--latency", "1e3ms"), 2, "--latency 1e3ms: not a time", "write 45s, 1m30s, 800ms or 250us"),
    (("--latency", "broker-a=0ms"), 2, "--latency 0ms: not longer than nothing", ""),
    (("--fail-on", "losses>0"), 2, "there is no figure losses", ""),
    (("-o", "xml"), 2, "unknown format xml", ""),
    (("--trials", "1"), 2, "--trials 1: not a number from 2", ""),
    (("--trials", "10", "--precision", "5"), 2, "--precision 5: not a precision", ""),
    (("--messages", "5M", "--trace"), 2, "would keep millions of attempts", "stream them with -o jsonl"),
]


@every_case(("args", "code", "error", "hint"), MISTAKES, ids=[" ".join(m[0]) for m in MISTAKES])
def test_a_mistake_is_one_clear_line(args: tuple[str, ...], code: int, error: str, hint: str) -> None:
    ran = run(*BASE, *args)
    assert (ran.code, ran.stdout) == (code, "")
    lines = ran.stderr.splitlines()
    assert lines[0].startswith("error: ")
    assert error in lines[0]
    assert hint in " ".join(lines[1:])
    assert len(lines) <= 2


def test_bad_rows_of_a_csv_are_numbered(tmp_path: Path) -> None:
    samples = tmp_path / "bad.csv"
    samples.write_text("latencyMs\n3\nabc\n\n-1\n4\n")
    ran = run(*BASE, "--latency", f"broker-a=@{samples}")
    assert ran.code == ExitCode.DATA
    assert "no latency in row 3 (abc), 5 (-1)" in ran.stderr


def test_a_topic_that_is_not_there_and_one_that_nobody_can_write_to() -> None:
    missing = run("simulate-send", "-s", EXAMPLE, "--topic", "OrderEvent")
    assert missing.code == ExitCode.DATA
    assert "did you mean OrderEvents?" in missing.stderr
    silent = '{"queueDatas":[{"brokerName":"a","readQueueNums":4,"writeQueueNums":4,"perm":4}],"brokerDatas":[]}'
    ran = run("simulate-send", "-s", "-", "--topic", "T", stdin=silent)
    assert (ran.code, "topic T has no queue that a producer could write to" in ran.stderr) == (ExitCode.DATA, True)


def test_as_a_process_it_writes_utf8_json_lines() -> None:
    ran = start(*BASE, "--messages", "2", "-o", "jsonl", "-q")
    assert (ran.code, len(ran.stdout.splitlines()), ran.stderr) == (0, 2, "")


def test_trials_give_intervals_and_the_same_bytes() -> None:
    args = (
        "--fail",
        "broker-b@1s-3s:timeout",
        "--rate",
        "20",
        "--for",
        "4s",
        "--latency-fault",
        "on",
        "--trials",
        "40",
    )
    trials = data(*args)["trials"]
    assert trials["trials"] == 40
    for estimate in (trials["lost"], trials["attemptsPerMessage"], trials["share"]["broker-a"]):
        assert estimate["low"] <= estimate["mean"] <= estimate["high"]
    assert trials["lost"]["mean"] > 0
    assert run(*BASE, *args, "-o", "json").stdout == run(*BASE, *args, "-o", "json").stdout
    shown = run(*BASE, *args, "-o", "plain", "--section", "trials", "--section", "spreads")
    assert "share of broker-a" in shown.stdout
    assert "broker-b isolated after" in shown.stdout


@pytest.mark.parametrize("fmt", ["json", "jsonl"])
def test_a_share_of_nothing_is_no_success(fmt: str) -> None:
    ran = run(*BASE, "--fail", "broker-*", "--messages", "3", "--fail-on", "share[broker-a]>60%", "-q", "-o", fmt)
    assert (ran.code, len(ran.stdout.splitlines())) == (ExitCode.DATA, 9 if fmt == "jsonl" else 0)
    assert "figure-not-seen" in ran.stderr
    assert "no message is stored" in ran.stderr


@every_case("fmt", ["plain", "markdown", "table"])
def test_the_strips_of_the_time_line_are_of_one_length(fmt: str) -> None:
    ran = run(*BASE, "--fail", "broker-b@45s-1m30s", "--rate", "100", "--for", "2m", "--section", "timeline", "-o", fmt)
    strips = [
        word
        for line in ran.stdout.replace("`", "").splitlines()
        for word in line.split()
        if len(word) == 60 and set(word) != {"-"}
    ]
    assert len([strip for strip in strips if set(strip) <= set("=xX-.0123456789")]) == 3
