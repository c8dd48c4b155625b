"""The pipeline's tables, from the Structs that define them."""

from __future__ import annotations

from rmqlb.pipeline.tables import documentation


def tables_page() -> str:
    """The page."""
    head = (
        "# Tables of the pipeline",
        "",
        "Parquet in `TABLE/date=YYYY-MM-DD/`, a folder for each night. A night is complete once `_nights/date=…/`",
        "is there. Columns are named as in rmqlb's JSON; null means unknown or not applicable.",
        "",
    )
    return "\n".join(head) + documentation()
