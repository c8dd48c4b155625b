"""A `FailureSweep` as a report: whether a failure breaks a limit, the smallest that do, then group by group."""

from collections import Counter
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from rmqlb.model import sweep_failures as model
from rmqlb.model.message_queue import grouped
from rmqlb.model.policy import LIMITS
from rmqlb.model.result import SEVERITIES, counted, messages, named
from rmqlb.views.check import allowed_text, amount_text
from rmqlb.views.columns import Cell, Column, attribute_of, columns_from
from rmqlb.views.numbers import number
from rmqlb.views.report import Block, Part, Report, Section, first_places, section_of

_MOST_SHOWN = 5
_MOST_BROKEN = 3
_MOST_ROWS = 15
_LONGEST_COMMAND = 2000  # characters that a screen still shows
_LIMIT_COLUMNS = columns_from(
    "about name limit valueText=is allowed",
    valueText=lambda one: amount_text(LIMITS[one.limit].unit, one.value, one.bound),
    allowed=lambda one: allowed_text(LIMITS[one.limit].unit, one.bound),
)
_SIGN = Column("", "severity", "sign")


def sweep_report(sweep: model.FailureSweep) -> Report:
    broken_columns = (_SIGN, *_LIMIT_COLUMNS, Column("rule", "rule"))
    sections = (
        *_counterexamples(sweep.counterexamples),
        section_of("broken-already", "broken without any loss", broken_columns, sweep.broken_already, heads=4),
        _groups(sweep.groups),
        _topics(sweep.topics),
        section_of("unjudged", "not judged or partly judged", _UNJUDGED, sweep.unjudged, named_only=True),
        section_of("losses", "losses", _LOSSES, sweep.losses, named_only=True),
        _summary(sweep),
    )
    if sweep.counterexamples:
        grave: str = min((each.severity for each in sweep.counterexamples), key=SEVERITIES.index)
    else:
        grave = "warning" if sweep.nothing_judged else "" if sweep.broken_already or sweep.unjudged else "inOrder"
    shown = tuple(each.unless_empty() for each in sections)
    return Report("rmqlb/sweep-failures", sweep, tuple(_facts(sweep)), shown, grave=grave)


def _facts(sweep: model.FailureSweep) -> Iterator[str]:
    c = sweep.cases
    if sweep.nothing_judged:
        yield "nothing could be judged: data is missing for all topics and for all groups that share queues"
        yield from _left_out(sweep)
        return
    yield _verdict(sweep)
    numbers = Counter(loss.kind for loss in sweep.losses)
    kinds = ", ".join(counted(numbers[kind], kind) for kind in model.LOSS_KINDS if numbers[kind])
    pairs = f" and {counted(c.pairs, 'pair')}" if sweep.most_losses > 1 else ""
    yield f"  tried {c.tried:,} of {counted(c.all, 'case')}: {c.singles:,} single ({kinds}){pairs}"
    if sweep.broken_already:
        more = f", and {len(sweep.broken_already) - 1} more" if len(sweep.broken_already) > 1 else ""
        yield f"  broken without any loss: {_breaks(sweep.broken_already[0])}{more}"
    yield from _left_out(sweep)
    if sweep.waived:
        yield f"  {counted(sweep.waived, 'counterexample')} waived"


def _verdict(sweep: model.FailureSweep) -> str:
    c = sweep.cases
    cases = counted(c.all, "case") if c.tried == c.all else f"{c.tried:,} tried cases"
    if not c.broken:
        return f"none of {cases} breaks a limit"
    broken = f"{c.broken:,} of {cases} {'breaks' if c.broken == 1 else 'break'} a limit"
    if not sweep.counterexamples:
        return f"{broken}, all of them waived"
    first = sweep.counterexamples[0]
    return f"{broken}; worst: without {_losses_text(first.losses)}, {_breaks(first)}"


def _left_out(sweep: model.FailureSweep) -> Iterator[str]:
    whole = [each for each in sweep.unjudged if each.limit is None]
    if whole:
        names = named(f"{each.about} {each.name}" for each in whole)
        yield f"  not judged or partly judged: {names} ({whole[0].why})"
    limits = grouped(((each.limit, each.why), each.name) for each in sweep.unjudged if each.limit is not None)
    for (limit, why), names_ in limits.items():
        hint = "; name such groups with --orderly-group GLOB" if limit == "withoutLock" else ""
        yield f"  {limit} unknown in some cases of {named(names_)}: {why}{hint}"


def _losses_text(losses: Sequence[model.Loss]) -> str:
    return " and ".join(f"{'master of' if loss.kind == 'master' else loss.kind} {loss.name}" for loss in losses)


def _breaks(one: model.BrokenAlready) -> str:
    unit = LIMITS[one.limit].unit
    value = amount_text(unit, one.value, one.bound)
    return f"{one.about} {one.name}: {one.limit} is {value} ({allowed_text(unit, one.bound)})"


def _counterexamples(found: Sequence[model.Counterexample]) -> tuple[Section, ...]:
    figures = columns_from(
        "cases moved lagMoved rule:text command:text gapCommand:text",
        "number",
        moved=lambda one: "" if one.group is None else one.group.moved,
        lagMoved=lambda one: "" if one.group is None else one.group.lag_moved,
    )
    losses = Column("losses", "losses", of=lambda one: _losses_text(one.losses))
    columns = (_SIGN, losses, *_LIMIT_COLUMNS, *figures)
    title = "smallest failures that break a limit, worst first"
    table = section_of("counterexamples", title, columns, found, audience="scripts")
    if not found:
        return (table,)
    by_losses = grouped((one.losses, one) for one in found)
    blocks = tuple(map(_block, by_losses.values()))
    return (replace(table, audience="screen", blocks=blocks, brief=first_places(len(blocks), _MOST_SHOWN)), table)


def _block(broken: Sequence[model.Counterexample]) -> Block:
    first = broken[0]
    lines = tuple((_breaks(one), f"one of {one.cases:,} similar cases" if one.cases > 1 else "") for one in broken)
    parts = [
        Part("breaks", lines, _MOST_BROKEN),
        Part("then", ((_left(first), ""),)),
        *_commands("in full", [one.command for one in broken]),
        *_commands("gap", [one.gap_command for one in broken]),
    ]
    return Block(tuple(parts), first.severity, f"without {_losses_text(first.losses)}")


def _left(one: model.Counterexample) -> str:
    if one.group is not None:
        return ", ".join(_group_left(one.group))
    if one.topic is None:
        return ""
    brokers = counted(one.topic.writable_brokers, "writable broker")
    return f"{brokers} left, {counted(one.topic.writable_queues, 'writable queue')}"


def _group_left(o: model.GroupOutcome) -> Iterator[str]:
    if not o.consumers:
        yield f"no consumer left, {counted(o.queues, 'queue')} unassigned"
        return
    yield f"{counted(o.consumers, 'consumer')} left with {counted(o.queues, 'queue')}"
    if o.unassigned:
        yield f"{o.unassigned} unassigned"
    if o.idle:
        yield f"{o.idle} idle"
    if o.imbalance is not None:
        yield f"imbalance {number(o.imbalance)}"
    yield f"{counted(o.moved, 'queue')} {'moves' if o.moved == 1 else 'move'}"
    if o.lag_moved:
        yield f"{messages(o.lag_moved, 'waiting ')} in them"
    if o.without_lock:
        yield f"{counted(o.without_lock, 'queue')} that no broker locks"


def _commands(label: str, commands: Sequence[str | None]) -> Iterator[Part]:
    """The first command, and with `--all` the others; commands that would fill a screen are only in files."""
    texts = list(dict.fromkeys(filter(None, commands)))
    longest = max(map(len, texts), default=0)
    if longest > _LONGEST_COMMAND:
        yield Part(label, ((f"{longest} characters: --section counterexamples -o plain has them", ""),))
    elif texts:
        yield Part(label, tuple((text, "") for text in texts), 1, is_command=True)


def _figure(key: str, form: str = "") -> tuple[Column, ...]:
    name = attribute_of(key)

    def losses(worst: object) -> Cell:
        found = getattr(worst, name)
        return None if found is None else _losses_text(found.losses)

    (value,) = columns_from(f"{key}{form}@{name}.value", "number")
    return value, Column("", f"{key}Losses", shown=False, of=losses)


def _groups(groups: Sequence[model.GroupWorst]) -> Section:
    columns = (
        *columns_from("group:text consumers/5 queues/6 cases/3 broken=break_a_limit", "number"),
        *_figure("unassigned"),
        *_figure("imbalance"),
        *_figure("idle", "/4"),
        *_figure("moved", "=move"),
        *_figure("lagMoved", "/2"),
        *_figure("withoutLock", "/7"),
        *columns_from("strategy/8 basis/hidden computed:number/hidden"),
    )
    return section_of("groups", "groups, each figure in its worst case", columns, groups, heads=1, first=_MOST_ROWS)


def _topics(topics: Sequence[model.TopicWorst]) -> Section:
    columns = (
        *columns_from("topic writableBrokers:number"),
        *_figure("leastWritable", "=fewest_left"),
        *columns_from("cases/2 unwritable=none_writable broken=break_a_limit", "number"),
    )
    return section_of("topics", "topics, each figure in its worst case", columns, topics, heads=1, first=_MOST_ROWS)


_UNJUDGED = columns_from("about name limit why:prose")
_LOSSES = columns_from(
    "kind name consumers addresses",
    consumers=lambda loss: " ".join(loss.consumers),
    addresses=lambda loss: " ".join(loss.addresses),
)


def _summary(sweep: model.FailureSweep) -> Section:
    c = sweep.cases
    figures = {
        "cases": c.all,
        "single losses": c.singles,
        "pairs": c.pairs,
        "tried": c.tried,
        "computed": c.computed,
        "break a limit": c.broken,
        "single losses that break a limit": c.broken_singles,
        "counterexamples": len(sweep.counterexamples),
        "waived": sweep.waived,
    }
    columns = columns_from("figure= value:number")
    return Section("summary", "summary", columns, tuple(figures.items()), audience="scripts")
