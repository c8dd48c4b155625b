import json
from pathlib import Path
from typing import Any

import pytest

from rmqlb.cli.common.options import OutputOptions, SourceOptions
from rmqlb.cli.common.reading import access
from rmqlb.cli.common.terminal import Terminal
from rmqlb.cli.settings import user_file_path
from rmqlb.errors import UsageError
from rmqlb.model.configuration import ActiveContext, Written
from rmqlb.sources.opening import Access
from tests.support.mismatches import every_case

from .run import EXAMPLE, Desk, run, settings

FLAG, ENVIRONMENT, CONTEXT, USER, DEFAULT = "flag", "environment", "context", "user file", "default"
SEND = ("simulate-send", "-s", EXAMPLE, "--topic", "Skewed", "--messages", "1")


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


def test_a_format_for_all_commands_is_not_for_one_that_lacks_it(desk: Desk) -> None:
    fetch = ("fetch-routes", "-s", EXAMPLE, "-q")
    written = run(*fetch).stdout
    assert written.startswith("{")
    assert run(*fetch, env={"RMQLB_OUTPUT": "table"}).stdout == written
    desk.user("output: yaml\n")
    assert run(*fetch, env={"RMQLB_OUTPUT": "table"}).stdout.startswith("schema: rmqlb/snapshot\n")
    assert run(*fetch, "-o", "table").code == 2


def test_a_setting_of_sources_is_no_option_of_a_command_that_has_one_of_the_name(desk: Desk) -> None:
    desk.user("source-timeout: 1m\nsource-retries: 9\n")
    scenario = json.loads(run(*SEND, "-o", "json").stdout)["data"]["scenario"]
    assert (scenario["timeoutMs"], scenario["retries"]) == (3000, 2)


def test_without_a_home_commands_work_and_have_no_user_file(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOME")
    monkeypatch.delenv("XDG_CONFIG_HOME")
    assert run("show-route", "-s", EXAMPLE).code == 0
    ran = run("config", "show", "-o", "json")
    assert json.loads(ran.stdout)["data"]["userFile"] is None
    for args in (("list",), ("add", "x", "-s", "http://h"), ("use", "x"), ("show",), ("remove", "x")):
        ran = run("context", *args)
        assert (ran.code, ran.stdout) == (2, "")
        assert ran.stderr.startswith("error: there is no place for a configuration: neither XDG_CONFIG_HOME nor HOME")
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


ACTIVE = ActiveContext("a", "rocketmq://h", Written("env:MQ", "config.yaml, line 4, contexts.a.secret", 4))


def opened(context: ActiveContext | None) -> Access:
    return access(SourceOptions(active_context=context), Terminal("show-route", OutputOptions()))


def secret_key(context: ActiveContext | None) -> str:
    found = opened(context).secret_key
    assert found is not None
    return found()


def test_secrets_come_from_the_environment_and_then_from_the_context(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MQ", "of the context")
    for empty in ("RMQLB_SECRET_KEY", "RMQLB_SECURITY_TOKEN"):
        monkeypatch.setenv(empty, "")
    assert (secret_key(ACTIVE), opened(None).security_token) == ("of the context", None)
    with pytest.raises(UsageError, match="no secret key"):
        secret_key(None)
    monkeypatch.setenv("RMQLB_SECRET_KEY", "of the environment")
    monkeypatch.setenv("RMQLB_SECURITY_TOKEN", "token")
    assert secret_key(ACTIVE) == secret_key(None) == "of the environment"
    assert opened(None).security_token == "token"


NAMED = "rocketmq://a:9876,b:9876"
HERE = {"RMQLB_SOURCE": "/e"}
SERVERS = {"NAMESRV_ADDR": "a:9876;b:9876;"}
NAMES: dict[str, tuple[tuple[str, ...], dict[str, str], str, str]] = {
    "-n": (("-n", "a:9876;b:9876"), HERE, NAMED, "--namesrv-addr"),
    "-n as a URL": (("-n", "rocketmqs://a"), SERVERS, "rocketmqs://a", "--namesrv-addr"),
    "-s HOST:PORT": (("-s", "a:9876, b:9876"), SERVERS, NAMED, "--source"),
    "-s HOST": (("-s", "127.0.0.1"), {}, "rocketmq://127.0.0.1", "--source"),
    "-s CONTEXT": (("-s", "mine"), SERVERS, "rocketmq://c:9876", "contexts.mine.source"),
    "-s FILE": (("-s", "h:1"), {}, "h:1", "--source"),
    "NAMESRV_ADDR": ((), SERVERS, NAMED, "NAMESRV_ADDR"),
    "RMQLB_SOURCE": ((), SERVERS | {"RMQLB_SOURCE": "c:9876"}, "rocketmq://c:9876", "RMQLB_SOURCE"),
    "--context": (("--context", "mine"), SERVERS, "rocketmq://c:9876", "contexts.mine.source"),
    "RMQLB_CONTEXT": ((), SERVERS | {"RMQLB_CONTEXT": "mine"}, "rocketmq://c:9876", "contexts.mine.source"),
}
"""How a source is named → the words, the environment, the source and what set it."""


@every_case("name", NAMES)
def test_name_servers_are_named_as_mqadmin_does(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words, environment, source, origin = NAMES[name]
    desk = Desk(tmp_path, monkeypatch)
    desk.user("context: other\ncontexts:\n  mine: {source: 'c:9876'}\n  other: {source: /o}\n")
    (desk.project / "h:1").write_text("")
    found = settings(*words, env=environment)["source"]
    assert (found["value"], found["origin"].split()[-1]) == (source, origin)


def test_name_servers_replace_the_active_context_and_say_so(desk: Desk) -> None:
    desk.user("context: mine\ncontexts:\n  mine: {source: /c, user: me}\n")
    ran = run("config", "show", env=SERVERS)
    assert "context mine is not used: NAMESRV_ADDR names the source" in ran.stderr
    assert settings(env=SERVERS)["user"]["value"] is None
    twice = run("show-route", "-s", EXAMPLE, "-n", "a:9876")
    assert (twice.code, twice.stderr.splitlines()[0]) == (
        2, "error: --namesrv-addr and --source both name the source [given-twice]",
    )  # fmt: skip
    assert run("context", "add", "new", "-n", "a:9876;b:9876").code == 0
    assert settings("--context", "new")["source"]["value"] == NAMED
