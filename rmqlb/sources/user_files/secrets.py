"""Secrets from a private file, the environment or a keyring; no message and no repr has one."""

import os
import stat
from collections.abc import Mapping

from rmqlb.errors import UsageError
from rmqlb.model.configuration import secret_place

_LONGEST = 10_000


def read_secret(text: str, where: str, environment: Mapping[str, str]) -> str:
    """The secret at its place (`secret_place`)."""
    kind, name = secret_place(text, where)
    if kind == "file":
        return secret_in_file(os.path.expanduser(name), f"{where}: {text}")
    if kind == "env":
        if not environment.get(name):
            raise UsageError(f"{where}: {text}: the variable is not set", hint=f"set {name}", code="no-secret")
        return environment[name]
    return _in_keyring(name, f"{where}: {text}")


def secret_in_file(path: str, what: str) -> str:
    try:
        with open(path, encoding="utf-8-sig") as file:
            _require_private(file.fileno(), path, what)
            line = file.readline(_LONGEST + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise UsageError(f"{what}: {reason}", code="no-secret") from None
    secret = line.rstrip("\r\n")
    if len(secret) > _LONGEST:
        raise UsageError(f"{what}: its first line is longer than {_LONGEST} characters", code="no-secret")
    if not secret:
        raise UsageError(f"{what}: its first line is empty", code="no-secret")
    return secret


def _require_private(descriptor: int, path: str, what: str) -> None:
    status = os.fstat(descriptor)
    if os.name == "posix" and stat.S_ISREG(status.st_mode) and status.st_mode & 0o077:
        raise UsageError(f"{what}: other users can read it", hint=f"chmod 600 {path}", code="secret-not-private")


def _in_keyring(name: str, what: str) -> str:
    service, _, user = name.rpartition("/")
    try:
        import keyring
    except ImportError:
        hint = "pip install 'rmqlb[keyring]'"
        raise UsageError(f"{what}: the package keyring is not installed", hint=hint, code="needs-extra") from None
    try:
        secret = keyring.get_password(service, user)
    except Exception as error:  # noqa: BLE001 - a keyring's backend may raise anything
        hint = "is the keyring unlocked? keyring diagnose shows which keyring is in use"
        problem = f"{what}: the keyring does not return the secret ({type(error).__name__})"
        raise UsageError(problem, hint=hint, code="no-secret") from None
    if not isinstance(secret, str) or not secret:
        hint = f"keyring set {service} {user}"
        raise UsageError(f"{what}: the keyring has no such entry", hint=hint, code="no-secret")
    return secret
