"""What a warehouse says of its tables: which rows are shown, how many they are, and what they were made from."""

from __future__ import annotations

import msgspec

FORMAT, VERSION = "rmqlb/warehouse", 3


class Stored(msgspec.Struct, frozen=True, rename="camel"):
    """One table as it is in the warehouse.

    Attributes:
        folders: where its rows are, below the table's own folder; of a local folder.
        run: the number of the run that last changed its rows; to compact a table does not.
        made_from: what it was made from, by name, for a later run to see whether it still holds.
        left_out: folder → snapshots whose rows in it are shown no more, because a later folder has them anew.
        dropped: folder → folders of partitions in it that are shown no more, as long as they are there.
        table_version: the version of the Delta Lake table that is shown; None in a local folder.
    """

    folders: tuple[str, ...]
    rows: int
    columns: dict[str, str]
    made_from: dict[str, str] = {}
    left_out: dict[str, tuple[str, ...]] = {}
    dropped: dict[str, tuple[str, ...]] = {}
    run: int = 0
    table_version: int | None = None

    @property
    def version(self) -> str:
        """Changes whenever the rows do."""
        return f"run={self.run:06d}"


class Contents(msgspec.Struct, frozen=True, rename="camel"):
    """All tables, and the number of the last run that wrote any."""

    schema: str = FORMAT
    format_version: int = VERSION
    last: int = 0
    tables: dict[str, Stored] = {}
