"""`rmqlb.diagnose`: why groups are as they are, by earlier snapshots, one reading, and more where that decides."""

import time
from collections.abc import Callable, Sequence
from typing import Any

from rmqlb.engine.diagnose import diagnose as engine
from rmqlb.engine.diagnose.case import Case
from rmqlb.engine.group import all_groups as all_groups_in
from rmqlb.engine.source_findings import source_findings
from rmqlb.errors import DataError, EndpointError, UsageError
from rmqlb.model.diagnosis import MAX_LAG, Diagnosis, DiagnosisOfGroups
from rmqlb.model.result import Finding, Meta, Progress, named, no_progress, with_meta
from rmqlb.model.snapshot import ClusterSnapshot, Everything, Wanted, is_pattern
from rmqlb.verbs import amounts
from rmqlb.verbs.parse import each_matches, names_of, require_lag
from rmqlb.verbs.source import AnySource, Earlier, Reader, reader
from rmqlb.verbs.source import earlier as earlier_snapshot
from rmqlb.verbs.strategies import reported_strategies

Samples = tuple[ClusterSnapshot, ...]
CaseOf = Callable[[str, Samples], Case]
_SHORTEST_S = 1.0
"""A consumer is asked for its running information at most once a second."""


def diagnose(
    source: AnySource,
    group: str | Sequence[str] | None = None,
    *,
    all_groups: bool = False,
    earlier: AnySource | Earlier | Sequence[AnySource | Earlier] = (),
    every: str = "10s",
    samples: int = 3,
    stacks: bool = False,
    max_lag: int = MAX_LAG,
    strategy_options: str | Sequence[str] = (),
    watched: list[ClusterSnapshot] | None = None,
    progress: Progress = no_progress,
) -> Diagnosis | DiagnosisOfGroups:
    """Say why a consumer group is as it is: the likeliest cause first, with evidence and consequence.

    Several groups, a pattern or `all_groups` give a DiagnosisOfGroups, the worst first. `watched` has the samples of
    earlier calls, where the same question is asked again and again: each call takes one sample and adds it.
    DataError is also raised for an `earlier` snapshot that is not an earlier sample.
    """
    require_lag(max_lag)
    names = names_of(group or ())
    every_s = _every_s(names, every, all_groups=all_groups)
    strategies = reported_strategies(strategy_options)
    before = earlier_snapshots(earlier)
    opened = reader(source)
    if stacks and not opened.live:
        hint = "leave out --stacks, or pass -s rocketmq://HOST:9876"
        raise UsageError("--stacks queries running consumers, but the source is not a running cluster", hint=hint)

    def case(name: str, seen: Samples) -> Case:
        return engine.case_of(seen, name, strategies.settings_for(list(seen[-1].routes), name))

    now = opened.fetch(_wanted(names))
    chosen = _present(names, now)
    past = (*samples_before(before, now, chosen), *(watched or ()))
    samples_of = dict.fromkeys(chosen, (*past, now))
    findings: tuple[Finding, ...] = ()
    if watched is not None:
        if not past or past[-1].taken_at != now.taken_at:
            watched[:] = [*past, now][-(samples - 1) :] if samples > 1 else []
    elif opened.live:
        findings = _sample_again(samples_of, case, opened, every_s, samples, progress)
    if stacks:
        samples_of = {name: _with_stacks(case, name, seen, opened) for name, seen in samples_of.items()}
    last = next(iter(samples_of.values()))[-1]
    diagnoses = []
    for done, (name, seen) in enumerate(samples_of.items()):
        progress("groups", done, len(samples_of))
        diagnoses.append(engine.diagnose(case(name, seen), max_lag=max_lag))
    meta = Meta(last, (*findings, *source_findings(last)))
    several = len(names) != 1 or is_pattern(names[0])
    return with_meta(engine.diagnosis_of_groups(diagnoses) if several else diagnoses[0], meta)


def earlier_snapshots(given: AnySource | Earlier | Sequence[AnySource | Earlier]) -> list[Earlier]:
    each_given: Sequence[Any] = given if isinstance(given, list | tuple) else (given,)
    return [found for each in each_given if (found := earlier_snapshot(each, "the earlier snapshot")) is not None]


def samples_before(before: Sequence[Earlier], now: ClusterSnapshot, groups: Sequence[str]) -> Samples:
    """The earlier snapshots of the groups, the oldest first (raises DataError)."""
    wanted = Wanted(everything=Everything(groups=tuple(groups)), evidence=True)
    if not groups:
        return ()
    return engine.must_be_earlier([(each.option, each.source.fetch(wanted)) for each in before], now, groups)


def _every_s(names: Sequence[str], every: str, *, all_groups: bool) -> float:
    """Seconds from one sample to the next; refuses what cannot be meant (raises UsageError)."""
    if names and all_groups:
        raise UsageError(
            f"--group {names[0]} and --all-groups contradict each other",
            hint="leave one of them out",
            code="which-group",
        )
    if not names and not all_groups:
        raise UsageError("which group?", hint="name the group with --group, or pass --all-groups", code="which-group")
    every_s = amounts.seconds(every, "--every")
    if every_s < _SHORTEST_S:
        raise UsageError(f"--every {every}: shorter than 1s", hint="rmqlb queries a consumer at most once per second")
    return every_s


def _wanted(names: Sequence[str]) -> Wanted:
    if not names:
        return Wanted(everything=Everything(of_groups=True), evidence=True)
    if len(names) == 1 and not is_pattern(names[0]):
        return Wanted(group=names[0], evidence=True)
    return Wanted(several=tuple(names), evidence=True)


def _present(names: tuple[str, ...], now: ClusterSnapshot) -> tuple[str, ...]:
    present = all_groups_in(now)
    if not names:
        own = tuple(name for name in present if Everything().takes_group(name))
        if not own:
            raise DataError(f"{now.endpoint} has no consumer group", code="consumers-unknown")
        return own
    chosen = Wanted(several=names).groups_among(present)
    each_matches("group", names, present, [name for name in chosen if name in present], now.endpoint)
    return chosen


def _sample_again(
    samples: dict[str, Samples], case: CaseOf, source: Reader, every_s: float, most: int, progress: Progress
) -> tuple[Finding, ...]:
    """Read those groups again that a later sample decides; a sample that fails leaves what was seen before."""
    for number in range(2, most + 1):
        waiting = [n for n, seen in samples.items() if n in seen[-1].groups and engine.wants_another(case(n, seen))]
        if not waiting:
            break
        progress(f"{named(waiting)}: waiting {every_s:g} s for sample {number} of at most {most}", 0, 0)
        time.sleep(every_s)
        # Of several, one that cannot be read any more does not keep the others from being read.
        several = Wanted(everything=Everything(groups=tuple(waiting), of_groups=True), evidence=True)
        try:
            later = source.fetch(several if len(waiting) > 1 else _wanted(waiting))
        except (DataError, EndpointError) as error:
            return (Finding("unread", f"sample {number} failed, the samples before it count: {error.message}"),)
        for name in waiting:
            if name in later.groups:
                samples[name] = (*samples[name], later)
    return ()


def _with_stacks(case: CaseOf, name: str, seen: Samples, source: Reader) -> Samples:
    ids = engine.worth_stacks(case(name, seen)) if name in seen[-1].groups else ()
    return (*seen[:-1], engine.with_stacks(seen[-1], name, source.open().ask_stacks(name, ids))) if ids else seen
