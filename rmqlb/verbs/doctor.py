import os
from typing import Literal

from rmqlb.model.doctor import SourceCheck
from rmqlb.model.result import Meta, Progress, no_progress, with_meta
from rmqlb.model.snapshot import ClusterSnapshot
from rmqlb.sources.source_text import shown_source
from rmqlb.verbs.source import TextReader


def doctor(source: str | os.PathLike[str] | TextReader, *, progress: Progress = no_progress) -> SourceCheck:
    """Check a source step by step: a cluster's servers, their protocol, permissions and clocks; or a file.

    A server that does not work is part of the result (raises UsageError for a text that names no source).
    """
    from rmqlb.sources.doctor import check_source
    from rmqlb.sources.source import Access

    read = source if isinstance(source, TextReader) else TextReader(os.fspath(source), Access())
    steps = tuple(check_source(read.text, read.access, progress))
    shown = shown_source(read.text)
    answers = any(each.step in ("NameServer", "permissions") and each.status == "works" for each in steps)
    status: Literal["works", "partly", "fails"] = "partly" if answers else "fails"
    if all(each.status != "fails" for each in steps):
        status = "works"
    kind = "dump" if not read.live else "dashboard" if shown.lower().startswith("http") else "nameserver"
    return with_meta(SourceCheck(shown, status, steps), Meta(ClusterSnapshot(kind, shown)))
