from __future__ import annotations

import sys
from pathlib import Path

import pytest

from rmqlb.errors import UsageError
from rmqlb.model.configuration import SecretPlace, secret_place
from rmqlb.sources.user_files.secrets import read_secret

CANARY = "c4nary-secret"
WHERE = "config.yaml, line 4, contexts.prod.secret"
KEYRING = f"""
class Locked(Exception): pass
def get_password(service, user):
    if service == "locked": raise Locked("{CANARY}")
    return {{("rmqlb", "prod"): "{CANARY}", ("https://h/x", "me"): "{CANARY}", ("rmqlb", "empty"): ""}}.get((service, user))
"""


def problem(text: str, environment: dict[str, str] | None = None) -> tuple[str, str | None]:
    with pytest.raises(UsageError) as raised:
        read_secret(secret_place(text, WHERE), WHERE, environment or {})
    assert CANARY not in raised.value.message + (raised.value.hint or "")
    return raised.value.message.removeprefix(f"{WHERE}: "), raised.value.hint


def test_what_is_no_place_is_refused_without_being_shown() -> None:
    places = (("file", "/run/secret"), ("file", "a:b"), ("env", "MQ_SECRET"), ("keyring", "rmqlb/prod"))
    for kind, name in (*places, ("keyring", "https://h/x/me")):
        place = secret_place(f"{kind}:{name}", WHERE)
        assert (place.kind, place.name, str(place)) == (kind, name, f"{kind}:{name}")
    hint = "say where it is: file:PATH, env:NAME or keyring:SERVICE/USER"
    for text in (CANARY, f"pass:{CANARY}", "file:", "env:", f"env:{CANARY}", "keyring:rmqlb", "keyring:/me", "keyring:a/", ""):  # fmt: skip
        assert problem(text) == ("that is not a place of a secret", hint)


def test_a_files_first_line_is_the_secret_and_an_editors_mark_is_no_part_of_it(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    path.touch(0o600)
    for text in (f"{CANARY}\r\nmore", f"\ufeff{CANARY}", f"\ufeff{CANARY}\r\n"):
        path.write_bytes(text.encode())
        assert read_secret(SecretPlace("file", str(path)), WHERE, {}) == CANARY
    for text in ("", "\n", f"\r\n{CANARY}\n"):
        path.write_bytes(text.encode())
        assert problem(f"file:{path}") == (f"file:{path}: its first line is empty", None)
    path.chmod(0o640)
    assert problem(f"file:{path}") == (f"file:{path}: other users can open it", f"chmod 600 {path}")
    path.chmod(0o600)
    path.write_bytes(b"\xff")
    assert problem(f"file:{path}") == (f"file:{path}: it is not UTF-8 text", None)
    assert problem(f"file:{tmp_path}/none") == (f"file:{tmp_path}/none: No such file or directory", None)
    assert problem(f"file:{tmp_path}") == (f"file:{tmp_path}: Is a directory", None)


def test_a_keyring(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "keyring.py").write_text(KEYRING)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "keyring", raising=False)
    assert read_secret(SecretPlace("keyring", "rmqlb/prod"), WHERE, {}) == CANARY
    assert read_secret(SecretPlace("keyring", "https://h/x/me"), WHERE, {}) == CANARY
    missing = ("keyring:rmqlb/other: the keyring has no such entry", "keyring set rmqlb other")
    assert problem("keyring:rmqlb/other") == missing
    assert problem("keyring:rmqlb/empty")[0] == "keyring:rmqlb/empty: the keyring has no such entry"
    message, hint = problem("keyring:locked/me")
    assert message == "keyring:locked/me: the keyring does not give it (Locked)"
    assert hint == "is the keyring unlocked? keyring diagnose tells which one is used"
    del sys.modules["keyring"]
