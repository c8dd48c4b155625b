"""Facts from the text of a source, without opening it and with few imports."""

import os
import re

from rmqlb.errors import UsageError

LIVE = {"NameServers": ("rocketmq", "rocketmqs"), "Dashboard": ("http", "https")}  # other sources are dumps
LIVE_SCHEMES = tuple(scheme for schemes in LIVE.values() for scheme in schemes)
# Compiled on use, since most commands need only the first.
_SCHEME = r"(?s)([A-Za-z][A-Za-z0-9+.-]*)://(.*)"
_URL = r"(?i)\s*(?:[a-z][a-z0-9+.-]*://|(?:rocketmqs?|https?):/?)"
_USER = r"(?i)(https?://)([^/?#@:]+)@([^@]*)"
_BARE_LOGIN = r"(?s)/{0,2}[^/]*:.*@"
_HOST = r"(?:\[[0-9A-Fa-f:.]+(?:%[\w.-]+)?\]|[\w.-]+)"
_WITH_PORT = rf"{_HOST}:[0-9]{{1,5}}"
_LOOK_UP_S = 2.0
_HIDDEN = "***"
_HINT = "write HOST:9876 or rocketmq://HOST:9876,… for NameServers, http(s)://HOST for a Dashboard, or an absolute path"


def is_live(text: str | None) -> bool:
    """Whether the source is a running cluster, not a dump.

    >>> is_live("rocketmq://h:9876"), is_live("HTTP://h"), is_live("cluster.json"), is_live(None)
    (True, True, False, False)
    """
    scheme, is_url, _ = (text or "").partition("://")
    return bool(is_url) and scheme.lower() in LIVE_SCHEMES


def as_url(text: str) -> str:
    """The source with its scheme, where the text is HOST:PORT, HOST:PORT;HOST:PORT or HOST of NameServers.

    A file of that name goes first. A name without a port is a host if it can be looked up.

    >>> as_url("h:9876;h2:9876"), as_url("h:9876, [::1]:9876;"), as_url("localhost"), as_url("a.json"), as_url("-")
    ('rocketmq://h:9876,h2:9876', 'rocketmq://h:9876,[::1]:9876', 'rocketmq://localhost', 'a.json', '-')
    """
    servers = [part.strip() for part in re.split("[,;]", text) if part.strip()]
    if "://" in text or not servers or not all(re.fullmatch(rf"{_HOST}(:[0-9]{{1,5}})?", each) for each in servers):
        return text
    if os.path.lexists(text) or not (any(re.fullmatch(_WITH_PORT, each) for each in servers) or _is_host(text)):
        return text
    return f"rocketmq://{','.join(servers)}"


def name_servers(text: str, where: str) -> str:
    """The source that `--namesrv-addr` names: HOST:9876;HOST2:9876, as `mqadmin -n` takes it (raises UsageError)."""
    if re.match(r"(?i)https?://", text):
        hint = "write -n HOST:9876, or -s http://HOST:8082 for a Dashboard"
        raise UsageError(f"{where}: NameServers use RocketMQ's protocol, not HTTP", hint=hint)
    if re.match(r"(?i)rocketmqs?://", text):
        return text
    return f"rocketmq://{','.join(part.strip() for part in re.split('[,;]', text) if part.strip())}"


def _is_host(text: str) -> bool:
    from rmqlb.sources.native.wire import look_up
    from rmqlb.sources.pace import Deadline

    try:
        return bool(look_up(text.strip("[]"), 0, Deadline(_LOOK_UP_S)))
    except (OSError, ValueError):
        return False


def user_in(text: str) -> str | None:
    """The user in a Dashboard's URL.

    >>> user_in("https://me@h:8082"), user_in("https://h:8082"), user_in("rocketmq://h"), user_in("a@b.json")
    ('me', None, None, None)
    """
    from urllib.parse import unquote

    match = re.fullmatch(_USER, text)
    return unquote(match[2]) if match is not None else None


def without_user(text: str) -> str:
    return re.sub(_USER, r"\1\3", text)


def is_login_without_scheme(text: str) -> bool:
    """Whether the text begins like a URL's USER:PASSWORD@HOST, and names no existing file.

    >>> is_login_without_scheme("u:secret@h:9876"), is_login_without_scheme("a/b:c@d"), is_login_without_scheme("a@b")
    (True, False, False)
    """
    return bool(re.match(_BARE_LOGIN, text)) and not re.match(_URL, text) and not os.path.lexists(text)


def shown_source(text: str) -> str:
    """The source as shown in messages: only the user of a login, and nothing from ? or # on.

    >>> shown_source("https://me@h:8082"), shown_source("https://me:secret@h"), shown_source("http://h/?token=secret")
    ('https://me@h:8082', 'https://me:***@h', 'http://h/?***')
    """
    url = re.match(_URL, text)
    if url is None:
        return f"{_HIDDEN}@{text.rpartition('@')[2]}" if is_login_without_scheme(text) else text
    login, at, rest = text[url.end() :].rpartition("@")
    user = re.match("[^:/?#]*", login)
    if user is None or user[0] != login or "rocketmq" in url[0].lower():
        login = f"{user[0]}:{_HIDDEN}" if user and ":" in login else _HIDDEN
    return url[0] + (login + at if at else "") + re.sub("([?#]).*", rf"\1{_HIDDEN}", rest, flags=re.DOTALL)


def check_source(text: str, where: str) -> None:
    """Refuse texts that no context may keep, above all passwords, without repeating them (raises UsageError)."""
    match = re.fullmatch(_SCHEME, text)
    if match is None:
        if not os.path.isabs(text) and as_url(text) == text:
            raise UsageError(f"{where}: it is neither a URL nor an absolute path", hint=_HINT)
        return
    scheme, rest = match[1].lower(), match[2]
    if scheme not in LIVE_SCHEMES:
        raise UsageError(f"{where}: cannot read {match[1]}:// sources", hint=_HINT)
    authority = re.split("[/?#]", rest, maxsplit=1)[0]
    login, at, hosts = authority.rpartition("@")
    if "@" in rest[len(authority) :] or (at and (":" in login or scheme.startswith("rocketmq"))):
        hint = "keep at most the user, as in https://me@HOST; name the location of the secret in the key secret"
        raise UsageError(f"{where}: it contains a login, and perhaps a password", hint=hint, code="password-in-url")
    if "?" in rest or "#" in rest:
        raise UsageError(f"{where}: a source's URL must not contain ? or #", hint=_HINT)
    if not all(part.strip() for part in re.split("[,;]", hosts)):
        raise UsageError(f"{where}: it has no host", hint=_HINT)
