"""A client on a loopback wire, that the tests of `rmqlb.sources.native.wire` share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from rmqlb.errors import EndpointError
from rmqlb.remoting import requests
from rmqlb.remoting.command import RemotingCommand
from rmqlb.sources.native.wire import RemotingClient, WireSettings
from tests.support.replay_remoting import Replay, remoting

ROUTE = requests.get_route_info_by_topic("OrderEvents")
MEMBERS = requests.get_consumer_connection_list("order-svc")
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
    """A client and the server it talks to, which must not have been asked for anything but reads."""
    with remoting(replay), client(settings) as opened:
        yield opened


def failure(opened: RemotingClient, address: str, request: RemotingCommand = ROUTE) -> EndpointError:
    """The error that a call ends with, whose message and hint are a line each."""
    with pytest.raises(EndpointError) as caught:
        opened.call(address, request)
    assert caught.value.hint is not None
    assert (caught.value.message + caught.value.hint).isprintable()
    return caught.value


def problem(opened: RemotingClient, address: str) -> str:
    """The message, without the address and the request."""
    return failure(opened, address).message.removeprefix(f"{address} GET_ROUTEINFO_BY_TOPIC: ")


def answer_body(replay: Replay, request: RemotingCommand) -> bytes:
    answer = replay.answer(request)
    assert answer is not None
    assert answer.body is not None
    return answer.body
