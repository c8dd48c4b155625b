"""Passwords and secret keys, asked for when they are needed: a file, the environment, the context, a prompt."""

from __future__ import annotations

import os
import sys

from rmqlb.cli.common.options import SourceOptions
from rmqlb.errors import UsageError
from rmqlb.model.configuration import secret_place
from rmqlb.views.formats.text import visible


def password(user: str, options: SourceOptions) -> str:
    """The user's password."""
    return _secret(f"password for {user}", options, options.password_file, "--password-file", "RMQLB_PASSWORD")


def secret_key(options: SourceOptions) -> str:
    """The secret key of the account."""
    return _secret("secret key", options, options.secret_key_file, "--secret-key-file", "RMQLB_SECRET_KEY")


def security_token() -> str | None:
    """The token of a temporary account, or None."""
    return os.environ.get("RMQLB_SECURITY_TOKEN") or None


def _secret(what: str, options: SourceOptions, path: str | None, option: str, variable: str) -> str:
    """From a file, the environment, the context, or a prompt on the terminal; never from an option's value."""
    from rmqlb.sources.user_files.secrets import read_secret, secret_in_file

    if path is not None:
        return secret_in_file(path, f"{option} {path}")
    if os.environ.get(variable):
        return os.environ[variable]
    context = options.active_context
    if context is not None and context.secret is not None:
        where = str(context.secret.place)
        return read_secret(secret_place(str(context.secret.value), where), where, os.environ)
    if sys.stdin is not None and sys.stdin.isatty():
        from getpass import getpass

        return getpass(visible(f"{what[:1].upper()}{what[1:]}: "), stream=sys.stderr)
    raise UsageError(f"no {what}", hint=f"set {variable} or name a {option}", code="no-secret")
