"""The requests: codes, fields, and that nothing but reads can leave."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable

import pytest
from hypothesis import given

from rmqlb.remoting import requests
from rmqlb.remoting.codes import READ_ONLY, RequestCode, ResponseCode
from rmqlb.remoting.command import LanguageCode, RemotingCommand
from rmqlb.remoting.frame import Exchange, FrameDecoder, RequestNotAllowedError
from tests.support.mismatches import every_case

from .strategies import INT32
from .vectors import CAPTURES

# Code, fields and body of every request, as the header classes of 5.5.0 name them.
REQUESTS: dict[str, tuple[RemotingCommand, int, dict[str, str]]] = {
    "get_route_info_by_topic": (requests.get_route_info_by_topic("T"), 105, {"topic": "T"}),
    "get_broker_cluster_info": (requests.get_broker_cluster_info(), 106, {}),
    "get_all_topic_list": (requests.get_all_topic_list(), 206, {}),
    "get_consumer_connection_list": (requests.get_consumer_connection_list("g"), 203, {"consumerGroup": "g"}),
    "get_consumer_running_info": (
        requests.get_consumer_running_info("g", "id"),
        307,
        {"consumerGroup": "g", "clientId": "id", "jstackEnable": "false"},
    ),
    "get_all_subscription_group_config": (requests.get_all_subscription_group_config(), 201, {}),
    "get_consume_stats": (requests.get_consume_stats("g", "T"), 208, {"consumerGroup": "g", "topic": "T"}),
    "query_consumer_offset": (
        requests.query_consumer_offset("g", "T", 3),
        14,
        {"consumerGroup": "g", "topic": "T", "queueId": "3"},
    ),
    "search_offset_by_timestamp": (
        requests.search_offset_by_timestamp("T", 3, 1_700_000_000_000),
        29,
        {"topic": "T", "queueId": "3", "timestamp": "1700000000000"},
    ),
    "get_max_offset": (requests.get_max_offset("T", 3), 30, {"topic": "T", "queueId": "3"}),
    "get_min_offset": (requests.get_min_offset("T", 3), 31, {"topic": "T", "queueId": "3"}),
    "get_topic_config": (requests.get_topic_config("T"), 351, {"topic": "T"}),
    "query_assignment": (requests.query_assignment("g", "T", "id", "AVG"), 400, {}),
    "get_all_message_request_mode": (requests.get_all_message_request_mode(), 402, {}),
    "polling_info": (
        requests.polling_info("g", "T"),
        200055,
        {"consumerGroup": "g", "topic": "T", "queueId": "-1"},
    ),
}


# The codes of RocketMQ that change something, or that rmqlb has no use for (38), next to those that it sends.


def constructors() -> dict[str, Callable[..., RemotingCommand]]:
    return {
        name: function
        for name, function in inspect.getmembers(requests, inspect.isfunction)
        if function.__module__ == requests.__name__ and not name.startswith("_")
    }


def test_every_constructor_is_listed_here() -> None:
    assert constructors().keys() == REQUESTS.keys()


@every_case("name", REQUESTS)
def test_a_request_has_its_code_and_fields_and_may_be_sent(name: str) -> None:
    command, code, fields = REQUESTS[name]
    assert command.code == code
    assert command.ext_fields == fields
    assert (command.opaque, command.flag, command.version, command.language) == (0, 0, 513, LanguageCode.PYTHON)
    assert command.code in READ_ONLY
    assert FrameDecoder().feed(Exchange().send(command)) == [command]


def test_there_is_one_request_for_every_code() -> None:
    assert sorted(code for _, code, _ in REQUESTS.values()) == sorted(RequestCode)


def test_fields_that_were_sent_for_the_captures_are_those_of_the_requests() -> None:
    by_code = {code: fields for _, code, fields in REQUESTS.values()}
    for one in CAPTURES:
        if one.request_code in READ_ONLY:
            assert one.ext_fields.keys() - {"acceptStandardJsonOnly"} <= by_code[one.request_code].keys()


def test_an_assignment_is_asked_for_in_the_body() -> None:
    body = requests.query_assignment("g", "T", "id", "AVG").body
    fields = {"clientId": "id", "consumerGroup": "g", "messageModel": "CLUSTERING", "strategyName": "AVG", "topic": "T"}
    assert json.loads(body or b"") == fields


def test_the_allow_list_is_what_it_was() -> None:
    assert sorted(READ_ONLY) == [14, 29, 30, 31, 105, 106, 201, 203, 206, 208, 307, 351, 400, 402, 200055]


@given(INT32)
def test_nothing_is_sent_but_what_is_on_the_list(code: int) -> None:
    try:
        Exchange().send(RemotingCommand(code=code))
    except RequestNotAllowedError:
        assert code not in READ_ONLY
    else:
        assert code in READ_ONLY


@every_case("flag", [1, 2, 3, 4, -1])
def test_a_response_or_a_one_way_request_is_not_sent(flag: int) -> None:
    with pytest.raises(RequestNotAllowedError, match=f"flag {flag}"):
        Exchange().send(RemotingCommand(code=105, flag=flag))


def test_response_codes_have_rocketmqs_names() -> None:
    names = {
        0: "SUCCESS",
        1: "SYSTEM_ERROR",
        3: "REQUEST_CODE_NOT_SUPPORTED",
        17: "TOPIC_NOT_EXIST",
        22: "QUERY_NOT_FOUND",
        26: "SUBSCRIPTION_GROUP_NOT_EXIST",
        206: "CONSUMER_NOT_ONLINE",
        1500: "GO_AWAY",
        2018: "LITE_SUBSCRIPTION_QUOTA_EXCEEDED",
        -1006: "RPC_TIME_OUT",
    }
    assert {code: ResponseCode(code).name for code in names} == names
    assert ResponseCode(16).name == "NO_PERMISSION"
