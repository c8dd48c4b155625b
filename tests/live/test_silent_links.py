from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from typer.testing import CliRunner

from rmqlb.cli.main import app
from rmqlb.engine.diagnose.evidence import CONVERGES_MS
from rmqlb.model.diagnosis import Diagnosis
from rmqlb.remoting.command import RemotingCommand
from rmqlb.remoting.frame import FrameDecoder, encode_frame
from rmqlb.views.diagnose import sentence

from .cluster import RocketMQCluster, TopicOnBroker
from .faults import Lab, grave, lab
from .jvm import wait_until

pytestmark = [pytest.mark.live, pytest.mark.slow]

TOPIC, HEART_BEAT = "Silences", 34
RESTS_S = 180.0
GROUPS = ("link-svc", "locked-svc", "stale-svc")


@pytest.fixture(scope="module")
def living() -> Iterator[tuple[Lab, Any]]:
    """Three groups at rest: a consumer of the first has a link to broker-b that can be silenced."""
    with RocketMQCluster("5.5.0", brokers=["broker-a", "broker-b"], name="SilentCluster") as cluster:
        cluster.create_topics([TopicOnBroker(TOPIC, broker, 4, 4) for broker in cluster.broker_addresses])
        with lab(cluster, fast=False) as of:
            name_server, link = of.link_to("broker-b")
            for number in range(2):
                of.crew.join("link-svc", f"link-{number}", TOPIC)
                of.crew.join("stale-svc", f"stale-{number}", TOPIC)
                of.crew.join("locked-svc", f"locked-{number}", TOPIC, orderly="true")
            of.crew.join("link-svc", "link-2", TOPIC, nameServer=name_server)
            of.alone("killed").join("locked-svc", "locked-2", TOPIC, orderly="true")
            of.crew.produce(TOPIC, 20)
            grown_up = time.monotonic() + CONVERGES_MS / 1000
            wait_until(
                lambda: (
                    time.monotonic() > grown_up
                    and all(not _unsettled(each) for each in of.diagnose(GROUPS, "--looks", "1").values())
                ),
                RESTS_S,
                lambda: f"not at rest: {of.said}",
                5.0,
            )
            yield of, link


def _unsettled(diagnosis: dict[str, Any]) -> list[str]:
    return [each["code"] for each in diagnosis["findings"] if each["code"] != "lag-growing"]


def said(of: Lab, group: str, *more: str) -> tuple[dict[str, Any], str]:
    source = ("-s", f"rocketmq://{of.cluster.name_server}", "-g", group, "--source-timeout", "3s", *more)
    ran = CliRunner().invoke(app, ["diagnose", *source, "-o", "json"])
    if ran.exit_code != 0:
        raise RuntimeError(ran.stderr)
    found: dict[str, Any] = json.loads(ran.stdout)["data"]
    of.said.setdefault(group, []).append(found)
    return found, sentence(msgspec.convert(found, Diagnosis))


def test_the_locks_of_a_killed_consumer_are_the_cause_while_they_last(living: tuple[Lab, Any]) -> None:
    of, _ = living
    of.own["killed"].process.kill()
    wait_until(
        lambda: grave(said(of, "locked-svc", "--looks", "1")[0]) == ["consumer-gone"],
        40,
        lambda: f"not named: {of.brief('locked-svc')} {of.said['locked-svc'][-1]}",
        1.0,
    )
    _, headline = said(of, "locked-svc", "--looks", "1")
    assert "a consumer that ended without a word" in headline
    wait_until(
        lambda: not grave(of.diagnose(["locked-svc"], "--looks", "1")["locked-svc"]),
        150,
        lambda: f"still: {of.brief('locked-svc')}",
        5.0,
    )


def test_a_silent_link_is_named_and_its_consumer_is_not_frozen(living: tuple[Lab, Any]) -> None:
    of, link = living
    link.hush()
    codes: list[list[str]] = []

    def is_named() -> bool:
        found, _ = said(of, "link-svc")
        codes.append([each["code"] for each in found["findings"]])
        return codes[-1][:1] == ["broker-unreachable-from-consumer"]

    wait_until(is_named, 90, lambda: f"{of.said['link-svc'][-1]}")
    found = of.said["link-svc"][-1]
    assert found["findings"][0]["consumers"] == ["127.0.0.1@link-2"]
    assert {queue["brokerName"] for queue in found["findings"][0]["queues"]} == {"broker-b"}
    assert "broker-unreachable-from-consumer" not in found["checked"]
    assert not any("frozen-consumer" in each for each in codes), codes
    assert "lag-stalled" not in grave(found)


def test_channels_at_one_broker_alone_are_no_processes(living: tuple[Lab, Any]) -> None:
    of, _ = living
    with _more_channels(of.cluster, "broker-b", "stale-svc", "127.0.0.1@stale-0", 22):
        found, headline = said(of, "stale-svc", "--looks", "1")
    codes = [each["code"] for each in found["findings"]]
    assert "stale-connections" in codes, found
    assert "duplicate-client-id" not in codes
    assert "processes share" not in headline
    assert found["counts"]["processes"] == 2
    stale = next(each for each in found["findings"] if each["code"] == "stale-connections")
    assert stale["evidence"][0]["value"] == 23


def test_a_paused_broker_is_the_headline(living: tuple[Lab, Any]) -> None:
    of, _ = living
    with of.cluster.paused("broker-b"):
        found, headline = said(of, "stale-svc", "--looks", "1")
    assert found["findings"][0]["code"] == "broker-silent"
    assert headline.startswith("broker-b does not answer")


def test_a_broker_that_was_killed_seconds_ago_is_named(living: tuple[Lab, Any], tmp_path: Path) -> None:
    of, _ = living
    wait_until(
        lambda: not grave(of.diagnose(["stale-svc"], "--looks", "1")["stale-svc"]),
        120,
        lambda: f"still: {of.brief('stale-svc')}",
        3.0,
    )
    before = str(tmp_path / "before.json")
    source = ("-s", f"rocketmq://{of.cluster.name_server}", "-g", "stale-svc")
    CliRunner().invoke(app, ["fetch-routes", *source, "--evidence", "--to", before])
    time.sleep(2)  # snapshots tell whole seconds
    of.cluster.kill_broker("broker-b")
    at_once, _ = said(of, "stale-svc", "--looks", "1")
    found, headline = said(of, "stale-svc", "--looks", "1", "--earlier", before)
    assert found["findings"][0]["code"] == "broker-gone", found
    assert headline.startswith("broker-b has left the routes")
    assert " since 20" in found["findings"][0]["consequence"]
    assert grave(at_once) in (["broker-gone"], []), at_once  # nothing, once its consumers have given its queues up


@contextmanager
def _more_channels(
    cluster: RocketMQCluster, broker_name: str, group: str, client_id: str, number: int
) -> Iterator[None]:
    """Connections that a client's broken ones leave at a broker: each has sent one heartbeat, and nothing after it."""
    host, _, port = cluster.broker_addresses[broker_name].rpartition(":")
    now = time.time_ns() // 1_000_000
    subscribed = [
        {"topic": topic, "subString": "*", "tagsSet": [], "codeSet": [], "subVersion": now, "expressionType": "TAG"}
        for topic in (TOPIC, f"%RETRY%{group}")
    ]
    consumer = {
        "groupName": group,
        "consumeType": "CONSUME_PASSIVELY",
        "messageModel": "CLUSTERING",
        "consumeFromWhere": "CONSUME_FROM_LAST_OFFSET",
        "subscriptionDataSet": subscribed,
        "unitMode": False,
    }
    body = json.dumps({"clientID": client_id, "consumerDataSet": [consumer], "producerDataSet": []}).encode()
    with ExitStack() as stack:
        for _ in range(number):
            line = stack.enter_context(socket.create_connection((host, int(port)), timeout=10))
            line.sendall(encode_frame(RemotingCommand(HEART_BEAT, body=body)))
            decoder = FrameDecoder()
            while not decoder.feed(line.recv(1 << 16)):
                pass
        yield
