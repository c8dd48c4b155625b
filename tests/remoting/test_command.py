"""A command is a value that keeps what it was given, and keeps secrets to itself."""

from __future__ import annotations

from dataclasses import FrozenInstanceError

import pytest

from rmqlb.remoting.command import LanguageCode, RemotingCommand, SerializeType


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
