"""The client's side of a connection: numbering, matching, and what is not ours."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmqlb.errors import ProtocolError
from rmqlb.remoting.command import RemotingCommand
from rmqlb.remoting.frame import Exchange, FrameDecoder, encode_frame
from rmqlb.remoting.requests import get_broker_cluster_info, get_route_info_by_topic

from .strategies import pieces
from .vectors import capture

CLUSTER = get_broker_cluster_info()
ROUTE = get_route_info_by_topic("OrderEvents")


def sent(frame: bytes) -> RemotingCommand:
    """The request that a server reads from a frame."""
    (request,) = FrameDecoder().feed(frame)
    return request


def answer(opaque: int, **fields: object) -> bytes:
    """A server's response to the request with this opaque."""
    return encode_frame(replace(RemotingCommand(code=0, flag=1, opaque=opaque), **fields))  # type: ignore[arg-type]


def test_a_captured_answer_is_paired_with_its_request() -> None:
    exchange = Exchange(first_opaque=1)
    request = sent(exchange.send(ROUTE))
    assert request == replace(ROUTE, opaque=1)
    ((asked, response),) = exchange.receive(capture("5.5.0-route").frame)
    assert asked == request
    assert (response.code, len(response.body or b"")) == (0, 469)


def test_opaques_count_up_and_wrap_as_javas_int() -> None:
    exchange = Exchange(first_opaque=2**31 - 2)
    opaques = [sent(exchange.send(CLUSTER)).opaque for _ in range(4)]
    assert opaques == [2**31 - 2, 2**31 - 1, -(2**31), -(2**31) + 1]
    assert [request.opaque for request, _ in exchange.receive(b"".join(map(answer, opaques)))] == opaques
    assert exchange.unknown_answers == 0


@given(st.data(), st.permutations(range(5)))
def test_answers_in_any_order_and_any_pieces_find_their_requests(data: st.DataObject, order: list[int]) -> None:
    exchange = Exchange()
    requests = [sent(exchange.send(get_route_info_by_topic(f"k{number}"))) for number in range(5)]
    stream = b"".join(answer(opaque, body=f"k{opaque}".encode()) for opaque in order)
    pairs = [pair for piece in data.draw(pieces(stream)) for pair in exchange.receive(piece)]
    assert [request for request, _ in pairs] == [requests[opaque] for opaque in order]
    assert all((response.body or b"").decode() == request.ext_fields["topic"] for request, response in pairs)


def test_an_answer_to_nothing_is_dropped_and_counted() -> None:
    exchange = Exchange(first_opaque=5)
    exchange.send(CLUSTER)
    assert exchange.receive(answer(4) + answer(6) + answer(-5)) == []
    assert exchange.unknown_answers == 3


def test_a_request_of_the_server_is_dropped_even_with_a_pending_opaque() -> None:
    exchange = Exchange()
    exchange.send(CLUSTER)
    notice = RemotingCommand(code=40, flag=2, opaque=0, ext_fields={"consumerGroup": "order-svc"})
    assert exchange.receive(encode_frame(notice)) == []
    assert exchange.unknown_answers == 0
    assert len(exchange.receive(answer(0))) == 1


def test_garbage_behind_an_answer_breaks_the_connection_after_it() -> None:
    exchange = Exchange()
    exchange.send(CLUSTER)
    assert len(exchange.receive(answer(0) + b"HTTP/1.1 400 Bad Request")) == 1
    assert exchange.broken
    for _ in range(2):
        with pytest.raises(ProtocolError, match="frame length 1213486160"):
            exchange.receive(b"")


@given(st.binary(max_size=100))
def test_any_bytes_give_pairs_or_a_protocol_error(data: bytes) -> None:
    exchange = Exchange()
    exchange.send(CLUSTER)
    try:
        pairs = exchange.receive(data)
    except ProtocolError:
        assert exchange.broken
    else:
        assert len(pairs) <= 1
