"""Addresses: how they are written, where they lead, and where `--map-address` leads instead."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from rmqlb.errors import UsageError
from rmqlb.sources.native.address_map import parse_address_map
from rmqlb.sources.native.wire import parse_address
from tests.support.mismatches import every_case
from tests.support.replay_remoting import cluster

from .wires import MEMBERS, SETTINGS, answer_body, client, failure


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
