from __future__ import annotations

from pathlib import Path

import pytest

from rmqlb.errors import EndpointError, UsageError
from rmqlb.model.snapshot import Wanted
from rmqlb.sources.dump import DumpSource
from rmqlb.sources.live import LiveSource
from rmqlb.sources.native.source import NameServerReads
from rmqlb.sources.opening import Access, open_source
from tests.support.mismatches import every_case
from tests.support.replay_dashboard import Replay as HttpReplay
from tests.support.replay_dashboard import dashboard, giving
from tests.support.replay_remoting import remoting

PLAIN = Access()


def endpoint(text: str, access: Access = PLAIN) -> str:
    source = open_source(text, access)
    assert isinstance(source, LiveSource)
    return source.reads.endpoint


def test_urls_are_shown_whole_and_without_a_user() -> None:
    for text, shown in (
        ("rocketmq://a", "rocketmq://a:9876"),
        ("rocketmq://a,b:1;c/", "rocketmq://a:9876,b:1,c:9876"),
        ("rocketmq://[::1]:9876", "rocketmq://[::1]:9876"),
        ("rocketmqs://a", "rocketmqs://a:9876"),
        ("http://me@h:8082/ctx/", "http://h:8082/ctx"),
        ("http://h:0", "http://h:0"),
    ):
        assert endpoint(text, Access(password=lambda _: "x")) == shown


NO_SOURCES = {
    "the source is empty": [""],
    "cannot read ftp:// sources": ["ftp://h"],
    "names no NameServer": ["rocketmq://"],
    "the source names a user": ["rocketmq://u:s3cret@h"],
    "holds a password": ["http://me:s3cret@h", "http://me:s3cret@h/rocketmq/nsaddr", "https://:s3cret@host/x"],
    "its login, host or port is malformed": ["http://me:s3cret/x@h", "http://me:s3cret\uff0fx@h"],
    "names no host": ["http://"],
    "names a user and perhaps a password": ["u:s3cret@h:9876", "//u:s3cret@h", "h:9876;u:s3cret@h:9876", "u:s3/s3cret@h:9876"],
}  # fmt: skip


@every_case(("words", "texts"), NO_SOURCES.items())
def test_what_cannot_be_a_source_is_refused_without_showing_a_secret(words: str, texts: list[str]) -> None:
    for text in texts:
        with pytest.raises(UsageError) as raised:
            open_source(text, PLAIN)
        assert words in raised.value.message
        assert "s3cret" not in raised.value.message + (raised.value.hint or "")


def test_a_file_may_be_named_like_a_login(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "u:x@h").write_text("{}")
    assert isinstance(open_source("u:x@h", PLAIN), DumpSource)


def test_an_address_server_leads_to_its_name_servers_without_the_user_or_a_signature() -> None:
    signed = Access(access_key="ak", secret_key=lambda: "sk")
    with remoting() as server, dashboard(HttpReplay()) as http:
        http.faults["/rocketmq/nsaddr"] = giving(f"{server.address}\n".encode())
        url = f"{http.url}/rocketmq/nsaddr"
        source = open_source(url, PLAIN)
        assert isinstance(source, LiveSource)
        assert isinstance(source.reads, NameServerReads)
        assert "OrderEvents" in source.fetch(Wanted(topics=("OrderEvents",))).routes
        assert endpoint(url.replace("://", "://me@")) == f"rocketmq://{server.address}"
        with pytest.raises(UsageError) as raised:
            open_source(url, signed)
        assert raised.value.code == "hosts-over-http"
        assert endpoint(f"rocketmq://{server.address}", signed) in (raised.value.hint or "")


def test_an_address_server_that_lists_nothing_is_an_error() -> None:
    with dashboard(HttpReplay()) as http:
        for body in (b"", b"<html>", b'{"status":0}', b"a:9876;b:c", b"u@h:1", b";", b"x"):
            http.faults["/rocketmq/nsaddr"] = giving(body, 404 if body == b"x" else 200)
            with pytest.raises(EndpointError):
                open_source(f"{http.url}/rocketmq/nsaddr", PLAIN)
