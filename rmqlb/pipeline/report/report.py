"""The report of a warehouse: a page for the fleet, a page for each cluster, and the verdict, from one job of Spark."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from rmqlb.errors import DataError, UsageError
from rmqlb.pipeline.report.figures import Nights
from rmqlb.pipeline.warehouse import Warehouse, short
from rmqlb.version import __version__

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rmqlb.model.policy import Policy
from rmqlb.pipeline.report.answers import WINDOW, Answers, FleetVerdict, answers, thresholds_of, verdict_of
from rmqlb.pipeline.report.page import cluster_page, fleet_page

_INDEX, _VERDICT = "index.html", "verdict.json"


class _Stored(Struct, frozen=True, rename="camel"):
    """`verdict.json`: the verdict, and a text that differs when the pages would."""

    made_from: str
    verdict: FleetVerdict


def write(spark: SparkSession, warehouse: Warehouse, to: Path, policy: Policy | None = None) -> FleetVerdict:
    """Write `index.html`, a page for each cluster and `verdict.json` into a folder of this machine.

    Pages that would not change are not written; nothing runs when the tables have not changed. `policy`: its limits of
    lag and imbalance are the thresholds of the lists.

    Raises:
        DataError: no night is complete.
        UsageError: the folder has pages of something else, or cannot be written.
    """
    markers = {day: each.judged for day, each in warehouse.nights().items() if each.judged is not None}
    window = sorted(markers)[-WINDOW:]
    if not window:
        raise DataError(
            f"{warehouse.place} has no complete night to report on",
            hint="make one first: rmqlb pipeline run",
            code="table-not-found",
        )
    thresholds = thresholds_of(policy)
    made_from = short(__version__, warehouse.place, thresholds, [(day, markers[day]) for day in window])
    stored = _stored(to)
    if stored is not None and stored.made_from == made_from:
        return replace(stored.verdict, unchanged=True)
    nights = Nights(window[-1], window[-2] if len(window) > 1 else None, window[0])
    found = answers(Warehouse(spark.newSession(), warehouse.place), nights, window, thresholds)
    verdict = verdict_of(found, str(to / _INDEX))
    _write(to, _pages(found, verdict), verdict, made_from, stored)
    return verdict


def _pages(found: Answers, verdict: FleetVerdict) -> dict[str, str]:

    pages = {one.page: cluster_page(found, one) for one in verdict.clusters}
    return {**pages, _INDEX: fleet_page(found, verdict)}


def _stored(to: Path) -> _Stored | None:
    """What an earlier report says of itself; None when there is none as this version writes it."""
    try:
        found = msgspec.json.decode((to / _VERDICT).read_bytes(), type=_Stored)
    except (OSError, msgspec.MsgspecError):
        return None
    is_whole = all((to / page).is_file() for page in (_INDEX, *(one.page for one in found.verdict.clusters)))
    return found if is_whole else None


def _write(to: Path, pages: Mapping[str, str], verdict: FleetVerdict, made_from: str, stored: _Stored | None) -> None:
    """Replace each file as a whole, `verdict.json` last: until then the next run writes again."""
    body = msgspec.json.format(msgspec.json.encode(_Stored(made_from, verdict)), indent=2).decode()
    try:
        to.mkdir(parents=True, exist_ok=True)
        if (to / _INDEX).exists() and not (to / _VERDICT).exists():
            raise UsageError(f"--to {to}: its index.html is no report of rmqlb", hint="name another folder")
        for file, text in {**pages, _VERDICT: f"{body}\n"}.items():
            _replace(to / file, text.encode("utf-8", "replace"))
        for one in stored.verdict.clusters if stored else ():
            if one.page not in pages:
                (to / one.page).unlink(missing_ok=True)
    except OSError as error:
        raise UsageError(f"--to {to}: {error.strerror or error}", code="cannot-write") from None


def _replace(path: Path, body: bytes) -> None:
    if path.exists() and path.read_bytes() == body:
        return
    part = path.with_name(f".{path.name}.part")
    part.write_bytes(body)
    os.replace(part, path)
