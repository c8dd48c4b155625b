"""What users write in YAML or JSON, read strictly: each fault with the file, the line and the key."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, NoReturn

from rmqlb.errors import DocumentError, UsageError
from rmqlb.model.snapshot import suggestion
from rmqlb.sources.formats.yaml_text import AliasError, lines_of, read_yaml

_LONGEST_NAME = 1000
Path = tuple[str | int, ...]


class StrictReader:
    """One reading of a text; each method takes a value with its path, and returns what it says (raises UsageError).

    Args:
        where: how errors name the text.
        fault: the error that says a problem, with a hint.
        example: what is right, for a hint about the whole.
    """

    def __init__(
        self,
        text: str,
        where: str,
        fault: Callable[[str, str | None], UsageError],
        example: str,
    ) -> None:
        self.where = where
        self._text = text
        self._fault = fault
        self._example = example

    def shown(self, value: object) -> str:
        """A value in an error."""
        return shown(value)

    def document(self) -> object:
        """What the text holds."""
        try:
            return read_yaml(self._text, self.where)
        except AliasError as error:  # how YAML reads a bare *
            raise self._fault(error.message, "put patterns in quotes: '*'") from None
        except DocumentError as error:
            raise self._fault(error.message, error.hint) from None

    def texts(self, value: object, path: Path) -> tuple[str, ...]:
        """A text, or a list of them."""
        if isinstance(value, str):
            return (self.name(value, path),)
        return tuple(self.name(item, (*path, i)) for i, item in enumerate(self.items(value, path)))

    def name(self, value: object, path: Path) -> str:
        """A text that is not empty."""
        if not isinstance(value, str):
            self.refuse(path, f"{self.shown(value)} is not a text", "put it in quotes")
        if not value.strip() or len(value) > _LONGEST_NAME:
            self.refuse(path, "it is empty" if not value.strip() else f"longer than {_LONGEST_NAME} characters")
        return value

    def items(self, value: object, path: Path, least: int = 1) -> list[Any]:
        """A list."""
        if not isinstance(value, list):
            self.refuse(path, f"{self.shown(value)} is not a list")
        if len(value) < least:
            self.refuse(path, "the list is empty", self._example if len(path) == 1 else None)
        return value

    def mapping(
        self, value: object, path: Path, known: Collection[str], needed: Collection[str] = ()
    ) -> dict[str, Any]:
        """A mapping of known keys, with those that are needed."""
        if not isinstance(value, dict):
            self.refuse(path, f"{self.shown(value)} is not a mapping", None if path else self._example)
        for key in value:
            if key not in known:
                hint = suggestion("keys", str(key), known)
                self.refuse((*path, str(key)), f"there is no key {shown(key)} here", hint)
        for key in needed:
            if key not in value:
                self.refuse(path, f"the key {key} is missing", None if path else self._example)
        return value

    def refuse(self, path: Path, problem: str, hint: str | None = None) -> NoReturn:
        """The error about what stands there."""
        lines = lines_of(self._text)
        line = next((lines[path[:end]] for end in range(len(path), -1, -1) if path[:end] in lines), 1)
        place = f"{_path_text(path)}: " if path else ""
        raise self._fault(f"{self.where}, line {line}: {place}{problem}", hint)


def shown(value: object) -> str:
    """A value in an error, as short as can be."""
    if isinstance(value, dict | list):
        return "a mapping" if isinstance(value, dict) else "a list"
    return "nothing" if value is None else repr(value)[:80]


def _path_text(path: Path) -> str:
    parts = (f"[{step}]" if isinstance(step, int) else f".{_in_a_line(step)[:80]}" for step in path)
    return "".join(parts).removeprefix(".")


def _in_a_line(key: str) -> str:
    return key if key.isprintable() else repr(key)[1:-1]
