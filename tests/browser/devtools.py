"""A headless Chromium, told what to do through its DevTools pipe: JSON that ends with NUL, on the descriptors 3 and 4."""

import json
import os
import select
import shutil
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from msgspec import Struct, field

_PATIENCE_S = 60
"""After so long a test has failed; none of them waits for it."""
_NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
_FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"),
    *("--disable-sync", "--no-first-run", "--remote-debugging-pipe"),
    *("--proxy-server=127.0.0.1:9", "--proxy-bypass-list=<-loopback>"),  # nothing listens there
)
_ON_3_AND_4 = (
    "import fcntl, os, sys; ends = [fcntl.fcntl(int(end), fcntl.F_DUPFD, 10) for end in sys.argv[1:3]]; "
    "os.dup2(ends[0], 3); os.dup2(ends[1], 4); os.execv(sys.argv[3], sys.argv[3:])"
)


class Loaded(Struct):
    """What a page did while the browser loaded it."""

    requests: list[str] = field(default_factory=list)  # addresses, the page's own among them
    dialogs: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)  # errors, warnings and all else on the console
    text: str = ""
    scripts: int = 0
    width: int = 0  # the columns of pixels that the content needs
    outside: list[str] = field(default_factory=list)  # elements with text that begin or end outside the window


class Chromium:
    """A running browser that reaches no server; the folder is for its profile."""

    def __init__(self, folder: Path) -> None:
        program = next((found for name in _NAMES if (found := shutil.which(name))), None)
        assert program, "this needs Chromium: apt-get install chromium"
        to_read, self._to = os.pipe()
        self._from, to_write = os.pipe()
        line = [str(to_read), str(to_write), program, *_FLAGS, f"--user-data-dir={folder}", "about:blank"]
        quiet = subprocess.DEVNULL
        self._child = subprocess.Popen(
            [sys.executable, "-c", _ON_3_AND_4, *line], pass_fds=(to_read, to_write), stdout=quiet, stderr=quiet
        )
        os.close(to_read)
        os.close(to_write)
        self._number = 0
        self._buffer = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._child.terminate()
        self._child.wait(_PATIENCE_S)
        os.close(self._to)
        os.close(self._from)

    def load(self, url: str, width: int = 1200) -> Loaded:
        """Open a page in a window of this width, wait until all of it is loaded, and close it."""
        seen = Loaded()
        target = self._ask(seen, "Target.createTarget", url="about:blank")["targetId"]
        session = self._ask(seen, "Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Log", "Runtime"):
            self._ask(seen, f"{domain}.enable", session)
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        self._ask(seen, "Emulation.setDeviceMetricsOverride", session, **size)
        self._ask(seen, "Page.navigate", session, url=url)
        while self._next(seen).get("method") != "Page.loadEventFired":
            pass
        answer = self._ask(seen, "Runtime.evaluate", session, expression=_LOOK, awaitPromise=True, returnByValue=True)
        seen.text, seen.scripts, seen.width, seen.outside = answer["result"]["value"]
        self._ask(seen, "Target.closeTarget", targetId=target)
        return seen

    def _ask(self, seen: Loaded, method: str, session: str | None = None, /, **params: object) -> dict[str, Any]:
        number = self._send(method, session, params)
        while (message := self._next(seen)).get("id") != number:
            pass
        assert "error" not in message, message
        answer: dict[str, Any] = message["result"]
        return answer

    def _send(self, method: str, session: str | None, params: dict[str, object]) -> int:
        self._number += 1
        message = {"id": self._number, "method": method, "params": params} | ({"sessionId": session} if session else {})
        os.write(self._to, json.dumps(message).encode() + b"\0")
        return self._number

    def _next(self, seen: Loaded) -> dict[str, Any]:
        """The next message; what it tells of the page is noted."""
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._from], [], [], _PATIENCE_S)
            assert ready, "the browser says nothing"
            piece = os.read(self._from, 1 << 16)
            assert piece, "the browser has ended"
            self._buffer += piece
        whole, _, self._buffer = self._buffer.partition(b"\0")
        message: dict[str, Any] = json.loads(whole)
        about = message.get("params", {})
        match message.get("method"):
            case "Network.requestWillBeSent":
                seen.requests.append(about["request"]["url"])
            case "Page.javascriptDialogOpening":
                seen.dialogs.append(about["message"])
                self._send("Page.handleJavaScriptDialog", message["sessionId"], {"accept": False})
            case "Log.entryAdded":
                seen.complaints.append(about["entry"]["text"])
            case "Runtime.consoleAPICalled" | "Runtime.exceptionThrown":
                seen.complaints.append(json.dumps(about))
        return message


_LOOK = """new Promise(done => requestAnimationFrame(() => setTimeout(() => done([
    document.documentElement.textContent, document.getElementsByTagName("script").length,
    document.documentElement.scrollWidth,
    [...document.querySelectorAll("td, p, dd, dt, li, pre, code, figure, h1, h2, h3")]
        .filter(one => one.getClientRects().length && (one.scrollWidth > one.clientWidth + 1
            && getComputedStyle(one).display != "inline" || one.getBoundingClientRect().right > innerWidth + 1))
        .map(one => one.textContent.slice(0, 60))]))))"""
