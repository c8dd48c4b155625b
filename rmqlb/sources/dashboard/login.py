"""Logging in to a Dashboard, old and new: the only POST that rmqlb ever sends."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field

from rmqlb.errors import EndpointError
from rmqlb.sources.dashboard.http import Answer, HttpClient
from rmqlb.sources.source import redact_secrets

_LOGIN = "/login/login.do"
_CSRF = "/rocketmq-dashboard/csrf-token"


@dataclass(frozen=True, slots=True)
class Credentials:
    """Who logs in."""

    user: str
    # gives the password when it is needed (from a file, the environment or a prompt)
    password: Callable[[], str] = field(repr=False)


def log_in(http: HttpClient, credentials: Credentials, url: str) -> None:
    """Log in; the session's cookie stays in the client (raises EndpointError).

    Dashboards after 2.1.0 take JSON and want a CSRF token, older ones take a form.
    """
    fields = {"username": credentials.user, "password": credentials.password()}
    headers = _csrf_header(http)
    answer = http.post(_LOGIN, json=fields, headers=headers)
    if not _accepted(answer) and "Bad username or password" not in _message(answer):
        answer = http.post(_LOGIN, form=fields, headers=headers)
    if not _accepted(answer):
        reason = redact_secrets(_message(answer), fields["password"]) or f"HTTP {answer.status}"
        raise EndpointError(
            f"{url}: login of {credentials.user} failed: {reason}", hint="check user and password", code="login-failed"
        )


def _csrf_header(http: HttpClient) -> dict[str, str]:
    """The header that newer Dashboards want on a POST; empty where there is none that can be sent."""
    answer = http.get(_CSRF)
    data = _envelope(answer).get("data") if answer.status == 200 else None
    token, name = (data.get("token"), data.get("headerName")) if isinstance(data, dict) else (None, None)
    if not isinstance(token, str) or not isinstance(name, str) or not (name + token).isascii():
        return {}
    return {name: token}


def _accepted(answer: Answer) -> bool:
    return answer.status == 200 and _envelope(answer).get("status") == 0


def _message(answer: Answer) -> str:
    return str(_envelope(answer).get("errMsg") or "").partition("\n")[0]


def _envelope(answer: Answer) -> dict[str, object]:
    try:
        value = json.loads(answer.body)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
