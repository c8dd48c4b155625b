"""What real servers answered reads as the manifest says, however it arrives."""

from __future__ import annotations

import json
from dataclasses import replace

from rmqlb.errors import ProtocolError
from rmqlb.remoting.codes import ResponseCode
from rmqlb.remoting.command import LanguageCode, RemotingCommand, SerializeType
from rmqlb.remoting.frame import FrameDecoder, encode_frame
from tests.support.figures import FIGURES
from tests.support.mismatches import every_case

from .vectors import CAPTURES, Capture, capture

JSON_CAPTURES = [one for one in CAPTURES if one.serialize_type is SerializeType.JSON]
each_capture = every_case("one", CAPTURES, ids=lambda one: one.name)


def decode(data: bytes) -> list[RemotingCommand]:
    return FrameDecoder().feed(data)


def test_every_capture_has_a_name_of_its_own() -> None:
    assert len({one.name for one in CAPTURES}) == len(CAPTURES) == 54


@each_capture
def test_a_capture_is_one_response_with_the_code_and_body_of_the_manifest(one: Capture) -> None:
    (command,) = decode(one.frame)
    assert command.is_response
    assert command.code == one.response_code
    assert len(command.body or b"") == one.body_bytes
    assert (command.body or b"") == one.frame[len(one.frame) - one.body_bytes :]
    assert command.opaque == 1
    assert command.language is LanguageCode.JAVA
    assert command.version == {"5.5.0": 513, "4.9.7": 407}[one.server]
    assert command.serialize_type is one.serialize_type


@every_case("one", JSON_CAPTURES, ids=lambda one: one.name)
def test_a_capture_says_what_its_json_header_says(one: Capture) -> None:
    (command,) = decode(one.frame)
    header = json.loads(one.frame[8 : len(one.frame) - one.body_bytes])
    assert command.remark == header.get("remark")
    assert dict(command.ext_fields) == header.get("extFields", {})


@each_capture
def test_a_capture_encodes_to_the_bytes_it_came_from(one: Capture) -> None:
    (command,) = decode(one.frame)
    if b'"extFields":{}' in one.frame:
        assert decode(encode_frame(command)) == [command]
    else:
        assert encode_frame(command) == one.frame


def test_all_captures_in_one_piece_give_all_commands_in_order() -> None:
    assert decode(b"".join(one.frame for one in CAPTURES)) == [decode(one.frame)[0] for one in CAPTURES]


@each_capture
def test_a_capture_cut_at_any_offset_gives_no_command(one: Capture) -> None:
    for cut in range(1, len(one.frame)):
        decoder = FrameDecoder()
        assert decoder.feed(one.frame[:cut]) == []
        FIGURES["places where captured frames were cut"] += 1


@each_capture
def test_a_capture_without_its_first_bytes_gives_commands_or_a_protocol_error(one: Capture) -> None:
    whole = decode(one.frame)
    for cut in range(1, len(one.frame)):
        try:
            commands = decode(one.frame[cut:])
        except ProtocolError as error:
            assert error.message
            assert "\n" not in error.message
        else:
            assert commands != whole
            assert all(FrameDecoder().feed(encode_frame(command)) == [command] for command in commands)


def test_route_answers_are_standard_json_with_and_without_the_field_that_asks_for_it() -> None:
    for server in ("5.5.0", "4.9.7"):
        bare, asked = (decode(capture(f"{server}-{name}").frame)[0] for name in ("route", "route-standard-json"))
        assert bare.body == asked.body
        assert json.loads(bare.body or b"")["brokerDatas"][0]["brokerAddrs"].keys() == {"0"}


def test_binary_answers_say_what_the_json_answers_say() -> None:
    for name in ("route-missing", "order-conf", "b0-consumer-ids-missing"):
        binary, text = (decode(capture(f"{folder}5.5.0-{name}").frame)[0] for folder in ("binary/", ""))
        assert binary == replace(text, serialize_type=SerializeType.ROCKETMQ)
    (groups,) = decode(capture("binary/5.5.0-b0-subscription-groups").frame)
    assert groups.ext_fields == {"totalGroupNum": "8"}
    assert json.loads(decode(capture("binary/5.5.0-route").frame)[0].body or b"")["queueDatas"]


def test_known_refusals_have_their_codes_and_remarks() -> None:
    expected = {
        "5.5.0-route-missing": ResponseCode.TOPIC_NOT_EXIST,
        "5.5.0-order-conf": ResponseCode.QUERY_NOT_FOUND,
        "5.5.0-b0-consumer-ids-missing": ResponseCode.SYSTEM_ERROR,
        "5.5.0-unknown-code": ResponseCode.REQUEST_CODE_NOT_SUPPORTED,
    }
    for name, code in expected.items():
        (command,) = decode(capture(name).frame)
        assert command.code == code
        assert command.remark
