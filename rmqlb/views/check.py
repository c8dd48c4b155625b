from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from rmqlb.model import policy
from rmqlb.model.result import counted
from rmqlb.views.columns import Column, columns_from, rows_of
from rmqlb.views.numbers import about, beyond, number, percent
from rmqlb.views.report import Report, Section, section_of

_WORDS: dict[policy.Unit, str] = {"least": "at least", "names": "only", "noneOf": "none of"}
"""The word for a bound, unless the bound is a maximum."""


def sentence(one: policy.JudgedLimit) -> str:
    """A limit in one line; the caller makes the names visible."""
    if one.limit is None or one.unit is None or one.bound is None:
        return f"rule {one.rule}: {one.why}"
    what = f"{one.about} {one.name}: {one.limit}"
    if one.verdict == policy.INCOMPLETE:
        return f"{what} could not be judged: {one.why}"
    if one.verdict == policy.NOT_APPLICABLE:
        return f"{what} does not apply: {one.why}"
    why = f" ({one.why})" if one.why else ""
    return (
        f"{what} is {amount_text(one.unit, one.value, one.bound)}, allowed is {allowed_text(one.unit, one.bound)}{why}"
    )


def amount_text(unit: policy.Unit, value: policy.Bound | None, bound: policy.Bound = ()) -> str:
    """A value, with as many places as its difference from the bound needs."""
    if value is None:
        return "never" if unit == "ms" else "?"
    if isinstance(value, tuple):
        return ", ".join(value) or "none"
    if unit == "ms":
        return about(value)
    if unit == "share":
        return percent(value)
    return number(value) if isinstance(bound, tuple) else beyond(value, bound)


def allowed_text(unit: policy.Unit, bound: policy.Bound) -> str:
    return f"{_WORDS.get(unit, 'at most')} {amount_text(unit, bound)}"


def waiver_text(waived: policy.WaivedLimit) -> str:
    return f"waived until {waived.until}: {waived.reason}"


_COUNTS = "limits passed failed waived incomplete notApplicable"
_WHERE = (*columns_from("rule/1"), Column("about", "about", quiet=True), *columns_from("name limit"))
_DIAGNOSED = (
    *("unassigned", "duplicateOwners", "duplicateClientIds", "lag", policy.DRAIN_TIME),
    *("mixedStrategies", "mixedSubscriptions", "splitViews"),
)
"""Limits of groups whose cause a diagnosis finds."""
_SIGN = Column("", "severity", "sign")
_SEVERITY = Column("severity", "severity", quiet=True)
_WHY = Column("why", "why", "prose")
_UNTIL = Column("until", "until", of=lambda one: str(one.until))
_VALUE = columns_from(
    "valueText=is allowed value:number/hidden bound:number/hidden",
    valueText=lambda one: one.unit and amount_text(one.unit, one.value, one.bound),
    allowed=lambda one: one.unit and allowed_text(one.unit, one.bound),
)


def check_report(result: policy.CheckResult) -> Report:
    if result.failed:
        grave: str = result.failed[0].severity
    elif result.incomplete:
        grave = "warning" if result.outcome == "incomplete" else ""
    else:
        grave = "inOrder"
    failed = _judgements("failed", result.failed, _SIGN, *_VALUE)
    incomplete = _judgements("incomplete", result.incomplete, _SEVERITY).unless_empty()
    sections = (
        failed if result.failed else replace(failed, audience="scripts"),
        _waived(result.waived).unless_empty(),
        incomplete if result.outcome == "incomplete" else replace(incomplete, audience="scripts"),
        replace(_judgements("not-applicable", result.not_applicable, _SEVERITY), named_only=True),
        replace(_rules(result.rules), audience="scripts"),
        replace(_waivers(result.waivers).unless_empty(), audience="scripts"),
        replace(_summary(result), audience="scripts"),
    )
    groups = [one.name for one in result.failed if one.about == policy.GROUP and one.limit in _DIAGNOSED]
    closing = tuple(f"rmqlb diagnose -g {name} shows why" for name in groups[:1])
    return Report("rmqlb/check", result, tuple(_facts(result)), sections, grave=grave, closing=closing)


def _facts(result: policy.CheckResult) -> Iterator[str]:
    s = result.summary
    yield _headline(result)
    parts = (
        (s.passed, "passed"),
        (s.waived, "waived"),
        (s.incomplete if s.failed else 0, "could not be judged"),
        (s.not_applicable, "not applicable"),
    )
    counts = ", ".join(f"{number} {what}" for number, what in parts if number)
    yield f"  {counts}{'; ' if counts else ''}{counted(s.rules, 'rule')} of {result.policy} on {result.today}"


def _headline(result: policy.CheckResult) -> str:
    s = result.summary
    limits = counted(s.limits, "limit")
    if s.failed:
        decides = "" if result.outcome == "failed" else f", none of severity {result.fail_on}"
        return f"{s.failed} of {limits} failed{decides}: {_first(result.failed)}"
    if result.outcome == "incomplete":
        return f"{counted(s.incomplete, 'limit')} could not be judged: {_first(result.incomplete)}"
    if s.passed == s.limits:
        return f"all {limits} passed"
    unknown = f", {s.incomplete} could not be judged" if s.incomplete else ""
    return f"none of {limits} failed{unknown}"


def _first(judged: Sequence[policy.JudgedLimit]) -> str:
    one, more = judged[0], f", and {len(judged) - 1} more" if len(judged) > 1 else ""
    what = f"rule {one.rule}" if one.name is None else f"{one.about} {one.name}: {one.limit}"
    if one.verdict == policy.INCOMPLETE or one.unit is None or one.bound is None:
        return f"{what}: {one.why}{more}"
    return f"{what} is {amount_text(one.unit, one.value, one.bound)} ({allowed_text(one.unit, one.bound)}){more}"


def _judgements(name: str, judged: Sequence[policy.JudgedLimit], severity: Column, *more: Column) -> Section:
    columns = (severity, *_WHERE, *more, _WHY)
    return section_of(name, name.replace("-", " "), columns, judged, heads=5)


def _waived(waived: Sequence[policy.WaivedLimit]) -> Section:
    value = (replace(column, fold=2) if column.key == "allowed" else column for column in _VALUE)
    columns = (_SEVERITY, *_WHERE, *value, replace(_WHY, fold=3), _UNTIL, Column("reason", "reason", "prose"))
    return section_of("waived", "waived", columns, waived, heads=5)


def _rules(rules: Sequence[policy.RuleCounts]) -> Section:
    columns = columns_from(f"rule:text severity:text about:text names {_COUNTS}", "number")
    return section_of("rules", "rules", columns, rules, heads=1)


def _waivers(uses: Sequence[policy.WaiverResult]) -> Section:
    columns = columns_from(
        "rule about name limit until state waived:number reason",
        about=lambda use: policy.GROUP if use.group else policy.TOPIC if use.topic else None,
        name=lambda use: use.group or use.topic,
        until=lambda use: str(use.until),
    )
    return section_of("waivers", "waivers", columns, uses, heads=4)


def _summary(result: policy.CheckResult) -> Section:
    counts = columns_from(f"rules {_COUNTS}")
    rows = tuple((column.title, row) for column, row in zip(counts, rows_of(counts, [result.summary])[0], strict=True))
    columns = columns_from("figure= value:number")
    return Section("summary", "summary", columns, (("outcome", result.outcome), *rows))
