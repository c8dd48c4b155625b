from __future__ import annotations

import json
from typing import Any

from tests.support.builders import snapshot_text
from tests.support.mismatches import every_case

from .run import Ran, run

PLAN, SHOW = ("plan-rebalance", "--add", "1"), ("show-owners",)
each_command = every_case("command", [PLAN, SHOW, ("simulate-rebalance", "--event", "join z@10s")], ids=" ".join)


def snapshot(routes: tuple[str, ...], **group: Any) -> str:
    return snapshot_text(*routes, clientIds=["a@1", "b@1"], **group)


def shown(command: tuple[str, ...], text: str, *more: str) -> tuple[Ran, list[str]]:
    ran = run(*command, "-s", "-", "--include-retry", "-o", "json", *more, stdin=text)
    data = json.loads(ran.stdout)["data"] if ran.code == 0 else {}
    topics = [topic["topic"] for topic in data["topics"]] if command is PLAN and data else []
    return ran, sorted({*topics, *(queue["topic"] for queue in data.get("queues", ()))})


def codes(ran: Ran) -> list[str]:
    return [finding["code"] for finding in json.loads(ran.stdout)["findings"]]


@each_command
@every_case("topics", [["T"], ["%RETRY%g", "T"], None])
@every_case("named", ["", "-t T", "-t T -t %RETRY%g", "-t T -g g"])
def test_the_retry_topic_is_taken_whatever_names_the_others(
    command: tuple[str, ...], topics: list[str] | None, named: str
) -> None:
    ran, found = shown(command, snapshot(("%RETRY%g", "T"), topics=topics), *named.split())
    assert (ran.code, found) == (0, ["%RETRY%g", "T"])
    assert "not-subscribed" not in codes(ran)
    if topics is not None:
        ran, found = shown(command, snapshot(("T",), topics=topics), *named.split()[:2])
        assert (ran.code, found, codes(ran).count("no-route")) == (0, ["T"], 1)


@every_case(
    ("kind", "why"),
    [({"messageModel": "BROADCASTING"}, "BROADCASTING"), ({"consumeType": "CONSUME_ACTIVELY"}, "pulls")],
)
def test_a_group_that_does_not_read_it_is_told_apart(kind: dict[str, str], why: str) -> None:
    """Neither those that broadcast nor those that pull subscribe to a retry topic on their own."""
    command = ("simulate-rebalance", "--event", "join z@10s")
    ran, found = shown(command, snapshot(("%RETRY%g", "T"), topics=["T"], **kind))
    assert found == ["T"]
    (told,) = [w["message"] for w in json.loads(ran.stdout)["findings"] if w["code"] == "not-subscribed"]
    assert ("--include-retry" in told, why in told) == (True, True)
