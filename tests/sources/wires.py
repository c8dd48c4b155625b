from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from rmqlb.errors import EndpointError
from rmqlb.remoting.codes import RequestCode
from rmqlb.remoting.command import RemotingCommand, request
from rmqlb.sources.native.wire import RemotingClient, WireSettings
from tests.support.replay_remoting import Replay, remoting

ROUTE = request(RequestCode.GET_ROUTEINFO_BY_TOPIC, topic="OrderEvents")
MEMBERS = request(RequestCode.GET_CONSUMER_CONNECTION_LIST, consumerGroup="order-svc")
SETTINGS = WireSettings(timeout=10.0, sleep=lambda _: None)


@contextmanager
def client(settings: WireSettings = SETTINGS) -> Iterator[RemotingClient]:
    opened = RemotingClient(settings)
    try:
        yield opened
    finally:
        opened.close()


@contextmanager
def talking(replay: Replay, settings: WireSettings = SETTINGS) -> Iterator[RemotingClient]:
    with remoting(replay), client(settings) as opened:
        yield opened


def failure(opened: RemotingClient, address: str) -> EndpointError:
    with pytest.raises(EndpointError) as caught:
        opened.call(address, ROUTE)
    assert caught.value.hint is not None
    assert (caught.value.message + caught.value.hint).isprintable()
    return caught.value


def problem(opened: RemotingClient, address: str) -> str:
    return failure(opened, address).message.removeprefix(f"{address} GET_ROUTEINFO_BY_TOPIC: ")


def answer_body(replay: Replay, asked: RemotingCommand) -> bytes:
    answer = replay.answer(asked)
    assert answer is not None
    assert answer.body is not None
    return answer.body
