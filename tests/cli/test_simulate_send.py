from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rmqlb.cli.exit_codes import ExitCode
from rmqlb.remoting.codes import RequestCode
from tests.cli.run import EXAMPLE, data_of, run
from tests.support.mismatches import every_case
from tests.support.replay_remoting import Replay, remoting, success

BASE = ("simulate-send", "-s", EXAMPLE, "--topic", "OrderEvents")
SELECT = ("select-queue", "-s", EXAMPLE, "-t", "Skewed", "--key", "order-1")


def data(*args: str, stdin: str = "") -> Any:
    return data_of(*BASE, *args, stdin=stdin)


def test_attempts_are_as_the_options_say() -> None:
    found = data("--fail", "broker-b", "--start-at", "broker-a:7", "--messages", "3")
    assert [(a["message"], a["attempt"], a["brokerName"], a["queueId"], a["outcome"]) for a in found["attempts"]] == [
        (1, 1, "broker-a", 7, "SEND_OK"),
        (2, 1, "broker-b", 0, "RemotingConnectException"),
        (2, 2, "broker-a", 0, "SEND_OK"),
        (3, 1, "broker-a", 1, "SEND_OK"),
    ]


@every_case(
    ("fail", "count", "kind"),
    [
        ("broker-b", 1, "refused"),
        ("broker-*", 2, "refused"),
        ("broker-b:timeout", 1, "timeout"),
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


def test_comparisons_have_the_same_scenario_on_each_side() -> None:
    args = ("--fail", "broker-b", "--latency-fault", "on", "--rate", "10", "--for", "1m", "--compare-clients")
    found = data(*args, "--compare")
    assert [side["latencyFault"] for side in found["comparison"]] == [False, True]
    assert found["comparison"][1]["totals"] == found["totals"]
    assert [client["profile"] for client in found["clients"]][:2] == ["5.3.3 and newer", "5.3.2"]
    assert len(found["clients"]) == 15
    shown = run(*BASE, *args, "-o", "plain", "--section", "clients").stdout
    assert "5.1.4 and newer" in shown
    assert "5.1.3 and older" in shown
    sdks = data("--fail", "broker-b", "--sdk", "java@4.9.7", "--sdk", "java@5.1.0", "--sdk", "go")["sdks"]
    assert [(each["sdk"], each["clientVersion"]) for each in sdks] == [
        ("java", "4.9.7"),
        ("java", "5.1.0"),
        ("go", "5.5.0"),
    ]


@every_case(
    "args",
    [
        ("--fail", "broker-*@#3-#5", "--send-retries", "1", "--messages", "6"),
        ("--fail", "broker-*:read-only", "--route-poll", "1s", "--rate", "1", "--messages", "4"),
        ("--fail", "broker-a", "--mode", "async", "--rate", "10", "--send-retries", "0", "--messages", "40"),
        ("--fail", "broker-a", "--mode", "oneway", "--rate", "10", "--messages", "20"),
    ],
)
def test_traced_jsonl_says_what_the_application_gets_as_json_does(args: tuple[str, ...]) -> None:
    whole = data(*args, "--trace")
    lines = [json.loads(line) for line in run(*BASE, *args, "--trace", "-o", "jsonl", "-q").stdout.splitlines()]
    assert [line for line in lines if "reason" not in line] == whole["attempts"]
    assert [line for line in lines if "reason" in line] == whole["lostMessages"] != []
    for at, line in enumerate(lines):
        if "reason" in line:
            assert line["message"] not in [later["message"] for later in lines[at + 1 :]]


def test_conditions_end_with_three() -> None:
    ran = run(*BASE, "--fail", "broker-b", "--fail-on", "share[broker-a]>60%", "-q")
    assert (ran.code, "condition met: share[broker-a]>60% (it is 100)" in ran.stderr) == (ExitCode.CONDITION, True)
    many = run(*BASE, "--fail", "broker-*", "--messages", "1234567", "--fail-on", "lost>1234566", "-q")
    assert many.stderr == "condition met: lost>1234566 (it is 1234567)\n"
    assert run(*BASE, "--fail", "broker-b", "--fail-on", "lost>0").code == ExitCode.OK
    assert run(*BASE, "--fail", "broker-*", "-o", "jsonl", "--fail-on", "lost>0").code == ExitCode.CONDITION


@pytest.mark.parametrize("fmt", ["json", "jsonl"])
def test_a_share_of_nothing_is_no_success(fmt: str) -> None:
    ran = run(*BASE, "--fail", "broker-*", "--messages", "3", "--fail-on", "share[broker-a]>60%", "-q", "-o", fmt)
    assert (ran.code, len(ran.stdout.splitlines())) == (ExitCode.DATA, 9 if fmt == "jsonl" else 0)
    assert "figure-not-seen" in ran.stderr
    assert "no message is stored" in ran.stderr


@every_case(
    ("args", "messages", "seconds", "rate"),
    [
        (("--fail", "broker-b"), 600, 60, 10),
        (("--fail", "broker-b@45s-"), 900, 90, 10),
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
    assert ("[assumed-rate]" in run(*BASE, *args).stderr) == (rate == 10)


@every_case(("kind", "queues"), [("string", [7, 4, 7]), ("int", [7, 1, 7]), ("long", [7, 0, 7])])
def test_keys_of_a_pipe_are_hashed_as_their_java_type(kind: str, queues: list[int]) -> None:
    found = data("--selector", "hash", "--keys", "-", "--key-type", kind, stdin="7\n-1\n7\n")
    assert [attempt["queueId"] for attempt in found["attempts"]] == queues
    assert (found["keys"]["distinct"], found["keys"]["messages"]) == (2, 3)
    hottest = found["keys"]["hottest"][0]
    assert (hottest["key"], hottest["messages"], hottest["queueId"]) == ("7", 2, 7)


@every_case(("key", "kind"), [("1_0", "int"), ("2147483648", "int"), ("1_0", "long"), ("1.0", "long")])
def test_a_number_that_java_does_not_read_is_no_key(key: str, kind: str) -> None:
    ran = run(*BASE, "--selector", "hash", "--keys", "-", "--key-type", kind, stdin=key)
    named = "an int" if kind == "int" else "a long"
    assert ran.stderr == f"error: --keys -: line 1: '{key}' is not {named} of Java [data]\n"


@every_case(
    ("text", "took"),
    [
        ("brokerName,latencyMs\nbroker-a,2\nbroker-a,4\nbroker-b,600\n", {"broker-a": {2, 4}, "broker-b": {600}}),
        ("latencyMs\n3ms\n", {"broker-a": {3}, "broker-b": {3}}),
        ("broker-a,2\nbroker-b,5\n", {"broker-a": {2}, "broker-b": {5}}),
    ],
)
def test_latencies_from_a_csv(text: str, took: dict[str, set[float]], tmp_path: Path) -> None:
    samples = tmp_path / "latency.csv"
    samples.write_text(text)
    found: dict[str, set[float]] = {"broker-a": set(), "broker-b": set()}
    for attempt in data("--latency", str(samples), "--messages", "200")["attempts"]:
        found[attempt["brokerName"]].add(attempt["tookMs"])
    assert found == took


@every_case(
    ("text", "problem"),
    [
        ("latencyMs\n3\nabc\n\n-1\n4\n", "no latency in row 3 (abc), 5 (-1)"),
        ("", "there is no latency in it"),
        ("a,b,c\n1,2,x\n", "no column is called latencyMs"),
        ("x\n1\n", "no latency in row 1 (x)"),
    ],
)
def test_bad_csv_files_are_refused(text: str, problem: str, tmp_path: Path) -> None:
    samples = tmp_path / "bad.csv"
    samples.write_text(text)
    ran = run(*BASE, "--latency", f"broker-a=@{samples}")
    assert (ran.code, problem in ran.stderr) == (ExitCode.DATA, True), ran.stderr


TEMPLATE = {
    "queueDatas": [{"brokerName": "broker-a", "readQueueNums": 8, "writeQueueNums": 8, "perm": 7}],
    "brokerDatas": [{"brokerName": "broker-a", "cluster": "c", "brokerAddrs": {"0": "10.0.0.1:10911"}}],
}


def test_a_topic_that_is_missing_or_takes_nothing_is_an_error() -> None:
    missing = run("simulate-send", "-s", EXAMPLE, "--topic", "OrderEvent")
    assert (missing.code, "did you mean OrderEvents?" in missing.stderr) == (ExitCode.DATA, True)
    silent = '{"queueDatas":[{"brokerName":"a","readQueueNums":4,"writeQueueNums":4,"perm":4}],"brokerDatas":[]}'
    ran = run("simulate-send", "-s", "-", "--topic", "T", stdin=silent)
    assert (ran.code, "topic T has no queue that a producer could write to" in ran.stderr) == (ExitCode.DATA, True)


def test_a_new_topic_takes_the_templates_queues() -> None:
    args = ("simulate-send", "--topic", "OrderEvent", "-o", "json", "--messages", "20")
    template = (int(RequestCode.GET_ROUTEINFO_BY_TOPIC), "topic=TBW102")
    with remoting(Replay(answers={template: success(json.dumps(TEMPLATE).encode())})) as replay:
        asked = run(*args, "-s", f"rocketmq://{replay.address}")
    for ran in (asked, run(*args, "-s", "-", stdin=json.dumps({"TBW102": TEMPLATE}))):
        value = json.loads(ran.stdout)
        assert [queue["queueId"] for queue in value["data"]["queues"]] == [0, 1, 2, 3]
        (finding,) = [finding["message"] for finding in value["findings"] if finding["code"] == "new-topic"]
        assert "topic OrderEvent does not exist" in finding


def test_the_route_comes_from_the_nameserver_and_nothing_else_is_requested() -> None:
    with remoting() as replay:
        source = ("simulate-send", "-s", f"rocketmq://{replay.address}", "-o", "json", "--messages", "20", "--topic")
        ran = run(*source, "OrderEvents")
        asked = {code for code, _ in replay.asked}
        missing = run(*source, "OrderEvent")
    value = json.loads(ran.stdout)
    assert value["source"]["kind"] == "nameserver"
    assert sum(queue["stored"] for queue in value["data"]["queues"]) == 20
    assert asked == {RequestCode.GET_ROUTEINFO_BY_TOPIC}
    assert (replay.forbidden, missing.code, missing.stdout) == ([], 4, "")
    error = json.loads(missing.stderr)["error"]
    assert ("OrderEvent" in error["message"], error["hint"]) == (True, "did you mean OrderEvents?")


def test_trials_have_intervals_and_equal_seeds_equal_bytes() -> None:
    args = ("--fail", "broker-b:timeout", "--messages", "40", "--latency-fault", "on", "--trials", "40")
    trials = data(*args)["trials"]
    for estimate in (trials["lost"], trials["attemptsPerMessage"], trials["share"]["broker-a"]):
        assert estimate["low"] <= estimate["mean"] <= estimate["high"]
    assert (trials["trials"], trials["lost"]["mean"] > 0) == (40, True)
    assert run(*BASE, *args, "-o", "json").stdout == run(*BASE, *args, "-o", "json").stdout
    shown = run(*BASE, *args, "-o", "plain", "--section", "trials", "--section", "spreads").stdout
    assert "share of broker-a" in shown
    assert "broker-b isolated after" in shown


def test_keys_of_the_line_and_of_a_file_are_taken_once_each() -> None:
    ran = run(*SELECT, "--keys-file", "-", "-o", "json", stdin="a\norder-1\na\n")
    assert [row["key"] for row in json.loads(ran.stdout)["data"]["keys"]] == ["order-1", "a"]


@every_case(
    ("more", "first"),
    [
        (("--sdk", "go"), "Skewed, 1 key on 7 queues: go uses 1 queue, at most 1 key in one"),
        (
            ("--sdk", "java", "--sdk", "go"),
            "Skewed, 1 key on 7 queues: 1 goes to different queues, depending on the SDK (java, go)",
        ),
        (
            ("--sdk", "go", "--remove-broker", "broker-b"),
            "Skewed, remove broker broker-b: keys that move, of 1: go 1 (100%)",
        ),
        (("--sdk", "csharp-grpc"), "Skewed, 1 key on 7 queues: which queues they go to is unknown"),
    ],
)  # fmt: skip
def test_the_first_line_of_select_queue_answers(more: tuple[str, ...], first: str) -> None:
    assert run(*SELECT, *more, "-o", "plain").stdout.splitlines()[0] == first
