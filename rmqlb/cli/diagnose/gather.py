"""The looks at each group that `diagnose` is about: earlier snapshots, one reading, and more where that decides."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from msgspec.structs import replace

from rmqlb.cli.common import amounts
from rmqlb.cli.common.options import SourceOptions
from rmqlb.cli.common.reading import Reader
from rmqlb.cli.common.terminal import Terminal
from rmqlb.cli.diagnose.options import DiagnoseOptions, LookOptions
from rmqlb.engine.allocate.strategy import Settings
from rmqlb.engine.diagnose.group_looks import evidence_of, must_be_earlier, with_stacks
from rmqlb.engine.diagnose.looks import wants_another, worth_stacks
from rmqlb.engine.group import all_groups
from rmqlb.errors import DataError, EndpointError, UsageError
from rmqlb.model.finding import Finding
from rmqlb.model.snapshot import ClusterSnapshot, Everything, Wanted, is_pattern
from rmqlb.sources.source_text import is_live, shown_source
from rmqlb.verbs.globs import each_matches

Looks = tuple[ClusterSnapshot, ...]
SettingsOf = Callable[[Sequence[str], str | None], Settings]
_FILE_HINT = "name a snapshot that fetch-routes wrote before"
_SHORTEST_S = 1.0
"""A consumer is asked for its running information at most once a second."""


class Gatherer:
    """Reads the groups that are asked for, as often as their rules need; one that is watched, once per look."""

    def __init__(
        self,
        source: SourceOptions,
        chosen: DiagnoseOptions,
        looking: LookOptions,
        terminal: Terminal,
        settings_of: SettingsOf,
        *,
        watched: bool,
    ) -> None:
        self._read = Reader(source, terminal)
        self._names = _names(chosen)
        self.several = chosen.all_groups or len(self._names) > 1 or any(map(is_pattern, self._names))
        self._interval_s = amounts.seconds(looking.interval, "--interval")
        if self._interval_s < _SHORTEST_S:
            raise UsageError(
                f"--interval {looking.interval}: shorter than 1s", hint="a consumer is asked once a second at most"
            )
        self._most = looking.looks
        self._source = source
        self._live = is_live(source.source)
        self._stacks = looking.stacks
        if self._stacks and not self._live:
            raise UsageError(
                "--stacks asks running consumers, and the source is no running cluster",
                hint="leave it out, or name rocketmq://HOST:9876 with -s",
            )
        self._terminal = terminal
        self._settings_of = settings_of
        self._watched = watched
        self._earlier_files = _files(looking, source)
        self._earlier: list[ClusterSnapshot] | None = None

    def look(self) -> tuple[dict[str, Looks], tuple[Finding, ...]]:
        """Each group's looks, the oldest first, and what is to be said of them."""
        now = self._read(self._wanted(self._names))
        present = all_groups(now)
        names = self._present(now, present)
        earlier = self._earlier_looks(now, names)
        looks = dict.fromkeys(names, (*earlier, now))
        findings: tuple[Finding, ...] = ()
        if self._watched:
            self._remember(now)
        elif self._live:
            findings = self._look_again(looks)
        if self._stacks:
            looks = {name: self._with_stacks(name, its) for name, its in looks.items()}
        return looks, findings

    def _wanted(self, names: Sequence[str]) -> Wanted:
        if not names:
            return Wanted(everything=Everything(of_groups=True), evidence=True)
        if len(names) == 1 and not is_pattern(names[0]):
            return Wanted(group=names[0], evidence=True)
        return Wanted(several=tuple(names), evidence=True)

    def _wanted_again(self, names: Sequence[str]) -> Wanted:
        """Several at once, where one that cannot be read any more does not keep the others from being read."""
        if len(names) == 1:
            return self._wanted(names)
        groups = Everything(groups=tuple(names), of_groups=True)
        return Wanted(everything=groups, evidence=True)

    def _present(self, now: ClusterSnapshot, present: Sequence[str]) -> tuple[str, ...]:
        if not self._names:
            if not present:
                raise DataError(f"no consumer group is in {now.endpoint}", code="consumers-unknown")
            return tuple(name for name in present if Everything().takes_group(name))
        names = Wanted(several=self._names).groups_among(present)
        each_matches("group", self._names, present, [name for name in names if name in present], now.endpoint)
        return names

    def _earlier_looks(self, now: ClusterSnapshot, names: Sequence[str]) -> tuple[ClusterSnapshot, ...]:
        if self._earlier is None:
            read = []
            for path in self._earlier_files:
                options = replace(self._source, source=path, active_context=None, ignored_context_note=None)
                wanted = Wanted(everything=Everything(groups=tuple(names)), evidence=True)
                read.append((path, Reader(options, self._terminal)(wanted)))
            self._earlier = list(must_be_earlier(read, now, names))
        return tuple(self._earlier)

    def _remember(self, now: ClusterSnapshot) -> None:
        """Of what is watched, each look is an earlier one to the next."""
        earlier = self._earlier or []
        if not earlier or earlier[-1].taken_at != now.taken_at:
            self._earlier = [*earlier, now][-(self._most - 1) :] if self._most > 1 else []

    def _look_again(self, looks: dict[str, Looks]) -> tuple[Finding, ...]:
        """Read those groups again that a later look decides; a look that fails leaves what was seen before."""
        for number in range(2, self._most + 1):
            waiting = [name for name, its in looks.items() if name in its[-1].groups and self._wants(name, its)]
            if not waiting:
                break
            with self._terminal.progress(verb="waiting") as progress:
                progress(f"{self._interval_s:g} s for look {number} of at most {self._most}", 0, 0)
                time.sleep(self._interval_s)
            try:
                later = self._read(self._wanted_again(waiting))
            except (DataError, EndpointError) as error:
                return (Finding("unread", f"look {number} failed, the looks before it count: {error.message}"),)
            for name in waiting:
                if name in later.groups:
                    looks[name] = (*looks[name], later)
        return ()

    def _wants(self, name: str, its: Looks) -> bool:
        return wants_another(evidence_of(its, name, self._settings_of(list(its[-1].routes), name)))

    def _with_stacks(self, name: str, its: Looks) -> Looks:
        if name not in its[-1].groups:
            return its
        ids = worth_stacks(evidence_of(its, name, self._settings_of(list(its[-1].routes), name)))
        if not ids:
            return its
        return (*its[:-1], with_stacks(its[-1], name, self._read.ask_stacks(name, ids)))


def _files(looking: LookOptions, source: SourceOptions) -> tuple[str, ...]:
    files = tuple(dict.fromkeys(looking.earlier or ()))
    if source.source == "-" and "-" in files:
        raise UsageError("-s - and --earlier - both read stdin")
    for file in files:
        if is_live(file):
            raise UsageError(
                f"--earlier {shown_source(file)}: a running cluster shows no earlier look", hint=_FILE_HINT
            )
    return files


def _names(chosen: DiagnoseOptions) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(chosen.group or ()))
    if names and chosen.all_groups:
        raise UsageError(f"--group {names[0]} and --all-groups", hint="leave one of them out", code="which-group")
    if not names and not chosen.all_groups:
        raise UsageError("which group?", hint="name it with --group, or take --all-groups", code="which-group")
    return names
