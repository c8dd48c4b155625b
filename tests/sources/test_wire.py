from __future__ import annotations

import re
import threading
import traceback
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from rmqlb.errors import EndpointError, UsageError
from rmqlb.remoting.acl import Credentials
from rmqlb.remoting.codes import RequestCode, ResponseCode
from rmqlb.remoting.command import RemotingCommand, request
from rmqlb.remoting.frame import RequestNotAllowedError, encode_frame
from rmqlb.sources.native.wire import RemotingClient, TimedSocket, parse_address, parse_address_map
from rmqlb.sources.pace import Deadline
from tests.remoting.vectors import CAPTURES
from tests.support.mismatches import every_case
from tests.support.replay_remoting import Answer, Replay, captured_answers, cluster, key, remoting, silent, success

from .wires import MEMBERS, ROUTE, SETTINGS, answer_body, client, failure, problem, talking


@every_case("replay", [Replay(), Replay(broker="b1"), Replay(version="4.9.7")])
def test_every_captured_answer_comes_as_it_was_captured(replay: Replay) -> None:
    known = captured_answers(replay.version, replay.broker)
    is_for_this_broker = (f"-{replay.broker}-", "-b")
    asked = [
        one
        for one in CAPTURES
        if one.name.startswith(replay.version)
        and (one.request_code, key(one.ext_fields)) in known
        and (is_for_this_broker[0] in one.name or is_for_this_broker[1] not in one.name)
    ]
    assert len(asked) >= 7
    with talking(replay) as opened:
        for one in asked:
            response = opened.call(replay.address, RemotingCommand(code=one.request_code, ext_fields=one.ext_fields))
            assert response.code == one.response_code
            assert (response.body or b"") == one.frame[len(one.frame) - one.body_bytes :]
    assert replay.asked == [(one.request_code, key(one.ext_fields)) for one in asked]


def test_a_large_answer_is_read_up_to_the_limit() -> None:
    body = b"x" * 3_000_000
    replay = Replay(answers={(105, "topic=OrderEvents"): success(body)})
    with talking(replay, replace(SETTINGS, max_frame=len(body) + 1000)) as opened:
        assert opened.call(replay.address, ROUTE).body == body
    with talking(replay, replace(SETTINGS, max_frame=len(body))) as opened:
        assert problem(opened, replay.address).endswith("is not between 4 and 2999996")


def test_a_connection_that_was_closed_meanwhile_is_replaced_without_a_retry() -> None:
    replay = Replay(close_after=1)
    with talking(replay, replace(SETTINGS, retries=0)) as opened:
        for expected in (1, 2, 3):
            assert opened.call(replay.address, ROUTE).code == 0
            wait_until_closed(opened)
            assert (replay.connections, len(replay.requests)) == (expected, expected)


def wait_until_closed(opened: RemotingClient) -> None:
    """The server's end of the connection has arrived; reading it is what the next call does too."""
    (line,) = opened._lines.values()
    assert line.connection is not None
    connection = line.connection[0]._socket
    connection.settimeout(10)
    assert connection.recv(1) == b""


def test_threads_take_turns_on_a_connection_and_get_their_own_answers() -> None:
    def echo(request: RemotingCommand) -> RemotingCommand:
        return success(asked=request.ext_fields["topic"])

    topics = [f"T{number}" for number in range(40)]
    replay = Replay(answers={(105, f"topic={topic}"): echo for topic in topics})
    with talking(replay) as opened, ThreadPoolExecutor(8) as pool:
        asked = (request(RequestCode.GET_ROUTEINFO_BY_TOPIC, topic=topic) for topic in topics)
        answered = pool.map(lambda one: opened.call(replay.address, one).ext_fields["asked"], asked)
        assert list(answered) == topics
        assert (len(replay.requests), replay.most_at_once, replay.connections) == (40, 1, 1)


def test_calls_to_two_addresses_are_under_way_at_once() -> None:
    both = threading.Barrier(2)

    def when_both_are_asked(request: RemotingCommand) -> RemotingCommand:
        both.wait(10)
        return success(request.ext_fields["consumerGroup"].encode())

    answers: dict[tuple[int, str], Answer] = {(203, "consumerGroup=order-svc"): when_both_are_asked}
    first, second = Replay(answers=dict(answers)), Replay(broker="b1", answers=dict(answers))
    with cluster(first, second), client() as opened, ThreadPoolExecutor(4) as pool:
        addresses = [first.address, second.address] * 3
        assert list(pool.map(lambda at: opened.call(at, MEMBERS).body, addresses)) == [b"order-svc"] * 6
    assert (first.connections, second.connections) == (1, 1)


def test_nothing_can_be_called_after_closing() -> None:
    with talking(replay := Replay()) as opened:
        opened.call(replay.address, ROUTE)
        opened.close()
        opened.close()
        with pytest.raises(RuntimeError, match="the client is closed"):
            opened.call(replay.address, ROUTE)
    assert len(replay.requests) == 1


def test_closing_ends_a_call_that_is_under_way() -> None:
    asked = threading.Event()

    def never(_: RemotingCommand) -> RemotingCommand:
        asked.set()
        replay.stop.wait()
        return success()

    replay = Replay(answers={(105, "topic=OrderEvents"): never})
    with remoting(replay), client(replace(SETTINGS, timeout=600.0)) as opened, ThreadPoolExecutor(1) as pool:
        call = pool.submit(opened.call, replay.address, ROUTE)
        assert asked.wait(10)
        opened.close()
        assert isinstance(call.exception(10), EndpointError)


def test_nothing_but_reads_is_sent_and_the_server_of_these_tests_would_notice() -> None:
    with talking(replay := Replay()) as opened:
        for code in (10, 17, 40, 215, 9999):
            with pytest.raises(RequestNotAllowedError):
                opened.call(replay.address, RemotingCommand(code=code))
        assert opened.call(replay.address, ROUTE).code == 0
        assert [request.code for request in replay.requests] == [105]
        connection = TimedSocket(*parse_address(replay.address), Deadline(10))
        connection.send(encode_frame(RemotingCommand(code=17)), Deadline(10))
        assert b"not a read" in connection.receive(Deadline(10))
        connection.close()
        assert replay.forbidden == [17]
        replay.forbidden.clear()  # or the server itself would fail


SECRET, TOKEN = "canary-secret-4711", "canary-token-4712"
CREDENTIALS = Credentials("rocketmq2", SECRET, TOKEN)
PLAIN = Credentials("rocketmq2", "12345678")


@every_case("credentials", [PLAIN, CREDENTIALS])
def test_every_request_is_signed(credentials: Credentials) -> None:
    with_body = RemotingCommand(code=ROUTE.code, ext_fields=ROUTE.ext_fields, body=b"{}")
    replay = Replay(credentials=credentials)
    with talking(replay, replace(SETTINGS, credentials=credentials)) as opened:
        for request in (ROUTE, MEMBERS, with_body):
            assert opened.call(replay.address, request).code == 0
    assert all(request.ext_fields["AccessKey"] == "rocketmq2" for request in replay.requests)


@every_case("credentials", [None, Credentials("rocketmq2", "another"), Credentials("other", "12345678")])
def test_a_wrong_signature_is_the_callers_answer(credentials: Credentials | None) -> None:
    replay = Replay(credentials=PLAIN)
    with talking(replay, replace(SETTINGS, credentials=credentials)) as opened:
        response = opened.call(replay.address, ROUTE)
    assert response.code == ResponseCode.SYSTEM_ERROR
    assert "AclException" in (response.remark or "")


def test_no_secret_is_in_a_repr_or_a_message() -> None:
    settings = replace(SETTINGS, credentials=CREDENTIALS, timeout=0.3)
    with remoting(Replay(faults={"*": silent})) as replay, client(settings) as opened:
        error = failure(opened, replay.address)
    (request,) = replay.requests
    shown = [repr(settings), repr(opened), repr(request), "".join(traceback.format_exception(error)), error.hint or ""]
    secrets = [SECRET, TOKEN, request.ext_fields["Signature"]]
    assert [text for text in shown for secret in secrets if secret in text] == []


def test_a_mapped_address_is_reached_at_the_other_one() -> None:
    with cluster() as (first, second):
        addresses = parse_address_map([first.mapped, second.mapped])
        with client(replace(SETTINGS, addresses=addresses)) as opened:
            bodies = [opened.call(address, MEMBERS).body for address in ("127.0.0.1:10911", "127.0.0.1:20911")]
        assert bodies == [answer_body(first, MEMBERS), answer_body(second, MEMBERS)]
        assert bodies[0] != bodies[1]


@every_case(
    ("text", "default_port", "expected"),
    [
        ("127.0.0.1:9876", None, ("127.0.0.1", 9876)),
        ("namesrv-0.example", 9876, ("namesrv-0.example", 9876)),
        ("namesrv_0:1", 9876, ("namesrv_0", 1)),
        ("localhost:65535", None, ("localhost", 65535)),
        ("[::1]:9876", None, ("::1", 9876)),
        ("[2001:db8::7]", 9876, ("2001:db8::7", 9876)),
        ("[fe80::1%eth0]:10911", None, ("fe80::1%eth0", 10911)),
        ("[::ffff:192.0.2.1]:1", None, ("::ffff:192.0.2.1", 1)),
        ("bücher.example:9876", None, ("bücher.example", 9876)),
    ],
)
def test_addresses_are_host_and_port(text: str, default_port: int | None, expected: tuple[str, int]) -> None:
    assert parse_address(text, default_port) == expected


MALFORMED = [
    *("", ":", ":9876", "host:", "host:0", "host:65536", "host:99999999", "host:port", "host:-1", "host:+1", "host:1 "),
    *("::1", "::1:9876", "[::1", "[]:9876", "[host]:9876", "a b:1", "a/b:1", "user@host:1", "host:1:2", "http://h:1"),
    *("host:\u0661", "h\n:1", "\x1b[2J:1", "h\udce9:1", "x" * 500 + " :1"),
]


@every_case("text", MALFORMED)
def test_what_is_no_address_is_refused_in_one_line(text: str) -> None:
    for default_port in (9876, None):
        with pytest.raises(UsageError, match="is not the address of a server") as caught:
            parse_address(text, default_port)
        assert caught.value.message.isprintable()
        assert len(caught.value.message) < 450
        assert "HOST:PORT" in (caught.value.hint or "")


def test_a_broker_address_that_is_none_is_the_far_sides_fault() -> None:
    with client(replace(SETTINGS, addresses=parse_address_map(["10.0.0.7:*=*"]))) as opened:
        for text in [*MALFORMED, "host", "10.0.0.7:10911"]:
            error = failure(opened, text)
            assert error.message.endswith(" is not the address of a server")
            assert "--map-address" in (error.hint or "")
        assert error.message.startswith("'10911'"), "what a rule made of it is named"


ADDRESS = "10.0.0.7:10911"


@every_case(
    ("rule", "address", "expected"),
    [
        ("10.0.0.7:10911=127.0.0.1:20911", ADDRESS, "127.0.0.1:20911"),
        ("10.0.0.7:1091=127.0.0.1:20911", ADDRESS, ADDRESS),
        ("*:10911=127.0.0.1:20911", ADDRESS, "127.0.0.1:20911"),
        ("*:10912=127.0.0.1:20911", ADDRESS, ADDRESS),
        ("10.0.0.*:*=gw.example:*", ADDRESS, "gw.example:10911"),
        ("10.0.0.*:*=gw-*.example:*", ADDRESS, "gw-7.example:10911"),
        ("10.*.*.*:*=b*.example:1*", ADDRESS, "b7.example:110911"),
        ("10.0.0.7:*=*", ADDRESS, "10911"),
        ("*=127.0.0.1:20911", ADDRESS, "127.0.0.1:20911"),
        ("*=*", ADDRESS, ADDRESS),
        ("10.0.0.*:1*911=gw:2*911", ADDRESS, "gw:20911"),
        ("10.0.0.7:10911*=gw:10*", ADDRESS, "gw:10"),
        ("**:*=gw:*", ADDRESS, "gw:10911"),
        ("*:*=gw:*", "[2001:db8::7]:10911", "gw:10911"),
        ("[2001:db8::*]:*=10.0.0.*:*", "[2001:db8::7]:10911", "10.0.0.7:10911"),
        ("broker-a:*=[::1]:*", "broker-a:10911", "[::1]:10911"),
        ("1*1:1=gw:1", "1:1", "1:1"),
    ],
)
def test_a_rule_leads_an_address_where_it_says(rule: str, address: str, expected: str) -> None:
    assert parse_address_map([rule]).apply(address) == expected


@every_case(
    ("rule", "problem"),
    [
        *(
            (rule, "is not FROM=TO")
            for rule in ("10.0.0.7:10911", "", "=127.0.0.1:1", "10.0.0.7:1=", "=", "a:1=b:1=c:1")
        ),
        *((rule, "has more stars in TO than in FROM") for rule in ("10.0.0.7:10911=gw:*", "10.0.0.*:1=*.gw:*")),
        *(
            (rule, "has an address without a port")
            for rule in ("10.0.0.7=127.0.0.1", "10.0.0.7:10911=127.0.0.1", "10.0.0.7=127.0.0.1:20911")
        ),
    ],
)
def test_a_malformed_rule_is_refused(rule: str, problem: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_address_map(["*:1=gw:1", rule])
    assert caught.value.message == f"--map-address {rule!r} {problem}"
    assert caught.value.hint is not None
    assert "--map-address '10.0.0.*:*=" in caught.value.hint


@given(st.text("ab*", min_size=1, max_size=8), st.text("ab", max_size=12))
def test_stars_take_what_greedy_groups_of_a_regular_expression_take(pattern: str, address: str) -> None:
    (rule,) = parse_address_map([f":{pattern}=:" + "<*>" * pattern.count("*")]).rules
    match = re.fullmatch("(.*)".join(map(re.escape, pattern.split("*"))), address)
    expected = None if match is None else ":" + "".join(f"<{star}>" for star in match.groups())
    assert rule.apply(":" + address) == expected


def test_a_long_address_from_the_far_side_takes_linear_time() -> None:
    assert parse_address_map(["*a*a*a*a*a*a*b:*=gw:*"]).apply("a" * 1_000_000) == "a" * 1_000_000
