"""What is configured: settings, contexts, and where a secret is; never the secret itself.

A setting comes from the first of these layers that has it: flag, environment, the context in force (its endpoint's
values only), project file, user file, default. A project file belongs to whoever wrote the repository it lies in: it
chooses among the user's contexts and how results look, and it cannot say where to connect, who logs in, or how much is
read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

from msgspec import Struct, field

from rmqlb.errors import UsageError

Value = str | int | bool | tuple[str, ...]
Kind = Literal["text", "count", "amount", "path", "texts"]
Layer = Literal["flag", "environment", "context", "project file", "user file", "default"]

COLORS = ("auto", "always", "never")
PLACES = "is: file:PATH, env:NAME or keyring:SERVICE/USER"  # where a secret may be; a sentence ends with it
_NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"
_VARIABLE = r"[A-Za-z_][A-Za-z0-9_]*"


class Key(Struct, frozen=True):
    """A key of a configuration file; its option is `--NAME`, its environment variable `RMQLB_NAME`."""

    name: str
    # text; count (a whole number); amount (a text or a number: a duration, a size); path
    # (absolute, or from ~/ on); texts (a list)
    kind: Kind = "text"
    in_project: bool = False  # a project file may set it


SETTINGS = (
    Key("context", in_project=True),
    Key("output", in_project=True),
    Key("color", in_project=True),
    Key("source-timeout", "amount", in_project=True),
    Key("source-retries", "count", in_project=True),
    Key("max-size", "amount"),
)
"""The keys of a user file, beside `contexts`."""

ENDPOINT = (
    Key("source"),
    Key("user"),
    Key("access-key"),
    Key("secret"),
    Key("ca-file", "path"),
    Key("client-cert", "path"),
    Key("client-key", "path"),
    Key("tls-name"),
    Key("proxy", "texts"),
    Key("map-address", "texts"),
    Key("source-timeout", "amount"),
    Key("source-retries", "count"),
)
"""The keys of a context."""


class Place(Struct, frozen=True):
    """Where in a file something is written."""

    path: str
    line: int  # counts from 1
    key: str

    def __str__(self) -> str:
        return f"{self.path}, line {self.line}, {self.key}"


class Written(Struct, frozen=True):
    """A value and where it is written."""

    value: Value
    place: Place


class Context(Struct, frozen=True):
    """A named endpoint."""

    name: str
    place: Place
    values: Mapping[str, Written]  # its keys of `ENDPOINT`; `source` is always there

    def text(self, key: str) -> str | None:
        return str(self.values[key].value) if key in self.values else None


class ConfigFile(Struct, frozen=True):
    """What one file says."""

    path: str | None = None
    # key → value; those of a project file are of the keys that it may set
    values: Mapping[str, Written] = field(default_factory=dict)
    # name → context, in the file's order; a project file has none
    contexts: Mapping[str, Context] = field(default_factory=dict)


class Configuration(Struct, frozen=True):
    """Both files."""

    user: ConfigFile = ConfigFile()
    project: ConfigFile = ConfigFile()


class Setting(Struct, frozen=True):
    """A value as it is used, and which layer set it."""

    key: str  # as in a file
    value: Value | None
    layer: Layer = "default"
    origin: str = ""  # the option, the variable or the place in a file, in words; empty for a default
    place: Place | None = None


class ActiveContext(Struct, frozen=True):
    """The context whose source is read."""

    name: str
    source: str
    # where its secret is, or None when it has none or when the secret is of another account than the one that is used
    secret: Written | None = None
    # a project file chose it; credentials in the environment were meant for something else then
    by_project: bool = False


class SecretPlace(Struct, frozen=True):
    """Where a secret is."""

    # a file, whose first line is the secret; an environment variable; a keyring
    kind: Literal["file", "env", "keyring"]
    name: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"


def secret_place(text: str, where: str) -> SecretPlace:
    """`file:PATH`, `env:NAME` or `keyring:SERVICE/USER` (raises UsageError)."""
    kind, _, name = text.partition(":")
    service, _, user = name.rpartition("/")
    match kind:
        case "file" if name:
            return SecretPlace("file", name)
        case "env" if re.fullmatch(_VARIABLE, name):
            return SecretPlace("env", name)
        case "keyring" if service and user:
            return SecretPlace("keyring", name)
    raise UsageError(f"{where}: that is not a place of a secret", hint=f"say where it {PLACES}")


def check_context_name(name: str, where: str) -> None:
    """Refuse what would be hard to type; UsageError when the name is empty, too long or has odd characters."""
    if not re.fullmatch(_NAME, name):
        raise UsageError(
            f"{where}: {name[:80]!r} cannot be the name of a context",
            hint="letters, digits, dots, dashes and underscores, 64 at most, a letter or a digit first",
        )
