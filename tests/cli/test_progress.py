"""What a person sees of work that takes long: something at once, and nothing of it afterwards."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path

import pytest

from tests.cli.run import EXAMPLE
from tests.cli.terminals import OnTerminal

SHOW = ("show-route", "--topic", "T", "--section", "brokers", "--no-pager")


def snapshot(queues: int = 1) -> str:
    data = {
        "topics": [{"topic": "T", "route": {"queueDatas": [{"brokerName": "b", "readQueueNums": queues, "perm": 6}]}}],
        "groups": [{"group": "g", "clientIds": ["one"], "topics": ["T"]}],
    }
    return json.dumps({"schema": "rmqlb/snapshot", "formatVersion": "1.0", "data": data})


@pytest.fixture
def fifo(tmp_path: Path) -> Path:
    """A source that says nothing until the test does."""
    os.mkfifo(tmp_path / "fifo")
    return tmp_path / "fifo"


def test_a_slow_dump_is_said_to_be_read_until_it_is(fifo: Path) -> None:
    with OnTerminal(*SHOW, "-s", str(fifo), columns=200) as terminal:
        terminal.until(lambda: terminal.lines == [f"reading {fifo}"])
        fifo.write_text(snapshot())
        assert terminal.end() == 0
    assert "reading" not in "\n".join(terminal.lines)
    assert "topic T" in terminal.lines[0]


def test_a_server_that_does_not_answer_is_said_to_be_read() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        where = f"rocketmq://127.0.0.1:{server.getsockname()[1]}"
        with OnTerminal(*SHOW, "-s", where, "--source-retries", "0") as terminal:
            caller, _ = server.accept()
            terminal.until(lambda: any(line.startswith("reading ") for line in terminal.lines))
            caller.close()
            assert terminal.end() == 5
    assert terminal.lines[0].startswith("error: ")


def test_rows_in_a_file_leave_the_terminal_to_the_progress(tmp_path: Path) -> None:
    file = tmp_path / "attempts.jsonl"
    send = ("simulate-send", "-s", EXAMPLE, "-t", "OrderEvents", "--messages", "5", "--latency", "1ms", "-o", "jsonl")
    with OnTerminal(*send, stdout=file) as terminal:
        assert terminal.end() == 0
    assert b"simulating messages: 1 of 5" in terminal.raw
    assert terminal.lines == [""]
    assert len(file.read_text().splitlines()) == 5
    with OnTerminal(*send, columns=1000) as terminal:
        assert terminal.end() == 0
    assert b"simulating" not in terminal.raw
