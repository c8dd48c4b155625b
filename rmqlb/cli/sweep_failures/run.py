"""A sweep from the options to the exit code."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from datetime import date, datetime
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

import typer
from msgspec.structs import replace

from rmqlb.cli.common.fail_on import judge, require_known
from rmqlb.cli.common.options import SourceOptions, StrategyOptions
from rmqlb.cli.common.reading import fetch
from rmqlb.cli.common.terminal import Terminal
from rmqlb.cli.exit_codes import ExitCode
from rmqlb.cli.sweep_failures.options import HeldOptions, LostOptions, SweptOptions
from rmqlb.engine.allocate.rules import NAMES
from rmqlb.engine.fail_on_figures.of_sweep import SWEEP_FIGURES, try_on_sweep
from rmqlb.engine.group import all_groups, gaps
from rmqlb.engine.source_findings import source_findings
from rmqlb.engine.sweep_failures.commands import Commands
from rmqlb.engine.sweep_failures.failures import ZoneRule
from rmqlb.engine.sweep_failures.sweep import SweepRequest, sweep_snapshot
from rmqlb.errors import DataError, UsageError
from rmqlb.model.finding import Finding
from rmqlb.model.policy import Policy
from rmqlb.model.snapshot import ClusterSnapshot, Everything, Wanted, suggestion
from rmqlb.model.sweep_failures import LOSS_KINDS, FailureSweep, LossKind
from rmqlb.model.system_names import is_system_group, is_system_topic
from rmqlb.sources.user_files.policy_file import built_in_text, parse_policy, read_policy
from rmqlb.verbs import amounts
from rmqlb.verbs.globs import each_matches
from rmqlb.verbs.parse import conditions
from rmqlb.verbs.strategies import Strategies
from rmqlb.verbs.strategy_options import OPTION
from rmqlb.views.sweep.view import sweep_report

if TYPE_CHECKING:
    from rmqlb.views.report import Report

_BUILT_IN = "built_in_sweep_policy.yaml"


def run(
    source: SourceOptions,
    chosen: SweptOptions,
    lost: LostOptions,
    held: HeldOptions,
    strategy_options: StrategyOptions,
    terminal: Terminal,
) -> None:
    """What the command does with its options; everything that needs no source is checked before it is read."""
    if held.print_policy:
        if held.policy is not None:
            raise UsageError("--print-policy prints the built-in policy, and --policy names another one")
        terminal.write(built_in_text(_BUILT_IN))
        return
    asked = conditions(held.fail_on or (), SWEEP_FIGURES)
    _one_reads_stdin(source, held, lost)
    kinds, zones = _kinds(lost.lose), _zones(lost)
    day = datetime.now().astimezone().date() if held.today is None else amounts.day(held.today, "--today")
    policy = _policy(held)
    strategies = _strategies(strategy_options, policy)
    _check_html(held.html)
    everything = Everything(tuple(chosen.topic or ()), tuple(chosen.group or ()), of_groups=not chosen.topic)
    if not chosen.group:
        everything = replace(everything, of_groups=False)
    snapshot = fetch(source, Wanted(everything=everything, evidence=policy.wanted.evidence), terminal)
    request = replace(
        _request(snapshot, chosen, everything),
        kinds=kinds,
        zones=zones,
        in_part=bool(chosen.group or chosen.topic),
        at_once=lost.at_once,
        jobs=held.jobs,
        commands=Commands(_source_words(source), _option_words(strategy_options)),
    )
    sweep, told = _sweep(snapshot, policy, request, day, strategies, terminal)
    if not sweep.nothing_judged:
        _must_be_there(lost, sweep)
    tried = tuple(try_on_sweep(condition, sweep) for condition in asked)
    require_known(tried, "leave the condition out to see the result")
    report = sweep_report(replace(sweep, conditions=tried))
    findings = (*told, *source_findings(snapshot))
    _show(report, snapshot, findings, held.html, terminal)
    judge(tried, terminal)
    if sweep.nothing_judged:
        raise typer.Exit(ExitCode.DATA)


def _sweep(
    snapshot: ClusterSnapshot,
    policy: Policy,
    request: SweepRequest,
    day: date,
    strategies: Strategies,
    terminal: Terminal,
) -> tuple[FailureSweep, tuple[Finding, ...]]:
    with terminal.progress(verb="sweeping") as progress:
        own = strategies.settings_for(list(snapshot.routes))
        sweep, told = sweep_snapshot(snapshot, policy, request, day, settings=own, progress=progress)
    return sweep, told


def _must_be_there(lost: LostOptions, sweep: FailureSweep) -> None:
    """Refuse a kind of loss that was asked for, and of which there is none."""
    for kind in _kinds(lost.lose) if lost.lose else ():
        if any(each.kind == kind for each in sweep.losses):
            continue
        if kind == "zone":
            hint = "name them: --zone GLOB=ZONE or --zones FILE"
            raise UsageError("--lose zone: no zone is known", hint=hint, code="unknown-zone")
        raise DataError(f"--lose {kind}: there is none among the groups and topics looked at")


def _kinds(texts: Sequence[str] | None) -> tuple[LossKind, ...]:
    for text in texts or ():
        if text.lower() not in LOSS_KINDS:
            raise UsageError(f"--lose {text}: no such kind of loss", hint=suggestion("kinds", text, LOSS_KINDS))
    wanted = {text.lower() for text in texts or LOSS_KINDS}
    return tuple(kind for kind in LOSS_KINDS if kind in wanted)


def _zones(lost: LostOptions) -> tuple[ZoneRule, ...]:
    if (lost.zone or lost.zones) and lost.lose and "zone" not in (text.lower() for text in lost.lose):
        raise UsageError("--lose leaves zones out, and --zone names some", hint="add --lose zone, or leave --zone out")
    rules = []
    for text in lost.zone or ():
        pattern, _, zone = text.rpartition("=")
        if not pattern.strip() or not zone.strip():
            raise UsageError(f"--zone {text}: expected GLOB=ZONE", hint="write '10.1.*=az1' or 10.1.0.0/16=az1")
        rules.append(ZoneRule(zone.strip(), pattern.strip()))
    if lost.zones is not None:
        from rmqlb.sources.user_files.zones_file import read_zones

        rules += [ZoneRule(zone, pattern) for zone, pattern in read_zones(lost.zones)]
    return tuple(rules)


def _one_reads_stdin(source: SourceOptions, held: HeldOptions, lost: LostOptions) -> None:
    options = (("-s -", source.source), ("--policy -", held.policy), ("--zones -", lost.zones))
    reading = [text for text, value in options if value == "-"]
    if len(reading) > 1:
        raise UsageError(f"{reading[0]} and {reading[1]} both read stdin")


def _policy(held: HeldOptions) -> Policy:
    if held.policy is None:
        return parse_policy(built_in_text(_BUILT_IN), "built-in policy", NAMES)
    return read_policy(held.policy, NAMES)


def _strategies(options: StrategyOptions, policy: Policy) -> Strategies:
    strategies = Strategies(options.strategy_option)
    strategies.named += [rule.assume for rule in policy.rules if rule.assume is not None]
    strategies.must_apply(reported=True)
    return strategies


def _request(snapshot: ClusterSnapshot, chosen: SweptOptions, everything: Everything) -> SweepRequest:
    """What is looked at, those included that could not be read."""
    own, present = snapshot.own_topics, all_groups(snapshot)
    known = sorted({*snapshot.routes, *gaps(snapshot).topics})
    topics = [name for name in known if everything.takes_topic(name) and name not in own and not is_system_topic(name)]
    groups = [name for name in present if everything.takes_group(name) and not is_system_group(name)]
    each_matches("group", everything.groups, present, groups, snapshot.endpoint)
    each_matches("topic", everything.topics, known, topics, snapshot.endpoint)
    consumed = {name: set(group.own_topics or ()) for name, group in snapshot.groups.items()}
    if chosen.topic:
        groups = [name for name in groups if consumed.get(name, set()).intersection(topics)]
    if chosen.group:
        topics = [name for name in topics if any(name in consumed.get(group, ()) for group in groups)]
    if chosen.group and chosen.topic and not groups:
        raise DataError("no group of --group consumes a topic of --topic", hint="leave one of them out")
    in_vain = [
        glob for glob in chosen.orderly or () if not any(name == glob or fnmatchcase(name, glob) for name in groups)
    ]
    if in_vain:
        hint = suggestion("groups", in_vain[0], groups)
        raise UsageError(f"--orderly {in_vain[0]}: it matches no group looked at", hint=hint)
    orderly = [name for name in groups if any(name == g or fnmatchcase(name, g) for g in chosen.orderly or ())]
    return SweepRequest(groups, topics, topics if chosen.topic else (), orderly=frozenset(orderly))


def _source_words(source: SourceOptions) -> Iterator[str]:
    """What it takes to read the same source again; who reads it is for the environment or a context to say."""
    if source.active_context is not None:
        yield from ("--context", source.active_context.name)
        return
    yield from ("-s", source.source or "")
    for mapped in source.map_address or ():
        yield from ("--map-address", mapped)
    for option, value in (
        ("--ca-file", source.ca_file),
        ("--client-cert", source.client_cert),
        ("--client-key", source.client_key),
        ("--tls-name", source.tls_name),
    ):
        if value is not None:
            yield from (option, value)


def _option_words(options: StrategyOptions) -> list[str]:
    return [word for text in options.strategy_option or () for word in (OPTION, text)]


def _check_html(path: str | None) -> None:
    """Refuse a folder that is not there before anything is read."""
    try:
        os.stat(os.path.join(os.path.dirname(path or "") or ".", "."))
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UsageError(f"--html {path}: {reason}", code="cannot-write") from None


def _show(
    report: Report, snapshot: ClusterSnapshot, findings: Sequence[Finding], html: str | None, terminal: Terminal
) -> None:
    if html is not None:
        from rmqlb.cli.common.output_files import write_whole
        from rmqlb.views.group.picture import page_of

        page = page_of(report, findings)
        if html == "-":
            terminal.write(page)
            return
        write_whole(html, page, "--html")
        terminal.say(f"written to {html}")
    terminal.show(report, snapshot, findings)
