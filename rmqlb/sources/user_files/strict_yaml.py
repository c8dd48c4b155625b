"""Users' YAML or JSON files, with file, line and key in each error."""

from collections.abc import Collection
from typing import Any, NoReturn

from rmqlb.errors import DocumentError, UsageError
from rmqlb.model.snapshot import suggestion
from rmqlb.sources.formats.yaml_text import AliasError, lines_of, read_yaml
from rmqlb.sources.user_files.text_file import read_text

_LONGEST_NAME = 1000
_ZONES = "write az1: [10.1.0.0/16, 'broker-a*']"
Path = tuple[str | int, ...]


class StrictReader:
    """One reading of a text; each method checks a value at its path and returns it (raises UsageError)."""

    def __init__(self, text: str, where: str, example: str) -> None:
        self.where = where  # name of the text in errors
        self._text = text
        self._example = example  # of a valid text, for a hint

    def fault(self, problem: str, hint: str | None) -> UsageError:
        return UsageError(problem, hint=hint)

    def shown(self, value: object) -> str:
        return shown(value)

    def document(self) -> object:
        try:
            return read_yaml(self._text, self.where)
        except AliasError as error:  # how YAML reads a bare *
            raise self.fault(error.message, "put patterns in quotes: '*'") from None
        except DocumentError as error:
            raise self.fault(error.message, error.hint) from None

    def texts(self, value: object, path: Path) -> tuple[str, ...]:
        if isinstance(value, str):
            return (self.name(value, path),)
        return tuple(self.name(item, (*path, i)) for i, item in enumerate(self.items(value, path)))

    def name(self, value: object, path: Path) -> str:
        if not isinstance(value, str):
            self.refuse(path, f"{self.shown(value)} is not a text", "put it in quotes")
        if not value.strip() or len(value) > _LONGEST_NAME:
            self.refuse(path, "it is empty" if not value.strip() else f"longer than {_LONGEST_NAME} characters")
        return value

    def items(self, value: object, path: Path, least: int = 1) -> list[Any]:
        if not isinstance(value, list):
            self.refuse(path, f"{self.shown(value)} is not a list")
        if len(value) < least:
            self.refuse(path, "the list is empty", self._example if len(path) == 1 else None)
        return value

    def mapping(
        self, value: object, path: Path, known: Collection[str], needed: Collection[str] = ()
    ) -> dict[str, Any]:
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
        lines = lines_of(self._text)
        line = next((lines[path[:end]] for end in range(len(path), -1, -1) if path[:end] in lines), 1)
        place = f"{_path_text(path)}: " if path else ""
        raise self.fault(f"{self.where}, line {line}: {place}{problem}", hint)


def shown(value: object) -> str:
    if isinstance(value, dict | list):
        return "a mapping" if isinstance(value, dict) else "a list"
    return "nothing" if value is None else repr(value)[:80]


def _path_text(path: Path) -> str:
    keys = (step if isinstance(step, int) or step.isprintable() else repr(step)[1:-1] for step in path)
    return "".join(f"[{key}]" if isinstance(key, int) else f".{key[:80]}" for key in keys).removeprefix(".")


class _ZonesReader(StrictReader):
    def fault(self, problem: str, hint: str | None) -> UsageError:
        return UsageError(problem, hint=hint, code="zones-invalid")


def read_zones(path: str) -> tuple[tuple[str, str], ...]:
    """(zone, pattern) pairs of a YAML or JSON file, in its order: each zone has a pattern or a list of them."""
    text = read_text(path, "--zones", 1 << 20, "the limit is 1 MB")
    reader = _ZonesReader(text, path, _ZONES)
    document = reader.document()
    if not isinstance(document, dict) or not document:
        reader.refuse((), "it names no zone", _ZONES)
    found = []
    for zone, patterns in document.items():
        name = reader.name(zone, (str(zone),))
        found += [(name, pattern) for pattern in reader.texts(patterns, (name,))]
    return tuple(found)
