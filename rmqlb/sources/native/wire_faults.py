"""What goes wrong between us and a NameServer or broker, said in one line with one of advice.

Rules of this file:
- `where` is the address and the request's code; nothing else of a request is in a message, and nothing that the far
  side sent but the names in its certificate.
- A fault that may pass comes as a `PassingFault`, all others as the error to raise.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rmqlb.errors import EndpointError, ProtocolError
from rmqlb.sources.backoff import PassingFault

if TYPE_CHECKING:
    import ssl

_OPENSSL_NOISE = re.compile(r"\[[^]]*\] | ?\(_ssl\.c:\d+\)")
_WRONG_NAME = (62, 64)  # OpenSSL's X509_V_ERR_HOSTNAME_MISMATCH and X509_V_ERR_IP_ADDRESS_MISMATCH


def not_connected(where: str, error: OSError | ValueError, timeout: float) -> EndpointError | PassingFault:
    """No connection came about."""
    if isinstance(error, TimeoutError):
        return EndpointError(
            f"{where}: cannot connect within {timeout:g} s",
            hint="is this the address, and does a firewall let it through?",
            code="unreachable",
        )
    tls = _tls_error(where, error)
    if tls is not None:
        return tls
    problem = reason(error) if isinstance(error, OSError) else "no host can have this name"
    answer = EndpointError(
        f"{where}: cannot connect: {problem}", hint="is this the address and is it up?", code="unreachable"
    )
    return PassingFault(answer) if isinstance(error, ConnectionError) else answer


def no_answer(where: str, timeout: float, *, something_else: bool) -> EndpointError:
    """The deadline has passed without a whole answer, perhaps with answers to what was never asked."""
    hint = "a longer --source-timeout may help; a RocketMQ 4.9 never answers a request code that it does not know"
    if something_else:
        hint = "it answered requests that were never sent: is a proxy in between mixing up connections?"
    return EndpointError(f"{where}: no whole answer within {timeout:g} s", hint=hint, code="no-answer")


def broken(where: str, error: OSError | None, *, tls: bool) -> EndpointError | PassingFault:
    """The connection ended before the whole answer; error None: the far side closed it in good order."""
    failed = None if error is None else _tls_error(where, error)
    if failed is not None:
        return failed
    problem = "it was closed before the whole answer had come" if error is None else reason(error)
    wants = "want a --client-cert" if tls else "want TLS, as in rocketmqs://"
    hint = f"is it shutting down, or does it {wants}?"
    return PassingFault(EndpointError(f"{where}: the connection broke: {problem}", hint=hint, code="connection-broke"))


def not_the_protocol(where: str, error: ProtocolError) -> ProtocolError:
    """The far side's bytes are not RocketMQ's."""
    return ProtocolError(f"{where}: {error.message}", hint="is this the port of a NameServer or broker?")


def going_away(where: str) -> PassingFault:
    """The far side answered GO_AWAY."""
    return PassingFault(
        EndpointError(f"{where}: GO_AWAY: the server is shutting down", hint="try again when it is back")
    )


def reason(error: Exception) -> str:
    """Why, in a few words: without error numbers and OpenSSL's source lines."""
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return " ".join(_OPENSSL_NOISE.sub("", text).split())


def _tls_error(where: str, error: Exception) -> EndpointError | None:
    import ssl

    if not isinstance(error, ssl.SSLError):
        return None
    if isinstance(error, ssl.SSLCertVerificationError):
        return _unverified(where, error)
    text = reason(error)
    hint = (
        "does it speak TLS on this port, and is its certificate from the CA in --ca-file? without TLS it is rocketmq://"
    )
    if "alert" in text:
        hint = "does it want a --client-cert, and one of a CA that it knows? yours to trust is --ca-file"
    return EndpointError(f"{where}: TLS failed: {text}", hint=hint, code="tls-failed")


def _unverified(where: str, error: ssl.SSLCertVerificationError) -> EndpointError:
    hint = "is the CA that signed it in --ca-file, or among the system's where none is given?"
    if error.verify_code in _WRONG_NAME:
        hint = "if this is the server, say with --tls-name which name is in its certificate"
    return EndpointError(f"{where}: TLS failed: {error.verify_message.rstrip('.')}", hint=hint, code="tls-failed")
