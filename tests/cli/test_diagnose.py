import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.sources.test_dashboard import PROGRESS, RUNNING
from tests.support.replay_dashboard import CAPTURES, Handler, Replay, dashboard, envelope, failure
from tests.support.schemas import must_fit

from .run import ROOT, Ran, run
from .terminals import CTRL_C, OnTerminal


def first(terminal: OnTerminal) -> str:
    return "".join(terminal.lines[1:2])


def test_a_watched_first_line_changes_as_soon_as_the_looks_show_why(tmp_path: Path) -> None:
    """The look before is an earlier one: what one look leaves open, the next one decides."""
    source = tmp_path / "now.json"
    examples = ROOT / "examples"
    source.write_bytes((examples / "faults-before.json").read_bytes())
    with OnTerminal(
        "diagnose", "-s", str(source), "-g", "ship-svc", "--watch", "--every", "100ms", lines=50
    ) as terminal:
        terminal.until(lambda: first(terminal).startswith("ship-svc: the listener of 192.0.2.68@7 has "))
        later = tmp_path / "later.json"
        later.write_bytes((examples / "faults.json").read_bytes())
        later.replace(source)
        terminal.until(lambda: first(terminal).startswith("ship-svc: the listener of 192.0.2.68@7 is blocked; "))
        terminal.press(CTRL_C)
        assert terminal.end() == 130


ID = "192.0.2.2@inst0"
REPORT = json.loads((CAPTURES / "running-order-svc-inst0.json").read_text(encoding="utf-8"))["data"]
QUEUES = [
    f"MessageQueue [topic={topic['topic']}, brokerName={queue['brokerName']}, queueId={queue['queueId']}]"
    for topic in json.loads((CAPTURES / "progress-order-svc.json").read_text(encoding="utf-8"))["data"]
    for queue in topic["queueStatInfoList"]
]
BEGAN = int(time.time() * 1000)
STACK = (
    "ConsumeMessageThread_order-svc_1        TID: 42 STATE: TIMED_WAITING\n"
    "ConsumeMessageThread_order-svc_1        java.lang.Thread.sleep(Native Method)\n\n"
)


def connected(*client_ids: str) -> Replay:
    replay = Replay()
    for (path, query), body in replay.answers.items():
        if path == "/consumer/consumerConnection.query" and parse_qs(query).get("consumerGroup") == ["order-svc"]:
            document = json.loads(body)
            listed = document["data"]["connectionSet"]
            document["data"]["connectionSet"] = [each for each in listed if each["clientId"] in client_ids]
            replay.answers[path, query] = json.dumps(document).encode()
    return replay


def blocked(handler: Handler) -> None:
    """The captured report, with messages of each queue that have waited for the listener for ten minutes."""
    asked = parse_qs(urlsplit(handler.path).query)
    if asked["clientId"] != [ID]:
        handler.give(failure("CODE: 206  DESC: not online"))
        return
    state = {
        **next(iter(REPORT["mqTable"].values())), "cachedMsgCount": 5, "cachedMsgMinOffset": 1, "cachedMsgMaxOffset": 5,
        "commitOffset": 1, "lastConsumeTimestamp": BEGAN - 600_000, "lastPullTimestamp": int(time.time() * 1000) - 1000,
    }  # fmt: skip
    table = dict.fromkeys(QUEUES, state)
    stack = {"jstack": STACK} if asked.get("jstack") == ["true"] else {}
    handler.give(envelope({**REPORT, "mqTable": table, **stack}))


@pytest.fixture
def replay() -> Iterator[Replay]:
    with dashboard(connected(ID)) as running:
        yield running


def diagnose_live(replay: Replay, *arguments: str, **more: Any) -> Ran:
    return run("diagnose", "-s", replay.url, "-g", "order-svc", "--every", "1s", *arguments, **more)


def live_data(replay: Replay, *arguments: str) -> Any:
    ran = diagnose_live(replay, "-o", "json", *arguments)
    assert ran.code == 0, ran.stderr
    document = json.loads(ran.stdout)
    must_fit(document)
    return document["data"]


def offsets_read(replay: Replay) -> int:
    return sum(PROGRESS in asked and "order-svc" in asked for asked in replay.asked)


def test_a_group_is_read_again_where_a_change_over_time_decides(replay: Replay) -> None:
    once = live_data(replay, "--samples", "1")
    assert (len(once["samples"]), offsets_read(replay)) == (1, 1)
    assert "offset-rewound" in {each["code"] for each in once["unknown"]}
    twice = live_data(replay, "--samples", "2")
    assert (len(twice["samples"]), offsets_read(replay)) == (2, 3)
    assert "offset-rewound" in twice["checked"]


def a_minute_ago(replay: Replay, folder: Path) -> str:
    document = json.loads(run("fetch-routes", "-s", replay.url, "-g", "order-svc", "--evidence", "-o", "json").stdout)
    taken = datetime.now(UTC) - timedelta(minutes=1)

    def earlier(value: Any) -> Any:
        if isinstance(value, dict):
            times = {"takenAt": taken.isoformat(), "at": taken.isoformat(), "readAt": int(taken.timestamp() * 1000)}
            return {key: times[key] if key in times and item else earlier(item) for key, item in value.items()}
        return [earlier(item) for item in value] if isinstance(value, list) else value

    path = folder / "earlier.json"
    path.write_text(json.dumps(earlier(document)), encoding="utf-8")
    return str(path)


def test_a_blocked_listener_is_named_with_what_its_threads_do(replay: Replay, tmp_path: Path) -> None:
    replay.faults[RUNNING] = blocked
    before = a_minute_ago(replay, tmp_path)
    ran = diagnose_live(replay, "--stacks", "--samples", "1", "--earlier", before)
    assert ran.stdout.startswith(f"order-svc: the listener of {ID} is blocked; ")
    assert "  stacks       ConsumeMessageThread_order-svc_1 TIMED_WAITING\n" in ran.stdout
    assert "java.lang.Thread.sleep(Native Method)" in ran.stdout
    assert [asked for asked in replay.asked if "jstack=true" in asked] == [
        f"GET {RUNNING}?consumerGroup=order-svc&clientId=192.0.2.2%40inst0&jstack=true"
    ]
    found = live_data(replay, "--samples", "1", "--earlier", before)
    assert found["findings"][0]["code"] == "blocked-consumer"
    assert found["stacks"] is None


def test_a_later_look_that_fails_leaves_what_was_seen_before(replay: Replay) -> None:
    whole = live_data(replay, "--samples", "1")
    asked_in_one = len(replay.asked)
    seen = iter(range(asked_in_one))

    def until_then(handler: Handler) -> None:
        target = urlsplit(handler.path)
        if next(seen, None) is None:
            handler.give(b"", 503)
        else:
            handler._answer(target.path, target.query)

    replay.faults["*"] = until_then
    ran = diagnose_live(replay, "-o", "json", "--source-retries", "0")
    document = json.loads(ran.stdout)
    assert ran.code == 0
    assert [each["code"] for each in document["data"]["unknown"]] == [each["code"] for each in whole["unknown"]]
    assert len(document["data"]["samples"]) == 1
    assert any(each["message"].startswith("sample 2 failed, ") for each in document["findings"])


def test_what_is_not_asked_by_the_deadline_is_unknown(replay: Replay) -> None:
    def late(handler: Handler) -> None:
        time.sleep(2.1)
        target = urlsplit(handler.path)
        handler._answer(target.path, target.query)

    replay.faults[PROGRESS] = late
    found = live_data(replay, "--samples", "1", "--deadline", "2s")
    assert found["outcome"] == "unknown"
    assert any("not requested within the 2 s of the deadline" in each["reason"] for each in found["unknown"])
    assert not any(RUNNING in asked for asked in replay.asked)


def test_each_look_of_a_watch_is_an_earlier_one_to_the_next(replay: Replay) -> None:
    ran = diagnose_live(replay, "--watch", "--samples", "2")
    lines = [json.loads(line) for line in ran.stdout.splitlines()]
    for line in lines:
        must_fit(line, "rmqlb/change")
    first = {line["row"]["code"] for line in lines if line["change"] == "first"}
    removed = {line["was"]["code"] for line in lines if line["change"] == "removed"}
    assert "offset-rewound" in first & removed
    assert offsets_read(replay) == 2


def test_a_terminal_says_that_it_waits_for_the_next_look(replay: Replay) -> None:
    with OnTerminal(
        "diagnose", "-s", replay.url, "-g", "order-svc", "--every", "1s", "--samples", "2", "--no-pager", lines=60
    ) as terminal:
        assert terminal.end() == 0
    assert b"waiting 1 s for sample 2 of at most 2" in terminal.raw
    assert terminal.lines[0].startswith("order-svc: ")
