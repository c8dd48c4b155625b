"""TLS: who is trusted, under which name, and who shows a certificate."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
import trustme
from msgspec.structs import replace

from rmqlb.errors import UsageError
from rmqlb.sources.native.address_map import parse_address_map
from rmqlb.sources.native.wire import RemotingClient, WireSettings, tls_context
from tests.support.mismatches import every_case
from tests.support.replay_remoting import Replay, remoting

from .wires import ROUTE, SETTINGS, answer_body, client, failure, problem

UNKNOWN_CA = ("unable to get local issuer certificate", "self-signed certificate in certificate chain")


class Files(NamedTuple):
    """What a server shows and believes, and the files of its clients."""

    authority: trustme.CA
    shown: trustme.LeafCert
    ca: str
    other_ca: str
    client_cert: str
    client_key: str
    foreign_cert: str


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    folder = tmp_path_factory.mktemp("tls")
    ca, other_ca = trustme.CA(), trustme.CA()
    ca.cert_pem.write_to_path(folder / "ca.pem")
    other_ca.cert_pem.write_to_path(folder / "other.pem")
    own = ca.issue_cert("rmqlb@example.com")
    own.cert_chain_pems[0].write_to_path(folder / "cert.pem")
    own.private_key_pem.write_to_path(folder / "key.pem")
    other_ca.issue_cert("rmqlb@example.com").private_key_and_cert_chain_pem.write_to_path(folder / "foreign.pem")
    names = ("ca.pem", "other.pem", "cert.pem", "key.pem", "foreign.pem")
    return Files(ca, ca.issue_cert("127.0.0.1", "broker.example"), *(str(folder / name) for name in names))


def server_tls(files: Files, *, client_certificate: bool = False) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    files.shown.configure_cert(context)
    files.authority.configure_trust(context)
    context.verify_mode = ssl.CERT_REQUIRED if client_certificate else ssl.CERT_NONE
    return context


@contextmanager
def secured(
    files: Files, tls: ssl.SSLContext, *, client_certificate: bool = False, settings: WireSettings = SETTINGS
) -> Iterator[tuple[RemotingClient, Replay]]:
    server = server_tls(files, client_certificate=client_certificate)
    with remoting(tls=server) as replay, client(replace(settings, tls=tls)) as opened:
        yield opened, replay


def test_tls_with_the_right_ca_answers_and_keeps_its_connection(files: Files) -> None:
    with secured(files, tls_context(files.ca)) as (opened, replay):
        for _ in range(3):
            assert opened.call(replay.address, ROUTE).body == answer_body(replay, ROUTE)
        assert replay.connections == 1


def test_an_unknown_ca_is_refused(files: Files) -> None:
    for context in (tls_context(files.other_ca), tls_context()):
        with secured(files, context) as (opened, replay):
            error = failure(opened, replay.address)
            assert error.message.removeprefix(f"{replay.address} GET_ROUTEINFO_BY_TOPIC: TLS failed: ") in UNKNOWN_CA
            assert "--ca-file" in (error.hint or "")
            assert (replay.requests, replay.connections) == ([], 1)


@pytest.mark.parametrize("server_name", ["other.example", "127.0.0.2"])
def test_a_certificate_of_another_name_is_refused(files: Files, server_name: str) -> None:
    settings = replace(SETTINGS, server_name=server_name)
    with secured(files, tls_context(files.ca), settings=settings) as (opened, replay):
        error = failure(opened, replay.address)
        assert "TLS failed: " in error.message
        assert error.message.endswith(f"certificate is not valid for '{server_name}'")
        assert "--tls-name" in (error.hint or "")
        assert replay.requests == []


def test_a_mapped_address_does_not_change_the_name_in_the_certificate(files: Files) -> None:
    with remoting(tls=server_tls(files)) as replay:
        rules = (f"broker.example:10911={replay.address}", f"other.example:10911={replay.address}")
        settings = replace(SETTINGS, tls=tls_context(files.ca), addresses=parse_address_map(rules))
        with client(settings) as opened:
            assert opened.call("broker.example:10911", ROUTE).code == 0
            assert f"other.example:10911 (mapped to {replay.address})" in problem(opened, "other.example:10911")


def test_a_client_certificate_is_shown(files: Files) -> None:
    context = tls_context(files.ca, files.client_cert, files.client_key)
    with secured(files, context, client_certificate=True) as (opened, replay):
        assert opened.call(replay.address, ROUTE).code == 0


@every_case("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@every_case("foreign", [False, True])
def test_without_the_right_client_certificate_tls_fails(files: Files, version: ssl.TLSVersion, foreign: bool) -> None:
    context = tls_context(files.ca, files.foreign_cert if foreign else None)
    context.maximum_version = version
    with secured(files, context, client_certificate=True) as (opened, replay):
        error = failure(opened, replay.address)
        assert "TLS failed: " in error.message
        assert "alert" in error.message
        assert "--client-cert" in (error.hint or "")
        assert replay.requests == []


def test_tls_to_a_server_without_it_fails(files: Files) -> None:
    with remoting() as replay, client(replace(SETTINGS, tls=tls_context(files.ca), timeout=0.3, retries=0)) as opened:
        assert problem(opened, replay.address).startswith(f"{replay.address} GET_ROUTEINFO_BY_TOPIC: ")
        assert replay.requests == []


def test_no_tls_to_a_server_with_it_fails(files: Files) -> None:
    with remoting(tls=server_tls(files)) as replay, client() as opened:
        assert "rocketmqs://" in (failure(opened, replay.address).hint or "")


def test_certificates_and_names_are_always_verified(files: Files) -> None:
    for context in (tls_context(), tls_context(files.ca), tls_context(files.ca, files.client_cert, files.client_key)):
        assert (context.check_hostname, context.verify_mode) == (True, ssl.CERT_REQUIRED)


Arguments = Callable[[Files, str], Sequence[str | None]]


@every_case(
    ("arguments", "message"),
    [
        (lambda _, path: (path + ".no",), "cannot read the CA file {}.no: No such file or directory"),
        (lambda _, path: (path,), "cannot read the CA file {}: no certificate or crl found"),
        (lambda files, path: (files.ca, path), "cannot read the client certificate {}: PEM lib"),
        (lambda files, _: (files.ca, files.client_cert), "cannot read the client certificate .*cert.pem: PEM lib"),
        (
            lambda files, _: (files.ca, files.client_cert, files.foreign_cert),
            "cannot read the client certificate .*cert.pem with the key .*foreign.pem: key values mismatch",
        ),
        (lambda files, _: (files.ca, None, files.client_key), "--client-key makes no sense without --client-cert"),
    ],
)
def test_files_that_cannot_be_used_are_named(files: Files, tmp_path: Path, arguments: Arguments, message: str) -> None:
    path = tmp_path / "not.pem"
    path.write_text("nothing")
    with pytest.raises(UsageError, match=f"^{message.format(path)}$"):
        tls_context(*arguments(files, str(path)))


def test_a_key_with_a_password_is_refused_and_nobody_is_asked(files: Files, tmp_path: Path) -> None:
    from cryptography.hazmat.primitives import serialization

    key_file = serialization.load_pem_private_key(Path(files.client_key).read_bytes(), None)
    form, pkcs8 = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    locked = key_file.private_bytes(form, pkcs8, serialization.BestAvailableEncryption(b"canary"))
    (tmp_path / "locked.pem").write_bytes(locked)
    with pytest.raises(UsageError, match="the client certificate's key has a password"):
        tls_context(files.ca, files.client_cert, str(tmp_path / "locked.pem"))
