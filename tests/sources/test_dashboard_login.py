"""Logging in: only when the Dashboard asks, in the way it knows, and the password is never shown."""

from __future__ import annotations

import json
import traceback
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs

import pytest

from rmqlb.errors import EndpointError, RmqlbError, UsageError
from rmqlb.model.snapshot import Wanted
from rmqlb.sources.dashboard import Credentials
from rmqlb.sources.opening import Access, open_source
from tests.support.mismatches import every_case
from tests.support.replay_dashboard import Replay, dashboard, envelope, giving, reset, silent

from .dashboards import ROUTE, error_of, source

LOGIN, CSRF = "/login/login.do", "/rocketmq-dashboard/csrf-token"
PASSWORD = "s3cret&=ü%41+ x"
SKEWED = Wanted(topics=("Skewed",))
ADMIN = Credentials("admin", lambda: PASSWORD)


def new(**fields: object) -> Replay:
    """A Dashboard after 2.1.0: JSON and a CSRF token."""
    return Replay(login=("admin", PASSWORD), **fields)  # type: ignore[arg-type]


def old(**fields: object) -> Replay:
    """A Dashboard up to 2.1.0: a form."""
    return new(takes_json=False, **fields)


def never() -> str:
    raise AssertionError("nobody asked for the password")


def test_a_new_dashboard_gets_json_once() -> None:
    with dashboard(new()) as replay:
        source(replay.url, ADMIN).fetch(SKEWED)
    assert [json.loads(body) for body in replay.posted] == [{"username": "admin", "password": PASSWORD}]


def test_an_old_dashboard_gets_a_form_in_the_end() -> None:
    with dashboard(old()) as replay:
        source(replay.url, ADMIN).fetch(SKEWED)
    assert parse_qs(replay.posted[-1].decode()) == {"username": ["admin"], "password": [PASSWORD]}


def test_the_login_is_the_only_post_and_stands_in_no_url() -> None:
    with dashboard(old()) as replay:
        source(replay.url, ADMIN).fetch(SKEWED)
    posts = [asked for asked in replay.asked if not asked.startswith("GET ")]
    assert set(posts) == {f"POST {LOGIN}"}


def test_many_requests_log_in_once() -> None:
    with dashboard(new()) as replay:
        source(replay.url, ADMIN).fetch(Wanted(group="order-svc"))
    assert len(replay.posted) == 1


def test_a_dashboard_that_does_not_ask_is_not_told() -> None:
    with dashboard() as replay:
        source(replay.url, Credentials("admin", never)).fetch(SKEWED)
    assert replay.posted == []
    assert replay.asked == [f"GET {ROUTE}?topic=Skewed"]


def test_without_credentials_the_error_says_how_to_give_them() -> None:
    with dashboard(new()) as replay:
        error = error_of(replay.url, SKEWED)
    assert isinstance(error, EndpointError)
    assert error.message == f"{replay.url} asks for a login"
    assert error.hint == "name the user with --user or in the URL, the password in RMQLB_PASSWORD or --password-file"
    assert replay.posted == []


@every_case(("name", "token"), [("X-XSRF-TOKEN", "tökén"), ("X-Ü", "t"), ("X\r\nY: z", "t")])
def test_a_token_that_no_header_can_carry_ends_in_one_line(name: str, token: str) -> None:
    replay = new()
    replay.faults[CSRF] = giving(envelope({"headerName": name, "token": token}))
    with dashboard(replay):
        assert isinstance(error_of(replay.url, SKEWED, ADMIN), EndpointError)


@pytest.mark.parametrize("kind", [new, old])
def test_a_wrong_password_is_told_in_one_line(kind: Callable[[], Replay]) -> None:
    with dashboard(kind()) as replay:
        error = error_of(replay.url, SKEWED, Credentials("admin", lambda: "wr0ng-one"))
    assert isinstance(error, EndpointError)
    assert error.message == f"{replay.url}: login of admin failed: Bad username or password!"
    assert error.hint == "check user and password"


def test_a_new_dashboard_that_refuses_is_not_tried_in_another_way() -> None:
    with dashboard(new()) as replay:
        error_of(replay.url, SKEWED, Credentials("admin", lambda: "wr0ng-one"))
    assert len(replay.posted) == 1


def test_a_login_that_is_forgotten_again_does_not_go_round_in_circles() -> None:
    replay = new()
    replay.faults[ROUTE] = giving(b"", 302, {"Location": "/#/login?redirect=x"})
    with dashboard(replay):
        error = error_of(replay.url, SKEWED, ADMIN)
    assert error.message == f"GET {replay.url}{ROUTE}: redirected to /#/login?redirect=x"
    assert len(replay.posted) == 1


def test_a_login_page_elsewhere_does_not_get_the_password() -> None:
    with dashboard() as other:
        replay = new()
        replay.faults[ROUTE] = giving(b"", 302, {"Location": f"{other.url}/login?service=x"})
        with dashboard(replay):
            error_of(replay.url, SKEWED, ADMIN)
    assert (other.asked, other.posted) == ([], [])


@pytest.mark.parametrize("fault", [reset, silent])
def test_a_login_is_never_sent_again_after_a_fault(fault: Callable[..., None]) -> None:
    replay = new()
    replay.post_faults[LOGIN] = fault
    with dashboard(replay):
        error = error_of(replay.url, SKEWED, ADMIN, timeout=0.3, retries=5)
    assert error.message.startswith(f"POST {replay.url}{LOGIN}: ")
    assert len(replay.posted) == 1


def test_the_password_is_in_no_message_no_traceback_and_no_repr() -> None:
    credentials = Credentials("admin", lambda: "wr0ng-one")
    texts = [repr(credentials), repr(Access(password=lambda _: "wr0ng-one"))]
    for kind in (new, old):
        for fault in (None, reset, giving(b"wr0ng", 500), giving(b"{")):
            replay = kind()
            if fault is not None:
                replay.post_faults[LOGIN] = fault
            with dashboard(replay), pytest.raises(RmqlbError) as caught:
                source(replay.url, credentials, timeout=0.5).fetch(SKEWED)
            texts += [
                str(caught.value),
                str(caught.value.hint),
                repr(caught.value),
                *traceback.format_exception(caught.value),
            ]
    assert "wr0ng-one" not in "".join(texts)


def asked_user(url: str, **access: Any) -> str:
    """Whose password the source asks for; the replayed Dashboard wants a login."""
    users: list[str] = []

    def password(user: str) -> str:
        users.append(user)
        return PASSWORD

    with dashboard(new()) as replay:
        try:
            source = open_source(url.format(replay.url.removeprefix("http://")), Access(password=password, **access))
            source.fetch(SKEWED)
        except EndpointError:
            pass
    [user] = users
    return user


def test_the_user_may_stand_in_the_url() -> None:
    assert asked_user("http://admin@{}") == "admin"
    assert asked_user("http://j%40n@{}/") == "j@n"


def test_the_user_of_the_url_is_in_no_place_where_something_was_seen() -> None:
    with dashboard(new()) as replay:
        url = replay.url.replace("http://", "http://admin@")
        snapshot = open_source(url, Access(password=lambda _: PASSWORD)).fetch(SKEWED)
    assert snapshot.endpoint == replay.url
    assert snapshot.routes["Skewed"].seen.where == replay.url + ROUTE


@every_case(
    "url", ["http://admin:s3cret@host", "https://:s3cret@host/x", "http://a:s3cret@host:99999", "http://a:s3cret@[x"]
)
def test_a_password_in_the_url_is_refused_and_not_echoed(url: str) -> None:
    with pytest.raises(UsageError) as caught:
        open_source(url, Access())
    assert "s3cret" not in f"{caught.value.message} {caught.value.hint}"
