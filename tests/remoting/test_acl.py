"""The ACL signature: what Java signs, and that no secret shows."""

from __future__ import annotations

import traceback

import pytest

from rmqlb.errors import UsageError
from rmqlb.remoting.acl import Credentials, sign
from rmqlb.remoting.command import RemotingCommand
from rmqlb.remoting.requests import get_broker_cluster_info, get_route_info_by_topic
from tests.support.mismatches import every_case

# Signatures written by AclClientRPCHook of 4.9.7 and 5.5.0.
VECTORS = [
    (Credentials("rocketmq2", "12345678"), get_route_info_by_topic("TopicTest"), "GeeGoP9mRvDhoVp4PD5omX0prgE="),
    (
        Credentials("ak", "sk", "tok"),
        RemotingCommand(
            code=14,
            ext_fields={"bname": "broker-a", "consumerGroup": "g", "queueId": "3", "topic": "T"},
            body=b"{}",
        ),
        "oOAXCrBmZn4wPD8EFAJ+nPFx/Uk=",
    ),
    (Credentials("ak\u00fc", "s\u20ack"), get_broker_cluster_info(), "u/tfg0RMSxcUCahDMS4aS6qUo2c="),
    # U+1F600 sorts before U+FFEE in UTF-16, behind it in code points.
    (
        Credentials("ak", "sk"),
        RemotingCommand(code=300, ext_fields={"topic": "T", "\uffee": "1", "\U0001f600": "2"}),
        "mtVF54ybXsa3+Mwb3uZKq64C6xg=",
    ),
]
SECRET, TOKEN = "canary-secret-4711", "canary-token-4712"


@every_case(("credentials", "command", "signature"), VECTORS)
def test_signatures_are_those_of_java(credentials: Credentials, command: RemotingCommand, signature: str) -> None:
    signed = sign(command, credentials)
    assert signed.ext_fields["Signature"] == signature
    added = {"AccessKey", "Signature"} | ({"SecurityToken"} if credentials.security_token else set())
    assert signed.ext_fields.keys() - command.ext_fields.keys() == added
    assert sign(signed, credentials) == signed


def test_no_secret_is_printed() -> None:
    credentials = Credentials("ak", SECRET, TOKEN)
    signed = sign(get_route_info_by_topic("T"), credentials)
    texts = [repr(credentials), f"{credentials}", f"{[credentials]!s}", repr(signed), str(signed)]
    assert texts[0] == "Credentials(access_key='ak', secret_key='***', security_token='***')"
    assert repr(Credentials("ak", SECRET)) == "Credentials(access_key='ak', secret_key='***', security_token=None)"
    assert not [text for text in texts if SECRET in text or TOKEN in text or signed.ext_fields["Signature"] in text]


@pytest.mark.parametrize(
    "credentials", [Credentials("ak", SECRET + "\udce9"), Credentials("ak", "sk", SECRET + "\udce9")]
)
def test_a_secret_that_is_not_text_is_refused_without_being_shown(credentials: Credentials) -> None:
    with pytest.raises(UsageError, match="is not valid text") as caught:
        sign(get_broker_cluster_info(), credentials)
    assert SECRET not in "".join(traceback.format_exception(caught.value))
    assert caught.value.__context__ is None


@pytest.mark.parametrize(("access_key", "secret_key"), [("", "sk"), ("ak", "")])
def test_empty_keys_are_refused(access_key: str, secret_key: str) -> None:
    with pytest.raises(UsageError, match="is empty"):
        Credentials(access_key, secret_key)
