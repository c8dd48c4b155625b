"""A command as a value, and the names of the versions in it."""

from __future__ import annotations

from dataclasses import FrozenInstanceError

import pytest

from rmqlb.errors import ProtocolError
from rmqlb.remoting.command import LanguageCode, RemotingCommand, SerializeType, version_text
from tests.support.mismatches import every_case


def test_binary_codes_are_javas() -> None:
    assert [int(language) for language in LanguageCode] == list(range(14))
    assert (LanguageCode.PYTHON, LanguageCode.OTHER, LanguageCode.OMS, LanguageCode.NODE_JS) == (3, 7, 11, 13)
    assert (SerializeType.JSON, SerializeType.ROCKETMQ) == (0, 1)


def test_a_command_is_not_changed_through_what_it_was_made_from() -> None:
    fields = {"topic": "T"}
    command = RemotingCommand(code=105, ext_fields=fields)
    fields["topic"] = "U"
    assert command.ext_fields == {"topic": "T"}
    with pytest.raises(TypeError):
        command.ext_fields["topic"] = "U"  # type: ignore[index]
    with pytest.raises(FrozenInstanceError):
        command.code = 17  # type: ignore[misc]


def test_what_is_printed_masks_signature_and_token_and_cuts_the_body() -> None:
    fields = {"AccessKey": "ak", "Signature": "c2lnbmF0dXJl", "SecurityToken": "tok-1", "topic": "T"}
    command = RemotingCommand(code=105, ext_fields=fields, body=b"secret body")
    for text in (repr(command), str(command), f"{command}", f"{[command]}"):
        assert "c2lnbmF0dXJl" not in text
        assert "tok-1" not in text
        assert "secret body" not in text
        assert "'AccessKey': 'ak'" in text
        assert "body=11 bytes" in text


# What MQVersion.getVersionDesc of 4.9.7 and 5.5.0 printed, the edges of every run of releases among them.
KNOWN = {
    0: "V3_0_0_SNAPSHOT",
    1: "V3_0_0_ALPHA1",
    7: "V3_0_0_BETA6_SNAPSHOT",
    15: "V3_0_0_FINAL",
    16: "V3_0_1_SNAPSHOT",
    45: "V3_0_15",
    46: "V3_1_0_SNAPSHOT",
    65: "V3_1_9",
    66: "V3_2_0_SNAPSHOT",
    83: "V3_2_8",
    85: "V3_2_9",
    86: "V3_3_1_SNAPSHOT",
    103: "V3_3_9",
    104: "V3_4_1_SNAPSHOT",
    211: "V3_9_9",
    212: "V4_0_0_SNAPSHOT",
    213: "V4_0_0",
    373: "V4_8_0",
    399: "V4_9_3",
    401: "V4_9_4",
    407: "V4_9_7",
    409: "V4_9_8",
    412: "V5_0_0_SNAPSHOT",
    413: "V5_0_0",
    441: "V5_1_4",
    453: "V5_2_0",
    479: "V5_3_3",
    513: "V5_5_0",
    610: "V5_9_9_SNAPSHOT",
    611: "V5_9_9",
    612: "HIGHER_VERSION",
}


@every_case(("ordinal", "text"), KNOWN.items())
def test_ordinals_have_the_names_that_rocketmq_prints(ordinal: int, text: str) -> None:
    assert version_text(ordinal) == text


def test_releases_since_4_0_0_follow_the_formula() -> None:
    for major in (4, 5):
        for minor in range(10):
            for patch in range(10):
                ordinal = 212 + 200 * (major - 4) + 20 * minor + 2 * patch
                assert version_text(ordinal) == f"V{major}_{minor}_{patch}_SNAPSHOT"
                assert version_text(ordinal + 1) == f"V{major}_{minor}_{patch}"


def test_what_rocketmq_has_not_is_refused() -> None:
    with pytest.raises(ProtocolError, match="version -1 is not one"):
        version_text(-1)
