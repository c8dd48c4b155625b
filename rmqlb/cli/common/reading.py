"""The snapshot that a command works on, its source, and the secrets that open it."""

from __future__ import annotations

import os
import sys
from contextlib import AbstractContextManager
from copy import copy
from functools import cache

from msgspec.structs import replace

from rmqlb.cli.common.options import SourceOptions
from rmqlb.cli.common.terminal import Terminal
from rmqlb.errors import DataError, UsageError
from rmqlb.model.configuration import secret_place
from rmqlb.model.progress import Progress, no_progress
from rmqlb.model.snapshot import ClusterSnapshot, Wanted
from rmqlb.sources.opening import Access
from rmqlb.verbs import amounts
from rmqlb.verbs.source import Earlier, TextReader, earlier
from rmqlb.views.formats.text import visible


class Reader(TextReader):
    """The source of a command, read with progress on the terminal."""

    def __init__(self, options: SourceOptions, terminal: Terminal, *, stages: bool = False) -> None:
        if options.source is None:
            hint = "name rocketmq://HOST:9876, a Dashboard's URL, a file or - with -s, or set RMQLB_SOURCE or --context"
            raise UsageError("no source", hint=hint, code="no-source")
        super().__init__(options.source, access(options, terminal))
        self._options = options
        self._terminal = terminal
        self._stages = stages and self.live

    def hurried(self, timeout_s: float) -> Reader:
        """The same source, which waits for an answer for so long at most, and asks once."""
        reader = copy(self)
        reader.access = replace(self.access, timeout=min(self.access.timeout, timeout_s), retries=0)
        return reader

    def telling(self) -> AbstractContextManager[Progress]:
        return self._terminal.progress()

    def fetch(self, wanted: Wanted, progress: Progress = no_progress) -> ClusterSnapshot:  # noqa: ARG002 - a Reader's
        source, context = self.open_for_another_reading(), self._options.active_context
        if context is not None:
            self._terminal.head(f"context {context.name}: {context.source}")
        elif self._options.ignored_context_note is not None:
            self._terminal.head(self._options.ignored_context_note)
        with self._terminal.progress(stages=self._stages) as shown:
            snapshot = source.fetch(wanted, shown)
        return snapshot if context is None else replace(snapshot, context=context.name)


def fetch(options: SourceOptions, wanted: Wanted, terminal: Terminal, *, stages: bool = False) -> ClusterSnapshot:
    return Reader(options, terminal, stages=stages).fetch(wanted)


def access(options: SourceOptions, terminal: Terminal) -> Access:
    """How to reach the source; a secret is asked for when it is needed, and once."""

    @cache
    def asked_password(user: str) -> str:
        terminal.pause_progress()
        return password(user, options)

    @cache
    def asked_secret_key() -> str:
        terminal.pause_progress()
        return secret_key(options)

    return Access(
        user=options.user,
        password=asked_password,
        ca_file=options.ca_file,
        timeout=amounts.seconds(options.source_timeout, "--source-timeout"),
        retries=options.source_retries,
        max_bytes=amounts.byte_count(options.max_size, "--max-size"),
        access_key=options.access_key,
        secret_key=asked_secret_key,
        security_token=security_token(),
        client_cert=options.client_cert,
        client_key=options.client_key,
        tls_name=options.tls_name,
        map_address=tuple(options.map_address or ()),
        proxies=tuple(options.proxy or ()),
        deadline_s=amounts.seconds(options.deadline, "--deadline"),
    )


def earlier_snapshot(options: SourceOptions, path: str | None, terminal: Terminal) -> Earlier | None:
    """The snapshot that `--rates-since` names (raises UsageError)."""
    if options.source == "-" and path == "-":
        raise UsageError("-s - and --rates-since - both read stdin")
    found = earlier(path)
    if found is None:
        return None
    own = replace(options, source=path, active_context=None, ignored_context_note=None)
    return Earlier(Reader(own, terminal), found.option)


def file_of_keys(path: str, source: str | None, max_size: str) -> list[str]:
    """The keys of `--keys-file`, one per line (raises UsageError, DataError)."""
    from rmqlb.sources.user_files.text_file import read_text
    from rmqlb.verbs.amounts import byte_count
    from rmqlb.verbs.parse import lines_of

    if source == "-" and path == "-":
        raise UsageError("-s - and --keys-file - both read stdin")
    lines = lines_of(read_text(path, "--keys-file", byte_count(max_size, "--max-size")))
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            raise DataError(f"--keys-file {path}: line {number} is blank", hint="one key per line")
    return lines


def password(user: str, options: SourceOptions) -> str:
    return _secret(f"password for {user}", options, options.password_file, "--password-file", "RMQLB_PASSWORD")


def secret_key(options: SourceOptions) -> str:
    return _secret("secret key", options, options.secret_key_file, "--secret-key-file", "RMQLB_SECRET_KEY")


def security_token() -> str | None:
    return os.environ.get("RMQLB_SECURITY_TOKEN") or None


def _secret(what: str, options: SourceOptions, path: str | None, option: str, variable: str) -> str:
    """From a file, the environment, the context, or a prompt on the terminal; never from an option's value."""
    from rmqlb.sources.user_files.secrets import read_secret, secret_in_file

    if path is not None:
        return secret_in_file(path, f"{option} {path}")
    if os.environ.get(variable):
        return os.environ[variable]
    context = options.active_context
    if context is not None and context.secret is not None:
        where = context.secret.origin
        return read_secret(secret_place(str(context.secret.value), where), where, os.environ)
    if sys.stdin is not None and sys.stdin.isatty():
        from getpass import getpass

        return getpass(visible(f"{what[:1].upper()}{what[1:]}: "), stream=sys.stderr)
    raise UsageError(f"no {what}", hint=f"set {variable} or name a {option}", code="no-secret")
