"""From the text of `--source` to a source."""

from __future__ import annotations

from msgspec import Struct

import re
from collections.abc import Callable

from rmqlb.errors import UsageError
from rmqlb.sources.bounded import DEFAULT_LIMIT
from rmqlb.sources.source import Source

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")


class Access(Struct, frozen=True):
    """How to reach a source and who asks.

    Attributes:
        user: who logs in, or None; a user in the URL goes before.
        password: gives the password when it is needed.
        ca_file: the only CA certificates to trust, or None.
        timeout: seconds for one answer.
        retries: further tries of a read.
        max_bytes: largest dump or answer.
    """

    user: str | None = None
    password: Callable[[str], str] | None = None
    ca_file: str | None = None
    timeout: float = 5.0
    retries: int = 2
    max_bytes: int = DEFAULT_LIMIT


def open_source(text: str, access: Access) -> Source:
    """The source that a URL, a path or `-` names.

    Raises:
        UsageError: it is empty, a URL of a kind that is not read, or holds a password.
    """
    if not text:
        raise UsageError("the source is empty", hint="-s takes a URL, a file, or - for stdin")
    scheme = _SCHEME.match(text)
    if scheme is None:
        from rmqlb.sources.dump import DumpSource

        return DumpSource(text, max_bytes=access.max_bytes)
    if scheme[1].lower() in ("http", "https"):
        return _dashboard(text, access)
    raise UsageError(f"cannot read {scheme[1]}:// sources", hint="-s takes http://, https://, a file, or - for stdin")


def _dashboard(text: str, access: Access) -> Source:
    from urllib.parse import unquote, urlsplit, urlunsplit

    from rmqlb.sources.dashboard import DashboardSource
    from rmqlb.sources.http import HttpSettings
    from rmqlb.sources.login import Credentials

    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise UsageError(f"the source is not a URL: {error}") from None
    if not host:
        raise UsageError(f"the source {scheme_only(text)} names no host", hint="write http://HOST:8082")
    if parts.password is not None:
        raise UsageError(
            "the source's URL holds a password, which others can see in the process list and the shell's history",
            hint="keep the user, and give the password in RMQLB_PASSWORD or --password-file",
        )
    netloc = (f"[{host}]" if ":" in host else host) + (f":{port}" if port else "")
    user = unquote(parts.username) if parts.username else access.user
    password = access.password
    credentials = Credentials(user, lambda: password(user)) if user and password else None
    settings = HttpSettings(access.timeout, access.retries, access.ca_file, access.max_bytes)
    return DashboardSource(urlunsplit((parts.scheme, netloc, parts.path, "", "")), settings, credentials)


def scheme_only(text: str) -> str:
    """The start of a URL, without anything that might be secret."""
    return text.partition("://")[0] + "://…"
