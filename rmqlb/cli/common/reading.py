"""The snapshot that a command works on, its source, and the secrets that open the source."""

import os
import sys
from collections.abc import Callable, Sequence
from copy import copy
from functools import cache, partial
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec.structs import replace

from rmqlb.cli.click import get_current_context
from rmqlb.cli.common.declare import Options
from rmqlb.cli.common.options import EarlierOptions, SourceOptions
from rmqlb.cli.common.terminal import Terminal
from rmqlb.cli.settings import context_named, read_configuration, resolve_options
from rmqlb.errors import DataError, UsageError
from rmqlb.model.configuration import Setting
from rmqlb.model.result import Progress, no_progress
from rmqlb.model.snapshot import ClusterSnapshot, Wanted, suggestion
from rmqlb.sources.source import Access
from rmqlb.verbs import amounts
from rmqlb.verbs.source import Earlier, TextReader, earlier
from rmqlb.views.formats.text import visible

if TYPE_CHECKING:
    from rmqlb.sources.dump import DumpSource
    from rmqlb.sources.live import LiveSource

Shown = TypeVar("Shown")


class Reading(TextReader):
    """The source of a command, read with progress on the terminal (raises UsageError when there is none)."""

    def __init__(self, options: SourceOptions, terminal: Terminal, *, stages: bool = False) -> None:
        if options.source is None:
            hint = "pass -n HOST:9876 (NameServers), -s http://HOST (Dashboard) or -s FILE; or run rmqlb context add"
            raise UsageError("no source: which cluster or snapshot?", hint=hint, code="no-source")
        super().__init__(options.source, access(options, terminal))
        self._options = options
        self._terminal = terminal
        self._stages = stages and self.live

    def hurried(self, timeout_s: float) -> "Reading":
        """The same source with at most this request timeout, and without retries."""
        reader = copy(self)
        reader.access = replace(self.access, timeout=min(self.access.timeout, timeout_s), retries=0)
        return reader

    def of_file(self, path: str) -> "Reading":
        return Reading(self._options.but(source=path, active_context=None, ignored_context_note=None), self._terminal)

    def open(self) -> "DumpSource | LiveSource":
        source = super().open()
        source.shown = self._terminal.progress
        return source

    def fetch(self, wanted: Wanted, progress: Progress = no_progress) -> ClusterSnapshot:  # noqa: ARG002 - a Reader's
        source, context = self.open_for_another_reading(), self._options.active_context
        if context is not None:
            self._terminal.head(f"context {context.name}: {context.text('source')}")
        elif self._options.ignored_context_note is not None:
            self._terminal.head(self._options.ignored_context_note)
        with self._terminal.progress(stages=self._stages) as shown:
            snapshot = source.fetch(wanted, shown)
        return snapshot if context is None else replace(snapshot, context=context.name)


def access(options: SourceOptions, terminal: Terminal) -> Access:
    """How to reach the source; a secret is asked for once, when it is needed."""
    return Access(
        user=options.user,
        password=cache(lambda user: _secret("password", f"password for {user}", options, terminal)),
        ca_file=options.ca_file,
        timeout=amounts.seconds(options.source_timeout, "--source-timeout"),
        retries=options.source_retries,
        max_bytes=amounts.byte_count(options.max_size, "--max-size"),
        access_key=options.access_key,
        secret_key=cache(lambda: _secret("secret_key", "secret key", options, terminal)),
        security_token=os.environ.get("RMQLB_SECURITY_TOKEN") or None,
        client_cert=options.client_cert,
        client_key=options.client_key,
        tls_name=options.tls_name,
        map_address=tuple(options.map_address or ()),
        proxies=tuple(options.proxy or ()),
        deadline_s=amounts.seconds(options.deadline, "--deadline"),
    )


def _secret(name: str, what: str, options: SourceOptions, terminal: Terminal) -> str:
    from rmqlb.sources.user_files.secrets import read_secret, secret_in_file

    terminal.pause_progress()
    path: str | None = getattr(options, f"{name}_file")
    option, variable = options.option(f"{name}_file"), f"RMQLB_{name.upper()}"
    if path is not None:
        return secret_in_file(path, f"{option} {path}")
    if os.environ.get(variable):
        return os.environ[variable]
    written = None if options.active_context is None else options.active_context.values.get("secret")
    if written is not None:
        return read_secret(str(written.value), written.origin, os.environ)
    if sys.stdin is not None and sys.stdin.isatty():
        from getpass import getpass

        return getpass(visible(f"{what[:1].upper()}{what[1:]}: "), stream=sys.stderr)
    raise UsageError(f"no {what}", hint=f"set {variable} or name a {option}", code="no-secret")


def named_source(text: str, options: SourceOptions) -> SourceOptions:
    """The options of a source that is named alone: a URL, a file, `-`, or a context where no file has the name."""
    if ":" in text or text in ("", "-") or os.path.exists(text):
        return options.but(source=text)
    contexts = read_configuration().contexts
    if text not in contexts:
        hint = suggestion("contexts", text, contexts) if contexts else "a source is a URL, a file, or - for stdin"
        raise DataError(f"{text}: neither a file nor a context has this name", hint=hint, code="cannot-read")
    return source_of_context(text, options)


def source_of_context(name: str, options: SourceOptions) -> SourceOptions:
    settled = resolve_options(get_current_context(), chosen=Setting("context", name, "flag", name))
    own = {key: value for key, value in settled.values().items() if key in options.fields}
    own["source"] = context_named(name, settled.config).text("source")
    return options.but(**own, active_context=settled.active_context)


def ask(verb: Callable[..., Shown], reader: Reading, options: Options, **more: Any) -> Callable[..., Shown]:
    """A verb with its source and its arguments, which the fields of the options are (raises UsageError)."""
    given = options.arguments()
    if isinstance(options, EarlierOptions):
        given["earlier"] = earlier_files(options.earlier or (), reader)
    given |= more
    since = given.get("rates_since")
    if since is not None and amounts.spacing(since, option := options.option("rates_since")) is None:
        found = earlier(since, option)
        given["rates_since"] = found and Earlier(reader.of_file(since), found.option)
    return partial(verb, reader, **given)


def earlier_files(files: Sequence[str], reader: Reading) -> tuple[Earlier, ...]:
    """The snapshots that `--earlier` names (raises UsageError)."""
    named = {file: "stdin" if file == "-" else file for file in files}
    return tuple(Earlier(reader.of_file(file), name) for file, name in named.items() if earlier(file))


def keys_in(path: str, max_size: str) -> list[str]:
    from rmqlb.sources.user_files.text_file import read_text
    from rmqlb.verbs.parse import lines_of

    lines = lines_of(read_text(path, "--keys", amounts.byte_count(max_size, "--max-size")))
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            raise DataError(f"--keys {path}: line {number} is blank", hint="write one key per line")
    return lines
