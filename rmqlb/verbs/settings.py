"""Values of `--set NAME=VALUE`."""

from collections.abc import Callable
from typing import Any, TypeVar

from rmqlb.errors import UsageError

Value = TypeVar("Value")
_OPTION = "--set"


def read_setting(name: str, read: Callable[..., Value], text: str, *rest: Any, **more: Any) -> Value:
    """Read a value; errors name the setting as it is typed (raises UsageError)."""
    try:
        return read(text, _OPTION, *rest, **more)
    except UsageError as error:
        problem = error.problem.removeprefix(f"{_OPTION} {text}")
        raise UsageError(problem, prefix=f"{_OPTION} {name}={text}", hint=error.hint, code=error.code) from None
