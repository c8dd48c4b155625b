"""Producers of several SDKs side by side: the first line says who never leaves a broker that fails."""

from __future__ import annotations

import json

import pytest

from tests.cli.run import EXAMPLE, run
from tests.support.mismatches import every_case

DEAD = ("--fail", "broker-b@10s-40s", "--nameserver-notices", "never", "--rate", "10", "--for", "1m", "--compare-sdks")


def compared(*more: str) -> str:
    ran = run("simulate-send", "-s", EXAMPLE, "-t", "OrderEvents", *DEAD, *more)
    assert ran.code == 0, ran.stderr
    return ran.stdout


def test_the_first_line_names_who_never_leaves_and_what_that_costs() -> None:
    first = compared("-o", "plain").splitlines()[0]
    assert first.startswith("never leave broker-b: java without latency fault, cpp, ")
    # Messages 101 to 400, 18 times round 16 queues of which b's eight come first in the route, and 12 more: 144 + 4.
    assert "go-grpc (148 lost), rust-grpc (148 lost)" in first
    assert "java-grpc" not in first


def test_each_sdk_has_its_own_retries_unless_they_are_given() -> None:
    sdks = {each["sdk"]: each["totals"] for each in json.loads(compared("-o", "json"))["data"]["sdks"]}
    assert list(sdks)[:3] == ["java", "go", "cpp"]
    assert "go-grpc@master" in sdks
    # Rust makes one attempt of a message, Go's gRPC SDK three.
    assert (sdks["rust-grpc"]["attempts"], sdks["go-grpc"]["failedAttempts"]) == (600, 3 * 148)
    one = {
        each["sdk"]: each["totals"]
        for each in json.loads(compared("--send-retries", "0", "-o", "json"))["data"]["sdks"]
    }
    assert {name: totals["retries"] for name, totals in one.items()} == dict.fromkeys(sdks, 0)


def test_when_everyone_leaves_that_is_said() -> None:
    ran = run(
        *(
            "simulate-send",
            "-s",
            EXAMPLE,
            "-t",
            "OrderEvents",
            "--fail",
            "broker-b:read-only",
            "--rate",
            "10",
            "--for",
            "1m",
        ),
        *("--compare-sdks", "-o", "plain"),
    )
    assert not ran.stdout.startswith("never leave")


def test_who_leaves_only_after_messages_are_lost_is_no_good_news() -> None:
    options = (
        "--fail",
        "broker-b",
        "--rate",
        "10",
        "--for",
        "1m",
        "--first-poll",
        "30s",
        "--compare-sdks",
        "-o",
        "plain",
    )
    ran = run("simulate-send", "-s", EXAMPLE, "-t", "OrderEvents", *options)
    # Rust never asks for the route again: half of 600 messages, and 4 more since broker-b's queues come first.
    assert ran.stdout.splitlines()[:2] == [
        "never leave broker-b: rust-grpc (304 lost)",
        "leave broker-b after messages are lost: go (60 lost), python-grpc (60 lost), go-grpc (150 lost)",
    ]


def test_two_sdks_are_compared_when_two_are_named() -> None:
    options = ("--fail", "broker-b", "--rate", "10", "--for", "1m", "--sdk", "rust-grpc", "--sdk", "java@4.9.7")
    ran = run("simulate-send", "-s", EXAMPLE, "-t", "OrderEvents", *options, "-o", "json")
    found = json.loads(ran.stdout)["data"]
    assert [each["sdk"] for each in found["sdks"]] == ["rust-grpc", "java"]
    assert (found["scenario"]["sdk"], found["sdks"][1]["profile"]) == ("rust-grpc", "4.9.4 to 4.9.7")


@pytest.mark.parametrize("sdk", ["go", "go-grpc@5.1.4"])
def test_the_last_lines_name_the_rules(sdk: str) -> None:
    ran = run("simulate-send", "-s", EXAMPLE, "-t", "OrderEvents", "--messages", "5", "--sdk", sdk, "-o", "plain")
    (line,) = [line for line in ran.stdout.splitlines() if line.startswith("SDK ")]
    rules = {
        "go": "SDK go (rules of go 2.1.2)",
        "go-grpc@5.1.4": "SDK go-grpc@5.1.4 (rules of go-grpc 5.1.4), Proxy in local mode",
    }
    assert line == rules[sdk]


def test_an_sdk_that_cannot_be_simulated_is_left_out_and_named() -> None:
    names = [f"b{number:02}" for number in range(13)]
    many = json.dumps(
        {
            "queueDatas": [{"brokerName": n, "readQueueNums": 1, "writeQueueNums": 1, "perm": 6} for n in names],
            "brokerDatas": [{"cluster": "c", "brokerName": n, "brokerAddrs": {"0": "192.0.2.1:10911"}} for n in names],
        }
    )
    ran = run("simulate-send", "-s", "-", "-t", "T", "--messages", "20", "--compare-sdks", "-o", "json", stdin=many)
    value = json.loads(ran.stdout)
    assert "go" not in [each["sdk"] for each in value["data"]["sdks"]]
    (told,) = [finding for finding in value["findings"] if finding["code"] == "sdk-not-simulated"]
    assert told["message"].startswith(
        "go is left out: topic T: the order of a Go producer's queues is not known beyond 12"
    )


def test_a_version_that_was_not_read_is_assumed() -> None:
    ran = run(
        "simulate-send", "-s", EXAMPLE, "-t", "OrderEvents", "--messages", "5", "--sdk", "go-grpc@5.1.2", "-o", "plain"
    )
    assert "[assumed-sdk]" in ran.stderr


def test_latency_fault_is_javas_alone() -> None:
    first, second = compared("--latency-fault", "on", "-o", "plain").splitlines()[:2]
    assert first.startswith("never leave broker-b: cpp, go ")
    assert second.startswith("java: OrderEvents, broker-b refused from 10s to 40s: ")


@every_case(
    ("name", "more", "first_ms"),
    [
        ("java", (), 30_000),
        ("java-grpc", (), 10_000),
        ("go-grpc", (), 30_000),
        ("java-grpc", ("--first-poll", "3s"), 3_000),
        ("java-grpc", ("--route-poll", "20s"), 20_000),
    ],
)
def test_each_sdk_polls_its_route_first_when_it_does(name: str, more: tuple[str, ...], first_ms: int) -> None:
    ran = run("simulate-send", "-s", EXAMPLE, "-t", "OrderEvents", "--sdk", name, *more, "-o", "json")
    assert json.loads(ran.stdout)["data"]["scenario"]["firstPollMs"] == first_ms


def test_a_version_of_java_is_one_of_its_client() -> None:
    ran = run("simulate-send", "-s", EXAMPLE, "-t", "OrderEvents", "--sdk", "java@4.9.7", "-o", "json")
    scenario = json.loads(ran.stdout)["data"]["scenario"]
    assert (scenario["sdk"], scenario["clientVersion"], scenario["profile"]) == ("java", "4.9.7", "4.9.4 to 4.9.7")


@every_case(("name", "rules"), [("python", "cpp 2.2.0"), ("php-grpc", "java-grpc 5.2.0"), ("php", "java 5.5.0")])
def test_of_an_sdk_that_was_not_read_the_nearest_one_is_simulated(name: str, rules: str) -> None:
    ran = run("simulate-send", "-s", EXAMPLE, "-t", "OrderEvents", "--sdk", name, "-o", "plain")
    assert f"{name} was not read: its rules are taken to be those of {rules} [assumed-sdk]" in ran.stderr
    assert ran.code == 0


def test_async_leaves_out_who_is_not_simulated() -> None:
    ran = run("simulate-send", "-s", EXAMPLE, "-t", "OrderEvents", *DEAD, "--mode", "async", "-o", "json")
    result = json.loads(ran.stdout)
    assert "cpp" not in [each["sdk"] for each in result["data"]["sdks"]]
    assert "cpp is left out: mode async is simulated for Java's producers, not for those of cpp" in [
        each["message"] for each in result["findings"]
    ]
    ran = run("simulate-send", "-s", EXAMPLE, "-t", "OrderEvents", *DEAD, "--mode", "oneway")
    assert (ran.code, "mode oneway is simulated for Java's producers" in ran.stderr) == (2, True)
