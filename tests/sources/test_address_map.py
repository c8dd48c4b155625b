"""Where an address is reached: the rules of `--map-address`."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmqlb.errors import UsageError
from rmqlb.sources.native.address_map import parse_address_map
from tests.support.mismatches import every_case

ADDRESS = "10.0.0.7:10911"


def mapped(address: str, *rules: str) -> str:
    return parse_address_map(rules).apply(address)


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
    assert mapped(address, rule) == expected


@every_case(
    ("rule", "problem"),
    [
        ("10.0.0.7:10911", "is not FROM=TO"),
        ("", "is not FROM=TO"),
        ("=127.0.0.1:1", "is not FROM=TO"),
        ("10.0.0.7:1=", "is not FROM=TO"),
        ("=", "is not FROM=TO"),
        ("a:1=b:1=c:1", "is not FROM=TO"),
        ("10.0.0.7:10911=gw:*", "has more stars in TO than in FROM"),
        ("10.0.0.*:1=*.gw:*", "has more stars in TO than in FROM"),
        ("10.0.0.7=127.0.0.1", "has an address without a port"),
        ("10.0.0.7:10911=127.0.0.1", "has an address without a port"),
        ("10.0.0.7=127.0.0.1:20911", "has an address without a port"),
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
    assert mapped("a" * 1_000_000, "*a*a*a*a*a*a*b:*=gw:*") == "a" * 1_000_000
