from __future__ import annotations

import ssl
from pathlib import Path

import trustme

from rmqlb.cli.exit_codes import ExitCode
from tests.cli.run import run
from tests.support.replay_remoting import remoting


def test_each_option_of_tls_is_needed_where_the_server_needs_it(tmp_path: Path) -> None:
    ca = trustme.CA()
    mine = ca.issue_cert("client.example")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    ca.issue_cert("broker.example").configure_cert(context)
    context.verify_mode = ssl.CERT_REQUIRED
    ca.configure_trust(context)
    ca.cert_pem.write_to_path(tmp_path / "ca.pem")
    mine.cert_chain_pems[0].write_to_path(tmp_path / "me.pem")
    mine.private_key_pem.write_to_path(tmp_path / "me.key")
    given = {
        "--ca-file": [str(tmp_path / "ca.pem")],
        "--tls-name": ["broker.example"],
        "--client-cert": [str(tmp_path / "me.pem"), "--client-key", str(tmp_path / "me.key")],
    }
    with remoting(tls=context) as replay:
        show = ("show-route", "-s", f"rocketmqs://{replay.address}", "--topic", "OrderEvents", "-o", "csv")
        for missing in (None, *given):
            options = [word for name, words in given.items() if name != missing for word in (name, *words)]
            done = run(*show, *options, "--source-retries", "0")
            assert done.code == (ExitCode.OK if missing is None else ExitCode.ENDPOINT)
            assert done.stdout[:5] == ("topic" if missing is None else "")
            assert missing is None or (missing in done.stderr and len(done.stderr.splitlines()) == 2)
        done = run(*show, "--client-cert", "no-such.pem")
    assert done.code == ExitCode.USAGE
    assert "no-such.pem" in done.stderr
