import base64
import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote

import pytest
import yaml

from rmqlb.cli.common.options import OutputOptions, SourceOptions
from rmqlb.cli.common.reading import access
from rmqlb.cli.common.terminal import Terminal
from rmqlb.cli.settings import user_file_path
from rmqlb.errors import UsageError
from rmqlb.model.configuration import Context, Written
from rmqlb.sources.source import Access
from tests.cli.run import EXAMPLE, ROOT, Desk, Ran, data_of, run, settings
from tests.support.mismatches import every_case, refusal
from tests.support.replay_dashboard import Replay, dashboard

FLAG, ENVIRONMENT, CONTEXT, USER, DEFAULT = "flag", "environment", "context", "user file", "default"


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    return Desk(tmp_path, monkeypatch)


# What each layer sets a key to; the layers that are absent cannot set it.
TABLE: dict[str, dict[str, Any]] = {
    "source-timeout": {FLAG: "1s", ENVIRONMENT: "2s", CONTEXT: "3s", USER: "5m", DEFAULT: "5s"},
    "source-retries": {FLAG: 11, ENVIRONMENT: 12, CONTEXT: 13, USER: 15, DEFAULT: 2},
    "max-size": {FLAG: "1MB", ENVIRONMENT: "2MB", USER: "3MB", DEFAULT: "64MB"},
    "context": {FLAG: "c1", ENVIRONMENT: "c2", USER: "c4", DEFAULT: None},
    "source": {FLAG: "/f", ENVIRONMENT: "/e", CONTEXT: "/c", DEFAULT: None},
    "ca-file": {FLAG: "/f", ENVIRONMENT: "/e", CONTEXT: "/c", DEFAULT: None},
    "map-address": {FLAG: ["f:1=g:1"], ENVIRONMENT: ["e:1=g:1"], CONTEXT: ["c:1=g:1"], DEFAULT: None},
    "password-file": {FLAG: "/f", ENVIRONMENT: "/e", DEFAULT: None},
}
CELLS = [(key, layer) for key, layers in TABLE.items() for layer in layers]
CONTEXTS = "".join(f"  {name}: {{source: /c}}\n" for name in ("c1", "c2", "c3", "c4"))


def variable(key: str) -> str:
    return "RMQLB_" + key.upper().replace("-", "_")


def first(value: Any) -> str:
    return str(value[0] if isinstance(value, list) else value)


@every_case(("key", "layer"), CELLS)
def test_the_first_with_a_value_sets_it(key: str, layer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk(tmp_path, monkeypatch)
    order = list(TABLE[key])
    layers = {other: TABLE[key][other] for other in order[order.index(layer) :]}
    context = {"source": "/c"} | ({key: layers[CONTEXT]} if CONTEXT in layers else {})
    user = f"{key}: {json.dumps(layers[USER])}\n" if USER in layers else ""
    user += "context: mine\n" if CONTEXT in layers else ""
    desk.user(f"{user}contexts:\n  mine: {json.dumps(context)}\n{CONTEXTS}")
    flags = (f"--{key}", first(layers[FLAG])) if FLAG in layers else ()
    environment = {variable(key): first(layers[ENVIRONMENT])} if ENVIRONMENT in layers else {}
    found = settings(*flags, env=environment)[key]
    origins = {
        FLAG: f"--{key}",
        ENVIRONMENT: variable(key),
        CONTEXT: f"{desk.user_file}, line {4 if USER in TABLE[key] else 3}, contexts.mine.{key}",
        USER: f"{desk.user_file}, line 1, {key}",
        DEFAULT: None,
    }
    assert (found["layer"], found["value"], found["origin"]) == (layer, TABLE[key][layer], origins[layer])


def test_without_a_home_commands_work_and_have_no_user_file(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOME")
    monkeypatch.delenv("XDG_CONFIG_HOME")
    assert run("show-route", "-s", EXAMPLE).code == 0
    ran = run("config", "show", "-o", "json")
    assert json.loads(ran.stdout)["data"]["userFile"] is None
    for args in (("list",), ("add", "x", "-s", "http://h"), ("use", "x"), ("show",), ("remove", "x")):
        ran = run("context", *args)
        assert (ran.code, ran.stdout) == (2, "")
        assert ran.stderr.startswith("error: no folder for the configuration: neither XDG_CONFIG_HOME nor HOME")
    assert desk.home.exists()


@every_case(("xdg", "path"), [
    ("/x", "/x/rmqlb/config.yaml"),
    ("", "/h/.config/rmqlb/config.yaml"),
    ("relative", "/h/.config/rmqlb/config.yaml"),
])  # fmt: skip
def test_the_users_file_is_where_xdg_says(xdg: str, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", xdg)
    monkeypatch.setenv("HOME", "/h")
    assert user_file_path() == path


ACTIVE = Context("a", {"secret": Written("env:MQ", "config.yaml, line 4, contexts.a.secret", 4)})


def opened(context: Context | None) -> Access:
    return access(SourceOptions(active_context=context), Terminal("show-route", OutputOptions()))


def secret_key(context: Context | None) -> str:
    found = opened(context).secret_key
    assert found is not None
    return found()


def test_secrets_come_from_the_environment_and_then_from_the_context(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MQ", "of the context")
    for empty in ("RMQLB_SECRET_KEY", "RMQLB_SECURITY_TOKEN"):
        monkeypatch.setenv(empty, "")
    assert (secret_key(ACTIVE), opened(None).security_token) == ("of the context", None)
    assert "no secret key" in refusal(UsageError, secret_key, None).message
    monkeypatch.setenv("RMQLB_SECRET_KEY", "of the environment")
    monkeypatch.setenv("RMQLB_SECURITY_TOKEN", "token")
    assert secret_key(ACTIVE) == secret_key(None) == "of the environment"
    assert opened(None).security_token == "token"


NAMED = "rocketmq://a:9876,b:9876"
SERVERS = {"NAMESRV_ADDR": "a:9876;b:9876;"}


def test_name_servers_replace_the_active_context_and_say_so(desk: Desk) -> None:
    desk.user("context: mine\ncontexts:\n  mine: {source: /c, user: me}\n")
    ran = run("config", "show", env=SERVERS)
    assert "context mine is not used: NAMESRV_ADDR names the source" in ran.stderr
    assert settings(env=SERVERS)["user"]["value"] is None
    (desk.project / "h:1").write_text("")
    assert settings("-s", "h:1")["source"]["value"] == "h:1"  # a file goes before a host
    twice = run("show-route", "-s", EXAMPLE, "-n", "a:9876")
    assert (twice.code, twice.stderr.splitlines()[0]) == (
        2, "error: --namesrv-addr and --source both name the source [given-twice]",
    )  # fmt: skip
    assert run("context", "add", "new", "-n", "a:9876;b:9876").code == 0
    assert settings("--context", "new")["source"]["value"] == NAMED


CANARY = "c4nary/secret+4711"
LOGIN = ("admin", CANARY)
SHOW = ("show-route", "--topic", "Skewed")


def typed(line: str, env: Mapping[str, str] | None = None) -> Ran:
    return run(*shlex.split(line), env=env)


def written(desk: Desk) -> object:
    return yaml.safe_load(desk.user_file.read_text())


def context_of(ran: Ran) -> object:
    assert ran.code == 0, ran.stderr
    return json.loads(ran.stdout)["source"]["context"]


def test_a_context_is_added_used_shown_and_removed(desk: Desk) -> None:
    added = typed("context add prod -s rocketmq://a:9876,b:9876 --access-key me --secret env:MQ")
    assert added.stdout.splitlines()[0] == f"context prod is in {desk.user_file}"
    assert typed(f"context add dump -s {EXAMPLE} --source-timeout 9s --source-retries 1 --use").code == 0
    prod = {"source": "rocketmq://a:9876,b:9876", "access-key": "me", "secret": "env:MQ"}
    dump = {"source": EXAMPLE, "source-timeout": "9s", "source-retries": 1}
    assert written(desk) == {"context": "dump", "contexts": {"prod": prod, "dump": dump}}
    listed = json.loads(typed("context list -o json").stdout)
    assert (listed["schema"], listed["data"]["active"]) == ("rmqlb/contexts", "dump")
    assert [(item["name"], item["active"]) for item in listed["data"]["contexts"]] == [("prod", False), ("dump", True)]
    assert typed("context use prod").stdout.splitlines()[0] == f"context prod is active in {desk.user_file}"
    shown = json.loads(typed("context show -o json").stdout)["data"]["context"]
    assert (shown["name"], shown["active"], shown["secret"], shown["user"]) == ("prod", True, "env:MQ", None)
    assert typed("context show dump").stdout.startswith(f"context dump: {EXAMPLE}\n  {desk.user_file}, line ")
    assert typed("context remove prod").code == 0
    assert written(desk) == {"contexts": {"dump": dump}}
    assert typed("context use dump").code == typed("context use --none").code == 0
    assert written(desk) == {"contexts": {"dump": dump}}


def test_paths_mean_the_same_from_every_folder(desk: Desk) -> None:
    (desk.project / "dump.json").write_text("{}")
    typed("context add a -s dump.json --ca-file ca.pem --client-cert '~/cert.pem' --secret file:pw")
    typed("context add b -s http://h --secret 'file:~/pw'")
    paths = {"source": "dump.json", "ca-file": "ca.pem"}
    here = {key: f"{desk.project}/{name}" for key, name in paths.items()}
    a = {**here, "secret": f"file:{desk.project}/pw", "client-cert": f"{desk.home}/cert.pem"}
    assert written(desk) == {"contexts": {"a": a, "b": {"source": "http://h", "secret": "file:~/pw"}}}


def test_a_context_is_written_from_the_line_alone_and_again_only_with_replace(desk: Desk) -> None:
    env = {"RMQLB_SOURCE": "http://other", "RMQLB_USER": "me", "RMQLB_SOURCE_TIMEOUT": "9s", "RMQLB_CONTEXT": "nowhere"}
    assert typed("context add a", env).stderr.startswith("error: the context needs a source")
    unprintable = typed("context add a -s http://h --user a\x1b[31m").stderr
    assert unprintable.startswith("error: --user: it has a character that cannot be printed")
    desk.user("contexts:\n  b: {source: http://i, user: me}\n")
    assert typed("context add a -s http://h", env).code == typed("context add b -s http://j --overwrite").code == 0
    assert written(desk) == {"contexts": {"b": {"source": "http://j"}, "a": {"source": "http://h"}}}


TWO = f"context: here\ncontexts:\n  here: {{source: {EXAMPLE}}}\n  other: {{source: {EXAMPLE}}}\n"


@every_case("chosen", ["nothing", "flag", "environment", "user file"])
@every_case("source", ["flag", "environment"])
def test_a_source_replaces_contexts(chosen: str, source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


@every_case("before", ["http://me:", "HTTPS://me:", " http://me:", "http:me:", "rocketmq://", "ftp://me:"])
def test_a_source_of_the_line_that_holds_a_password_is_nowhere_shown_whole(before: str) -> None:
    for secret in (CANARY, quote(CANARY, "")):
        source = f"{before}{secret}@127.0.0.1:1"
        for args in (("config", "show"), (*SHOW, "--debug"), ("context", "add", "a")):
            given = run(*args, "-s", source)
            assert secret not in given.stdout + given.stderr
        assert settings(env={"RMQLB_SOURCE": source})["source"]["value"] == f"{before}***@127.0.0.1:1"
    assert settings("-s", f"http://h/?token={CANARY}")["source"]["value"] == "http://h/?***"


def passwords(replay: Replay) -> set[str]:
    bodies = [json.loads(body) if body.startswith(b"{") else parse_qs(body.decode()) for body in replay.posted]
    return {body["password"] if isinstance(body["password"], str) else body["password"][0] for body in bodies}


def at(url: str, *more: str) -> str:
    return f"context: a\ncontexts:\n  a: {{source: '{url}', {', '.join(more)}}}\n"


def login(
    desk: Desk, *more: str, args: tuple[str, ...] = (), env: Mapping[str, str] | None = None, url: str = "{}"
) -> tuple[Ran, set[str]]:
    """Show a route of a Dashboard that needs a login, `{}` being its URL; the outcome and the passwords sent."""
    with dashboard(Replay(login=LOGIN)) as replay:
        desk.user(at(url.format(replay.url), *more))
        given = {name: value.format(replay.url) for name, value in (env or {}).items()}
        ran = run(*SHOW, "-o", "json", *(each.format(replay.url) for each in args), env=given)
    return ran, passwords(replay)


def test_the_secret_comes_from_where_the_context_says(desk: Desk) -> None:
    for place in (f"file:{desk.secret(CANARY)}", "env:MQ"):
        ran, sent = login(desk, "user: admin", f"secret: '{place}'", env={"MQ": CANARY})
        assert (context_of(ran), sent, CANARY in ran.stdout + ran.stderr) == ("a", {CANARY}, False)


def test_a_secret_that_is_not_there_is_reported_with_its_place(desk: Desk) -> None:
    for place, problem, code in (
        ("file:/nonexistent", "No such file or directory", "no-secret"),
        ("env:MQ", "the variable is not set", "no-secret"),
        (f"file:{desk.secret(CANARY, 0o644)}", "other users can read it", "secret-not-private"),
    ):
        ran, sent = login(desk, "user: admin", f"secret: '{place}'")
        error = json.loads(ran.stderr)["error"]
        assert (ran.code, ran.stdout, sent, error["code"]) == (2, "", set(), code)
        assert error["message"] == f"{desk.user_file}, line 3, contexts.a.secret: {place}: {problem}"


MINE, OURS = "of the context", "of the environment"


@every_case(("args", "env", "sent"), [
    ((), {}, {MINE}),
    ((), {"RMQLB_PASSWORD": OURS}, {OURS}),
    (("--user", "admin"), {}, {MINE}),
    (("--user", "other"), {}, set()),
    ((), {"RMQLB_USER": "other"}, set()),
    (("-s", "{}"), {}, set()),
    ((), {"RMQLB_SOURCE": "{}"}, set()),
])  # fmt: skip
def test_a_secret_belongs_to_its_account_and_source(
    args: tuple[str, ...], env: dict[str, str], sent: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = Desk(tmp_path, monkeypatch)
    url = "http://127.0.0.1:1" if "{}" in (*args, *env.values()) else "{}"
    ran, found = login(desk, "user: admin", f"secret: 'file:{desk.secret(MINE)}'", args=args, env=env, url=url)
    assert (ran.code in (2, 5), found) == (True, sent)
    assert url == "{}" or "needs a login" in ran.stderr


def test_of_two_users_the_stronger_layers_logs_in_and_gets_its_own_secret_only(desk: Desk) -> None:
    """The one in a source's URL is of the source's layer."""
    with dashboard(Replay(login=LOGIN)) as replay:
        mine = replay.url.replace("http://", "http://admin@")
        desk.user(at(mine, f"secret: 'file:{desk.secret(MINE)}'"))
        for flags, env, who, layer in (
            ((), {}, "admin", "context"),
            (("--user", "other"), {}, "other", "flag"),
            ((), {"RMQLB_USER": "other"}, "other", "environment"),
            (("-s", mine), {"RMQLB_USER": "other"}, "admin", "flag"),
        ):
            found = settings(*flags, env=env)["user"]
            assert (found["value"], found["layer"]) == (who, layer)
            sent = who == "admin" and not flags
            assert ("no password for " + who in run(*SHOW, *flags, env=env).stderr) is not sent
        assert all(MINE in one.decode() or quote(MINE) in one.decode() or b"context" in one for one in replay.posted)


def test_commands_on_contexts_show_the_places_of_secrets_only(desk: Desk) -> None:
    path = desk.secret(CANARY)
    env = dict.fromkeys(("RMQLB_PASSWORD", "RMQLB_SECRET_KEY", "RMQLB_SECURITY_TOKEN", "MQ"), CANARY)
    desk.user(
        f"context: f\ncontexts:\n  f: {{source: 'http://127.0.0.1:1', user: me, secret: 'file:{path}'}}\n"
        "  e: {source: 'rocketmq://127.0.0.1:1', access-key: me, secret: 'env:MQ', source-retries: 0}\n"
    )
    lines = (
        "context list", "context show", "context show e", "context use f", "config show", "config show --context e",
    )  # fmt: skip
    encoded = base64.b64encode(CANARY.encode()).decode().rstrip("=")
    for line in (*lines, f"context add x -s http://h --secret file:{path} --overwrite", "context remove x"):
        for more in ("", " --debug", " -o json"):
            ran = typed(line + more, env)
            assert ran.code in (0, 2, 4)
            assert [each for each in (CANARY, quote(CANARY, ""), encoded) if each in ran.stdout + ran.stderr] == []


LATER = str(ROOT / "examples" / "cluster-later.json")


def test_a_file_goes_before_a_context_as_a_side_of_diff(desk: Desk) -> None:
    desk.user(f"contexts: {{now: {{source: {LATER}}}}}\n")
    (desk.project / "now").write_bytes(Path(EXAMPLE).read_bytes())
    assert data_of("diff", EXAMPLE, "now")["summary"]["groupsChanged"] == 0


def test_a_side_of_diff_logs_in_with_the_secret_of_its_context(desk: Desk) -> None:
    with dashboard(Replay(login=LOGIN)) as replay:
        desk.user(at(replay.url, "user: admin", f"secret: 'file:{desk.secret('of the context')}'"))
        ran = run("diff", EXAMPLE, "a", env={"RMQLB_PASSWORD": ""})
    assert ran.code in (0, 5)
    assert set(passwords(replay)) == {"of the context"}
