"""What is configured: settings, contexts, and where a secret is; never the secret itself.

A setting comes from the first of these layers that has it: flag, environment, the context in force (its endpoint's
values only), user file, default.
"""

import re
from collections.abc import Mapping
from typing import Literal

from msgspec import Struct, field

from rmqlb.errors import UsageError

Value = str | int | tuple[str, ...]
Kind = Literal["text", "count", "amount", "path", "texts"]
Layer = Literal["flag", "environment", "context", "user file", "default"]

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


_TRIES = (Key("source-timeout", "amount"), Key("source-retries", "count"))
SETTINGS = (Key("context"), Key("output"), Key("color"), *_TRIES, Key("max-size", "amount"))
"""The keys of a user file, beside `contexts`."""
ENDPOINT = (
    *(Key("source"), Key("user"), Key("access-key"), Key("secret"), Key("ca-file", "path"), Key("client-cert", "path")),
    *(Key("client-key", "path"), Key("tls-name"), Key("proxy", "texts"), Key("map-address", "texts"), *_TRIES),
)  # the keys of a context


class Written(Struct, frozen=True):
    value: Value
    origin: str = ""  # the file, the line and the key, in words
    line: int = 0  # counts from 1


class Context(Struct, frozen=True):
    name: str
    values: Mapping[str, Written]  # its keys of `ENDPOINT`; `source` is always there
    path: str = ""
    line: int = 0

    def text(self, key: str) -> str | None:
        return str(self.values[key].value) if key in self.values else None


class ConfigFile(Struct, frozen=True):
    path: str | None = None
    values: Mapping[str, Written] = field(default_factory=dict)
    # name → context, in the file's order
    contexts: Mapping[str, Context] = field(default_factory=dict)


class Setting(Struct, frozen=True):
    key: str  # as in a file
    value: Value | None
    layer: Layer = "default"
    origin: str = ""  # the option, the variable or the place in a file, in words; empty for a default


def secret_place(text: str, where: str) -> tuple[str, str]:
    """`file:PATH`, `env:NAME` or `keyring:SERVICE/USER`, in its two parts (raises UsageError)."""
    kind, _, name = text.partition(":")
    service, _, user = name.rpartition("/")
    match kind:
        case "file" if name:
            return kind, name
        case "env" if re.fullmatch(_VARIABLE, name):
            return kind, name
        case "keyring" if service and user:
            return kind, name
    raise UsageError(f"{where}: not a location of a secret", hint=f"write where the secret {PLACES}")


def check_context_name(name: str, where: str) -> None:
    """Refuse what would be hard to type; UsageError when the name is empty, too long or has odd characters."""
    if not re.fullmatch(_NAME, name):
        hint = "use at most 64 letters, digits, dots, dashes and underscores; begin with a letter or a digit"
        raise UsageError(f"{where}: {name[:80]!r} cannot be the name of a context", hint=hint)
