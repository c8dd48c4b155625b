from collections.abc import Iterator, Sequence
from functools import partial

from rmqlb.model.message_queue import queue_ranges, runs, span
from rmqlb.model.result import INFO, WARNING, are, counted
from rmqlb.model.size_group import AfterLoss, GroupSize, Limit, SizedBacklog, SizeLimits, SizePoint, SizesOfGroups
from rmqlb.views.columns import Cell, Column, columns_from
from rmqlb.views.numbers import beyond, duration, number, percent
from rmqlb.views.of_groups import of_groups
from rmqlb.views.report import BETWEEN, Report, Section, section_of
from rmqlb.views.timeline import rate_source, ruler

_MOST_RANGES = 12
_MOST_POINTS = 12
_MOST_CANDIDATES = 12
_LENGTH = 72
_HEIGHT = 6
_EDGE = "|"
_GOOD, _BAD, _LIMIT = "#", ":", "-"
_BETWEEN_TICKS = 5
_HOT = 2  # times the mean of the topic's queues


def size_report(result: GroupSize | SizesOfGroups) -> Report:
    if isinstance(result, GroupSize):
        return _report(result)
    sizes, s = result.groups, result.summary
    unknown = s.groups - s.unsatisfied_now - s.satisfied_now
    counts = {"outside the limits": s.unsatisfied_now, "within": s.satisfied_now, "unknown": unknown}
    none = f"; no size is within the limits for {counted(s.without_answer, 'group')}" if s.without_answer else ""
    text = f"{counted(s.groups, 'group')} now: {', '.join(f'{n} {what}' for what, n in counts.items() if n)}{none}"
    if any(map(_is_open, sizes)):
        text += "; for load, pass --rate and --consume-time"
    parts = [(size.group or "", _report(size)) for size in sizes]
    return of_groups(parts, [text, f"  {BETWEEN.join(_limits_text(sizes[0].limits))}"], result, _groups(sizes))


def _groups(sizes: Sequence[GroupSize]) -> Section:
    columns = columns_from(
        "severity=:sign group:text consumersNow/2 consumers=fewest allowed=within_the_limits:text "
        "imbalance/3@best.imbalance strategy:text/4 blockedBy:prose",
        "number",
        severity=_grave,
        consumers=lambda size: size.consumers or "none",
        allowed=lambda size: _ranges(size.replica_counts.allowed),
        blockedBy=lambda size: "; ".join(_reasons(size.best, size)) or None,
    )
    return section_of("groups", "groups", columns, sizes)


def _grave(size: GroupSize) -> str:
    if size.consumers is None or (size.now and not size.now.satisfied):
        return WARNING
    return INFO if _is_open(size) else "inOrder"


def _report(size: GroupSize) -> Report:
    candidates = [_candidates(size)] if len(size.candidates) > 1 else []
    sections = (_chart(size, _LENGTH), _curve(size), *candidates, _topics(size))
    lines = [list(_for_autoscalers(size)), *map(list, map(partial(_backlog, size), size.backlogs))]
    lines += [_limits_text(size.limits), list(_certainty(size)), list(_of_now(size))]
    facts = (_headline(size), *(f"  {BETWEEN.join(parts)}" for parts in lines if parts))
    return Report("rmqlb/group-size", size, facts, sections, grave=_grave(size), closing=tuple(_work(size)))


def _curve(size: GroupSize) -> Section:
    limits, points = size.limits, size.curve

    def after(title: str, key: str, loss: str, *, shown: bool) -> Column:
        return Column(title, key, "number", shown=shown, fold=2, of=lambda at: _imbalance_after(getattr(at, loss)))

    columns = (
        Column("", "status", "sign", of=lambda point: "inOrder" if point.satisfied else "warning"),
        *columns_from("consumers imbalance idle unassigned? duplicateOwners?", "number"),
        Column("utilisation", "utilisation", "share", shown=size.threads is not None),
        Column("catches up in", "catchUpMs", "ms", shown=limits.outage_ms is not None),
        Column("drains in", "drainMs", "ms", shown=limits.drain_in_ms is not None),
        after("with consumers lost", "imbalanceAfterLoss", "after_loss", shown=bool(limits.survive)),
        after("with a host lost", "imbalanceAfterHostLoss", "after_host_loss", shown=limits.survive_host),
        after("with a broker lost", "imbalanceAfterBrokerLoss", "after_broker_loss", shown=limits.survive_broker),
        Column("share of ID sets", "share", "share", shown=not size.every_order),
        Column("fails", "fails", shown=False),
        Column("why not", "whyNot", "prose", of=lambda point: "; ".join(_reasons(point, size)) or None),
    )
    title = f"sizes under {size.strategy}{_on_queues(size)}"
    return section_of("curve", title, columns, points, brief=_around(size))


def _on_queues(size: GroupSize) -> str:
    queues = size.queues_per_broker
    return "" if queues is None else f" with {counted(queues, 'queue')} per broker"


def _imbalance_after(loss: AfterLoss | None) -> Cell:
    return None if loss is None else "none left" if loss.imbalance is None else loss.imbalance


def _around(size: GroupSize) -> tuple[int, ...] | None:
    """The places of the answer, of sizes within all limits, and of the answer's neighbours; None when there are few."""
    points = size.curve
    if len(points) <= _MOST_POINTS:
        return None
    answer = next(at for at, point in enumerate(points) if point.consumers == size.best.consumers)
    near = sorted(range(len(points)), key=lambda at: (abs(at - answer), at))
    wanted = [*near[:3], *(at for at, point in enumerate(points) if point.satisfied), *near]
    return tuple(sorted(list(dict.fromkeys(wanted))[:_MOST_POINTS]))


def _candidates(size: GroupSize) -> Section:
    columns = columns_from(
        "strategy:text queuesPerBroker consumers allowed=allowed_sizes/2 imbalance/1@best.imbalance blockedBy:prose",
        "number",
        hidden=() if size.queues_per_broker is not None else ("queuesPerBroker",),
        consumers=lambda each: each.consumers or "none",
        blockedBy=lambda each: ", ".join(each.best.fails) or None,
    )
    found = [each.consumers for each in size.candidates]
    order = sorted(range(len(found)), key=lambda at: (found[at] is None, found[at] or 0, at))
    brief = tuple(sorted(order[:_MOST_CANDIDATES])) if len(order) > _MOST_CANDIDATES else None
    return section_of("candidates", "compared alternatives", columns, size.candidates, brief=brief)


def _topics(size: GroupSize) -> Section:
    has_rate = size.threads is not None
    hidden = [] if size.queues_per_broker is not None else ["queuesNow"]
    hidden += [] if has_rate else ["ratePerSecond", "consumeMs"]
    keys = "topic:text queues queuesNow=now ratePerSecond=messages_per_second consumeMs=consume_time:ms"
    columns = columns_from(keys, "number", hidden=hidden)
    return section_of("topics", "topics", columns, size.topics, named_only=not has_rate, heads=1)


def _work(size: GroupSize) -> Iterator[str]:
    rates = [topic.rate_per_second for topic in size.topics if topic.rate_per_second is not None]
    times = sorted({topic.consume_ms for topic in size.topics if topic.consume_ms is not None})
    if size.threads is None or not times:
        return
    took = duration(times[0]) if len(times) == 1 else f"{duration(times[0])} to {duration(times[-1])}"
    threads = f"{counted(size.threads, 'consume thread')} per consumer{', as reported' * size.threads_reported}"
    one = " (an orderly group uses 1 per queue)" if size.orderly else ""
    source = "" if size.rates is None else f" ({rate_source(size.rates)})"
    yield f"work: {number(sum(rates))} messages per second{source}, {took} each, {threads}{one}"


def _backlog(size: GroupSize, backlog: SizedBacklog) -> Iterator[str]:
    """What the answer does with a backlog, and what no number of consumers does."""
    begin = "lag now"
    if backlog.limit == "catch-up":
        begin = f"after an outage of {duration(size.limits.outage_ms or 0)}"
    waiting = "" if backlog.messages is None else f"{number(round(backlog.messages))} messages"
    gone = "never gone" if backlog.ms is None else f"gone in {duration(backlog.ms)}"
    with_consumers = f"with {counted(size.best.consumers, 'consumer')}"
    yield f"{begin}: {waiting}, {gone} {with_consumers}"
    if not backlog.messages:
        return
    yield f"last: {queue_ranges([backlog.last_queue])}"
    most = size.limits.catch_up_ms if backlog.limit == "catch-up" else size.limits.drain_in_ms
    if backlog.alone_ms is None or backlog.alone_ms > (most or 0):
        alone = "never drains" if backlog.alone_ms is None else f"takes {duration(backlog.alone_ms)}"
        is_hot = backlog.inflow_over_mean >= _HOT
        hot = f", which gets {number(backlog.inflow_over_mean)} times the mean of its topic," if is_hot else ""
        remedy = (
            "neither more consumers nor more queues help with a hot key"
            if hot
            else "more queues help, more consumers do not"
        )
        yield f"{queue_ranges([backlog.slowest_queue])}{hot} {alone} with a consumer of its own: {remedy}"


def _headline(size: GroupSize) -> str:
    group = size.group or "the group"
    best, now = size.best, size.now
    has = f" has {now.consumers}" if now is not None and not now.satisfied else ""
    if size.consumers is None:
        tried = _ranges([point.consumers for point in size.curve])
        why = "; ".join(_reasons(best, size))
        if len(size.curve) == 1:
            return f"{group}: {_named(size, best)} {are(best.consumers)} not within the limits: {why}"
        return (
            f"{group}{has}: none of the sizes {tried} is within the limits; the nearest is {_named(size, best)}: {why}"
        )
    if _is_open(size):
        allowed = size.replica_counts.allowed
        either = f"any of {_ranges(allowed)}" if len(allowed) > 1 else counted(best.consumers, "consumer")
        return f"{group}{has}: balanced with {either}{_setting(size)}; for load, pass --rate and --consume-time"
    return f"{group}{has}{',' * bool(has)} needs {_named(size, best)}{_why_no_fewer(size)}"


def _is_open(size: GroupSize) -> bool:
    """Whether the question is not answered: without rates, limits of balance allow the fewest consumers."""
    wanted = size.limits
    lost = wanted.survive or wanted.survive_host or wanted.survive_broker
    is_fewest = len(size.curve) > 1 and size.consumers == size.curve[0].consumers
    return size.threads is None and size.queues_per_broker is None and not lost and is_fewest


def _reasons(point: SizePoint, size: GroupSize) -> Iterator[str]:
    losses = {
        "survive": point.after_loss, "survive-host": point.after_host_loss, "survive-broker": point.after_broker_loss,
    }  # fmt: skip
    for limit in point.fails:
        yield _after(losses[limit], size) if limit in losses else _broken(limit, point, size.limits)


def _limits_text(limits: SizeLimits) -> list[str]:
    most, used, lost = limits.max_imbalance, limits.max_utilisation, limits.survive
    texts = (
        most is not None and f"imbalance at most {number(most)}",
        limits.no_idle and "no idle consumer",
        used is not None and f"utilisation at most {percent(used)}",
        limits.catch_up_ms is not None and f"backlog of the outage gone in {duration(limits.catch_up_ms)}",
        limits.drain_in_ms is not None and f"current lag gone in {duration(limits.drain_in_ms)}",
        lost and f"also with up to {counted(lost, 'consumer')} lost",
        limits.survive_host and "also with any host lost",
        limits.survive_broker and "also with any broker lost",
        limits.share < 1 and f"for {percent(limits.share)} of sets of client IDs",
    )
    found = [text for text in texts if text]
    return [f"limits: {found[0]}", *found[1:]] if found else []


def _ranges(numbers: Sequence[int], most: int = _MOST_RANGES) -> str:
    """Numbers in a few words.

    >>> _ranges([1, 2, 3, 5, 8, 9]), _ranges([2, 4, 6], most=2), _ranges([])
    ('1–3, 5, 8–9', '2, 4 and 1 more', 'none')
    """
    found = runs(numbers)
    left = sum(map(len, found[most:]))
    return (", ".join(map(span, found[:most])).replace("-", "–") or "none") + (f" and {left} more" if left else "")


def _named(size: GroupSize, point: SizePoint) -> str:
    return counted(point.consumers, "consumer") + _setting(size)


def _setting(size: GroupSize) -> str:
    under = f" under {size.strategy}" if len({each.strategy for each in size.candidates}) > 1 else ""
    return _on_queues(size) + under


def _why_no_fewer(size: GroupSize) -> str:
    smaller = size.at(size.best.consumers - 1)
    if smaller is None:
        return "" if size.best.consumers == 1 else "; fewer were not tried"
    return f"; {smaller.consumers} {are(smaller.consumers)} too few: {'; '.join(_reasons(smaller, size))}"


def _broken(limit: Limit, found: SizePoint | AfterLoss, limits: SizeLimits) -> str:
    counts: dict[Limit, tuple[int, str, str]] = {
        "unassigned": (found.unassigned, "queue", " unassigned"),
        "duplicate-owners": (found.duplicate_owners, "queue", " with duplicate owners"),
        "no-idle": (found.idle, "idle consumer", ""),
    }
    if limit in counts:
        broken, noun, how = counts[limit]
        return counted(broken, noun) + how if broken else f"1 {noun}{how} or more with some sets of client IDs"
    if limit == "max-utilisation":
        return f"utilisation {_above(100 * (found.utilisation or 0), 100 * (limits.max_utilisation or 0), '%')}"
    if limit in ("catch-up", "drain-in"):
        what, ms, most = "catches up", found.catch_up_ms, limits.catch_up_ms
        if limit == "drain-in":
            what, ms, most = "drains", found.drain_ms, limits.drain_in_ms
        if ms is None:
            return f"never {what}"
        within = f"in {duration(ms)} > {duration(most or 0)}" if ms > (most or 0) else "later with some client IDs"
        return f"{what} {within}"
    if found.imbalance is None:
        return "no queue is left"
    return f"imbalance {_above(found.imbalance, limits.max_imbalance or 0)}"


def _above(value: float, limit: float, unit: str = "") -> str:
    """A figure that is too large.

    >>> _above(1.28, 1.1), _above(1.1004, 1.1), _above(95, 80, "%"), _above(1.05, 1.1)
    ('1.28 > 1.1', '1.1004 > 1.1', '95% > 80%', 'above 1.1 with some sets of client IDs')
    """
    if value <= limit:  # the required share of ID sets is within the limit
        return f"above {number(limit)}{unit} with some sets of client IDs"
    return f"{beyond(value, limit, 1 if unit else 2)}{unit} > {number(limit)}{unit}"


def _after(loss: AfterLoss | None, size: GroupSize) -> str:
    if loss is None:
        return "losses were not tried"
    lost = f"broker {loss.lost_broker}" if loss.lost_broker is not None else counted(loss.lost_consumers, "consumer")
    if loss.lost_host is not None:
        lost = f"host {loss.lost_host} ({lost})"
    broken = [limit for limit in loss.fails if not limit.startswith("survive")]
    left = [_broken(limit, loss, size.limits) for limit in broken]
    if not left:
        left = ["no queue is left" if loss.lost_broker is not None else "no consumer is left"]
    return f"with {lost} lost, {' and '.join(left)}"


def _for_autoscalers(size: GroupSize) -> Iterator[str]:
    counts = size.replica_counts
    looked = f"{size.curve[0].consumers}–{size.curve[-1].consumers}"
    if counts.min is not None and len(size.curve) > 1:
        yield f"consumer counts within the limits: {_ranges(counts.allowed)} (tried {looked})"
    if (now := size.now) is not None and now.satisfied:
        yield f"{counted(now.consumers, 'consumer')} now"


def _certainty(size: GroupSize) -> Iterator[str]:
    queues = sum(topic.queues for topic in size.topics)
    library = "" if size.sdk == "java" else f" of {size.sdk} consumers"
    yield f"{size.strategy}{library}, {counted(queues, 'queue')} of {counted(len(size.topics), 'topic')}"
    if size.every_order:
        yield "independent of client IDs"
    elif size.limits.share < 1 or not size.best.satisfied:
        yield f"holds for {percent(size.best.share)} of {size.trials} sets of client IDs tried"
    else:
        yield f"holds for each of {size.trials} sets of client IDs tried"
    if size.mixed_subscriptions:
        yield "consumers subscribe to different topics: current consumers keep their topics, new ones read all topics"
    if size.losses != "counted":
        first = next(point for point in size.curve if point.after_loss is not None and not point.after_loss.exact)
        yield f"from {counted(first.consumers, 'consumer')} on, losses were sampled: a worse loss may exist"


def _of_now(size: GroupSize) -> Iterator[str]:
    now = size.now
    if now is not None and not now.satisfied and (size.consumers is None or now.consumers != size.consumers - 1):
        where = "" if size.queues_per_broker is None else " on these queues"
        yield f"now {counted(now.consumers, 'consumer')}{where}: {'; '.join(_reasons(now, size))}"


def _chart(size: GroupSize, length: int) -> Section:
    room = max(length - 2 * len(_EDGE), 1)
    step = -(-len(size.curve) // room)
    parts = (size.curve[at : at + step] for at in range(0, len(size.curve), step))
    columns = [min(part, key=lambda point: (not point.satisfied, point.imbalance or 0.0)) for part in parts]
    wide = 2 if 2 * len(columns) <= room else 1
    tops = [point.imbalance for point in columns if point.imbalance is not None]
    limit = size.limits.max_imbalance
    top = max((*tops, 1.0 if limit is None else limit, 1.01))
    floor, each = 1.0, (top - 1.0) / _HEIGHT
    rows: list[tuple[Cell, ...]] = []
    for level in reversed(range(_HEIGHT)):
        low = floor + level * each
        is_limit = (limit is not None and low <= limit < low + each) or (limit == top and level == _HEIGHT - 1)
        cells = (_cell(point, low, wide, is_first=level == 0, is_limit=is_limit) for point in columns)
        label = f"{low + each:.2f}" if level == _HEIGHT - 1 else "1.00" if level == 0 else ""
        rows.append((label, f"{_EDGE}{''.join(cells)}{_EDGE}"))
    numbers = enumerate(point.consumers for point in columns)
    labels = ((at * wide, str(n)) for at, n in numbers if at == 0 or n % _BETWEEN_TICKS == 0)
    rows.append(("consumers", f"{_EDGE}{ruler(len(columns) * wide, labels)}{_EDGE}"))
    is_seen = limit is not None and any(_LIMIT in str(shown) for _, shown in rows[:-1])
    legend = [f"{_GOOD} = within all limits", f"{_BAD} = not", *([f"{_LIMIT} = {limit:g}"] if is_seen else [])]
    each_column = f", best of {step} sizes per column" if step > 1 else ""
    title = f"imbalance by number of consumers{each_column}"
    shown = (Column("imbalance", "label"), Column(", ".join(legend), "strip", "strip"))
    return Section("chart", title, shown, tuple(rows), heads=1, draw=lambda other: _chart(size, other))


def _cell(point: SizePoint, low: float, wide: int, *, is_first: bool, is_limit: bool) -> str:
    if point.imbalance is not None and (point.imbalance > low or is_first):
        return (_GOOD if point.satisfied else _BAD).ljust(wide)
    return (_LIMIT if is_limit else " ") * wide
