import os
import time
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import typer
from msgspec.structs import replace

from rmqlb.cli.click import ParameterSource, get_current_context
from rmqlb.cli.common.declare import Options, Text, Texts, about, command, own
from rmqlb.cli.common.options import OutputOptions, SourceOptions
from rmqlb.cli.common.output_files import cannot_write, snapshot_envelope, write_whole
from rmqlb.cli.common.reading import Reading, access, source_of_context
from rmqlb.cli.common.terminal import Terminal
from rmqlb.cli.exit_codes import ExitCode
from rmqlb.cli.settings import read_configuration
from rmqlb.errors import DataError, EndpointError, RmqlbError, UsageError
from rmqlb.model.result import Finding, counted
from rmqlb.model.snapshot import ClusterSnapshot, Everything
from rmqlb.sources.pace import ask_concurrently
from rmqlb.verbs import amounts
from rmqlb.verbs.fetch_routes import fetch_source
from rmqlb.verbs.source import TextReader

if TYPE_CHECKING:
    from rmqlb.model.result import Meta

_FORMATS = ("json", "yaml", "jsonl")
_AT_ONCE = 8  # contexts' clusters that are read at the same time


class FetchOptions(Options):
    topic: Texts = own("-t GLOB", "Topics by name or pattern ('pay-*'); default: all; repeatable.")
    group: Texts = own(
        "-g GLOB", "Consumer groups by name or pattern ('pay-*'); default: all; repeatable.", positional="GROUP"
    )
    system: bool = about.flag("Include RocketMQ's own topics and groups.")
    evidence: bool = about.flag(
        "Include the consumer data that diagnose needs. It covers queues, times, rates and limits; a consumer of "
        "several groups is queried at most once per second."
    )
    to: Text = own("PATH", "Write to this file; with --every, to this directory.")
    every: Text = own("TIME", "Time between samples. Fetching continues until Ctrl-C.")
    all_contexts: bool = own.flag("Fetch the cluster of every context. Each gets a folder under --to.")
    redact: bool = own.flag(
        "Replace all names and addresses. The new names sort like the old ones, so the owners stay the same."
    )
    redact_map: Text = own("FILE", "File for the map of old to new names; mode 0600. Needs --redact.")


@command(formats=_FORMATS, without=("no_pager", "section", "all"))
def fetch_routes(source: SourceOptions, output: OutputOptions, options: FetchOptions) -> None:
    """Write a snapshot of a cluster: its routes, groups, consumers, owners and offsets.

    rmqlb snapshot is the same command.

    If a part of the cluster cannot be read, the rest is written, and the missing part is listed on stderr and in the
    snapshot. With -o jsonl, each line is a snapshot of one topic or group; -s reads all lines or some of them.

    Examples:
      rmqlb fetch-routes -s rocketmq://127.0.0.1:9876 --evidence --to cluster.json
      rmqlb fetch-routes -s examples/cluster.json --group 'order-*' -o yaml
      rmqlb fetch-routes -s examples/cluster.json --redact
      rmqlb fetch-routes -s rocketmq://127.0.0.1:9876 --every 5m --to snapshots
      rmqlb fetch-routes -s examples/cluster.json -o jsonl
      rmqlb fetch-routes --all-contexts --to snapshots

    If one context fails under --all-contexts, the others are still fetched, and the exit code is 4.

    With --every, each snapshot becomes a file in a folder of its date, for rmqlb pipeline. If a fetch fails after the
    first one, rmqlb reports the error and tries again.

    --redact keeps numbers, times and client versions, and drops stack traces. CONSISTENT_HASH hashes names, so it
    assigns queues to other consumers after --redact; every other strategy assigns each queue to the same consumer.

    Exit codes: 0 done, 2 usage, 4 the snapshot is incomplete, 5 endpoint unreachable.
    """
    output = output.but(output=output.output or "json")
    _check(output, options)
    terminal = Terminal("fetch-routes", output, more_formats=("jsonl",))
    everything = Everything(tuple(options.topic or ()), tuple(options.group or ()), options.system)
    to, redact, evidence = options.to, options.redact, options.evidence
    if options.all_contexts:
        _fetch_all_contexts(source, everything, options, terminal)
        return
    if options.every is not None:
        _fetch_repeatedly(Reading(source, terminal), everything, options.every, options, terminal)
        return
    with terminal.progress(verb="renaming") as progress:
        reader = Reading(source, terminal, stages=True)
        meta, names = fetch_source(reader, everything, evidence=evidence, redact=redact, progress=progress)
    if names is not None and options.redact_map is not None:
        from msgspec import to_builtins

        from rmqlb.views.formats.machine import as_json

        # Only the user can read which name became which.
        text = as_json({"schema": "rmqlb/redact-map", **to_builtins(names)})
        write_whole(options.redact_map, text, "--redact-map", mode=0o600)
    snapshot = meta.snapshot
    with terminal.progress(verb="writing") as progress:
        progress("the snapshot", 0, 0)
        text = _text(snapshot, meta.findings, terminal)
    if to is None or to == "-":
        terminal.write(text)
    else:
        write_whole(to, text, "--to")
        written = f"{counted(len(snapshot.routes), 'topic')} and {counted(len(snapshot.groups), 'group')}"
        terminal.say(f"snapshot of {written} written to {to}")
    terminal.warn(meta.findings)
    if snapshot.unread:
        terminal.say(f"incomplete: {counted(len(snapshot.unread), 'part')} could not be read")
        raise typer.Exit(ExitCode.DATA)


def _check(output: OutputOptions, options: FetchOptions) -> None:
    if output.output not in _FORMATS:
        raise UsageError(f"a snapshot cannot be written as {output.output}", hint="pass -o json, yaml or jsonl")
    if options.redact_map is not None and (not options.redact or options.redact_map == "-"):
        text = "--redact-map - would print the original names" if options.redact else "--redact-map needs --redact"
        raise UsageError(text, hint="name a private file")


def _fetch_repeatedly(
    reader: Reading, everything: Everything, every: str, options: FetchOptions, terminal: Terminal
) -> None:
    from rmqlb.cli.common.watch import LEAST_S, heeding_an_end

    folder = None if options.redact else options.to
    every_s = amounts.duration_us(every, "--every") / 1e6
    if not reader.live or folder in (None, "-") or terminal.format != "json" or every_s < LEAST_S:
        hint = "--every needs a running cluster, at least 1s, a directory in --to, -o json, and no --redact"
        raise UsageError("--every cannot be combined with these options", hint=hint)
    written = 0
    with heeding_an_end(), suppress(KeyboardInterrupt):
        while True:
            began = time.monotonic()
            try:
                meta, _ = fetch_source(reader, everything, evidence=options.evidence, redact=False, spaced=True)
                _write_into(folder or "", meta)
                written += 1
            except (DataError, EndpointError) as error:
                if not written:
                    raise
                terminal.say(f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}: the fetch failed: {error.message}")
            terminal.repeating = True
            time.sleep(max(began + every_s - time.monotonic(), LEAST_S))
    terminal.say(f"{counted(written, 'snapshot')} written to {folder}")


def _fetch_all_contexts(
    source: SourceOptions, everything: Everything, options: FetchOptions, terminal: Terminal
) -> None:
    """Write a snapshot of each context's cluster below `cluster=CONTEXT`, and report the incomplete ones."""
    folder = options.to or ""
    contexts = _contexts(options, terminal)
    readers: dict[str, TextReader] = {}
    faults: dict[str, str] = {}
    written = 0

    def fetch(context: str) -> int:
        meta, _ = fetch_source(readers[context], everything, evidence=options.evidence, redact=False)
        meta = replace(meta, snapshot=replace(meta.snapshot, context=context))
        _write_into(os.path.join(folder, f"cluster={context}"), meta)
        return len(meta.snapshot.unread)

    for context in contexts:
        try:
            readers[context] = _reader(context, source, terminal)
        except RmqlbError as error:
            faults[context] = error.message
    with terminal.progress(verb="fetching") as progress, ask_concurrently(fetch, [*readers], _AT_ONCE) as answers:
        for number, (context, answer) in enumerate(zip(readers, answers, strict=True)):
            progress("contexts", number, len(readers))
            try:
                if unread := answer.result():
                    faults[context] = f"incomplete: {counted(unread, 'part')} could not be read"
                written += 1
            except RmqlbError as error:
                faults[context] = error.message
    terminal.say(f"{counted(written, 'snapshot')} written to {folder}")
    for context in sorted(faults):
        terminal.say(f"{context}: {faults[context]}")
    if faults:
        text = f"{len(faults)} of {counted(len(contexts), 'context')} not read completely: {', '.join(sorted(faults))}"
        raise DataError(text)


def _contexts(options: FetchOptions, terminal: Terminal) -> list[str]:
    if options.redact or options.every is not None:
        raise UsageError("--all-contexts does not work with --every or --redact", hint="leave out --every and --redact")
    line = get_current_context()
    for name in ("source", "context"):
        if line.get_parameter_source(name) in (ParameterSource.COMMANDLINE, ParameterSource.ENVIRONMENT):
            raise UsageError(
                f"--all-contexts and --{name} contradict each other",
                hint=f"leave out --{name} and RMQLB_{name.upper()}",
            )
    if options.to in (None, "-") or terminal.format != "json":
        raise UsageError(
            "--all-contexts needs a folder", hint="pass a folder such as --to snapshots, and no -o other than json"
        )
    contexts = sorted(read_configuration().contexts)
    if not contexts:
        raise UsageError("there is no context to read", hint="rmqlb context add creates one")
    return contexts


def _reader(context: str, options: SourceOptions, terminal: Terminal) -> TextReader:
    own = source_of_context(context, options)
    found = TextReader(own.source or "", access(own, terminal))
    found.open()
    if own.user is not None and found.access.password is not None:
        found.access.password(own.user)
    if own.access_key is not None and found.access.secret_key is not None:
        found.access.secret_key()
    return found


def _write_into(folder: str, meta: "Meta") -> None:
    import gzip

    from rmqlb.sources.atomic_file import new_file
    from rmqlb.views.formats.machine import as_json

    text, at = as_json(snapshot_envelope(meta.snapshot, meta.findings)), datetime.now(UTC)
    path = os.path.join(folder, f"date={at:%Y-%m-%d}", f"{at:%H%M%S.%f}Z.json.gz")
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with new_file(path) as file:
            file.write(gzip.compress(text.encode(), mtime=0))
    except (OSError, ValueError) as error:
        raise cannot_write("--to", folder, error) from None


def _text(snapshot: ClusterSnapshot, findings: Sequence[Finding], terminal: Terminal) -> str:
    from rmqlb.views.formats.machine import as_json, as_json_lines, as_yaml

    if terminal.format == "jsonl":
        return as_json_lines(snapshot_envelope(part, () if n else findings) for n, part in enumerate(snapshot.parts()))
    write = as_json if terminal.format == "json" else as_yaml
    return write(snapshot_envelope(snapshot, findings))
