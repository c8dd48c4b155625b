"""Where keys go, SDK by SDK: a column each, those that cannot differ as one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter

from msgspec import Struct

from rmqlb.model.key_queues import KeyedSdk, KeyQueue, KeyQueues, SdkPair
from rmqlb.model.message_queue import QueueName
from rmqlb.model.words import counted
from rmqlb.views.report import Cell, Column, Report, Rows, Section, columns_of, first_places, percent, rows_of

_MOST_KEYS = 20
_MOST_COLUMNS = 6
_MOST_PAIRS = 5
_GRPC = "gRPC"
_PAIR = (*columns_of(SdkPair, "sdk=SDK otherSdk=other_SDK differ"), Column("share", "differShare", "share"))


class _Shown(Struct, frozen=True):
    """A column of the screen: an SDK, or all gRPC SDKs for which the Proxy picks."""

    title: str
    sdk: KeyedSdk  # the one, or the first of them


def key_queues_report(found: KeyQueues) -> Report:
    shown = _shown(found)
    known = [each for each in shown if each.sdk.unknown is None]
    facts = (*_change_facts(found, known), *_sdk_facts(found, known))
    scripts = Section("pairs", "SDKs compared", _PAIR, rows_of(_PAIR, found.pairs), audience="scripts")
    pairs = (_pairs_screen(found, known), scripts) if found.pairs else ()
    moved = (_moved_screen(known),) if found.changes else ()
    sections = (*moved, _keys_screen(found, shown), _keys_lines(found), *pairs, _sdks(found))
    closing = tuple(_closing(found))
    rows = Rows(("key",), [({}, row) for row in found.keys])
    return Report("rmqlb/key-queues", found, facts, sections, rows=rows, closing=closing)


def _shown(found: KeyQueues) -> list[_Shown]:
    grpc = [each for each in found.sdks if each.grpc]
    if found.proxy_mode == "local" or len(grpc) < 2:
        return [_Shown(each.sdk, each) for each in found.sdks]
    return [*(_Shown(each.sdk, each) for each in found.sdks if not each.grpc), _Shown(_GRPC, grpc[0])]


# -- the verdict -------------------------------------------------------------------------------------------------------


def _sdk_facts(found: KeyQueues, known: Sequence[_Shown]) -> Iterator[str]:
    where = f"{found.topic}, {counted(len(found.keys), 'key')} on {counted(found.writable_queues, 'queue')}"
    if not known:
        yield f"{where}: which queues they go to is unknown"
    elif len(known) == 1:
        sdk = known[0].sdk
        used = counted(sdk.queues_used or 0, "queue")
        yield f"{where}: {known[0].title} uses {used}, at most {counted(sdk.most_keys or 0, 'key')} in one"
    else:
        differ = sum(len({_place(row.queues[each.sdk.sdk]) for each in known}) > 1 for row in found.keys)
        names = ", ".join(each.title for each in known)
        which = (
            f"{differ} {'goes' if differ == 1 else 'go'} to different queues" if differ else "each goes to one queue"
        )
        yield f"{where}: {which}, {'depending on' if differ else 'whatever'} the SDK ({names})"


def _change_facts(found: KeyQueues, known: Sequence[_Shown]) -> Iterator[str]:
    if not found.changes:
        return
    moved = [
        f"{each.title} {each.sdk.moved} ({percent(each.sdk.moved_share or 0)})"
        for each in known
        if each.sdk.moved is not None
    ]
    changes = ", ".join(found.changes)
    yield f"{found.topic}, {changes}: keys that move, of {len(found.keys)}: {', '.join(moved) or 'unknown'}"


def _closing(found: KeyQueues) -> Iterator[str]:
    if not any(each.grpc for each in found.sdks):
        return
    if found.proxy_mode == "cluster":
        yield "gRPC: the Proxy picks the queue by the message group, whatever SDK sends (--proxy-mode cluster)"
    else:
        yield "gRPC: the SDK picks the broker, and the Proxy in it the queue (--proxy-mode local)"


# -- the tables --------------------------------------------------------------------------------------------------------


def _keys_screen(found: KeyQueues, shown: Sequence[_Shown]) -> Section:
    def row(of: KeyQueue) -> tuple[Cell, ...]:
        return (of.key, *(_cell(of, each.sdk) for each in shown))

    columns = (Column("key", "key"), *(Column(each.title, each.sdk.sdk, fold=i) for i, each in enumerate(shown)))
    return Section(
        "keys",
        "queues of the keys",
        columns,
        tuple(row(each) for each in found.keys),
        audience="screen",
        names_left_out=True,
        named_only=bool(found.changes),
        brief=first_places(len(found.keys), _MOST_KEYS),
        chosen=f"the first {_MOST_KEYS}",
    )


def _cell(row: KeyQueue, sdk: KeyedSdk) -> Cell:
    if sdk.unknown is not None:
        return None
    before = _place(row.queues[sdk.sdk])
    after = before if row.queues_after is None else _place(row.queues_after[sdk.sdk])
    return before if before == after else f"{before} → {after}"


def _place(queue: QueueName | None) -> str:
    return "no queue" if queue is None else f"{queue.broker_name} {queue.queue_id}"


def _keys_lines(found: KeyQueues) -> Section:
    columns = (
        Column("key", "key"),
        Column("SDK", "sdk"),
        Column("broker", "brokerName"),
        Column("queue", "queueId", "number"),
        Column("broker picked", "brokerNamePicked", shown=False),
        Column("queue picked", "queueIdPicked", "number", shown=False),
        Column("broker after", "brokerNameAfter", shown=bool(found.changes)),
        Column("queue after", "queueIdAfter", "number", shown=bool(found.changes)),
    )
    rows = tuple(
        (row.key, each.sdk, *_parts(row.queues, each), *_parts(row.picks, each), *_parts(row.queues_after or {}, each))
        for row in found.keys
        for each in found.sdks
    )
    return Section("keys", "queues of the keys", columns, rows, audience="scripts")


def _parts(queues: Mapping[str, QueueName | None], sdk: KeyedSdk) -> tuple[Cell, Cell]:
    queue = queues.get(sdk.sdk)
    return (None, None) if queue is None else (queue.broker_name, queue.queue_id)


def _moved_screen(known: Sequence[_Shown]) -> Section:
    columns = (
        Column("SDK", "sdk"),
        Column("keys moved", "moved", "number"),
        Column("share", "movedShare", "share"),
        Column("queues used", "queuesUsed", "number"),
    )
    rows = tuple((each.title, each.sdk.moved, each.sdk.moved_share, each.sdk.queues_used) for each in known)
    return Section("moved", "keys that go to another queue", columns, rows, audience="screen")


def _pairs_screen(found: KeyQueues, known: Sequence[_Shown]) -> Section:
    """Each SDK against each other one, where that fits; of many the pairs that differ the most."""
    title = f"keys that go to different queues, of {len(found.keys)}"
    if len(known) > _MOST_COLUMNS:
        rows = rows_of(_PAIR, sorted(found.pairs, key=attrgetter("differ"), reverse=True))
        brief = first_places(len(rows), _MOST_PAIRS)
        return Section("pairs", title, _PAIR, rows, audience="screen", brief=brief, chosen=f"the {_MOST_PAIRS} largest")
    differ: dict[frozenset[str], Cell] = {frozenset((pair.sdk, pair.other_sdk)): pair.differ for pair in found.pairs}
    columns = (Column("SDK", "sdk"), *(Column(each.title, each.sdk.sdk, "number") for each in known))
    rows = tuple(
        (one.title, *(differ.get(frozenset((one.sdk.sdk, other.sdk.sdk)), "-") for other in known)) for one in known
    )
    return Section("pairs", title, columns, rows, audience="screen")


def _sdks(found: KeyQueues) -> Section:
    hidden = () if found.changes else ("moved",)
    columns = (
        *columns_of(KeyedSdk, "sdk=SDK mirrors vectors"),
        Column("live", "live", of=lambda sdk: "yes" if sdk.live else "no"),
        *columns_of(KeyedSdk, "queuesUsed mostKeys moved", hidden=hidden),
        Column("moved share", "movedShare", "share", shown=bool(found.changes)),
        Column("unknown", "unknown", "prose", shown=any(each.unknown is not None for each in found.sdks)),
        Column("note", "note", "prose"),
    )
    return Section("sdks", "SDKs", columns, rows_of(columns, found.sdks), named_only=True)
