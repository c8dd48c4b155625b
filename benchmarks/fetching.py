"""A snapshot of a cluster of 500 topics and 50 groups over RocketMQ's protocol: `python -m benchmarks.fetching`.

The cluster is a loopback server of the tests that answers from memory, so what is measured is rmqlb: requests a second
in units of a bare loop that sends one request after another over one connection, and how many requests are under way
at once, which must stay within its bound.
"""

from __future__ import annotations

import argparse
import json
import sys
from time import perf_counter

from benchmarks.measuring import Spread, machine, markdown
from rmqlb.model.snapshot import Everything, Wanted
from rmqlb.remoting.codes import RequestCode
from rmqlb.remoting.command import request
from rmqlb.sources.live import AT_ONCE, LiveSource
from rmqlb.sources.native.source import NameServerReads
from rmqlb.sources.native.wire import RemotingClient
from rmqlb.sources.source import Access
from tests.support.replay_remoting import Answer, Replay, remoting, success

TOPICS, GROUPS, MEMBERS = 500, 50, 4
BROKER = "127.0.0.1:10911"


def made_answers(topics: int = TOPICS, groups: int = GROUPS) -> dict[tuple[int, str], Answer]:
    """What the server answers: every topic on one broker, every group on ten topics."""
    broker = {"brokerName": "broker-a", "cluster": "c", "brokerAddrs": {"0": BROKER}}
    route = {
        "queueDatas": [{"brokerName": "broker-a", "readQueueNums": 8, "writeQueueNums": 8, "perm": 6}],
        "brokerDatas": [broker],
    }
    table = {f"g{i}": {"groupName": f"g{i}"} for i in range(groups)}
    answers: dict[tuple[int, str], Answer] = {
        (RequestCode.GET_BROKER_CLUSTER_INFO, ""): _json({"brokerAddrTable": {"broker-a": broker}}),
        (RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER, ""): _json({"topicList": [f"T{i}" for i in range(topics)]}),
        (RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG, ""): _json({"subscriptionGroupTable": table}),
    }
    for i in range(topics):
        answers[RequestCode.GET_ROUTEINFO_BY_TOPIC, f"topic=T{i}"] = _json(route)
    for i in range(groups):
        names = [f"T{(i * 10 + k) % topics}" for k in range(10)]
        connections = [{"clientId": f"10.0.0.{k}@{i}"} for k in range(MEMBERS)]
        subscription = {"connectionSet": connections, "subscriptionTable": {name: {} for name in names}}
        answers[RequestCode.GET_CONSUMER_CONNECTION_LIST, f"consumerGroup=g{i}"] = _json(subscription)
        for k in range(MEMBERS):
            key = f"consumerGroup=g{i}&clientId=10.0.0.{k}@{i}"
            answers[RequestCode.GET_CONSUMER_RUNNING_INFO, key] = _json({"properties": {}, "mqTable": {}})
    return answers


def _json(value: object) -> Answer:
    return success(json.dumps(value).encode())


def one_snapshot(server: Replay) -> tuple[float, int, int]:
    """Requests a second, requests in all, and the most under way at once, of a whole snapshot."""
    access = Access(map_address=(f"{BROKER}={server.address}",))
    source, before = LiveSource(NameServerReads([server.address], access)), len(server.requests)
    start = perf_counter()
    snapshot = source.fetch(Wanted(everything=Everything()))
    seconds = perf_counter() - start
    if len(snapshot.routes) != TOPICS or len(snapshot.groups) != GROUPS or snapshot.unread:
        raise RuntimeError(f"incomplete: {len(snapshot.routes)} topics, {len(snapshot.groups)} groups")
    number = len(server.requests) - before
    return number / seconds, number, server.requests_under_way.most


def bare_loop(server: Replay, number: int) -> float:
    """Requests a second of a loop that asks for one route after another."""
    client = RemotingClient(Access())
    start = perf_counter()
    for i in range(number):
        client.call(server.address, request(RequestCode.GET_ROUTEINFO_BY_TOPIC, topic=f"T{i % TOPICS}"))
    seconds = perf_counter() - start
    client.close()
    return number / seconds


def main() -> None:
    """Measure in turns and print the table; exit code 1 when the bound is broken."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fetching", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, metavar="N", help="turns that count (default: %(default)s)")
    rounds = parser.parse_args().rounds
    rates, shares, most, number = [], [], 0, 0
    with remoting(Replay(answers=made_answers())) as server:
        for turn in range(rounds + 1):
            rate, number, at_once = one_snapshot(server)
            bare = bare_loop(server, number)
            most = max(most, at_once)
            if turn:
                rates.append(rate)
                shares.append(rate / bare)
    rows = [
        ("requests in one snapshot", number, ""),
        ("requests per second", Spread.of(rates), ""),
        ("requests per second / bare loop", Spread.of(shares), ""),
        ("most open requests at once", most, f"≤ {AT_ONCE}"),
    ]
    sys.stdout.write(f"{machine()}, {rounds} turns, {TOPICS} topics, {GROUPS} groups of {MEMBERS}\n\n")
    sys.stdout.write(markdown(("figure", "measured", "limit"), rows) + "\n")
    sys.exit(0 if most <= AT_ONCE else 1)


if __name__ == "__main__":
    main()
