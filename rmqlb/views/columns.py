"""The columns of tables: how cells are read and drawn, and how items become rows."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from itertools import groupby
from operator import attrgetter, itemgetter
from typing import Any, Literal, Self, get_type_hints

from msgspec import Struct

Kind = Literal[
    "text",
    "number",
    "clients",
    "owners",
    "change",
    "label",
    "ms",
    "share",
    "bar",
    "strip",
    "sign",
    "prose",
    "name",
    "headline",
]
"""How a column's cells are read and drawn.

number: to the right. clients: client IDs, which a narrow table may abbreviate; owners: the same, red for none or
several; label: a number that explains an abbreviation. change: a sign and a word. ms: milliseconds, for people as
`1m30s`. share: a fraction, for people as a percentage; bar: the same, drawn. strip: a row of a picture, in which each
character counts. sign: a severity or a status. prose: a sentence, which wraps before columns are omitted. headline: a
sentence in one line. If a table without the columns that it may omit is still too wide, names (name) are cut in the
middle, then headlines at the end.
"""
RIGHT = ("number", "label", "ms", "share")
Cell = str | int | float | tuple[str, ...] | None
"""A truth is read as yes or no."""
NOT_THERE: Cell = ("-",)
"""In a column of client IDs, for something that does not exist and so has no known owner."""
CHANGE_SIGNS = {"same": "=", "moved": "~", "assigned": "+", "unassigned": "!", "added": "+", "removed": "-"}
"""A change's sign, for readers without colour."""


class PaintedText(str):
    """A text with a style for each of its characters on a terminal."""

    __slots__ = ("styles",)
    styles: tuple[str, ...]

    def __new__(cls, text: str, styles: Iterable[str]) -> Self:
        made = super().__new__(cls, text)
        made.styles = tuple(styles)
        return made


def painted(cell: Cell, text: str) -> Iterator[tuple[str, str]]:
    """The cell's text in parts, each with its style; nothing for a text without styles of its own."""
    if isinstance(cell, PaintedText):
        for style, run in groupby(zip(text, cell.styles, strict=True), key=itemgetter(1)):
            yield "".join(character for character, _ in run), style


class Column(Struct, frozen=True):
    title: str
    key: str  # for CSV, camelCase as in JSON
    kind: Kind = "text"
    quiet: bool = False  # hidden from people when all cells are equal; the title then has the value
    shown: bool = True  # False hides it from people; CSV always has all columns
    spare: bool = False  # hidden from people when each cell is unknown, 0 or empty
    fold: int = 0  # a table that is too wide omits the column, the largest number first; 0 always stays
    of: Callable[[Any], Cell] | None = None  # item → cell (`rows_of`); None is the item's attribute of the key's name


QUEUE_COLUMNS = (
    Column("topic", "topic", quiet=True),
    Column("broker", "brokerName"),
    Column("queue", "queueId", "number"),
)


def columns_from(
    keys: str,
    kind: Kind = "text",
    *,
    shape: type[Struct] | None = None,
    path: str = "",
    hidden: Collection[str] = (),
    **of: Callable[[Any], Cell],
) -> tuple[Column, ...]:
    """Columns from `KEY[=TITLE][:KIND][?][/FOLD][@PATH]`, with `_` for spaces in a title; `of` has makers of cells.

    `?` is for a spare column; `/hidden` hides a column from people. The path leads to the item's cell, through parts
    that may be None; `path` is one for all. The fields of a `shape` decide the kinds.

    >>> [(each.title, each.kind, each.spare, each.fold) for each in columns_from("clientId=consumer dueTo:number?/2")]
    [('consumer', 'text', False, 0), ('due to', 'number', True, 2)]
    """
    found, types = [], {} if shape is None else get_type_hints(shape)
    for text in keys.split():
        form, _, own_path = text.partition("@")
        form, _, fold = form.partition("/")
        named, _, own_kind = form.removesuffix("?").partition(":")
        key, given, title = named.partition("=")
        name = attribute_of(key)
        names = own_path.split(".") if own_path else [path, name] if path else []
        found.append(
            Column(
                (title if given else name).replace("_", " "),
                key,
                own_kind or (_kind(key, types[name]) if name in types else kind),  # type: ignore[arg-type]
                shown=fold != "hidden" and key not in hidden,
                spare=form.endswith("?"),
                fold=int(fold) if fold.isdigit() else 0,
                of=of.get(key) or (partial(_part, names) if names else None),
            )
        )
    return tuple(found)


def columns_of(shape: type[Struct], keys: str, **more: Any) -> tuple[Column, ...]:
    return columns_from(keys, shape=shape, **more)


def _kind(key: str, kind_of_field: object) -> Kind:
    of_text = kind_of_field in (str, str | None)
    return "text" if of_text else "ms" if key.endswith("Ms") else "share" if key.lower().endswith("share") else "number"


def _part(path: Sequence[str], item: Any) -> Any:
    for name in path:
        item = None if item is None else getattr(item, name)
    return item


def rows_of(columns: Iterable[Column], items: Iterable[object]) -> tuple[tuple[Cell, ...], ...]:
    """A row per item, a cell per column: `queueId` is the item's `queue_id`, unless the column says otherwise."""
    makers = [column.of or attrgetter(attribute_of(column.key)) for column in columns]
    return tuple(tuple(make(item) for make in makers) for item in items)


def attribute_of(key: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in key)
