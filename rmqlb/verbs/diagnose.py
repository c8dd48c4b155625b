"""`rmqlb.diagnose`: why groups are as they are, by earlier snapshots, one reading, and more where that decides."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from rmqlb.engine.diagnose.diagnose import diagnose as diagnose_group
from rmqlb.engine.diagnose.evidence import GroupEvidence
from rmqlb.engine.diagnose.group_looks import evidence_of, must_be_earlier, of_several, with_stacks
from rmqlb.engine.diagnose.looks import wants_another, worth_stacks
from rmqlb.engine.group import all_groups as all_groups_in
from rmqlb.engine.source_findings import source_findings
from rmqlb.errors import DataError, EndpointError, UsageError
from rmqlb.model.diagnosis import Diagnosis, DiagnosisOfGroups
from rmqlb.model.finding import Finding
from rmqlb.model.progress import Progress, no_progress
from rmqlb.model.result import Meta, with_meta
from rmqlb.model.snapshot import ClusterSnapshot, Everything, Wanted, is_pattern
from rmqlb.model.words import named
from rmqlb.verbs import amounts
from rmqlb.verbs.globs import each_matches
from rmqlb.verbs.parse import names_of
from rmqlb.verbs.source import AnySource, Earlier, Reader, reader
from rmqlb.verbs.source import earlier as earlier_snapshot
from rmqlb.verbs.strategies import Strategies, reported_strategies

Looks = tuple[ClusterSnapshot, ...]
_SHORTEST_S = 1.0
"""A consumer is asked for its running information at most once a second."""


class DiagnoseQuestion(Struct, frozen=True):
    """What is asked.

    Attributes:
        names: of groups, or patterns of names; () is every group but RocketMQ's own.
        strategies: the settings of whatever strategies consumers report.
        earlier: snapshots of the same cluster that were taken before.
        interval_s: seconds from one look at a running cluster to the next.
        most: at most so many looks.
        stacks: blocked consumers are asked for the stack traces of their consume threads.
        watched: the same question is asked again and again: one look each time, and the next one remembers it.
    """

    names: tuple[str, ...]
    strategies: Strategies
    earlier: tuple[Earlier, ...] = ()
    interval_s: float = 10.0
    most: int = 3
    stacks: bool = False
    watched: bool = False

    @property
    def several(self) -> bool:
        """More than one group may be meant."""
        return len(self.names) != 1 or is_pattern(self.names[0])


def diagnose(
    source: AnySource,
    group: str | Sequence[str] | None = None,
    *,
    all_groups: bool = False,
    earlier: AnySource | Sequence[AnySource] = (),
    interval: str = "10s",
    looks: int = 3,
    stacks: bool = False,
    strategy_options: Sequence[str] = (),
) -> Diagnosis | DiagnosisOfGroups:
    """Say why a consumer group is as it is: the likeliest cause first, with evidence and consequence.

    Args:
        source: a URL, a file, a snapshot with evidence, a parsed document or a reader.
        group: a group, a pattern, or several.
        all_groups: all groups instead, RocketMQ's own left out.
        earlier: snapshots of the same cluster that were taken before, which show what changes.
        interval: the time from one look at a running cluster to the next, from `1s` on.
        looks: at most so many looks at a running cluster.
        stacks: ask blocked consumers of a running cluster for the stack traces of their consume threads.
        strategy_options: settings of strategies, as `virtual-nodes=20`.

    Returns:
        The diagnosis; of several groups, a pattern or `all_groups`, a DiagnosisOfGroups, the worst first.

    Raises:
        UsageError: an argument cannot be meant.
        DataError: a group is not there, or an earlier snapshot is not an earlier look at it.
        EndpointError: the source cannot be read.
    """
    given: Sequence[Any] = earlier if isinstance(earlier, list | tuple) else (earlier,)
    before = [earlier_snapshot(each, "the earlier snapshot") for each in given]
    question = diagnose_question(
        names_of(group or ()),
        strategy_options,
        all_groups=all_groups,
        earlier=tuple(each for each in before if each is not None),
        interval=interval,
        most=looks,
        stacks=stacks,
    )
    whole = Diagnoser(question).diagnose(reader(source))
    return whole if question.several else with_meta(whole.groups[0], whole.meta)


def diagnose_question(
    names: tuple[str, ...],
    strategy_options: Sequence[str],
    *,
    all_groups: bool,
    earlier: tuple[Earlier, ...],
    interval: str,
    most: int,
    stacks: bool,
    watched: bool = False,
) -> DiagnoseQuestion:
    """The question that options or arguments ask (raises UsageError)."""
    if names and all_groups:
        raise UsageError(f"--group {names[0]} and --all-groups", hint="leave one of them out", code="which-group")
    if not names and not all_groups:
        raise UsageError("which group?", hint="name it with --group, or take --all-groups", code="which-group")
    interval_s = amounts.seconds(interval, "--interval")
    if interval_s < _SHORTEST_S:
        raise UsageError(f"--interval {interval}: shorter than 1s", hint="a consumer is asked once a second at most")
    strategies = reported_strategies(strategy_options)
    return DiagnoseQuestion(names, strategies, earlier, interval_s, most, stacks, watched)


class Diagnoser:
    """Reads the groups that are asked for, as often as their rules need; one that is watched, once per look."""

    def __init__(self, question: DiagnoseQuestion) -> None:
        self._asked = question
        self._earlier: list[ClusterSnapshot] | None = None

    def diagnose(self, source: Reader, progress: Progress = no_progress) -> DiagnosisOfGroups:
        """The groups as they are now, the worst first (raises RmqlbError)."""
        looks, findings = self._look(source, progress)
        last = next(iter(looks.values()))[-1]
        diagnoses = []
        for done, (name, its) in enumerate(looks.items()):
            progress("groups", done, len(looks))
            diagnoses.append(diagnose_group(self._evidence(name, its)))
        return with_meta(of_several(diagnoses), Meta(last, (*findings, *source_findings(last))))

    def _evidence(self, name: str, its: Looks) -> GroupEvidence:
        return evidence_of(its, name, self._asked.strategies.settings_for(list(its[-1].routes), name))

    def _look(self, source: Reader, progress: Progress) -> tuple[dict[str, Looks], tuple[Finding, ...]]:
        """Each group's looks, the oldest first, and what is to be said of them."""
        if self._asked.stacks and not source.live:
            raise UsageError(
                "--stacks asks running consumers, and the source is no running cluster",
                hint="leave it out, or name rocketmq://HOST:9876 with -s",
            )
        now = source.fetch(self._wanted(self._asked.names))
        present = all_groups_in(now)
        names = self._present(now, present)
        earlier = self._earlier_looks(now, names)
        looks = dict.fromkeys(names, (*earlier, now))
        findings: tuple[Finding, ...] = ()
        if self._asked.watched:
            self._remember(now)
        elif source.live:
            findings = self._look_again(looks, source, progress)
        if self._asked.stacks:
            looks = {name: self._with_stacks(name, its, source) for name, its in looks.items()}
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
        if not self._asked.names:
            if not present:
                raise DataError(f"no consumer group is in {now.endpoint}", code="consumers-unknown")
            return tuple(name for name in present if Everything().takes_group(name))
        names = Wanted(several=self._asked.names).groups_among(present)
        each_matches("group", self._asked.names, present, [name for name in names if name in present], now.endpoint)
        return names

    def _earlier_looks(self, now: ClusterSnapshot, names: Sequence[str]) -> tuple[ClusterSnapshot, ...]:
        if self._earlier is None:
            wanted = Wanted(everything=Everything(groups=tuple(names)), evidence=True)
            read = [(each.option, each.source.fetch(wanted)) for each in self._asked.earlier]
            self._earlier = list(must_be_earlier(read, now, names))
        return tuple(self._earlier)

    def _remember(self, now: ClusterSnapshot) -> None:
        """Of what is watched, each look is an earlier one to the next."""
        earlier = self._earlier or []
        if not earlier or earlier[-1].taken_at != now.taken_at:
            self._earlier = [*earlier, now][-(self._asked.most - 1) :] if self._asked.most > 1 else []

    def _look_again(self, looks: dict[str, Looks], source: Reader, progress: Progress) -> tuple[Finding, ...]:
        """Read those groups again that a later look decides; a look that fails leaves what was seen before."""
        for number in range(2, self._asked.most + 1):
            waiting = [name for name, its in looks.items() if name in its[-1].groups and self._wants(name, its)]
            if not waiting:
                break
            wait = f"waiting {self._asked.interval_s:g} s for look {number} of at most {self._asked.most}"
            progress(f"{named(waiting)}: {wait}", 0, 0)
            time.sleep(self._asked.interval_s)
            try:
                later = source.fetch(self._wanted_again(waiting))
            except (DataError, EndpointError) as error:
                return (Finding("unread", f"look {number} failed, the looks before it count: {error.message}"),)
            for name in waiting:
                if name in later.groups:
                    looks[name] = (*looks[name], later)
        return ()

    def _wants(self, name: str, its: Looks) -> bool:
        return wants_another(self._evidence(name, its))

    def _with_stacks(self, name: str, its: Looks, source: Reader) -> Looks:
        if name not in its[-1].groups:
            return its
        ids = worth_stacks(self._evidence(name, its))
        if not ids:
            return its
        return (*its[:-1], with_stacks(its[-1], name, source.ask_stacks(name, ids)))
