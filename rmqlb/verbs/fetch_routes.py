from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from rmqlb.engine.source_findings import source_findings
from rmqlb.model.result import Meta, Progress, Snapshot, no_progress, with_meta
from rmqlb.model.snapshot import Everything, Wanted
from rmqlb.verbs.parse import in_vain_of, names_of
from rmqlb.verbs.source import AnySource, Reader, reader

if TYPE_CHECKING:
    from rmqlb.engine.redact import Renaming


def fetch_routes(
    source: AnySource,
    *,
    topics: str | Sequence[str] = (),
    groups: str | Sequence[str] = (),
    system: bool = False,
    evidence: bool = False,
    redact: bool = False,
) -> Snapshot:
    """Read a snapshot of a cluster: its routes, groups, consumers, owners and offsets.

    Every verb takes the result as its source, so that a cluster is read once; its `unread` lists the parts that could
    not be read.
    """
    from rmqlb.sources.formats.snapshot_file import to_document

    everything = Everything(names_of(topics), names_of(groups), system)
    meta, _ = fetch_source(reader(source), everything, evidence=evidence, redact=redact)
    found = {key: tuple(value) for key, value in to_document(meta.snapshot).items()}
    return with_meta(Snapshot(**found), meta)


def fetch_source(
    source: Reader,
    everything: Everything,
    *,
    evidence: bool,
    redact: bool,
    spaced: bool = False,
    progress: Progress = no_progress,
) -> "tuple[Meta, Renaming | None]":
    """The wanted parts of the source, and which name became which under `redact` (raises RmqlbError)."""
    read = source.fetch(Wanted(everything=everything, evidence=evidence, spaced=spaced))
    routes = {name: sighting for name, sighting in read.routes.items() if everything.takes_topic(name)}
    groups = {name: seen for name, seen in read.groups.items() if everything.takes_group(name)}
    in_vain = [
        *in_vain_of("topic", everything.topics, read.routes, routes, read.endpoint, names_globs=not redact),
        *in_vain_of("group", everything.groups, read.groups, groups, read.endpoint, names_globs=not redact),
    ]
    snapshot = replace(read, routes=routes, groups=groups)
    names: Renaming | None = None
    if redact:
        from rmqlb.engine.redact import redact as renamed

        progress("everything", 0, 0)
        snapshot, names = renamed(snapshot)
    return Meta(snapshot, (*source_findings(snapshot), *in_vain)), names
