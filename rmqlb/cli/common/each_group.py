"""A command's look at one group, or at each of those that names and patterns choose: one reading, one result."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from msgspec.structs import replace

from rmqlb.cli.common.options import GroupOptions, GroupsOptions, SourceOptions
from rmqlb.cli.common.reading import wanted_for
from rmqlb.cli.common.terminal import SnapshotView
from rmqlb.errors import DataError, RmqlbError, UsageError
from rmqlb.model.finding import Finding
from rmqlb.model.snapshot import ClusterSnapshot, Wanted, is_pattern
from rmqlb.verbs.globs import each_matches
from rmqlb.views.report import Report

Parts = Sequence[tuple[str, Report]]
"""Group → its report."""


class EachGroup:
    """The groups that are asked for, and what is to be read for them.

    A pattern is as good as several names, however many groups it matches. Of those that it matches the ones with which
    the command can do nothing are left out, with a finding; one that is named in full has to be there.
    """

    def __init__(self, options: GroupsOptions, source: SourceOptions) -> None:
        self._options = options
        self._names = tuple(dict.fromkeys(options.group or ()))
        self.several = len(self._names) > 1 or any(map(is_pattern, self._names))
        if self.several and options.consumers is not None:
            raise UsageError(
                f"--consumers {options.consumers}: the consumers of which of the groups {', '.join(self._names)}?",
                hint="give --consumers with one --group",
                code="which-group",
            )
        named = [text for text in options.sdk or () if "=" in text]
        if self.several and named:
            raise UsageError(
                f"--sdk {named[0]}: a consumer of which of the groups {', '.join(self._names)}?",
                hint="give --sdk ID=NAME with one --group, or --sdk NAME for all consumers",
                code="which-group",
            )
        wanted = wanted_for(source, options.one(next(iter(self._names), None)))
        self.wanted = replace(wanted, group=None, several=self._names) if self.several else wanted

    def look(
        self,
        snapshot: ClusterSnapshot,
        look: Callable[[GroupOptions], SnapshotView],
        joined: Callable[[Parts], Report],
    ) -> SnapshotView:
        """What there is to see of the groups; of one as if there were no others; of several an error names it."""
        if not self.several:
            return look(self._options.one(next(iter(self._names), None)))
        looks: list[tuple[str, SnapshotView]] = []
        left: list[tuple[str, RmqlbError]] = []
        for name in _present(self.wanted, snapshot):
            try:
                looks.append((name, look(self._options.one(name))))
            except RmqlbError as error:
                if name in self._names or not isinstance(error, DataError | UsageError):
                    raise _naming(error, name) from None
                left.append((name, error))
        if not looks:
            raise _naming(left[0][1], left[0][0])
        tried = tuple(
            replace(condition, text=f"{condition.text} in group {name}")
            for name, seen in looks
            for condition in seen.tried
        )
        report = joined([(name, seen.report) for name, seen in looks])
        return SnapshotView(report, looks[0][1].snapshot, (*_findings(looks), *_left_out(left)), tried)


def _present(wanted: Wanted, snapshot: ClusterSnapshot) -> tuple[str, ...]:
    names = wanted.groups_among(snapshot.groups)
    each_matches(
        "group", [name for name in wanted.named if is_pattern(name)], snapshot.groups, names, snapshot.endpoint
    )
    return names


def _naming(error: RmqlbError, name: str) -> RmqlbError:
    if name != error.group:
        error.message = f"group {name}: {error.message}"
    return error


def _left_out(left: Sequence[tuple[str, RmqlbError]]) -> Iterator[Finding]:
    for name, error in left:
        yield Finding("group-left-out", f"group {name} is left out: {error.message}", name)


def _findings(looks: Sequence[tuple[str, SnapshotView]]) -> Iterator[Finding]:
    """Each once: what is true of all groups as it stands, what is true of some with the name of the group."""
    times = Counter(finding for _, seen in looks for finding in set(seen.findings))
    told: set[Finding] = set()
    for name, seen in looks:
        for finding in seen.findings:
            is_named = times[finding] == len(looks) or name == finding.group
            of_group = finding if is_named else replace(finding, message=f"group {name}: {finding.message}")
            if of_group not in told:
                told.add(of_group)
                yield of_group
