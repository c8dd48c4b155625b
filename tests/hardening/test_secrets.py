import base64
import threading
from collections.abc import Collection, Iterator
from dataclasses import replace
from pathlib import Path

from rmqlb.remoting.acl import Credentials
from tests.cli.run import Ran, run, start
from tests.hardening import walk
from tests.support import replay_dashboard as http
from tests.support import replay_remoting as native
from tests.support.mismatches import FIGURES, every_case

CORE = "C4n4ryC0re8"
SECRET = f"p&={CORE}ü%41+ x"
"""The core has nothing that any encoding of text changes."""
LOGIN = "/login/login.do"
GROUP, TOPIC = "order-svc", "OrderEvents"


def forms(core: str) -> set[str]:
    """The core as it is, in hexadecimal, and in base64 at each of the three places it may begin at."""
    found = {core, core.encode().hex(), core.encode("utf-16-le").hex(), core[::-1]}
    for before in range(3):
        encoded = base64.b64encode(b"\0" * before + core.encode()).decode()
        found.add(encoded[-(-before * 8 // 6) : len(core) * 8 // 6])
    return found


FORMS = forms(CORE)


def leaks(*texts: str) -> set[str]:
    FIGURES["bytes searched for a planted secret"] += sum(len(text.encode(errors="replace")) for text in texts)
    return {form for form in FORMS for text in texts if form.lower() in text.lower()}


PASSWORDS: dict[str, str | dict[str, str]] = {
    "in the environment": {"RMQLB_PASSWORD": SECRET},
    "in a file": "--password-file",
}
SECRET_KEYS: dict[str, str | dict[str, str]] = {
    "in the environment": {"RMQLB_SECRET_KEY": SECRET},
    "in a file": "--secret-key-file",
    "a token": {"RMQLB_SECRET_KEY": "k", "RMQLB_SECURITY_TOKEN": SECRET},
}
"""How a secret is given → the environment, or the option for the file `secret`."""


def given(way: str | dict[str, str], folder: Path) -> tuple[tuple[str, ...], dict[str, str]]:
    if isinstance(way, dict):
        return (), way
    path = folder / "secret"
    path.write_text(f"{SECRET}\n")
    path.chmod(0o600)
    return (way, str(path)), {}


ECHO = f"java.lang.IllegalArgumentException: bad password {SECRET}\n\tat {SECRET}"
DASHBOARDS: dict[str, http.Replay] = {
    "lets in": http.Replay(login=("admin", SECRET)),
    "lets in by a form": http.Replay(login=("admin", SECRET), takes_json=False),
    "refuses": http.Replay(login=("admin", "another")),
    "repeats it": http.Replay(login=("admin", "x"), post_faults={LOGIN: http.giving(http.failure(ECHO))}),
    "breaks off": http.Replay(login=("admin", "x"), post_faults={LOGIN: http.reset}),
    "answers with a page": http.Replay(login=("admin", "x"), post_faults={LOGIN: http.giving(b"<html>", 500)}),
    "is silent": http.Replay(login=("admin", "x"), post_faults={LOGIN: http.silent}),
    "fails afterwards": http.Replay(login=("admin", SECRET), faults={"/topic/route.query": http.giving(http.failure("boom"))}),
}  # fmt: skip
CLUSTERS: dict[str, native.Replay] = {
    "lets in": native.Replay(credentials=Credentials("ak", SECRET)),
    "refuses": native.Replay(credentials=Credentials("ak", "another")),
    "repeats it": native.Replay(faults={"*": native.refusing(1, f"AclException: signature of ak {SECRET}")}),
    "breaks off": native.Replay(faults={"*": native.reset}),
    "is no RocketMQ": native.Replay(faults={"*": native.raw(b"HTTP/1.1 400 Bad Request\r\n\r\n")}),
    "is silent": native.Replay(faults={"*": native.silent}),
}


def arguments(name: str, folder: Path, kind: str = "") -> Iterator[tuple[str, ...]]:
    """The command with all that it can write, and as `--debug`; what answers has time for it."""
    of = ("--topic", TOPIC) if name in walk.ON_A_TOPIC else ("--group", GROUP) if name != "check" else ()
    timeout = "100ms" if kind == "is silent" else "20s"
    line = (name, *of, *walk.READING[name], "--source-timeout", timeout, "--source-retries", "0")
    yield (*line, "-o", "json")
    yield (*line, *(("-o", "yaml") if name == "fetch-routes" else ("-o", "plain")), "--debug")
    if name == "fetch-routes":
        yield (*line, "--to", str(folder / "out.json"))
        yield (*line, "--redact", "--redact-map", str(folder / "map.json"))
    if name == "simulate-rebalance":
        yield (*line, "--svg", str(folder / "out.svg"), "--html", str(folder / "out.html"))


def commands(way: str, kind: str) -> Collection[str]:
    """All commands meet what most people have; those that only read meet every way and every failure."""
    return walk.READING if (way, kind) == ("in the environment", "lets in") else ("show-route", "fetch-routes")


def searched(done: Ran, folder: Path) -> set[str]:
    texts = [path.read_text() for path in folder.iterdir() if path.name != "secret"]
    return leaks(done.stdout, done.stderr, *texts)


@every_case("kind", DASHBOARDS)
@every_case("way", PASSWORDS)
def test_a_dashboards_password_is_nowhere(way: str, kind: str, tmp_path: Path) -> None:
    options, env = given(PASSWORDS[way], tmp_path)
    replay = replace(DASHBOARDS[kind], stop=threading.Event(), asked=[], posted=[])
    with http.dashboard(replay) as running:
        url = running.url.replace("http://", "http://admin@")
        for line in (line for name in commands(way, kind) for line in arguments(name, tmp_path, kind)):
            done = run(*line, "-s", url, *options, env=env)
            assert searched(done, tmp_path) == set()
            assert done.code in ((0, 3, 4) if kind.startswith("lets") else (4, 5)), done.stderr
        assert any(CORE.encode() in body for body in running.posted), "the secret was not even used"


@every_case("kind", CLUSTERS)
@every_case("way", SECRET_KEYS)
def test_an_accounts_secrets_are_nowhere(way: str, kind: str, tmp_path: Path) -> None:
    options, env = given(SECRET_KEYS[way], tmp_path)
    replays = (
        replace(CLUSTERS[kind], broker=name, stop=threading.Event(), requests=[], forbidden=[]) for name in ("b0", "b1")
    )
    with native.cluster(*replays) as (a, b):
        for line in (line for name in commands(way, kind) for line in arguments(name, tmp_path, kind)):
            done = run(*line, *native.at((a, b)), "--access-key", "ak", *options, env=env)
            assert searched(done, tmp_path) == set()
        assert any("Signature" in request.ext_fields for request in a.requests) or kind in ("breaks off", "is silent", "is no RocketMQ")  # fmt: skip


SOURCES = (
    f"http://admin:{CORE}@127.0.0.1:1",
    f"https://admin:{CORE}@127.0.0.1:1/?token={CORE}",
    f"http://127.0.0.1:1/?password={CORE}#{CORE}",
    f"http:/admin:{CORE}@127.0.0.1",
    f"https:admin:{CORE}@127.0.0.1",
    f"rocketmq://ak:{CORE}@127.0.0.1:1",
    f"rocketmqs:/ak:{CORE}@127.0.0.1:1",
    f"http://admin:{CORE}@",
    f"http://admin:{CORE}@[::1",
    f"http://admin:{CORE}@127.0.0.1:port",
    f"ftp://admin:{CORE}@127.0.0.1",
)


@every_case("name", walk.READING)
def test_a_secret_in_the_source_is_not_repeated(name: str, tmp_path: Path) -> None:
    for source in SOURCES:
        for line in arguments(name, tmp_path):
            for done in (run(*line, "-s", source), run(*line, env={"RMQLB_SOURCE": source})):
                assert done.code in (2, 5)
                assert searched(done, tmp_path) == set(), source


def test_a_process_with_a_secret_around_it_shows_it_nowhere() -> None:
    secrets = dict.fromkeys(("RMQLB_PASSWORD", "RMQLB_SECRET_KEY", "RMQLB_SECURITY_TOKEN"), SECRET)
    show = ("show-route", "-s", "http://u@127.0.0.1:1", "-t", "T", "--source-retries", "0", "--debug")
    for line in (("--help",), show):
        done = start(*line, env=secrets | {"PYTHONDEVMODE": "1"})
        assert leaks(done.stdout, done.stderr) == set()
