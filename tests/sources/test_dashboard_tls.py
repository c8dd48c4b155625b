"""TLS is verified, always: the right host, by a known CA, and nothing is sent before that."""

from __future__ import annotations

import datetime as dt
import ssl
from pathlib import Path

import pytest
import trustme

from rmqlb.errors import EndpointError
from rmqlb.model.snapshot import Wanted
from tests.support.replay_dashboard import Replay, dashboard

from .dashboards import error_of, source

SKEWED = Wanted(topics=("Skewed",))
HINT = "is the CA that signed it in --ca-file, or among the system's where none is given?"
CA = trustme.CA()
OTHER_CA = trustme.CA()
LONG_AGO = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)


@pytest.fixture
def ca_file(tmp_path: Path) -> str:
    path = tmp_path / "ca.pem"
    CA.cert_pem.write_to_path(str(path))
    return str(path)


def served_by(certificate: trustme.LeafCert) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate.configure_cert(context)
    return context


def test_a_server_whose_ca_is_given_is_read(ca_file: str) -> None:
    with dashboard(tls=served_by(CA.issue_cert("127.0.0.1"))) as replay:
        snapshot = source(replay.url, ca_file=ca_file).fetch(SKEWED)
    assert snapshot.endpoint.startswith("https://127.0.0.1:")
    assert snapshot.route("Skewed")


@pytest.mark.parametrize(
    ("certificate", "reason"),
    [
        (OTHER_CA.issue_cert("127.0.0.1"), "certificate verify failed"),
        (CA.issue_cert("elsewhere.example"), "IP address mismatch"),
        (CA.issue_cert("127.0.0.2"), "IP address mismatch"),
        (
            CA.issue_cert("127.0.0.1", not_before=LONG_AGO, not_after=LONG_AGO + dt.timedelta(days=9)),
            "certificate has expired",
        ),
    ],
    ids=["unknown CA", "wrong host", "wrong address", "expired"],
)
def test_a_server_that_cannot_be_trusted_is_asked_nothing(
    certificate: trustme.LeafCert, reason: str, ca_file: str
) -> None:
    with dashboard(tls=served_by(certificate)) as replay:
        error = error_of(replay.url, SKEWED, ca_file=ca_file)
    assert isinstance(error, EndpointError)
    assert error.message.startswith(f"GET {replay.url}/topic/route.query: TLS failed: ")
    assert reason in error.message
    assert error.hint == HINT
    assert replay.asked == []


def test_without_a_ca_file_a_private_ca_is_not_trusted() -> None:
    with dashboard(tls=served_by(CA.issue_cert("127.0.0.1"))) as replay:
        error = error_of(replay.url, SKEWED)
    assert "TLS failed: " in error.message
    assert replay.asked == []


def test_an_old_tls_version_is_refused(ca_file: str) -> None:
    context = served_by(CA.issue_cert("127.0.0.1"))
    with pytest.warns(DeprecationWarning, match="TLSv1"):
        context.minimum_version, context.maximum_version = ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1
    with dashboard(tls=context) as replay:
        error = error_of(replay.url, SKEWED, ca_file=ca_file, retries=0)
    assert isinstance(error, EndpointError)
    assert replay.asked == []


def test_http_to_a_server_with_tls_is_told() -> None:
    replay = Replay()
    with dashboard(replay, tls=served_by(CA.issue_cert("127.0.0.1"))):
        error = error_of(replay.url.replace("https:", "http:"), SKEWED, timeout=1.0, retries=0)
    assert isinstance(error, EndpointError)
    assert replay.asked == []
