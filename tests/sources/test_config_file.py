"""Configuration files that are wrong: one line each, with file, line and key, and no value repeated."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rmqlb.errors import UsageError
from rmqlb.model.configuration import ConfigFile
from rmqlb.sources.user_files.config_file import read_user_file

CANARY = "c4nary-secret"
CTX = "contexts:\n  prod:\n    source: http://h\n"
NO_SECRET = "a configuration never holds a secret; a context's secret is: file:PATH, env:NAME or keyring:SERVICE/USER"


def file(tmp_path: Path, text: str | bytes, mode: int = 0o600) -> str:
    path = tmp_path / "config.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    path.chmod(mode)
    return str(path)


def plain(config: ConfigFile) -> dict[str, object]:
    values = {key: written.value for key, written in config.values.items()}
    contexts = {
        name: {key: written.value for key, written in context.values.items()}
        for name, context in config.contexts.items()
    }
    return {**values, "contexts": contexts}


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
    config = read_user_file(file(tmp_path, text))
    assert plain(config) == {
        "context": "prod",
        "output": "json",
        "color": "never",
        "source-timeout": "5",
        "source-retries": 0,
        "max-size": "1GB",
        "contexts": {
            "prod": {
                "source": "rocketmqs://a:9876,b:9876",
                "access-key": "reader",
                "secret": "env:MQ_SECRET",
                "ca-file": "/ca.pem",
                "client-cert": "~/cert.pem",
                "client-key": "~/key.pem",
                "tls-name": "mq",
                "map-address": ("10.*:*=gw:*",),
                "source-timeout": "800ms",
                "source-retries": 5,
            },
            "staging": {"source": "https://me@h:8082/ctx", "user": "me"},
        },
    }
    assert str(config.contexts["prod"].values["secret"].place) == f"{config.path}, line 11, contexts.prod.secret"
    assert config.contexts["staging"].place.line == 19
    assert config.values["max-size"].place.line == 6


@pytest.mark.parametrize("text", ["", "\n", "# nothing\n", "{}\n"])
def test_an_empty_file_says_nothing(tmp_path: Path, text: str) -> None:
    assert plain(read_user_file(file(tmp_path, text))) == {"contexts": {}}


def test_a_file_that_is_not_there_says_nothing(tmp_path: Path) -> None:
    assert read_user_file(str(tmp_path / "none.yaml")) == ConfigFile()


WRONG: dict[str, tuple[str | bytes, str, str | None]] = {
    "a top key": ("outptu: json", ", line 1, outptu: there is no such key", "did you mean output?"),
    "another spelling": ("max_size: 1MB", ", line 1, max_size: there is no such key", "did you mean max-size?"),
    "a context's key": (
        CTX + "    source-tiemout: 5s",
        ", line 4, contexts.prod.source-tiemout: there is no such key",
        "did you mean source-timeout or source-retries or source?",
    ),
    "a setting in a context": (
        CTX + "    max-size: 5GB",
        ", line 4, contexts.prod.max-size: there is no such key",
        "there are the keys access-key, ca-file, client-cert, client-key, map-address, proxy, secret, source, …",
    ),
    "a password": (
        CTX + f"    password: {CANARY}",
        ", line 4, contexts.prod.password: there is no such key",
        NO_SECRET,
    ),
    "a secret key": (f"secret_key: {CANARY}", ", line 1, secret_key: there is no such key", NO_SECRET),
    "a key that is no text": ("1: x", ", line 1, 1: there is no such key", None),
    "a null as key": ("output: json\n~: x", ", line 1, None: there is no such key", None),
    "a number for a text": (
        CTX + "    user: 4711",
        ", line 4, contexts.prod.user: expected a text, not a number",
        "write it in quotes",
    ),
    "a truth for a text": (
        "output: true",
        ", line 1, output: expected a text, not true or false",
        "write it in quotes",
    ),
    "a list for a text": ("output: [json]", ", line 1, output: expected a text, not a list", None),
    "nothing for a text": ("output:", ", line 1, output: expected a text, not nothing", None),
    "a truth for a colour": (
        "color: true",
        ", line 1, color: expected a text, not true or false",
        "write it in quotes",
    ),
    "a text for a count": (
        "source-retries: 'two'",
        ", line 1, source-retries: expected a whole number, not a text",
        None,
    ),
    "a truth for a count": (
        "source-retries: true",
        ", line 1, source-retries: expected a whole number, not true or false",
        None,
    ),
    "a fraction for a count": (
        "source-retries: 1.5",
        ", line 1, source-retries: expected a whole number, not a number",
        None,
    ),
    "a list for a duration": (
        "source-timeout: [5s]",
        ", line 1, source-timeout: expected a text or a number, not a list",
        None,
    ),
    "a truth for a duration": (
        "source-timeout: true",
        ", line 1, source-timeout: expected a text or a number, not true or false",
        None,
    ),
    "a text for a list": (
        CTX + "    map-address: a=b",
        ", line 4, contexts.prod.map-address: expected a list of texts, not a text",
        None,
    ),
    "a list of numbers": (
        CTX + "    map-address: [1]",
        ", line 4, contexts.prod.map-address: expected a list of texts, not a list",
        None,
    ),
    "a relative path": (
        CTX + "    ca-file: ca.pem",
        ", line 4, contexts.prod.ca-file: expected an absolute path, or one that begins with ~/",
        None,
    ),
    "an empty text": ("output: ' '", ", line 1, output: it is empty", None),
    "an escape": ('output: "a\\e[31m"', ", line 1, output: it has a character that cannot be printed", None),
    "contexts as a list": (
        "contexts: [prod]",
        ", line 1, contexts: expected a mapping of names to contexts, not a list",
        None,
    ),
    "a context as a text": (
        "contexts:\n  prod: http://h",
        ", line 2, contexts.prod: expected keys and values, not a text",
        "it needs a source at least",
    ),
    "a context without a source": (
        "contexts:\n  prod:\n    user: me",
        ", line 2, contexts.prod: it has no source",
        "source: rocketmq://HOST:9876, or a Dashboard's URL",
    ),
    "a context's name": (
        "contexts:\n  a b: {source: http://h}",
        ", line 2, contexts.a b: 'a b' cannot be the name of a context",
        "letters, digits, dots, dashes and underscores, 64 at most, a letter or a digit first",
    ),
    "a number as a context's name": (
        "contexts:\n  1: {source: http://h}\n",
        ", line 2, contexts.1: expected a text as the name, not a number",
        "write it in quotes",
    ),
    "no mapping": ("- a", ", line 1: expected keys and values, as in 'output: json'", None),
    "bad YAML": ("output: json\n  x: [", ", line 2, column 4: mapping values are not allowed in this context", None),
    "a key twice": ("output: json\noutput: yaml", ", line 2, column 1: the key 'output' stands twice", None),
    "an alias": ("output: &a json\ncontext: *a", ", line 2: YAML aliases are not read", None),
    "a tag": ("output: !!python/object:os.system x", ", line 1: YAML tags are not read", None),
    "deep": ("a: " + "[" * 300, ", line 1: nested deeper than 256", None),
    "no text": (b"\xff\xfe", ": it is not UTF-8 text", None),
    "too much": ("#" * 300_000, ": larger than 256 KB", None),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_told_with_file_line_and_key(tmp_path: Path, case: str) -> None:
    text, problem, hint = WRONG[case]
    path = file(tmp_path, text)
    with pytest.raises(UsageError) as raised:
        read_user_file(path)
    assert raised.value.message == path + problem
    assert raised.value.code == "config-invalid"
    if hint is not None:
        assert raised.value.hint == hint
    assert CANARY not in raised.value.message + (raised.value.hint or "")


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604])
def test_a_file_that_says_where_a_secret_is_is_the_users_alone(tmp_path: Path, mode: int) -> None:
    path = file(tmp_path, CTX + "    secret: env:X\n", mode)
    with pytest.raises(UsageError) as raised:
        read_user_file(path)
    assert raised.value.message == (
        f"{path}, line 4, contexts.prod.secret: it says where a secret is, and other users can open the file"
    )
    assert (raised.value.hint, raised.value.code) == (f"chmod 600 {path}", "config-not-private")
    assert plain(read_user_file(file(tmp_path, CTX, mode)))["contexts"] == {"prod": {"source": "http://h"}}


@pytest.mark.parametrize("mode", [0o666, 0o620, 0o602])
def test_a_file_that_others_can_change_is_refused(tmp_path: Path, mode: int) -> None:
    path = file(tmp_path, CTX, mode)
    with pytest.raises(UsageError, match=f"{path}: other users can change it"):
        read_user_file(path)


def test_what_is_no_file_is_not_waited_for(tmp_path: Path) -> None:
    pipe = tmp_path / "config.yaml"
    os.mkfifo(pipe, 0o600)
    with pytest.raises(UsageError, match=f"{pipe}: it is not a file"):
        read_user_file(str(pipe))
    with pytest.raises(UsageError, match=f"{tmp_path}: it is not a file"):
        read_user_file(str(tmp_path))
