"""The queues of keys, SDK by SDK: a column each, and one column for SDKs that cannot differ."""

from collections.abc import Iterator, Mapping

from rmqlb.model.message_queue import QueueName
from rmqlb.model.result import counted
from rmqlb.model.simulate_send import KeyedSdk, KeyQueue, KeyQueues, SdkPair
from rmqlb.views.columns import Cell, Column, columns_from, columns_of, rows_of
from rmqlb.views.numbers import percent
from rmqlb.views.report import Report, Rows, Section, first_places, section_of

_MOST_KEYS = 20
_MOST_PAIRS = 5
_GRPC = "gRPC"
_GRPC_LINES = {
    "cluster": "gRPC: the Proxy picks the queue by the message group, for every SDK (--proxy-mode cluster)",
    "local": "gRPC: the SDK picks the broker, and the broker's Proxy picks the queue (--proxy-mode local)",
}
_PAIR = columns_of(SdkPair, "sdk=SDK otherSdk=other_SDK differ differShare=share")


Shown = dict[str, KeyedSdk]
"""The columns of the screen by title: an SDK each, or the first gRPC SDK for all whose queue the Proxy picks."""


def key_queues_report(found: KeyQueues) -> Report:
    grpc = [each for each in found.sdks if each.grpc]
    shown: Shown = {each.sdk: each for each in found.sdks}
    if found.proxy_mode == "cluster" and len(grpc) > 1:
        shown = {each.sdk: each for each in found.sdks if not each.grpc} | {_GRPC: grpc[0]}
    known = {title: sdk for title, sdk in shown.items() if sdk.unknown is None}
    title, chosen = f"keys that go to different queues (of {len(found.keys)})", f"the {_MOST_PAIRS} largest"
    differing = section_of("pairs", title, _PAIR, found.pairs, first=_MOST_PAIRS, chosen=chosen)
    moved = (_moved_screen(known),) if found.changes else ()
    facts = (*_change_facts(found, known), *_sdk_facts(found, known))
    sections = (*moved, _keys_screen(found, shown), _keys_lines(found))
    sections += (*([differing] if found.pairs else ()), _sdks(found))
    rows, closing = Rows(("key",), [({}, row) for row in found.keys]), (_GRPC_LINES[found.proxy_mode],) if grpc else ()
    return Report("rmqlb/key-queues", found, facts, sections, rows=rows, closing=closing)


def _sdk_facts(found: KeyQueues, known: Shown) -> Iterator[str]:
    where = f"{found.topic}, {counted(len(found.keys), 'key')} on {counted(found.writable_queues, 'queue')}"
    differ = sum(len({_place(row.queues[sdk.sdk]) for sdk in known.values()}) > 1 for row in found.keys)
    names = ", ".join(known)
    if not known:
        yield f"{where}: their queues are unknown"
    elif len(known) == 1:
        sdk = known[names]
        used = counted(sdk.queues_used or 0, "queue")
        yield f"{where}: {names} uses {used}, with at most {counted(sdk.most_keys or 0, 'key')} in one"
    elif differ:
        goes = "goes" if differ == 1 else "go"
        yield f"{where}: {differ} {goes} to different queues, depending on the SDK ({names})"
    else:
        yield f"{where}: each goes to the same queue with every SDK ({names})"


def _change_facts(found: KeyQueues, known: Shown) -> Iterator[str]:
    if found.changes:
        shares = (
            f"{title} {sdk.moved} ({percent(sdk.moved_share or 0)})"
            for title, sdk in known.items()
            if sdk.moved is not None
        )
        moved = ", ".join(shares) or "unknown"
        yield f"{found.topic}, {', '.join(found.changes)}: keys that move, of {len(found.keys)}: {moved}"


def _keys_screen(found: KeyQueues, shown: Shown) -> Section:
    columns = (Column("key", "key"), *(Column(title, sdk.sdk, fold=i) for i, (title, sdk) in enumerate(shown.items())))
    return Section(
        "keys",
        "queues of the keys",
        columns,
        tuple((row.key, *(_cell(row, sdk) for sdk in shown.values())) for row in found.keys),
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
    columns = columns_from(
        "key sdk=SDK brokerName=broker queueId=queue:number brokerNamePicked/hidden queueIdPicked:number/hidden "
        "brokerNameAfter=broker_after queueIdAfter=queue_after:number",
        hidden=() if found.changes else ("brokerNameAfter", "queueIdAfter"),
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


def _moved_screen(known: Shown) -> Section:
    columns = columns_of(KeyedSdk, "sdk=SDK moved=keys_moved movedShare=share queuesUsed")
    rows = tuple((title, *row[1:]) for title, row in zip(known, rows_of(columns, known.values()), strict=True))
    return Section("moved", "keys that move to another queue", columns, rows, audience="screen")


def _sdks(found: KeyQueues) -> Section:
    hidden = () if found.changes else ("moved", "movedShare")
    keys = "sdk=SDK mirrors vectors live:text queuesUsed mostKeys moved movedShare unknown:prose? note:prose"
    columns = columns_of(KeyedSdk, keys, hidden=hidden)
    return section_of("sdks", "SDKs", columns, found.sdks, named_only=True)
