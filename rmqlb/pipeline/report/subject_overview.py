"""The page's beginning: what to do first, every group in a line with links to its sections, and groups left out."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Literal

from msgspec import Struct
from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from rmqlb.pipeline.report.codes import (
    DUPLICATE_CLIENT_ID,
    DUPLICATE_OWNERS,
    IMBALANCED_GROUP,
    MISMATCH,
    MIXED_SDKS,
    MIXED_STRATEGIES,
    NO_CONSUMER_ONLINE,
    SPLIT_CONSUMER_VIEW,
    SUBSCRIPTION_MISMATCH,
    UNASSIGNED_QUEUES,
    UNEVEN_LAG,
    UNREAD_DOCUMENT,
    PageCode,
)
from rmqlb.pipeline.report.frames import Asked, Row, Tables
from rmqlb.pipeline.report.page import Section, Status, ToDo, columns, counts, decimals, grid_of, names, said
from rmqlb.pipeline.report.queries import OverviewRows
from rmqlb.pipeline.report.subject_groups import LISTS, GroupScore, Worst, idle_code
from rmqlb.pipeline.report.subject_strategies import IMBALANCED
from rmqlb.pipeline.report.text import number_of
from rmqlb.pipeline.schemas import DOCUMENTS, FILES, GROUPS, SNAPSHOT

MOST_TO_DO = 3


class LeftOut(Row, frozen=True):
    """A group of the snapshot that no figure of the page counts."""

    cluster: str
    group: str
    left_out: str | None
    code: str | None


class OneFile(Row, frozen=True):
    """A file that is the whole of a cluster's snapshot, and how many documents are in it."""

    file: str
    cluster: str
    documents: int | None


# -- reading the tables ------------------------------------------------------------------------------------------------


LEFT_OUT = OverviewRows("leftOut IS NOT NULL", ())


def beginning(tables: Tables, asked: Asked, runs: DataFrame, top: int) -> Callable[[], dict[str, Any]]:
    """The fields of `Figures` about groups that are left out of OVERVIEW, and the files to look at again."""
    left = asked.first(LeftOut, runs.where(LEFT_OUT.where), top, *LEFT_OUT.columns)
    has_groups, files = tables.judged(GROUPS) is not None, _files(tables)
    alone = None if files is None else asked.rows(OneFile, files)

    def found() -> dict[str, Any]:
        single = {one.cluster: one.file for one in (alone.by("cluster") if alone else ()) if one.documents == 1}
        return {"files": single} | ({"left_out": left.rows} if has_groups else {})

    return found


def _files(tables: Tables) -> DataFrame | None:
    """The files that are a whole snapshot each, with what FILES says of them."""
    documents, files = tables.judged(DOCUMENTS), tables.whole(FILES)
    if documents is None or files is None:
        return None
    whole = documents.groupBy(*SNAPSHOT).agg(fn.count("*").alias("number"), fn.min("file").alias("file"))
    of_one = whole.where("number = 1").select("file", "cluster", fn.lit(None).cast("int").alias("documents"))
    said = files.select("file", fn.lit(None).cast("string").alias("cluster"), "documents")
    found = (
        of_one.unionByName(said)
        .groupBy("file")
        .agg(
            fn.max("cluster").alias("cluster"),
            fn.count("cluster").alias("clusters"),
            fn.max("documents").alias("documents"),
        )
    )
    return found.where("clusters = 1")


# -- what to do first --------------------------------------------------------------------------------------------------


def to_do(worst: Worst | None, quarantined: Iterable[str | None], files: Mapping[str, str]) -> tuple[ToDo, ...]:
    """The worst findings, each group once: queues without an owner, then lag, documents, mismatches, balance."""
    found = islice(_unique(_findings(worst), files), MOST_TO_DO) if worst is not None else ()
    return tuple(islice((*found, *_documents(quarantined)), MOST_TO_DO))


_WHO, _WHAT = "show-consumers", "show-owners"


class Told(Struct, frozen=True):
    """A group, how bad it is, the code, what is wrong in words, the values in them, and the command that shows it."""

    group: GroupScore
    status: Status
    code: PageCode | None
    what: str
    values: tuple[int | float | None, ...]
    command: str


def _findings(worst: Worst) -> Iterator[Told]:
    for one in worst.mismatches:
        yield from _observed(one)
    for one in worst.unassigned:
        yield _predicted(one)
    for one in worst.one_consumer:
        waits = one.max_lag_per_consumer, one.lag, one.consumers
        what = "{} of {} unread messages wait for one of {} consumers"
        yield Told(one, "warning", UNEVEN_LAG, what, waits, _WHO)
    for one in worst.mismatches:
        what = "{} of {} observed queues have other owners than predicted"
        yield Told(one, "warning", MISMATCH, what, (one.mismatches, one.observed), _WHAT)
    for one in worst.idle:
        yield Told(one, "warning", idle_code(one), "{} of {} consumers are idle", (one.idle, one.consumers), _WHAT)
    for one in worst.imbalanced:
        if one.imbalance is not None and one.imbalance >= IMBALANCED:
            times = one.consumers, one.imbalance
            what = "one of {} consumers has {} times the mean of queues"
            yield Told(one, "warning", IMBALANCED_GROUP, what, times, _WHAT)


def _observed(one: GroupScore) -> Iterator[Told]:
    """Queues that were observed to have no owner, or several."""
    if one.observed_unassigned:
        code = NO_CONSUMER_ONLINE if one.consumers == 0 else UNASSIGNED_QUEUES
        of = one.observed_unassigned, one.observed
        yield Told(one, "error", code, "{} of {} observed queues have no owner", of, _WHO)
    elif one.observed_duplicate_owners:
        of = one.observed_duplicate_owners, one.observed
        yield Told(one, "error", DUPLICATE_OWNERS, "{} of {} observed queues have duplicate owners", of, _WHO)


def _predicted(one: GroupScore) -> Told:
    """The same of prediction."""
    if one.consumers == 0:
        what = "no broker lists a consumer; {} of {} queues unassigned"
        return Told(one, "error", NO_CONSUMER_ONLINE, what, (one.unassigned, one.queues), _WHO)
    code = UNASSIGNED_QUEUES if one.unassigned else DUPLICATE_OWNERS
    bad = (one.unassigned, one.duplicate_owners, one.queues)
    return Told(one, "error", code, "{} unassigned and {} with duplicate owners of {} queues are predicted", bad, _WHO)


def _unique(found: Iterable[Told], files: Mapping[str, str]) -> Iterator[ToDo]:
    """The first finding of each group: a command that shows it shows the others too."""
    seen = set()
    for told in found:
        one = told.group
        if (one.cluster, one.group) in seen:
            continue
        seen.add((one.cluster, one.group))
        sentence = said("{} in {}: " + told.what + ".", one.group, one.cluster, *told.values)
        yield ToDo(told.status, sentence, _command(told.command, files.get(one.cluster), one.group), told.code)


def _documents(quarantined: Iterable[str | None]) -> Iterator[ToDo]:
    for file in dict.fromkeys(quarantined):
        if file is not None:
            yield ToDo("warning", said("{} could not be read.", file), _command("show-groups", file), UNREAD_DOCUMENT)


def _command(command: str, file: str | None, group: str | None = None) -> str:
    of = "" if group is None else f" -g {shlex.quote(group)}"
    return f"rmqlb {command} -s {'SOURCE' if file is None else shlex.quote(file)}{of}"


# -- sections ----------------------------------------------------------------------------------------------------------

_LINKS: tuple[tuple[Literal["unassigned", "mismatches", "imbalanced", "idle", "one_consumer"], str, str], ...] = (
    ("unassigned", "unassigned", "unassigned"),
    ("mismatches", "mismatches", "mismatches"),
    ("imbalanced", "imbalanced", "imbalance"),
    ("idle", "idle", "idle"),
    ("one_consumer", "lag", "lag"),
)
"""List of `Worst`, the name of its section, and what a link to it says."""


def groups(found: Worst) -> Section:
    """The groups in a line each, the worst first."""
    listed: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for name, section, text in _LINKS:
        for one in getattr(found, name):
            listed.setdefault((one.cluster, one.group), []).append((section, text))
    shown, whole = len(found.groups), found.totals.groups
    grid = grid_of(
        "The worst first; queues unassigned and with duplicate owners as observed or as predicted, whichever is more",
        found.groups,
        (("", "status", status_of),),
        names("cluster", "group"),
        columns("codes", ("findings", lambda one: ", ".join(codes_of(one)))),
        (("see", "links", lambda one: tuple(listed.get((one.cluster, one.group), ()))),),
        counts(
            "consumers", "queues", "lag", ("unassigned", lambda one: _more(one.unassigned, one.observed_unassigned))
        ),
        counts(("duplicate owners", lambda one: _more(one.duplicate_owners, one.observed_duplicate_owners)), "idle"),
        decimals("imbalance"),
        query=LISTS["groups"].query(len(found.groups)),
    )
    rest = "" if shown == whole else f", of which the list has the first {shown:,}; the table overview has all"
    return Section("groups", "Groups", (said(f"{number_of(whole, 'group')}{rest}."),), grids=(grid,))


def _more(predicted: int | None, observed: int | None) -> int | None:
    known = [number for number in (predicted, observed) if number is not None]
    return max(known, default=None)


def codes_of(one: GroupScore) -> Iterator[PageCode]:
    """What is the case in a group, causes before what comes of them."""
    if one.consumers == 0:
        yield NO_CONSUMER_ONLINE
        return
    for code, known in (
        (DUPLICATE_CLIENT_ID, one.has_duplicate_client_ids),
        (SPLIT_CONSUMER_VIEW, one.has_split_view),
        (MIXED_STRATEGIES, one.mixed_strategies),
        (MIXED_SDKS, one.mixed_sdks),
        (SUBSCRIPTION_MISMATCH, one.mixed_subscriptions),
        (UNASSIGNED_QUEUES, one.observed_unassigned or one.unassigned),
        (DUPLICATE_OWNERS, one.observed_duplicate_owners or one.duplicate_owners),
        (MISMATCH, one.mismatches),
        (UNEVEN_LAG, _waits_for_one(one)),
        (idle_code(one), one.idle),
        (IMBALANCED_GROUP, (one.imbalance or 0) >= IMBALANCED and not one.idle),
    ):
        if known and code is not None:
            yield code


def _waits_for_one(one: GroupScore) -> bool:
    """More than half of its lag waits for one of several consumers."""
    return (one.consumers or 0) > 1 and (one.lag_share or 0) > 0.5


def status_of(one: GroupScore) -> Status:
    """How bad a group is: queues without one owner are an error, what only costs is a warning."""
    if one.unassigned or one.duplicate_owners or one.observed_unassigned or one.observed_duplicate_owners:
        return "error"
    # Several client libraries alone cost nothing, as long as what they compute adds up.
    return "warning" if one.idle or set(codes_of(one)) - {MIXED_SDKS} else "inOrder"


def left_out(found: tuple[LeftOut, ...], number: int) -> Section:
    """The groups of the snapshots that no figure counts, and why."""
    name, title = "left-out", "Groups left out"
    if not number:
        return Section(name, title, (said("Nothing: every group of the snapshots is judged."),))
    grid = grid_of(
        "By cluster and name",
        found,
        names("cluster", "group"),
        columns("text", ("reason", "left_out")),
        columns("codes", "code"),
        query=LEFT_OUT.query(len(found)),
    )
    more = "" if len(found) == number else f" The list has the first {len(found):,}."
    seen = f"{number_of(number, 'group')} of the snapshots in no figure of this page.{more}"
    return Section(name, title, (said(seen),), grids=(grid,))
