"""`rmqlb context`, and what commands read when a context is active."""

from __future__ import annotations

import base64
import json
import shlex
from pathlib import Path
from urllib.parse import parse_qs, quote

import pytest
import yaml

from tests.support.mismatches import every_case
from tests.support.replay_dashboard import Replay, dashboard

from .configured import Desk, settings
from .run import EXAMPLE, Ran, run

CANARY = "c4nary/secret+4711"
LOGIN = ("admin", CANARY)
SHOW = ("show-route", "--topic", "Skewed")


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    return Desk(tmp_path, monkeypatch)


def context_of(ran: Ran) -> object:
    assert ran.code == 0, ran.stderr
    return json.loads(ran.stdout)["source"]["context"]


# -- the commands -----------------------------------------------------------------------------------------------------


def test_a_context_is_added_used_shown_and_removed(desk: Desk) -> None:
    added = run("context", "add", "prod", "-s", "rocketmq://a:9876,b:9876", "--access-key", "me", "--secret", "env:MQ")
    assert added.stdout.splitlines()[0] == f"context prod is in {desk.user_file}"
    assert (
        run("context", "add", "dump", "-s", EXAMPLE, "--source-timeout", "9s", "--source-retries", "1", "--use").code
        == 0
    )
    assert yaml.safe_load(desk.user_file.read_text()) == {
        "context": "dump",
        "contexts": {
            "prod": {"source": "rocketmq://a:9876,b:9876", "access-key": "me", "secret": "env:MQ"},
            "dump": {"source": EXAMPLE, "source-timeout": "9s", "source-retries": 1},
        },
    }
    listed = json.loads(run("context", "list", "-o", "json").stdout)
    assert (listed["schema"], listed["data"]["active"]) == ("rmqlb/contexts", "dump")
    assert [(item["name"], item["active"]) for item in listed["data"]["contexts"]] == [("prod", False), ("dump", True)]
    assert run("context", "use", "prod").stdout.splitlines()[0] == f"context prod is active in {desk.user_file}"
    shown = json.loads(run("context", "show", "-o", "json").stdout)["data"]["context"]
    assert (shown["name"], shown["active"], shown["secret"], shown["user"]) == ("prod", True, "env:MQ", None)
    assert run("context", "show", "dump").stdout.startswith(f"context dump: {EXAMPLE}\n  {desk.user_file}, line ")
    assert run("context", "remove", "prod").code == 0
    assert json.loads(run("context", "list", "-o", "json").stdout)["data"]["active"] is None
    assert "context" not in yaml.safe_load(desk.user_file.read_text())
    assert run("context", "use", "dump").code == run("context", "use", "--none").code == 0
    assert "context" not in yaml.safe_load(desk.user_file.read_text())


def test_paths_mean_the_same_from_every_folder(desk: Desk) -> None:
    (desk.project / "dump.json").write_text("{}")
    files = ("--ca-file", "ca.pem", "--client-cert", "~/cert.pem", "--secret", "file:pw")
    assert run("context", "add", "a", "-s", "dump.json", *files).code == 0
    assert run("context", "add", "b", "-s", "http://h", "--secret", "file:~/pw").code == 0
    here = {
        "source": f"{desk.project}/dump.json",
        "secret": f"file:{desk.project}/pw",
        "ca-file": f"{desk.project}/ca.pem",
    }
    assert yaml.safe_load(desk.user_file.read_text())["contexts"] == {
        "a": {**here, "client-cert": f"{desk.home}/cert.pem"},
        "b": {"source": "http://h", "secret": "file:~/pw"},
    }


def test_a_context_is_written_from_the_line_alone_and_again_only_with_replace(desk: Desk) -> None:
    env = {"RMQLB_SOURCE": "http://other", "RMQLB_USER": "me", "RMQLB_SOURCE_TIMEOUT": "9s", "RMQLB_CONTEXT": "nowhere"}
    assert run("context", "add", "a", env=env).stderr.startswith("error: no source")
    desk.user("contexts:\n  b: {source: http://i, user: me}\n")
    assert run("context", "add", "a", "-s", "http://h", env=env).code == 0
    assert run("context", "add", "b", "-s", "http://j", "--replace").code == 0
    written = {"b": {"source": "http://j"}, "a": {"source": "http://h"}}
    assert yaml.safe_load(desk.user_file.read_text()) == {"contexts": written}


ADD = "add a -s http://h"
BAD = {
    "add a+b -s http://h": "NAME: 'a+b' cannot be the name of a context",
    f"add {'x' * 65} -s http://h": f"NAME: '{'x' * 65}' cannot be the name of a context",
    "add -s http://h": "missing argument 'NAME'",
    "add a": "no source",
    "add a -s -": "--source: it is neither a URL nor an absolute path",
    "add a -s h:9876": "--source: it is neither a URL nor an absolute path",
    "add a -s ftp://h": "--source: cannot read ftp:// sources",
    "add a -s http://": "--source: it names no host",
    "add a -s rocketmq://a,,b": "--source: it names no host",
    f"add a -s http://me:{CANARY}@h": "--source: it holds a login, and perhaps a password",
    f"add a -s http://me:{quote(CANARY, '')}@h": "--source: it holds a login, and perhaps a password",
    f"add a -s rocketmq://{CANARY}@h": "--source: it holds a login, and perhaps a password",
    f"add a -s http://h?token={CANARY}": "--source: a source's URL ends before ? and #",
    "add a -s ''": "--source: it is empty",
    f"{ADD} --secret {CANARY}": "--secret: that is not a place of a secret",
    f"{ADD} --secret pass:{CANARY}": "--secret: that is not a place of a secret",
    f"{ADD} --user a\x1b[31m": "--user: it has a character that cannot be printed",
    f"{ADD} --source-timeout soon": "--source-timeout soon: not a time",
    f"{ADD} --source-retries 21": "invalid value for '--source-retries'",
    f"{ADD} --map-address x": "--map-address: 'x' is not FROM=TO",
    "add there -s http://h": "there is a context there already",
    "add a -s http://me@h --user other": "--user: --source names another user",
    "use": "which context?",
    "use there --none": "which context?",
    "use thre": "there is no context 'thre'",
    "show": "no context is active",
    "show thre": "there is no context 'thre'",
    "remove thre": "there is no context 'thre'",
    "remove": "missing argument 'NAME'",
    "lst": "no such command 'lst' [usage]\nhint: did you mean list?",
}


@every_case("line", BAD)
def test_bad_input_is_one_line_and_changes_nothing(line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk(tmp_path, monkeypatch)
    desk.user("contexts:\n  there: {source: http://h}\n")
    before = desk.user_file.read_bytes()
    for more in ((), ("--debug",)):
        ran = run("context", *shlex.split(line), *more)
        assert (ran.code, ran.stdout) == (2, "")
        assert ran.stderr.startswith(f"error: {BAD[line]}")
        assert len(ran.stderr.splitlines()) <= 2
        assert CANARY not in ran.stderr
    assert desk.user_file.read_bytes() == before


def test_a_choice_that_goes_before_the_users_is_told(desk: Desk) -> None:
    desk.user("contexts:\n  a: {source: http://h}\n  b: {source: http://i}\n")
    ran = run("context", "use", "a", env={"RMQLB_CONTEXT": "b"})
    assert ran.stderr == "info: here RMQLB_CONTEXT chooses context b\n"
    assert "*   b" in ran.stdout
    ran = run("context", "list", env={"RMQLB_CONTEXT": "c"})
    assert ran.stderr == "warning: RMQLB_CONTEXT: there is no context 'c' [no-such-context]\n"


# -- a context in force -----------------------------------------------------------------------------------------------

TWO = f"context: here\ncontexts:\n  here: {{source: {EXAMPLE}}}\n  other: {{source: {EXAMPLE}}}\n"


def test_the_active_context_is_read_and_shown(desk: Desk) -> None:
    desk.user(TWO)
    ran = run(*SHOW)
    assert ran.stderr.splitlines()[0] == f"context here: {EXAMPLE}"
    assert "context here" not in ran.stdout
    assert "context" not in run(*SHOW, "-q").stderr
    for fmt in ("json", "yaml"):
        ran = run(*SHOW, "-o", fmt)
        assert (yaml.safe_load(ran.stdout)["source"]["context"], ran.stderr) == ("here", "")
    plan = run("plan-rebalance", "-g", "order-svc", "--add", "1", "--context", "other", "-o", "json")
    assert context_of(plan) == "other"
    assert context_of(run("simulate-send", "-t", "Skewed", "--messages", "1", "-o", "json")) == "here"
    assert context_of(run("fetch-routes")) == "here"


@every_case("chosen", ["nothing", "flag", "environment", "user file"])
@every_case("source", ["flag", "environment"])
def test_a_source_on_the_line_or_in_the_environment_replaces_every_context(
    chosen: str, source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = TWO if chosen == "user file" else TWO.replace("context: here\n", "")
    other = "source: http://127.0.0.1:1, user: me, secret: env:MQ, source-timeout: 9s"
    Desk(tmp_path, monkeypatch).user(text.replace(f"source: {EXAMPLE}", other))
    flags: tuple[str, ...] = ("-s", EXAMPLE) if source == "flag" else ()
    flags += ("--context", "here") if chosen == "flag" else ()
    env = {"RMQLB_SOURCE": EXAMPLE} if source == "environment" else {}
    env |= {"RMQLB_CONTEXT": "here"} if chosen == "environment" else {}
    assert context_of(run(*SHOW, *flags, "-o", "json", env=env)) is None
    found = settings(*flags, env=env)
    assert (found["source"]["layer"], found["user"]["value"], found["source-timeout"]["value"]) == (source, None, "5s")
    assert "secret" not in found
    said = run(*SHOW, *flags, env=env).stderr.splitlines()[0]
    as_close = chosen == "flag" or (chosen, source) == ("environment", "environment")
    origin = "--source" if source == "flag" else "RMQLB_SOURCE"
    assert (said == f"context here is not used: {origin} names the source") == as_close
    assert said.startswith("context") == as_close


def test_a_source_in_the_file_that_holds_a_password_is_refused_and_not_shown(desk: Desk) -> None:
    desk.user(f"context: a\ncontexts:\n  a:\n    source: http://me:{CANARY}@h\n")
    for args in (SHOW, ("context", "list"), ("context", "show"), ("config", "show"), (*SHOW, "--debug")):
        ran = run(*args)
        assert (ran.code, ran.stdout) == (2, "")
        problem = "contexts.a.source: it holds a login, and perhaps a password"
        assert ran.stderr.startswith(f"error: {desk.user_file}, line 4, {problem} [password-in-url]\n")
        assert CANARY not in ran.stderr


@every_case("before", ["http://me:", "HTTPS://me:", " http://me:", "http:me:", "rocketmq://", "ftp://me:"])
def test_a_source_of_the_line_that_holds_a_password_is_nowhere_shown_whole(before: str) -> None:
    for secret in (CANARY, quote(CANARY, "")):
        source = f"{before}{secret}@127.0.0.1:1"
        for args in (("config", "show"), (*SHOW, "--debug"), ("context", "add", "a")):
            given = run(*args, "-s", source)
            assert secret not in given.stdout + given.stderr
        assert settings(env={"RMQLB_SOURCE": source})["source"]["value"] == f"{before}***@127.0.0.1:1"
    assert settings("-s", f"http://h/?token={CANARY}")["source"]["value"] == "http://h/?***"


# -- secrets ----------------------------------------------------------------------------------------------------------


def passwords(replay: Replay) -> list[str]:
    """Those that a Dashboard was sent, as JSON or as a form."""
    return [
        json.loads(body)["password"] if body.startswith(b"{") else parse_qs(body.decode())["password"][0]
        for body in replay.posted
    ]


def at(url: str, *more: str) -> str:
    return "context: a\ncontexts:\n" + f"  a: {{source: '{url}', {', '.join(more)}}}\n"


def test_the_secret_comes_from_where_the_context_says(desk: Desk) -> None:
    for place in (f"file:{desk.secret(CANARY)}", "env:MQ"):
        with dashboard(Replay(login=LOGIN)) as replay:
            desk.user(at(replay.url, "user: admin", f"secret: '{place}'"))
            ran = run(*SHOW, "-o", "json", env={"MQ": CANARY})
        assert context_of(ran) == "a"
        assert passwords(replay) == [CANARY]
        assert CANARY not in ran.stdout + ran.stderr


def test_a_secret_that_is_not_there_is_told_with_its_place(desk: Desk) -> None:
    for place, problem in {
        "file:/nonexistent": "No such file or directory [no-secret]",
        "env:MQ": "there is no such variable [no-secret]",
        f"file:{desk.secret(CANARY, 0o644)}": "other users can open it [secret-not-private]",
    }.items():
        with dashboard(Replay(login=LOGIN)) as replay:
            desk.user(at(replay.url, "user: admin", f"secret: '{place}'"))
            ran = run(*SHOW)
        assert (ran.code, ran.stdout, replay.posted) == (2, "", [])
        error = ran.stderr.splitlines()[1]
        assert error == f"error: {desk.user_file}, line 3, contexts.a.secret: {place}: {problem}"


@every_case(
    ("flags", "env", "sent"),
    [
        ((), {}, {"of the context"}),
        ((), {"RMQLB_PASSWORD": "of the environment"}, {"of the environment"}),
        (("--user", "admin"), {}, {"of the context"}),
        (("--user", "other"), {}, set()),
        ((), {"RMQLB_USER": "other"}, set()),
    ],
)
def test_a_secret_belongs_to_its_account(
    flags: tuple[str, ...], env: dict[str, str], sent: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = Desk(tmp_path, monkeypatch)
    with dashboard(Replay(login=LOGIN)) as replay:
        desk.user(at(replay.url, "user: admin", f"secret: 'file:{desk.secret('of the context')}'"))
        ran = run(*SHOW, *flags, env=env)
    assert ran.code in (2, 5)
    assert set(passwords(replay)) == sent


def test_of_two_users_the_stronger_layers_logs_in_and_gets_its_own_secret_only(desk: Desk) -> None:
    """The one in a source's URL is of the source's layer."""
    with dashboard(Replay(login=LOGIN)) as replay:
        mine = replay.url.replace("http://", "http://admin@")
        desk.user(at(mine, f"secret: 'file:{desk.secret('of the context')}'"))
        for flags, env, who, layer in (
            ((), {}, "admin", "context"),
            (("--user", "other"), {}, "other", "flag"),
            ((), {"RMQLB_USER": "other"}, "other", "environment"),
            (("-s", mine), {"RMQLB_USER": "other"}, "admin", "flag"),
        ):
            found = settings(*flags, env=env)["user"]
            assert (found["value"], found["layer"]) == (who, layer)
            ran = run(*SHOW, *flags, env=env)
            sent = who == "admin" and not flags
            assert ("no password for " + who in ran.stderr) is not sent
            assert set(passwords(replay)) == {"of the context"}
    for args in (("config", "show"), SHOW):
        ran = run(*args, "-s", "http://me@127.0.0.1:1", "--user", "other")
        assert (ran.code, ran.stdout) == (2, "")
        assert ran.stderr == "error: --user: --source names another user [usage]\nhint: name one of them only\n"
    desk.user("context: a\ncontexts:\n  a: {source: 'http://me@127.0.0.1:1', user: other}\n")
    place = f"{desk.user_file}, line 3, contexts.a"
    assert run(*SHOW).stderr.startswith(f"error: {place}.user: {place}.source names another user [usage]\n")


def test_another_source_gets_none_of_the_contexts_credentials(desk: Desk) -> None:
    secret = desk.secret(CANARY)
    for flags, env in ((("-s", "{}"), {}), ((), {"RMQLB_SOURCE": "{}"})):
        with dashboard(Replay(login=LOGIN)) as replay:
            desk.user(at("http://127.0.0.1:1", "user: admin", f"secret: 'file:{secret}'"))
            given = [flag.format(replay.url) for flag in flags]
            ran = run(*SHOW, *given, env={name: value.format(replay.url) for name, value in env.items()})
        assert (ran.code, replay.posted) == (5, [])
        assert ran.stderr.startswith(f"error: {replay.url} asks for a login")


def test_commands_on_contexts_show_the_places_of_secrets_only(desk: Desk) -> None:
    path = desk.secret(CANARY)
    env = dict.fromkeys(("RMQLB_PASSWORD", "RMQLB_SECRET_KEY", "RMQLB_SECURITY_TOKEN", "MQ"), CANARY)
    desk.user(
        f"context: f\ncontexts:\n  f: {{source: 'http://127.0.0.1:1', user: me, secret: 'file:{path}'}}\n"
        "  e: {source: 'rocketmq://127.0.0.1:1', access-key: me, secret: 'env:MQ', source-retries: 0}\n"
    )
    lines = (
        "context list",
        "context show",
        "context show e",
        "context use f",
        "config show",
        "config show --context e",
    )
    for line in (*lines, f"context add x -s http://h --secret file:{path}", "context remove x"):
        for more in ((), ("--debug",), ("-o", "json")):
            ran = run(*line.split(), *more, *(["--replace"] if "add" in line else []), env=env)
            assert ran.code in (0, 2)
            shown = ran.stdout + ran.stderr
            encoded = base64.b64encode(CANARY.encode()).decode().rstrip("=")
            assert [each for each in (CANARY, quote(CANARY, ""), encoded) if each in shown] == []
