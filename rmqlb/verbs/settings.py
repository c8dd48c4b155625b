"""Values of `--set NAME=VALUE`."""

from collections.abc import Callable
from typing import Any, TypeVar

Value = TypeVar("Value")


class _Text(str):
    """A value that messages show behind the name of its setting."""

    __slots__ = ("name",)
    name: str

    def __format__(self, spec: str) -> str:
        return format(f"{self.name}={self!s}", spec)


def read_setting(name: str, read: Callable[..., Value], text: str, *rest: Any, **more: Any) -> Value:
    """Read a value; errors name the setting as it is typed (raises UsageError)."""
    named = _Text(text)
    named.name = name
    return read(named, "--set", *rest, **more)
