"""`rocketmqs://` from the command line: own CA, client certificate, the name that certificates bear."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest
import trustme

from rmqlb.cli.exit_codes import ExitCode
from tests.cli.run import run
from tests.support.replay_remoting import remoting

CA = trustme.CA()


def server(name: str, *, wants_client: bool = False) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    CA.issue_cert(name).configure_cert(context)
    if wants_client:
        context.verify_mode = ssl.CERT_REQUIRED
        CA.configure_trust(context)
    return context


@pytest.fixture
def ca_file(tmp_path: Path) -> str:
    CA.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    return str(tmp_path / "ca.pem")


def show(address: str, *more: str) -> tuple[int | None, str, str]:
    result = run("show-route", "-s", f"rocketmqs://{address}", "--topic", "OrderEvents", "-o", "csv", *more)
    return result.code, result.stdout[:5], result.stderr


def test_a_server_of_the_own_ca_is_trusted(ca_file: str) -> None:
    with remoting(tls=server("127.0.0.1")) as replay:
        assert show(replay.address, "--ca-file", ca_file)[:2] == (ExitCode.OK, "topic")


def test_a_server_of_another_ca_is_refused_with_a_hint() -> None:
    with remoting(tls=server("127.0.0.1")) as replay:
        code, out, err = show(replay.address)
    assert (code, out) == (ExitCode.ENDPOINT, "")
    assert len(err.splitlines()) == 2
    assert "--ca-file" in err


def test_another_name_is_refused_unless_it_is_the_one_expected(ca_file: str) -> None:
    with remoting(tls=server("broker.example")) as replay:
        assert show(replay.address, "--ca-file", ca_file)[0] == ExitCode.ENDPOINT
        assert show(replay.address, "--ca-file", ca_file, "--tls-name", "broker.example")[0] == ExitCode.OK


def test_a_client_certificate_is_shown_where_it_is_wanted(ca_file: str, tmp_path: Path) -> None:
    mine = CA.issue_cert("client.example")
    (tmp_path / "me.pem").write_bytes(mine.cert_chain_pems[0].bytes())
    mine.private_key_pem.write_to_path(str(tmp_path / "me.key"))
    files = ("--client-cert", str(tmp_path / "me.pem"), "--client-key", str(tmp_path / "me.key"))
    with remoting(tls=server("127.0.0.1", wants_client=True)) as replay:
        assert show(replay.address, "--ca-file", ca_file, *files)[0] == ExitCode.OK
        assert show(replay.address, "--ca-file", ca_file, "--source-retries", "0")[0] == ExitCode.ENDPOINT


def test_files_that_cannot_be_read_are_named(ca_file: str) -> None:
    code, _, err = show("127.0.0.1:1", "--ca-file", ca_file, "--client-cert", "no-such.pem")
    assert code == ExitCode.USAGE
    assert "no-such.pem" in err
