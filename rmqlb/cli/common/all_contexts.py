"""`rmqlb fetch-routes --all-contexts`: a snapshot of each context's cluster, for `rmqlb pipeline`."""

from __future__ import annotations

import os
from collections.abc import Callable

from msgspec.structs import replace

from rmqlb.cli.click import ParameterSource, get_current_context
from rmqlb.cli.common.options import SourceOptions
from rmqlb.cli.common.reading import access, source_of_context
from rmqlb.cli.common.terminal import Terminal
from rmqlb.cli.settings import read_configuration
from rmqlb.errors import DataError, RmqlbError, UsageError
from rmqlb.model.result import Meta
from rmqlb.model.snapshot import Everything
from rmqlb.model.words import counted
from rmqlb.sources.pace import ask_concurrently
from rmqlb.verbs.fetch_routes import fetch_source
from rmqlb.verbs.source import TextReader

AT_ONCE = 8
"""Clusters that are read at the same time."""


def fetch_all_contexts(
    options: SourceOptions,
    everything: Everything,
    folder: str | None,
    terminal: Terminal,
    write: Callable[[str, Meta], None],
    *,
    evidence: bool,
) -> None:
    """Write a snapshot of each context's cluster below `cluster=CONTEXT`, and report the incomplete ones.

    Args:
        write: writes a snapshot into a folder.

    Raises:
        UsageError: another source is named too, there is no folder, or there are no contexts.
        DataError: a context could not be read, or not whole; the others are written.
    """
    contexts = _contexts(folder, terminal)
    readers: dict[str, TextReader] = {}
    failures: dict[str, str] = {}
    faults: dict[str, str] = {}

    def fetch(context: str) -> None:
        try:
            meta, _ = fetch_source(readers[context], everything, evidence=evidence, redact=False)
            meta = replace(meta, snapshot=replace(meta.snapshot, context=context))
            write(os.path.join(folder or "", f"cluster={context}"), meta)
        except RmqlbError as error:
            failures[context] = error.message
            return
        if unread := len(meta.snapshot.unread):
            faults[context] = f"incomplete: {counted(unread, 'part')} could not be read"

    for context in contexts:
        try:
            readers[context] = _reader(context, options, terminal)
        except RmqlbError as error:
            failures[context] = error.message
    with terminal.progress(verb="fetching") as progress, ask_concurrently(fetch, [*readers], AT_ONCE) as answers:
        for number, answer in enumerate(answers):
            progress("contexts", number, len(readers))
            answer.result()
    terminal.say(f"{counted(len(contexts) - len(failures), 'snapshot')} written to {folder}")
    faults |= failures
    for context in sorted(faults):
        terminal.say(f"{context}: {faults[context]}")
    if faults:
        text = f"{len(faults)} of {counted(len(contexts), 'context')} not read whole: {', '.join(sorted(faults))}"
        raise DataError(text)


def _contexts(folder: str | None, terminal: Terminal) -> list[str]:
    """The names of all contexts (raises UsageError)."""
    line = get_current_context()
    for name in ("source", "context"):
        if line.get_parameter_source(name) in (ParameterSource.COMMANDLINE, ParameterSource.ENVIRONMENT):
            raise UsageError(f"--all-contexts and --{name}", hint=f"leave out --{name} and RMQLB_{name.upper()}")
    if folder in (None, "-") or terminal.format != "json":
        raise UsageError("--all-contexts needs a folder", hint="--to snapshots, and no other -o than json")
    contexts = sorted(read_configuration().contexts)
    if not contexts:
        raise UsageError("there is no context to read", hint="rmqlb context add makes one")
    return contexts


def _reader(context: str, options: SourceOptions, terminal: Terminal) -> TextReader:
    """The context's source; its secrets are read here, one context after the other, since they may be asked for."""
    own = source_of_context(context, options)
    found = TextReader(own.source or "", access(own, terminal))
    found.open()
    if own.user is not None and found.access.password is not None:
        found.access.password(own.user)
    if own.access_key is not None and found.access.secret_key is not None:
        found.access.secret_key()
    return found
