import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from rmqlb.engine.allocate.rules import NAMES
from rmqlb.errors import DataError, UsageError
from rmqlb.model.configuration import ConfigFile, Context, Value, secret_place
from rmqlb.model.policy import LIMITS, Limit, Policy, Rule, Waiver
from rmqlb.sources.formats.yaml_text import read_yaml
from rmqlb.sources.user_files import policy_file
from rmqlb.sources.user_files.config_file import change_user_file, read_user_file, with_context, with_value
from rmqlb.sources.user_files.policy_file import parse_policy, read_policy
from rmqlb.sources.user_files.secrets import read_secret
from tests.support.mismatches import every_case, refusal

CTX = "contexts:\n  prod:\n    source: http://h\n"


def file(tmp_path: Path, text: str | bytes, mode: int = 0o600) -> str:
    path = tmp_path / "config.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    path.chmod(mode)
    return str(path)


def any_value(key: str, value: object, where: str) -> None:
    """A check that refuses no value."""


def plain(config: ConfigFile) -> dict[str, object]:
    def values(of: ConfigFile | Context) -> dict[str, object]:
        return {key: written.value for key, written in of.values.items()}

    return {**values(config), "contexts": {name: values(context) for name, context in config.contexts.items()}}


def test_every_key_is_read_with_its_line(tmp_path: Path) -> None:
    text = """\
context: prod
output: json
color: never
source-timeout: 5
source-retries: 0
max-size: 1GB
contexts:
  prod:
    source: rocketmqs://a:9876,b:9876
    access-key: reader
    secret: env:MQ_SECRET
    ca-file: /ca.pem
    client-cert: ~/cert.pem
    client-key: ~/key.pem
    tls-name: mq
    map-address: ['10.*:*=gw:*']
    source-timeout: 800ms
    source-retries: 5
  staging:
    source: https://me@h:8082/ctx
    user: me
"""
    config, written = read_user_file(file(tmp_path, text), any_value), yaml.safe_load(text)
    written["source-timeout"] = "5"
    written["contexts"]["prod"]["map-address"] = ("10.*:*=gw:*",)
    assert plain(config) == written
    assert config.contexts["prod"].values["secret"].origin == f"{config.path}, line 11, contexts.prod.secret"
    assert config.contexts["staging"].line == 19
    assert config.values["max-size"].line == 6


def test_a_file_that_is_empty_or_not_there_says_nothing_and_one_that_is_no_file_is_refused(tmp_path: Path) -> None:
    for text in ("", "\n", "# nothing\n", "{}\n"):
        assert plain(read_user_file(file(tmp_path, text), any_value)) == {"contexts": {}}
    assert read_user_file(str(tmp_path / "none.yaml"), any_value) == ConfigFile()
    os.mkfifo(tmp_path / "pipe", 0o600)
    path = file(tmp_path, b"\xff\xfe")
    for name, problem in (("pipe", "it is not a file"), ("", "Is a directory"), (path, "it is not UTF-8 text")):
        assert (
            f"{tmp_path / name}: {problem}"
            in refusal(UsageError, read_user_file, str(tmp_path / name), any_value).message
        )


@every_case("mode", [0o644, 0o640, 0o604, 0o666, 0o620, 0o602, 0o601, 0o610])
def test_a_file_is_the_users_alone_to_change_and_one_that_names_a_secret_to_read(tmp_path: Path, mode: int) -> None:
    path = file(tmp_path, CTX + "    secret: env:X\n", mode)
    raised = refusal(UsageError, read_user_file, path, any_value)
    assert (raised.hint, raised.code) == (f"chmod 600 {path}", "config-not-private")
    if mode & 0o022:
        assert raised.message == f"{path}: other users can change it"
        return
    place = f"{path}, line 4, contexts.prod.secret"
    assert raised.message == f"{place}: other users can read this file, which contains the location of a secret"
    assert plain(read_user_file(file(tmp_path, CTX, mode), any_value))["contexts"] == {"prod": {"source": "http://h"}}


PRINTABLE = st.text(st.characters(categories=["L", "N", "P", "S"]), min_size=1)


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def put(path: Path, name: str, source: str = "http://h") -> None:
    change_user_file(str(path), lambda config: with_context(config, name, {"source": source}), any_value)


def test_folder_and_file_are_the_users_alone(tmp_path: Path) -> None:
    path = tmp_path / "x" / "rmqlb" / "config.yaml"
    old = os.umask(0)
    try:
        put(path, "prod")
    finally:
        os.umask(old)
    assert (mode(path.parent), mode(path)) == (0o700, 0o600)
    path.parent.chmod(0o755)
    path.chmod(0o644)
    put(path, "staging")
    assert (mode(path.parent), mode(path)) == (0o700, 0o600)
    assert list(read_user_file(str(path), any_value).contexts) == ["prod", "staging"]
    assert os.listdir(path.parent) == ["config.yaml"]


@given(user=PRINTABLE, tls_name=PRINTABLE, addresses=st.lists(PRINTABLE, min_size=1), retries=st.integers(0, 20))
def test_what_is_written_is_what_is_read(
    tmp_path_factory: pytest.TempPathFactory, user: str, tls_name: str, addresses: list[str], retries: int
) -> None:
    path = str(tmp_path_factory.getbasetemp() / "written" / "config.yaml")
    values: dict[str, Value] = {
        "source": "http://h", "user": user, "tls-name": tls_name, "map-address": tuple(addresses),
        "source-timeout": "010", "source-retries": retries,
    }  # fmt: skip
    change_user_file(path, lambda _: with_value(with_context(ConfigFile(), "no", values), "context", "no"), any_value)
    read = read_user_file(path, any_value)
    assert {key: written.value for key, written in read.contexts["no"].values.items()} == values
    assert read.values["context"].value == "no"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    put(tmp_path / "rmqlb" / "config.yaml", "prod")
    return tmp_path / "rmqlb" / "config.yaml"


def test_a_symbolic_link_stays_one(tmp_path: Path) -> None:
    target, path = tmp_path / "dotfiles" / "rmqlb.yaml", tmp_path / "rmqlb" / "config.yaml"
    target.parent.mkdir(mode=0o755)
    target.write_text("output: json\n")
    target.chmod(0o600)
    path.parent.mkdir()
    path.symlink_to(target)
    put(path, "prod")
    assert (path.is_symlink(), mode(target.parent)) == (True, 0o755)
    assert read_user_file(str(target), any_value).values["output"].value == "json"


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_failed_write_leaves_the_old_file_alone(path: Path, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    before = path.read_bytes()

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, step, fail)
        assert f"cannot write {path}: No space left on device" in refusal(UsageError, put, path, "staging").message
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == ["config.yaml"]
    path.write_text("outptu: json\n")  # a wrong file is not written over
    assert "line 1: outptu: there is no key" in refusal(UsageError, put, path, "prod").message
    assert path.read_text() == "outptu: json\n"


def test_no_change_is_lost_when_many_are_made_at_once(path: Path) -> None:
    names = [f"c{number}" for number in range(8)]
    with ThreadPoolExecutor(len(names)) as pool:  # a lock is of an open folder, so threads contend as processes do
        list(pool.map(lambda name: put(path, name), names))
    assert sorted(read_user_file(str(path), any_value).contexts) == [*names, "prod"]
    assert os.listdir(path.parent) == ["config.yaml"]


CANARY = "c4nary-secret"
WHERE = "config.yaml, line 4, contexts.prod.secret"
KEYRING = f"""
class Locked(Exception): pass
def get_password(service, user):
    if service == "locked": raise Locked("{CANARY}")
    return {{("rmqlb", "prod"): "{CANARY}", ("https://h/x", "me"): "{CANARY}", ("rmqlb", "empty"): ""}}.get((service, user))
"""


def problem(text: str, environment: dict[str, str] | None = None) -> tuple[str, str | None]:
    raised = refusal(UsageError, lambda: read_secret(text, WHERE, environment or {}))
    assert CANARY not in raised.message + (raised.hint or "")
    return raised.message.removeprefix(f"{WHERE}: "), raised.hint


def test_what_is_no_place_is_refused_without_being_shown() -> None:
    places = (("file", "/run/secret"), ("file", "a:b"), ("env", "MQ_SECRET"), ("keyring", "rmqlb/prod"))
    for kind, name in (*places, ("keyring", "https://h/x/me")):
        assert secret_place(f"{kind}:{name}", WHERE) == (kind, name)
    hint = "write where the secret is: file:PATH, env:NAME or keyring:SERVICE/USER"
    for text in (CANARY, f"pass:{CANARY}", "file:", "env:", f"env:{CANARY}", "keyring:rmqlb", "keyring:/me", "keyring:a/", ""):  # fmt: skip
        assert problem(text) == ("not a location of a secret", hint)


def test_a_files_first_line_is_the_secret_and_an_editors_mark_is_no_part_of_it(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    path.touch(0o600)
    for text in (f"{CANARY}\r\nmore", f"\ufeff{CANARY}", f"\ufeff{CANARY}\r\n"):
        path.write_bytes(text.encode())
        assert read_secret(f"file:{path}", WHERE, {}) == CANARY
    for text in ("", "\n", f"\r\n{CANARY}\n"):
        path.write_bytes(text.encode())
        assert problem(f"file:{path}") == (f"file:{path}: its first line is empty", None)
    path.chmod(0o640)
    assert problem(f"file:{path}") == (f"file:{path}: other users can read it", f"chmod 600 {path}")
    path.chmod(0o600)
    path.write_bytes(b"\xff")
    assert problem(f"file:{path}") == (f"file:{path}: it is not UTF-8 text", None)
    assert problem(f"file:{tmp_path}/none") == (f"file:{tmp_path}/none: No such file or directory", None)
    assert problem(f"file:{tmp_path}") == (f"file:{tmp_path}: Is a directory", None)


def test_a_keyring(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "keyring.py").write_text(KEYRING)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "keyring", raising=False)
    assert read_secret("keyring:rmqlb/prod", WHERE, {}) == CANARY
    assert read_secret("keyring:https://h/x/me", WHERE, {}) == CANARY
    missing = ("keyring:rmqlb/other: the keyring has no such entry", "keyring set rmqlb other")
    assert problem("keyring:rmqlb/other") == missing
    assert problem("keyring:rmqlb/empty")[0] == "keyring:rmqlb/empty: the keyring has no such entry"
    message, hint = problem("keyring:locked/me")
    assert message == "keyring:locked/me: the keyring does not return the secret (Locked)"
    assert hint == "is the keyring unlocked? keyring diagnose shows which keyring is in use"
    del sys.modules["keyring"]


ROOT = Path(__file__).parent.parent.parent
FULL = """\
rules:
  - name: even
    groups: ["order-*", bill]
    exclude: order-test
    limits:
      minConsumers: 2
      imbalance: 1.5
      idle: 0
      movedOnConsumerLoss: 33.3%
      maxDrainTime: 1m30s
      strategies: [avg, OurOwnStrategy]
    severity: warning
    assume: avg_by_circle
    skipOffline: true
  - {name: topics, topics: "*", limits: {minBrokers: 2}}
waivers:
  - {rule: even, group: "order-*", limit: idle, reason: until it is corrected, until: 2026-12-31}
  - {topic: T, reason: a test topic, until: "2027-01-01"}
"""
OF_EVEN = (
    *(Limit("minConsumers", 2), Limit("imbalance", 1.5), Limit("idle", 0), Limit("movedOnConsumerLoss", 0.333)),
    *(Limit("maxDrainTime", 90_000), Limit("strategies", ("AVG", "OurOwnStrategy"))),
)
EVEN = Rule(
    "even", "group", ("order-*", "bill"), OF_EVEN, ("order-test",), "warning", "AVG_BY_CIRCLE", skip_offline=True
)
READ = (
    (EVEN, Rule("topics", "topic", ("*",), (Limit("minBrokers", 2),))),
    (
        Waiver("until it is corrected", date(2026, 12, 31), "even", "order-*", None, "idle"),
        Waiver("a test topic", date(2027, 1, 1), topic="T"),
    ),
)


def policy_of(text: str | bytes, folder: Path) -> Policy:
    path = folder / "p.yaml"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return read_policy(str(path), NAMES)


def test_every_key_is_read_of_yaml_and_json_and_the_example_is_a_policy(tmp_path: Path) -> None:
    for text in (FULL, json.dumps(read_yaml(FULL, "p"), indent="\t")):
        policy = policy_of(text, tmp_path)
        assert (policy.rules, policy.waivers, policy.where) == (*READ, str(tmp_path / "p.yaml"))
    policy = read_policy(str(ROOT / "examples" / "policy.yaml"), NAMES)
    assert ({rule.about for rule in policy.rules}, bool(policy.waivers)) == ({"group", "topic"}, True)


def test_a_file_that_is_too_large_or_no_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="larger than 1048576 bytes") as caught:
        policy_of(b"#" * (policy_file.MAX_BYTES + 1), tmp_path)
    assert caught.value.hint == "the limit is 1 MB"
    assert "line 2 is not UTF-8 text" in refusal(UsageError, policy_of, b"rules:\n\xff", tmp_path).message
    assert "--policy none.yaml: No such file" in refusal(DataError, read_policy, "none.yaml", NAMES).message


KEYS = ("rules", "name", "groups", "topics", "limits", "severity", "assume", "skipOffline", "rule", "until", *LIMITS)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    SCALARS | st.text(max_size=5) | st.sampled_from(["*", "50%", "AVG", "2026-12-31", "r"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
)


@given(VALUES, st.sampled_from([("rules", 0, "limits"), ("rules", 0, "groups"), ("waivers", 0, "until"), ("rules", 0)]))
def test_one_odd_value_in_a_good_policy_is_read_or_refused_with_its_line(
    value: object, path: tuple[str | int, ...]
) -> None:
    policy = json.loads(json.dumps(read_yaml(FULL, "p")))
    place = policy
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    try:
        assert len(parse_policy(json.dumps(policy), "p", NAMES).rules) == 2
    except UsageError as error:
        assert error.message.startswith("p, line 1")
