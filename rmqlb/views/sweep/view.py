"""A `FailureSweep` as a report: whether a loss breaks a limit, the least that do, then group by group."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from msgspec.structs import replace

from rmqlb.model.finding import SEVERITIES
from rmqlb.model.policy import LIMITS
from rmqlb.model.sweep_failures import Counterexample, FailureSweep, GroupWorst, Loss, TopicWorst, Worst
from rmqlb.model.words import counted, named
from rmqlb.views.check import amount_text, bound_text
from rmqlb.views.report import Block, Cell, Column, Part, Report, Section, first_places, rows_of
from rmqlb.views.sweep.words import alike_text, breaks_text, costs_text, kinds_text, losses_text, many, worst_text

_MOST_SHOWN = 5
_MOST_BROKEN = 3
_MOST_ROWS = 15
_LONGEST_COMMAND = 2000
"""Characters of a command that a screen still shows."""
_SIGN = Column("", "severity", "sign")


def sweep_report(sweep: FailureSweep) -> Report:
    """The sweep for people and machines."""
    sections = (
        *_counterexamples(sweep.counterexamples),
        _already(sweep),
        _groups(sweep.groups),
        _topics(sweep.topics),
        _unjudged(sweep),
        _losses(sweep),
        _summary(sweep),
    )
    facts = tuple(_facts(sweep))
    return Report("rmqlb/sweep-failures", sweep, facts, sections, grave=_grave(sweep))


def _facts(sweep: FailureSweep) -> Iterator[str]:
    c = sweep.cases
    yield _verdict(sweep)
    if sweep.nothing_judged:
        yield from _left_out(sweep)
        return
    pairs = f" and {many(c.pairs, 'pair')}" if sweep.at_once > 1 else ""
    yield f"  tried {c.tried:,} of {many(c.all, 'case')}: {c.singles:,} single ({kinds_text(sweep)}){pairs}"
    subjects = [(sweep.groups, "group"), (sweep.topics, "topic")]
    of = " and ".join(counted(len(some), about) for some, about in subjects if some)
    yield f"  {many(c.computed, 'result')} computed for {of}: cases that take the same of one are computed once"
    if sweep.broken_already:
        first = breaks_text(sweep.broken_already[0])
        more = f", and {len(sweep.broken_already) - 1} more" if len(sweep.broken_already) > 1 else ""
        yield f"  broken while nothing is lost: {first}{more}"
    yield from _left_out(sweep)
    if sweep.waived:
        yield f"  {counted(sweep.waived, 'counterexample')} waived"


def _verdict(sweep: FailureSweep) -> str:
    c = sweep.cases
    if sweep.nothing_judged:
        return "nothing could be judged: no group whose consumers share queues, and no topic, is known well enough"
    cases = many(c.all, "case") if c.tried == c.all else f"{c.tried:,} tried cases"
    if not c.broken:
        return f"none of {cases} breaks a limit"
    broken = f"{c.broken:,} of {cases} {'breaks' if c.broken == 1 else 'break'} a limit"
    if not sweep.counterexamples:
        return f"{broken}, all of them waived"
    first = sweep.counterexamples[0]
    return f"{broken}; worst: without {losses_text(first.losses)}, {breaks_text(first)}"


def _left_out(sweep: FailureSweep) -> Iterator[str]:
    whole = [each for each in sweep.unjudged if each.limit is None]
    if whole:
        names = named(f"{each.about} {each.name}" for each in whole)
        yield f"  not judged, or in part: {names} ({whole[0].why})"
    limits: dict[tuple[str, str], list[str]] = {}
    for each in sweep.unjudged:
        if each.limit is not None:
            limits.setdefault((each.limit, each.why), []).append(each.name)
    for (limit, why), names_ in limits.items():
        hint = "; --orderly GLOB names groups that do" if limit == "withoutLock" else ""
        yield f"  {limit} unknown in some cases of {named(names_)}: {why}{hint}"


def _grave(sweep: FailureSweep) -> str:
    if sweep.counterexamples:
        return min((each.severity for each in sweep.counterexamples), key=SEVERITIES.index)
    return "warning" if sweep.nothing_judged else "" if sweep.broken_already or sweep.unjudged else "inOrder"


def _counterexamples(found: Sequence[Counterexample]) -> tuple[Section, ...]:
    columns = (
        _SIGN,
        Column("losses", "losses", of=lambda one: losses_text(one.losses)),
        Column("about", "about"),
        Column("name", "name"),
        Column("limit", "limit"),
        Column("is", "valueText", of=lambda one: amount_text(LIMITS[one.limit].unit, one.value)),
        Column("allowed", "allowed", of=lambda one: bound_text(LIMITS[one.limit].unit, one.bound)),
        Column("cases", "cases", "number"),
        Column("moved", "moved", "number", of=lambda one: "" if one.group is None else one.group.moved),
        Column("lag moved", "lagMoved", "number", of=lambda one: "" if one.group is None else one.group.lag_moved),
        Column("rule", "rule"),
        Column("command", "command"),
        Column("gap command", "gapCommand"),
    )
    title = "the least losses that break a limit, the worst first"
    blocks = tuple(map(_block, _by_losses(found)))
    table = Section(
        "counterexamples", title, columns, rows_of(columns, found), audience="scripts", named_only=not found
    )
    shown = replace(table, audience="screen", blocks=blocks, brief=first_places(len(blocks), _MOST_SHOWN))
    return (shown, table) if found else (table,)


def _by_losses(found: Sequence[Counterexample]) -> list[list[Counterexample]]:
    """What the same losses break, together."""
    alike: dict[tuple[Loss, ...], list[Counterexample]] = {}
    for one in found:
        alike.setdefault(one.losses, []).append(one)
    return list(alike.values())


def _block(broken: Sequence[Counterexample]) -> Block:
    """The losses; how much the worst costs, and the commands that show it and what else is broken."""
    first = broken[0]
    parts = [
        Part("breaks", tuple((breaks_text(one), alike_text(one)) for one in broken), _MOST_BROKEN),
        Part("then", ((costs_text(first), ""),)),
        *_commands("in full", [one.command for one in broken]),
        *_commands("gap", [one.gap_command for one in broken]),
    ]
    return Block(tuple(parts), first.severity, f"without {losses_text(first.losses)}")


def _commands(label: str, commands: Sequence[str | None]) -> Iterator[Part]:
    """The first command, and on demand all; those that would fill a screen are left to files."""
    texts = list(dict.fromkeys(filter(None, commands)))
    if any(len(text) > _LONGEST_COMMAND for text in texts):
        longest = max(map(len, texts))
        yield Part(label, ((f"{longest} characters: --section counterexamples -o plain has them", ""),))
    elif texts:
        yield Part(label, tuple((text, "") for text in texts), 1, is_command=True)


def _already(sweep: FailureSweep) -> Section:
    columns = (
        _SIGN,
        Column("about", "about"),
        Column("name", "name"),
        Column("limit", "limit"),
        Column("is", "valueText", of=lambda one: amount_text(LIMITS[one.limit].unit, one.value)),
        Column("allowed", "allowed", of=lambda one: bound_text(LIMITS[one.limit].unit, one.bound)),
        Column("rule", "rule"),
    )
    rows = rows_of(columns, sweep.broken_already)
    return Section("broken-already", "broken while nothing is lost", columns, rows, named_only=not rows, heads=4)


def _figure(title: str, name: str, key: str, fold: int) -> tuple[Column, Column]:
    """The largest of a figure, and which losses give it."""

    def value(worst: Any) -> Cell:
        found: Worst | None = getattr(worst, name)
        return None if found is None else found.value

    return (
        Column(title, key, "number", fold=fold, of=value),
        Column("", f"{key}Losses", shown=False, of=lambda worst: worst_text(getattr(worst, name))),
    )


def _groups(groups: Sequence[GroupWorst]) -> Section:
    columns = (
        Column("group", "group"),
        Column("consumers", "consumers", "number", fold=5),
        Column("queues", "queues", "number", fold=6),
        Column("cases", "cases", "number", fold=3),
        Column("break a limit", "broken", "number"),
        *_figure("unassigned", "unassigned", "unassigned", 0),
        *_figure("imbalance", "imbalance", "imbalance", 0),
        *_figure("idle", "idle", "idle", 4),
        *_figure("move", "moved", "moved", 0),
        *_figure("lag moved", "lag_moved", "lagMoved", 2),
        *_figure("without lock", "without_lock", "withoutLock", 7),
        Column("strategy", "strategy", fold=8),
        Column("basis", "basis", shown=False),
        Column("computed", "computed", "number", shown=False),
    )
    brief = first_places(len(groups), _MOST_ROWS)
    title = "groups, each figure in its worst case"
    return Section("groups", title, columns, rows_of(columns, groups), heads=1, brief=brief, named_only=not groups)


def _topics(topics: Sequence[TopicWorst]) -> Section:
    columns = (
        Column("topic", "topic"),
        Column("writable brokers", "writableBrokers", "number"),
        *_figure("fewest left", "least_writable", "leastWritable", 0),
        Column("cases", "cases", "number", fold=2),
        Column("none writable", "unwritable", "number"),
        Column("break a limit", "broken", "number"),
    )
    brief = first_places(len(topics), _MOST_ROWS)
    title = "topics, each figure in its worst case"
    return Section("topics", title, columns, rows_of(columns, topics), heads=1, brief=brief, named_only=not topics)


def _unjudged(sweep: FailureSweep) -> Section:
    columns = (
        Column("about", "about"),
        Column("name", "name"),
        Column("limit", "limit"),
        Column("why", "why", "prose"),
    )
    rows = rows_of(columns, sweep.unjudged)
    return Section("unjudged", "not judged, or in part", columns, rows, named_only=True)


def _losses(sweep: FailureSweep) -> Section:
    joined: Callable[[Sequence[str]], str] = " ".join
    columns = (
        Column("kind", "kind"),
        Column("name", "name"),
        Column("consumers", "consumers", of=lambda loss: joined(loss.consumers)),
        Column("addresses", "addresses", of=lambda loss: joined(loss.addresses)),
    )
    return Section("losses", "what was lost", columns, rows_of(columns, sweep.losses), named_only=True)


def _summary(sweep: FailureSweep) -> Section:
    c = sweep.cases
    rows: tuple[tuple[Cell, ...], ...] = (
        ("cases", c.all),
        ("single losses", c.singles),
        ("pairs", c.pairs),
        ("tried", c.tried),
        ("computed", c.computed),
        ("break a limit", c.broken),
        ("single losses that break a limit", c.broken_singles),
        ("counterexamples", len(sweep.counterexamples)),
        ("waived", sweep.waived),
    )
    columns = (Column("", "figure"), Column("value", "value", "number"))
    return Section("summary", "summary", columns, rows, audience="scripts")
