from __future__ import annotations

import datetime as dt
import json
import ssl
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest
import trustme

from rmqlb.errors import EndpointError, RmqlbError, UsageError
from rmqlb.model.snapshot import Wanted
from rmqlb.sources.dashboard import Credentials
from rmqlb.sources.opening import Access, open_source
from tests.support.mismatches import every_case
from tests.support.replay_dashboard import Fault, Replay, dashboard, envelope, giving, reset, silent

from .dashboards import ROUTE, SKEWED, endpoint_error, error_of, source

LOGIN, CSRF = "/login/login.do", "/rocketmq-dashboard/csrf-token"
PASSWORD = "s3cret&=ü%41+ x"
ADMIN = Credentials("admin", lambda: PASSWORD)
WRONG = Credentials("admin", lambda: "wr0ng-one")


def replay_of(*, is_old: bool = False, post_fault: Fault | None = None, **faults: Fault) -> Replay:
    """A Dashboard that wants a login: after 2.1.0 by JSON with a CSRF token, before by a form."""
    paths = {"route": ROUTE, "csrf": CSRF}
    replay = Replay(login=("admin", PASSWORD), takes_json=not is_old)
    replay.faults = {paths[name]: fault for name, fault in faults.items()}
    replay.post_faults = {LOGIN: post_fault} if post_fault is not None else {}
    return replay


def test_a_dashboard_gets_the_login_once_in_its_own_form() -> None:
    with dashboard(replay_of()) as new, dashboard(replay_of(is_old=True)) as old:
        source(new.url, ADMIN).fetch(Wanted(group="order-svc"))
        source(old.url, ADMIN).fetch(SKEWED)
    assert [json.loads(body) for body in new.posted] == [{"username": "admin", "password": PASSWORD}]
    assert parse_qs(old.posted[-1].decode()) == {"username": ["admin"], "password": [PASSWORD]}
    assert {asked for asked in (*new.asked, *old.asked) if not asked.startswith("GET ")} == {f"POST {LOGIN}"}


def test_a_dashboard_that_does_not_ask_is_not_told() -> None:
    def never() -> str:
        raise AssertionError("nobody asked for the password")

    with dashboard() as replay:
        source(replay.url, Credentials("admin", never)).fetch(SKEWED)
    assert (replay.posted, replay.asked) == ([], [f"GET {ROUTE}?topic=Skewed"])


def test_without_credentials_the_error_says_how_to_give_them() -> None:
    with dashboard(replay_of()) as replay:
        error = error_of(replay.url, SKEWED)
    assert (error.code, error.message) == ("login-needed", f"{replay.url} asks for a login")
    assert error.hint == "name the user with --user or in the URL, the password in RMQLB_PASSWORD or --password-file"
    assert replay.posted == []


@every_case(("name", "token"), [("X-XSRF-TOKEN", "tökén"), ("X-Ü", "t"), ("X\r\nY: z", "t"), (1, 2)])
def test_a_token_that_no_header_can_carry_ends_in_one_line(name: object, token: object) -> None:
    with dashboard(replay_of(csrf=giving(envelope({"headerName": name, "token": token})))) as replay:
        endpoint_error(replay.url, SKEWED, ADMIN)


@every_case("is_old", [False, True])
def test_a_wrong_password_is_one_line_and_a_new_dashboard_is_not_asked_in_another_way(is_old: bool) -> None:
    with dashboard(replay_of(is_old=is_old)) as replay:
        error = error_of(replay.url, SKEWED, WRONG)
    assert error.message == f"{replay.url}: login of admin failed: Bad username or password!"
    assert (error.code, error.hint) == ("login-failed", "check user and password")
    assert len(replay.posted) == (2 if is_old else 1)


def test_a_login_that_is_forgotten_again_does_not_go_round_in_circles() -> None:
    with dashboard(replay_of(route=giving(b"", 302, {"Location": "/#/login?redirect=x"}))) as replay:
        message = endpoint_error(replay.url, SKEWED, ADMIN)
    assert message == f"GET {replay.url}{ROUTE}: redirected to /#/login?redirect=x"
    assert len(replay.posted) == 1


def test_a_login_page_elsewhere_does_not_get_the_password() -> None:
    with dashboard() as other:
        elsewhere = giving(b"", 302, {"Location": f"{other.url}/login?service=x"})
        with dashboard(replay_of(route=elsewhere)) as replay:
            endpoint_error(replay.url, SKEWED, ADMIN)
    assert (other.asked, other.posted) == ([], [])


@pytest.mark.parametrize("fault", [reset, silent])
def test_a_login_is_never_sent_again_after_a_fault(fault: Fault) -> None:
    with dashboard(replay_of(post_fault=fault)) as replay:
        message = endpoint_error(replay.url, SKEWED, ADMIN, timeout=0.3, retries=5)
    assert message.startswith(f"POST {replay.url}{LOGIN}: ")
    assert len(replay.posted) == 1


def test_the_password_is_in_no_message_no_traceback_and_no_repr() -> None:
    texts = [repr(WRONG), repr(Access(password=lambda _: "wr0ng-one"))]
    for is_old in (False, True):
        for fault in (None, reset, giving(b"wr0ng", 500), giving(b"{")):
            with dashboard(replay_of(is_old=is_old, post_fault=fault)) as replay, pytest.raises(RmqlbError) as caught:
                source(replay.url, WRONG, timeout=0.5).fetch(SKEWED)
            texts += [str(caught.value.hint), repr(caught.value), *traceback.format_exception(caught.value)]
    assert "wr0ng-one" not in "".join(texts)


@every_case(("url", "expected"), [("http://admin@{}", "admin"), ("http://j%40n@{}/", "j@n")])
def test_the_user_may_stand_in_the_url_and_is_shown_nowhere(url: str, expected: str) -> None:
    users: list[str] = []

    def password(user: str) -> str:
        users.append(user)
        return PASSWORD

    replay = replay_of()
    replay.login = (expected, PASSWORD)
    with dashboard(replay):
        access = Access(password=password)
        snapshot = open_source(url.format(replay.url.removeprefix("http://")), access).fetch(SKEWED)
    assert users == [expected]
    assert (snapshot.endpoint, snapshot.routes["Skewed"].seen.where) == (replay.url, replay.url + ROUTE)


@every_case(
    "url", ["http://admin:s3cret@host", "https://:s3cret@host/x", "http://a:s3cret@host:99999", "http://a:s3cret@[x"]
)
def test_a_password_in_the_url_is_refused_and_not_echoed(url: str) -> None:
    with pytest.raises(UsageError) as caught:
        open_source(url, Access())
    assert "s3cret" not in f"{caught.value.message} {caught.value.hint}"


CA, OTHER_CA = trustme.CA(), trustme.CA()
LONG_AGO = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)


@pytest.fixture
def ca_file(tmp_path: Path) -> str:
    CA.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    return str(tmp_path / "ca.pem")


def served_by(certificate: trustme.LeafCert) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate.configure_cert(context)
    return context


def refused(context: ssl.SSLContext, change: Callable[[str], str] = str, **settings: Any) -> str:
    with dashboard(tls=context) as replay:
        error = error_of(change(replay.url), SKEWED, **settings)
    assert isinstance(error, EndpointError)
    assert replay.asked == []
    return f"{error.message.removeprefix(f'GET {replay.url}{ROUTE}: ')} | {error.hint}"


def test_a_server_whose_ca_is_given_is_read(ca_file: str) -> None:
    with dashboard(tls=served_by(CA.issue_cert("127.0.0.1"))) as replay:
        snapshot = source(replay.url, ca_file=ca_file).fetch(SKEWED)
    assert snapshot.endpoint.startswith("https://127.0.0.1:")
    assert snapshot.route("Skewed")


@every_case(
    ("certificate", "reason"),
    [
        (OTHER_CA.issue_cert("127.0.0.1"), "certificate verify failed"),
        (CA.issue_cert("elsewhere.example"), "IP address mismatch"),
        (CA.issue_cert("127.0.0.2"), "IP address mismatch"),
        (CA.issue_cert("127.0.0.1", not_before=LONG_AGO, not_after=LONG_AGO + dt.timedelta(days=9)), "has expired"),
    ],
)
def test_a_server_that_cannot_be_trusted_is_asked_nothing(
    certificate: trustme.LeafCert, reason: str, ca_file: str
) -> None:
    said = refused(served_by(certificate), ca_file=ca_file)
    assert said.startswith("TLS failed: ")
    assert reason in said
    assert said.endswith("| is the CA that signed it in --ca-file, or among the system's where none is given?")


def test_a_private_ca_an_old_version_and_plain_http_are_refused(ca_file: str) -> None:
    good = served_by(CA.issue_cert("127.0.0.1"))
    assert refused(good).startswith("TLS failed: ")
    refused(good, lambda url: url.replace("https:", "http:"), timeout=1.0, retries=0)
    with pytest.warns(DeprecationWarning, match="TLSv1"):
        good.minimum_version, good.maximum_version = ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1
    refused(good, ca_file=ca_file, retries=0)
