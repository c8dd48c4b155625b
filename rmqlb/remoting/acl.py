"""The signature that a broker checks when its ACL is on (`aclEnable` in 4.x, `authenticationEnabled` in 5.x).

The signed content is the values of all extFields, AccessKey and SecurityToken included and Signature left out, in the
order of their keys (by UTF-16 unit, as in Java), then the body. The signature is the Base64 of HMAC-SHA1 with the
secret key. The opaque is not signed, so `Exchange` may set it afterwards.
"""

import base64
import hmac
from dataclasses import dataclass, replace
from typing import Final

from rmqlb.errors import UsageError
from rmqlb.remoting.command import RemotingCommand
from rmqlb.remoting.header import encode_text

ACCESS_KEY: Final = "AccessKey"
SECURITY_TOKEN: Final = "SecurityToken"  # noqa: S105 - the name of the field, not its value
SIGNATURE: Final = "Signature"


@dataclass(frozen=True, slots=True, repr=False)
class Credentials:
    """`org.apache.rocketmq.acl.common.SessionCredentials` (raises UsageError)."""

    access_key: str
    secret_key: str  # never sent, never printed
    security_token: str | None = None  # of a temporary account; sent, never printed

    def __post_init__(self) -> None:
        if not self.access_key:
            raise UsageError("the access key is empty")
        if not self.secret_key:
            raise UsageError("the secret key is empty")

    def __repr__(self) -> str:
        token = None if self.security_token is None else "***"
        return f"Credentials(access_key={self.access_key!r}, secret_key='***', security_token={token!r})"


def sign(command: RemotingCommand, credentials: Credentials) -> RemotingCommand:
    """The command with AccessKey, SecurityToken and Signature (`AclClientRPCHook`, `AclUtils`; raises UsageError)."""
    fields = dict(command.ext_fields) | {ACCESS_KEY: credentials.access_key}
    fields.pop(SIGNATURE, None)
    if credentials.security_token is not None:
        fields[SECURITY_TOKEN] = credentials.security_token
    keys = sorted(fields, key=lambda key: key.encode("utf-16-be", "surrogatepass"))
    content = b"".join(encode_text(fields[key], key) for key in keys) + (command.body or b"")
    secret = encode_text(credentials.secret_key, "the secret key")
    fields[SIGNATURE] = base64.b64encode(hmac.digest(secret, content, "sha1")).decode()
    return replace(command, ext_fields=fields)
