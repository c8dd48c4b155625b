import json
from typing import Any

from tests.cli.run import EXAMPLE, Ran, run
from tests.support.mismatches import every_case

DEAD = ("--fail", "broker-b@10s-40s", "--nameserver-notices", "never", "--rate", "10", "--for", "1m", "--compare-sdks")
MINUTE = ("--rate", "10", "--for", "1m")


def simulated(*args: str) -> Ran:
    ran = run("simulate-send", "-s", EXAMPLE, "-t", "OrderEvents", *args)
    assert ran.code == 0, ran.stderr
    return ran


def data(*args: str) -> Any:
    return json.loads(simulated(*args, "-o", "json").stdout)["data"]


def test_the_first_line_names_who_never_leaves_and_the_loss() -> None:
    first = simulated(*DEAD, "-o", "plain").stdout.splitlines()[0]
    assert first.startswith("never leave broker-b: java without latency fault, cpp, ")
    # Messages 101 to 400, 18 times round 16 queues of which b's eight come first in the route, and 12 more: 144 + 4.
    assert "go-grpc (148 lost), rust-grpc (148 lost)" in first
    assert "java-grpc" not in first


@every_case(("args", "lines"), [
    # Rust never asks for the route again: half of 600 messages, and 4 more since broker-b's queues come first.
    (
        ("--fail", "broker-b", *MINUTE, "--first-poll", "30s", "--compare-sdks"),
        [
            "never leave broker-b: rust-grpc (304 lost)",
            "leave broker-b after messages are lost: go (60 lost), python-grpc (60 lost), go-grpc (150 lost)",
        ],
    ),
    # Latency fault is Java's alone.
    ((*DEAD, "--latency-fault", "on"), ["never leave broker-b: cpp, go ", "java: OrderEvents, broker-b refused from 10s to 40s: "]),
])  # fmt: skip
def test_lines_about_each_broker_come_before_that_of_the_first_producer(
    args: tuple[str, ...], lines: list[str]
) -> None:
    shown = simulated(*args, "-o", "plain").stdout.splitlines()
    assert [one[: len(other)] for one, other in zip(shown, lines, strict=False)] == lines


def test_when_everyone_leaves_nobody_is_named() -> None:
    shown = simulated("--fail", "broker-b:read-only", *MINUTE, "--compare-sdks", "-o", "plain").stdout
    assert not shown.startswith("never leave")


def test_each_sdk_has_its_own_retries_unless_they_are_given() -> None:
    sdks = {each["sdk"]: each["totals"] for each in data(*DEAD)["sdks"]}
    assert list(sdks)[:3] == ["java", "go", "cpp"]
    assert "go-grpc@master" in sdks
    # Rust makes one attempt of a message, Go's gRPC SDK three.
    assert (sdks["rust-grpc"]["attempts"], sdks["go-grpc"]["failedAttempts"]) == (600, 3 * 148)
    assert {each["totals"]["retries"] for each in data(*DEAD, "--send-retries", "0")["sdks"]} == {0}


def test_two_sdks_are_compared_when_two_are_named() -> None:
    found = data("--fail", "broker-b", *MINUTE, "--sdk", "rust-grpc", "--sdk", "java@4.9.7")
    assert [each["sdk"] for each in found["sdks"]] == ["rust-grpc", "java"]
    assert (found["scenario"]["sdk"], found["sdks"][1]["profile"]) == ("rust-grpc", "4.9.4 to 4.9.7")


@every_case(("sdk", "line"), [
    ("go", "SDK go (rules of go 2.1.2)"),
    ("go-grpc@5.1.4", "SDK go-grpc@5.1.4 (rules of go-grpc 5.1.4), Proxy in local mode"),
    ("java@4.9.7", "client 4.9.7 (rules of 4.9.4 to 4.9.7)"),
])  # fmt: skip
def test_the_last_lines_name_the_rules(sdk: str, line: str) -> None:
    lines = simulated("--messages", "5", "--sdk", sdk, "-o", "plain").stdout.splitlines()
    assert any(each.startswith(line) for each in lines)


@every_case(("name", "rules"), [
    ("python", "cpp 2.2.0"),
    ("php-grpc", "java-grpc 5.2.0"),
    ("php", "java 5.5.0"),
    ("go-grpc@5.1.2", "go-grpc 5.1.4"),
])  # fmt: skip
def test_an_sdk_that_was_not_read_has_the_rules_of_the_nearest_one(name: str, rules: str) -> None:
    told = simulated("--messages", "5", "--sdk", name, "-o", "plain").stderr
    assert f"{name} was not read: its rules are taken to be those of " in told
    assert rules.rsplit(maxsplit=1)[-1] in told
    assert "[assumed-sdk]" in told


@every_case(("name", "more", "first_ms"), [
    ("java", (), 30_000),
    ("java-grpc", (), 10_000),
    ("go-grpc", (), 30_000),
    ("java-grpc", ("--first-poll", "3s"), 3_000),
    ("java-grpc", ("--route-poll", "20s"), 20_000),
])  # fmt: skip
def test_each_sdk_polls_its_route_first_when_it_does(name: str, more: tuple[str, ...], first_ms: int) -> None:
    assert data("--sdk", name, "--messages", "5", *more)["scenario"]["firstPollMs"] == first_ms


def test_an_sdk_that_cannot_be_simulated_is_left_out_and_named() -> None:
    names = [f"b{number:02}" for number in range(13)]
    many = {
        "queueDatas": [{"brokerName": n, "readQueueNums": 1, "writeQueueNums": 1, "perm": 6} for n in names],
        "brokerDatas": [{"cluster": "c", "brokerName": n, "brokerAddrs": {"0": "192.0.2.1:10911"}} for n in names],
    }
    args = ("-s", "-", "-t", "T", "--messages", "20", "--compare-sdks", "-o", "json")
    value = json.loads(run("simulate-send", *args, stdin=json.dumps(many)).stdout)
    assert "go" not in [each["sdk"] for each in value["data"]["sdks"]]
    (found,) = [finding["message"] for finding in value["findings"] if finding["code"] == "sdk-not-simulated"]
    assert found.startswith("go is left out: topic T: the order of a Go producer's queues is not known beyond 12")


def test_async_leaves_out_who_is_not_simulated() -> None:
    result = json.loads(simulated(*DEAD, "--mode", "async", "-o", "json").stdout)
    assert "cpp" not in [each["sdk"] for each in result["data"]["sdks"]]
    assert "cpp is left out: mode async is simulated for Java's producers, not for those of cpp" in [
        each["message"] for each in result["findings"]
    ]
    ran = run("simulate-send", "-s", EXAMPLE, "-t", "OrderEvents", *DEAD, "--mode", "oneway")
    assert (ran.code, "mode oneway is simulated for Java's producers" in ran.stderr) == (2, True)
