"""Pages and pictures of hostile names in a real browser: nothing is asked for, nothing runs, nothing complains."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from rmqlb.pipeline.report.figures import verdict_of
from rmqlb.pipeline.report.page import cluster_page, fleet_page
from tests.browser.devtools import Chromium
from tests.cli.run import run
from tests.hardening import walk
from tests.hardening.hostile import MARKUP, SNAPSHOTS, as_text, snapshot
from tests.pipeline.report_fleet import HOSTILE, by_duckdb, fleet, hostile_rows, write_warehouse
from tests.support.mismatches import every_case

pytestmark = pytest.mark.browser

HOST = "http://page.test"
"""Everything goes through the recorder, whatever its host."""
ICON = f"{HOST}/favicon.ico"
"""What a browser asks every host for."""
CONTROL = """<!DOCTYPE html><title>control</title><link rel="icon" href="data:,"><img src="http://elsewhere.test/pixel">
<script>alert("hello"); console.error("oh")</script>"""


class Recorder(ThreadingHTTPServer):
    """A proxy that knows some pages, and records whatever else is asked for.

    Attributes:
        pages: path → media type and body.
        others: what was asked for besides.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answering)
        self.pages: dict[str, tuple[str, bytes]] = {}
        self.others: list[str] = []


class _Answering(BaseHTTPRequestHandler):
    server: Recorder

    def do_GET(self) -> None:
        if self.path == ICON:
            self.send_response(204)
            self.end_headers()
            return
        page = self.server.pages.get(self.path)
        if page is None:
            self.server.others.append(self.path)
            self.send_error(404)
            return
        kind, body = page
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_CONNECT(self) -> None:
        """The browser's own errands; what a page asks for, the browser tells besides."""
        self.send_error(403)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def recorder() -> Iterator[Recorder]:
    with Recorder() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture(scope="module")
def chromium(recorder: Recorder, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    with Chromium(tmp_path_factory.mktemp("profile"), f"127.0.0.1:{recorder.server_port}") as running:
        yield running


def test_what_a_page_does_is_seen(recorder: Recorder, chromium: Chromium) -> None:
    recorder.pages[f"{HOST}/control"] = ("text/html", CONTROL.encode())
    seen = chromium.load(f"{HOST}/control")
    assert seen.requests[0] == f"{HOST}/control"
    assert "http://elsewhere.test/pixel" in recorder.others
    assert seen.dialogs == ["hello"]
    assert any('"oh"' in complaint for complaint in seen.complaints)
    assert seen.scripts == 1


def drawn(kind: str, option: str) -> bytes:
    """A picture of hostile names."""
    arguments = ("simulate-rebalance", *walk.ON_A_GROUP["simulate-rebalance"], option, "-", "-s", "-")
    done = run(*arguments, stdin=as_text(snapshot(SNAPSHOTS[kind])))
    assert done.code == 0, done.stderr
    return done.stdout.encode()


@pytest.mark.parametrize("option", ["--svg", "--html"])
@pytest.mark.parametrize("kind", SNAPSHOTS)
def test_a_picture_does_nothing(kind: str, option: str, recorder: Recorder, chromium: Chromium) -> None:
    media = "image/svg+xml" if option == "--svg" else "text/html; charset=utf-8"
    text = must_do_nothing(f"{HOST}/{kind}{option}", media, drawn(kind, option), recorder, chromium)
    if kind == "markup":
        assert MARKUP.split("</title>")[0] in text


def must_do_nothing(url: str, media: str, body: bytes, recorder: Recorder, chromium: Chromium) -> str:
    """The text of a page that neither asks, nor runs, nor complains."""
    recorder.pages[url] = (media, body)
    recorder.others.clear()
    seen = chromium.load(url)
    assert ([one for one in seen.requests if one != ICON], recorder.others) == ([url], [])
    assert (seen.dialogs, seen.complaints, seen.scripts) == ([], [], 0)
    return seen.text


# -- the pages of a fleet's report --------------------------------------------------------------------------------------


@every_case("kind", ["fleet", "hostile"])
def test_a_page_of_a_fleet_fits_its_window_and_does_nothing(kind: str, tmp_path: Path, chromium: Chromium) -> None:
    found = by_duckdb(write_warehouse(tmp_path / "warehouse", fleet() if kind == "fleet" else hostile_rows()))
    verdict = verdict_of(found, "index.html")
    made = {"index.html": fleet_page(found, verdict)}
    made |= {f"{number}.html": cluster_page(found, one) for number, one in enumerate(verdict.clusters)}
    for name, text in made.items():
        page = tmp_path / name
        page.write_text(text, "utf-8")
        for width in (1200, 400):
            seen = chromium.load(page.as_uri(), width)
            assert seen.width <= width, name
            assert seen.outside == [], name
            assert (seen.requests, seen.dialogs, seen.complaints, seen.scripts) == ([page.as_uri()], [], [], 0)
    if len(made) > len(HOSTILE):
        assert HOSTILE[0] in chromium.load((tmp_path / "index.html").as_uri()).text
