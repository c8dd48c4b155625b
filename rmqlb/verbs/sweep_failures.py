from collections.abc import Sequence
from datetime import datetime
from fnmatch import fnmatchcase

from msgspec.structs import replace

from rmqlb.engine.group import all_groups
from rmqlb.engine.source_findings import source_findings
from rmqlb.engine.sweep_failures.cases import ZoneRule
from rmqlb.engine.sweep_failures.sweep import SWEEP_FIGURES, SweepRequest, sweep_snapshot, try_on_sweep
from rmqlb.errors import DataError, UsageError
from rmqlb.model.group import is_system_group, is_system_topic
from rmqlb.model.result import Meta, Progress, no_progress, with_meta
from rmqlb.model.snapshot import ClusterSnapshot, Everything, Wanted, suggestion
from rmqlb.model.sweep_failures import LOSS_KINDS, FailureSweep, LossKind
from rmqlb.verbs import amounts
from rmqlb.verbs.check import policy_of
from rmqlb.verbs.parse import conditions, each_matches, texts_of
from rmqlb.verbs.source import AnySource, reader
from rmqlb.verbs.strategies import OPTION, Strategies

BUILT_IN = "built_in_sweep_policy.yaml"


def sweep_failures(
    source: AnySource,
    *,
    groups: str | Sequence[str] | None = (),
    topics: str | Sequence[str] | None = (),
    orderly_groups: str | Sequence[str] | None = (),
    lose: str | Sequence[str] | None = (),
    losses: int = 2,
    zones: str | Sequence[str] | None = (),
    zones_file: str | None = None,
    policy: str | None = None,
    today: str | None = None,
    jobs: int = 1,
    strategy_options: str | Sequence[str] | None = (),
    fail_on: str | Sequence[str] | None = (),
    source_words: Sequence[str] = (),
    progress: Progress = no_progress,
) -> FailureSweep:
    """Try every loss of consumers, brokers, hosts and zones: the smallest that break a limit.

    `zones_file` is the file of `--zones`. `source_words` are the options with which a printed command reads the same
    source; () is `-s` and its name. UsageError is also raised for an empty zone and for too many cases.
    """
    tried, lost = conditions(fail_on, SWEEP_FIGURES), texts_of(lose)
    wanted = {amounts.one_of(text, "--lose", LOSS_KINDS) for text in lost or LOSS_KINDS}
    kinds, rules = tuple(filter(wanted.__contains__, LOSS_KINDS)), _zones(lost, texts_of(zones), zones_file)
    if losses not in (1, 2) or jobs < 1:
        raise UsageError("losses is 1 or 2, and jobs 1 or more")
    day = datetime.now().astimezone().date() if today is None else amounts.day(today, "--today")
    limits = policy_of(policy, BUILT_IN)
    strategies = Strategies(strategy_options)
    strategies.named += [rule.assume for rule in limits.rules if rule.assume is not None]
    strategies.must_apply(reported=True)
    everything = Everything(texts_of(topics), texts_of(groups), of_groups=bool(groups) and not topics)
    snapshot = reader(source).fetch(Wanted(everything=everything, evidence=limits.wanted.evidence))
    words = source_words or (("-s", source) if isinstance(source, str) else ())
    more = [word for text in texts_of(strategy_options) for word in (OPTION, text)]
    request = replace(
        _chosen(snapshot, everything, texts_of(orderly_groups)),
        kinds=kinds,
        zones=rules,
        in_part=bool(groups or topics),
        at_once=losses,
        jobs=jobs,
        source_words=words,
        more_words=more,
    )
    settings = strategies.settings_for(list(snapshot.routes))
    sweep, findings = sweep_snapshot(snapshot, limits, request, day, settings=settings, progress=progress)
    for kind in kinds if lost and not sweep.nothing_judged else ():
        _must_have(kind, sweep)
    sweep = replace(sweep, conditions=tuple(try_on_sweep(condition, sweep) for condition in tried))
    return with_meta(sweep, Meta(snapshot, (*findings, *source_findings(snapshot))))


def _must_have(kind: LossKind, sweep: FailureSweep) -> None:
    if any(each.kind == kind for each in sweep.losses):
        return
    if kind == "zone":
        hint = "name zones with --zone GLOB=ZONE or --zones FILE"
        raise UsageError("--lose zone: no zone is known", hint=hint, code="unknown-zone")
    raise DataError(f"--lose {kind}: the selected groups and topics have none")


def _zones(lose: Sequence[str], texts: Sequence[str], path: str | None) -> list[ZoneRule]:
    if (texts or path) and lose and "zone" not in (text.lower() for text in lose):
        raise UsageError("--lose leaves out zones, but --zone names some", hint="add --lose zone, or leave out --zone")
    rules = []
    for text in texts:
        pattern, _, zone = text.rpartition("=")
        if not pattern.strip() or not zone.strip():
            raise UsageError(f"--zone {text}: expected GLOB=ZONE", hint="write '10.1.*=az1' or 10.1.0.0/16=az1")
        rules.append(ZoneRule(zone.strip(), pattern.strip()))
    if path is not None:
        from rmqlb.sources.user_files.strict_yaml import read_zones

        rules += [ZoneRule(zone, pattern) for zone, pattern in read_zones(path)]
    return rules


def _chosen(snapshot: ClusterSnapshot, everything: Everything, orderly: Sequence[str]) -> SweepRequest:
    own, present = snapshot.own_topics, all_groups(snapshot)
    known = sorted({*snapshot.routes, *snapshot.gaps.topics})
    topics = [name for name in known if everything.takes_topic(name) and name not in own and not is_system_topic(name)]
    groups = [name for name in present if everything.takes_group(name) and not is_system_group(name)]
    each_matches("group", everything.groups, present, groups, snapshot.endpoint)
    each_matches("topic", everything.topics, known, topics, snapshot.endpoint)
    consumed = {name: set(group.own_topics or ()) for name, group in snapshot.groups.items()}
    if everything.topics:
        groups = [name for name in groups if consumed.get(name, set()).intersection(topics)]
    if everything.groups:
        topics = [name for name in topics if any(name in consumed.get(group, ()) for group in groups)]
    if everything.groups and everything.topics and not groups:
        raise DataError("no group of --group consumes a topic of --topic", hint="leave one of them out")
    ordered: set[str] = set()
    for glob in orderly:
        matching = {name for name in groups if name == glob or fnmatchcase(name, glob)}
        if not matching:
            hint = suggestion("groups", glob, groups)
            raise UsageError(f"--orderly-group {glob}: it matches no selected group", hint=hint)
        ordered |= matching
    return SweepRequest(groups, topics, topics if everything.topics else (), orderly=frozenset(ordered))
