"""The report of a diagnosis: the verdict, the findings as blocks, then what is in order and what is unknown."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from rmqlb.model import diagnosis as model
from rmqlb.model.message_queue import grouped, queue_ranges
from rmqlb.model.result import INFO, are, at_least, counted, have, named, of_all
from rmqlb.views import show_groups as of_group
from rmqlb.views.columns import QUEUE_COLUMNS, Cell, Column, columns_from, rows_of
from rmqlb.views.explanations import RuleWords, rule_words
from rmqlb.views.numbers import duration
from rmqlb.views.of_groups import of_groups, statuses
from rmqlb.views.report import BETWEEN, Block, Part, Report, Rows, Section, first_places, section_of

_MOST_FINDINGS = 8
_MOST_FINDINGS_OF_GROUPS = 6
_MOST_EVIDENCE = 4
_MOST_STACK = 12
_RANGES = 6
_FRACTION = re.compile(r"\.\d+(?=Z$)")  # of a second, which is too exact for people
_FINDING = Column("finding", "code")


def diagnosis_report(found: model.Diagnosis, *, live: bool = False, with_name: bool = False) -> Report:
    """The report of a group; `live` is a source that can be read again, for advice on missing evidence."""
    missing = _missing(found, live=live)
    waits = of_group.lag_waits(found.counts.lag_at_least, found.drain)
    drain, slowest = of_group.drain_sentence(found.drain, found.slowest), of_group.slowest_text(found.slowest)
    facts = [
        f"{found.group}: {sentence(found, missing)}",
        *(f"  {fact}" for fact in (_counts(found), *((drain, slowest) if waits else ()), _samples_text(found)) if fact),
    ]
    undecided_cause = found.status in ("warning", "lagging") and found.outcome != "found"
    if undecided_cause and any(needs in missing for needs in (model.SECOND_SAMPLE, model.MORE_SAMPLES)):
        how = f"--samples {_samples(found)}" if live else "-s LATER.json --earlier THIS.json"
        facts.insert(1, f"  rmqlb diagnose -g {found.group} {how}")
    code = f"rmqlb explain {found.findings[0].code} has details; " if found.findings else ""
    is_said = len(missing) == 1 and found.outcome == "unknown" and not undecided_cause
    return Report(
        "rmqlb/diagnosis",
        found,
        tuple(facts),
        (_findings(found, with_name=with_name), _rules(found), _evidence(found), _queues(found)),
        # A watch ignores changes of the evidence alone.
        rows=Rows(("list", "code", "about"), list(_items(found)), unwatched=("evidence", "consequence")),
        grave={"lagging": "warning", "unknown": ""}.get(found.status, found.status),
        more=f"{code}--all lists all checks and evidence",
        closing=() if is_said or not missing else (_needed(missing),),
    )


def _missing(found: model.Diagnosis, *, live: bool) -> dict[str, tuple[int, str]]:
    """The evidence that undecided rules need → the number of the rules, and the option or command that gets it."""
    another = f": --samples {_samples(found)}" if live else ": --earlier FILE"
    numbers = Counter(each.needs or "other evidence" for each in found.unknown)
    hows = dict.fromkeys((model.SECOND_SAMPLE, model.MORE_SAMPLES), another)
    return {needs: (number, hows.get(needs, "")) for needs, number in numbers.most_common()}


def _samples(found: model.Diagnosis) -> int:
    return min(max(3, len(found.samples) + 2), 10)


def _needed(missing: Mapping[str, tuple[int, str]]) -> str:
    (first, (number, how)), *others = missing.items()
    start = f"{counted(number, 'check')} {'needs' if number == 1 else 'need'} {first}{how}"
    return "; ".join([start, *(f"{n} {'needs' if n == 1 else 'need'} {needs}{how}" for needs, (n, how) in others)])


def diagnoses_report(whole: model.DiagnosisOfGroups, *, live: bool = False) -> Report:
    parts = [(each.group, diagnosis_report(each, live=live, with_name=True)) for each in whole.groups]
    summary = whole.summary
    tables = [_findings(each, with_name=True) for each in whole.groups]
    rows = tuple(row for table in tables for row in table.rows)
    blocks = tuple(block for table in tables for block in table.blocks or ())
    brief = first_places(len(rows), _MOST_FINDINGS_OF_GROUPS)
    facts = (f"{counted(summary.groups, 'group')}: {', '.join(statuses(summary, 'with no problem found'))}",)
    order = [(at,) for at in range(len(parts))]
    beside = [replace(tables[0], rows=rows, blocks=blocks, brief=brief, audience="screen")]
    report = of_groups(parts, facts, whole, _groups(whole.groups), order=order, beside=beside)
    bad = "error" if summary.with_errors else "warning" if summary.with_warnings or summary.lagging else ""
    grave = bad or ("" if summary.unknown else "inOrder")
    return replace(
        report, grave=grave, more=f"rmqlb diagnose -g {parts[0][0]} shows one group; --all shows every group in full"
    )


def _groups(groups: Sequence[model.Diagnosis]) -> Section:
    columns = columns_from(
        "status=:sign group:name outcome:text/hidden consumers/4@counts.consumers queues/3@counts.queues "
        "unassigned?/1@counts.unassigned duplicateOwners?/2@counts.duplicate_owners lagText=lag lag/hidden@counts.lag "
        "lagAtLeast=at_least/hidden@counts.lag_at_least findings:text/hidden unknown/hidden diagnosis:headline",
        "number",
        lagText=lambda each: _lag_text(each.counts),
        findings=lambda each: " ".join(_by_code(each.findings)),
        unknown=lambda each: len(each.unknown),
        diagnosis=_diagnosis,
    )
    return section_of("groups", "groups", columns, groups)


def _diagnosis(found: model.Diagnosis) -> str:
    suspected = [each.code for each in found.unknown if each.suspected]
    if found.status == "warning" and found.outcome != "found" and suspected:
        return f"{suspected[0]} suspected"
    return of_group.headline(found.findings, found.counts, found.lagging) or _checks(found, {})


def _checks(found: model.Diagnosis, missing: Mapping[str, tuple[int, str]]) -> str:
    number = counted(len(found.checked), "check")
    if not found.unknown:
        return f"in order ({number})"
    if not found.checked:
        return f"no check is possible: {found.unknown[0].reason}"
    if len(missing) != 1:
        return f"no problem found ({number}; {len(found.unknown)} need evidence)"
    ((needs, (undecided, how)),) = missing.items()
    return f"no problem found ({number}; {undecided} {'needs' if undecided == 1 else 'need'} {needs}{how})"


def sentence(found: model.Diagnosis, missing: Mapping[str, tuple[int, str]] | None = None) -> str:
    """The verdict without the group's name; `missing` is the evidence that undecided rules need."""
    missing = _missing(found, live=False) if missing is None else missing
    grave = _by_code(each for each in found.findings if each.severity != INFO).values()
    causes = [same for same in grave if same[0].explains is not None]
    others = [same for same in grave if same[0].explains is None]
    bad = ", ".join(_bad_owners(found.counts))
    if causes and bad:
        return f"{bad} because {' and because '.join(_found(same, found) for same in causes)}{_also(others)}"
    if causes or others:
        first, *left = [*causes, *others]
        return f"{_found(first, found)}{_also(left)}"
    text = _checks(found, missing)
    suspected = next((each.suspected for each in found.unknown if each.suspected), None)
    if suspected is not None:
        text = f"{suspected}; another sample decides"
    elif found.lagging is not None:
        needs = next((each for each in (model.SECOND_SAMPLE, model.MORE_SAMPLES) if each in missing), "")
        cause = f"cause needs {needs}" if needs else "cause unknown" if missing else "no check finds a cause"
        drains = {"finite": f"drains in {of_group.drain_text(found.drain)}", "never": "never drains at this rate"}
        when = drains.get(found.drain.drains) if found.drain is not None else None
        place = of_group.lag_place(found.lagging, with_queues=True)
        text = "; ".join(filter(None, (f"lag {found.lagging.lag:,}, {place}", when, cause)))
    return "; ".join([text, *(_found(same, found) for same in _by_code(found.findings).values())])


def _by_code(findings: Iterable[model.GroupFinding]) -> dict[str, list[model.GroupFinding]]:
    return grouped((each.code, each) for each in findings)


def _bad_owners(counts: model.GroupCounts) -> Iterator[str]:
    if number := counts.unassigned:
        yield f"{of_all(number, counts.queues or number)} {are(number)} unassigned"
    if number := counts.duplicate_owners:
        which = str(number) if counts.unassigned else of_all(number, counts.queues or number)
        yield f"{which} {have(number)} duplicate owners"


def _also(others: Sequence[Sequence[model.GroupFinding]]) -> str:
    return f"; also {named(same[0].code for same in others)}" if others else ""


def _words(code: str) -> RuleWords:
    return rule_words().get(code) or RuleWords(f"no {code}", code)


def _found(findings: Sequence[model.GroupFinding], found: model.Diagnosis) -> str:
    code, queues = findings[0].code, found.counts.queues
    ids = list(dict.fromkeys(client_id for each in findings for client_id in each.consumers))
    values = [fact.value for each in findings for fact in each.evidence]
    number = max((value for value in values if isinstance(value, int)), default=0)
    concerned = {queue: queue.broker_name for each in findings for queue in each.queues}
    # Queues with unknown owners may be unassigned or have duplicate owners.
    least = at_least(found.counts.owners_unknown) if code in ("unassigned-queues", "duplicate-owners") else ""
    one = len(ids) == 1
    return (_words(code).found + (_words(code).queues if concerned else "")).format(
        who=named(ids) or "consumers",
        values=named(dict.fromkeys(map(str, values))),
        number=number or "several",
        brokers=named(dict.fromkeys(concerned.values())) or "a broker",
        topics=named(dict.fromkeys(each.topic for each in findings if each.topic is not None)) or "a topic",
        queues=least + (counted(len(concerned), "queue") if queues is None else of_all(len(concerned), queues)),
        wait="waits" if len(concerned) == 1 else "wait",
        each_of="" if one else "each of ",
        plural="" if one else "s",
        s="s" if one else "",
        **{"is": are(len(ids))},
        does="does" if one else "do",
        has=have(len(ids)),
        its="its" if one else "their",
    )


def _counts(found: model.Diagnosis) -> str:
    counts = found.counts
    parts = (
        "" if counts.consumers is None else of_group.consumers_text(counts),
        "" if counts.queues is None else counted(counts.queues, "queue"),
        "" if counts.lag_at_least is None else f"lag {_lag_text(counts)}",
    )
    return BETWEEN.join(filter(None, parts))


def _lag_text(counts: model.GroupCounts) -> str:
    if counts.lag is not None:
        return f"{counts.lag:,}"
    return "?" if counts.lag_at_least is None else f"{counts.lag_at_least:,}+"


def _samples_text(found: model.Diagnosis) -> str:
    if not found.samples:
        return ""
    first, last = found.samples[0], found.samples[-1]
    when = "at an unknown time" if last.at is None else f"at {_FRACTION.sub('', last.at)}"
    if len(found.samples) == 1:
        return f"read {when} from {last.source}"
    span = ""
    if first.at is not None and last.at is not None:
        took = datetime.fromisoformat(last.at) - datetime.fromisoformat(first.at)
        span = f" over {duration(took.total_seconds() * 1000)}"
    sources = ", ".join(dict.fromkeys(sample.source for sample in found.samples))
    return f"{len(found.samples)} samples{span}, the last {when}, from {sources}"


def _findings(found: model.Diagnosis, *, with_name: bool) -> Section:
    columns = columns_from(
        "severity=:sign code=finding topic queues:number consumers consequence:prose remedy:prose "
        "reproduces=explains_all@explains.reproduces fixesAll=fixes_all@explains.fixes_all",
        queues=lambda finding: len(finding.queues),
        consumers=lambda finding: " ".join(finding.consumers),
    )
    causes = len({each.code for each in found.findings if _is_cause(each)})
    blocks = tuple(
        Block(
            tuple(_parts(each, found, causes)),
            each.severity,
            f"{each.group}: {each.code}" if with_name else each.code,
            _explains(each, causes),
        )
        for each in found.findings
    )
    return section_of("findings", "", columns, found.findings, first=_MOST_FINDINGS, blocks=blocks)


def _is_cause(finding: model.GroupFinding) -> bool:
    return finding.explains is not None and finding.severity != INFO and bool(finding.queues)


def _explains(finding: model.GroupFinding, causes: int) -> str:
    if not _is_cause(finding) or finding.explains is None or finding.explains.reproduces is None:
        return ""
    if not finding.explains.reproduces:
        return "does not explain all observations"
    return "explains all observations" if causes == 1 else f"one of {causes} causes that explain all observations"


def _parts(finding: model.GroupFinding, found: model.Diagnosis, causes: int) -> Iterator[Part]:
    evidence = dict.fromkeys((_fact(each), _where(each, found)) for each in finding.evidence)
    if predicted := _predicted(finding, found.counts.queues, causes):
        evidence[predicted, ""] = None
    if evidence:
        yield Part("evidence", tuple(evidence), _MOST_EVIDENCE)
    if len(finding.consumers) > 1 or (finding.consumers and not finding.evidence):
        yield _line("consumers", named(finding.consumers))
    if finding.queues:
        number = of_all(len(finding.queues), found.counts.queues or len(finding.queues))
        yield _line("queues", f"{number}: {queue_ranges(finding.queues, _RANGES)}")
    if finding.consequence:
        yield _line("consequence", finding.consequence)
    for stacks in found.stacks or ():
        if stacks.client_id in finding.consumers and finding.code == "blocked-consumer":
            lines = [line for thread in stacks.threads for line in thread.splitlines()]
            yield _line("stacks", *(lines or ["no consume thread is running"]), most=_MOST_STACK)
    if finding.remedy:
        yield _line("remedy", finding.remedy)
    if after := _afterwards(finding, found.counts.queues):
        yield _line("afterwards", after)


def _line(label: str, *texts: str, most: int | None = None) -> Part:
    return Part(label, tuple((text, "") for text in texts), most)


def _fact(evidence: model.Evidence) -> str:
    value, threshold = (f"{each:,}" if isinstance(each, int) else each for each in (evidence.value, evidence.threshold))
    return f"{evidence.fact}: {value}" + ("" if threshold is None else f" (threshold {threshold})")


def _where(evidence: model.Evidence, found: model.Diagnosis) -> str:
    """The source and the time of the evidence, unless they are the same for all evidence."""
    every = [each for finding in found.findings for each in finding.evidence]
    where = [evidence.source] if len({each.source for each in every}) > 1 or not found.samples else []
    if evidence.at is not None and (len({each.at for each in every}) > 1 or not found.samples):
        where.append(_clock(evidence.at))
    return ", ".join(where)


def _clock(at: str) -> str:
    """The time of day; the list of samples has the day.

    >>> _clock("2026-11-21T02:00:00.123Z"), _clock("?")
    ('02:00:00 UTC', '?')
    """
    day, t, time = _FRACTION.sub("", at).partition("T")
    return f"{time.removesuffix('Z')} UTC" if t and time.endswith("Z") else day


def _predicted(finding: model.GroupFinding, queues: int | None, causes: int) -> str:
    explains = finding.explains
    if explains is None or explains.queues_explained is None or queues is None or finding.severity == INFO:
        return ""
    without = explains.queues_explained_without
    otherwise = "" if without is None else f" ({without:,} of {queues:,} without it)"
    given, which = of_all(explains.queues_explained, queues), "all causes explain" if causes > 1 else "explains"
    return f"{which} the owners of {given}{otherwise}"


def _afterwards(finding: model.GroupFinding, queues: int | None) -> str:
    explains = finding.explains
    if explains is None or explains.fixes_all is None or finding.severity == INFO:
        return ""
    if explains.fixes_all:
        return f"{'all queues' if queues is None else of_all(queues, queues)} have one owner (predicted)"
    bad = [f"{counted(explains.unassigned_after, 'queue')} unassigned"] if explains.unassigned_after else []
    if explains.duplicate_owners_after:
        bad.append(f"{counted(explains.duplicate_owners_after, 'queue')} with duplicate owners")
    return f"still {', '.join(bad)} (predicted)" if bad else "brokers still list different consumers"


def _rules(found: model.Diagnosis) -> Section:
    columns = (*columns_from("status=:sign code=rule says"), Column("what", "what", "prose"))
    rows: list[tuple[Cell, ...]] = [(each.severity, each.code, "found", each.consequence) for each in found.findings]
    rows += [("info", each.code, "consequence", f"because of {', '.join(each.causes)}") for each in found.consequences]
    rows += [
        ("unknown", each.code, "unknown", "; ".join(filter(None, (each.reason, each.remedy)))) for each in found.unknown
    ]
    rows += [("inOrder", code, "inOrder", _words(code).in_order) for code in found.checked]
    rows += [("info", each.code, "notApplicable", each.reason) for each in found.not_applicable]
    return Section("rules", "rules", columns, tuple(rows), named_only=True)


def _evidence(found: model.Diagnosis) -> Section:
    columns = (
        *columns_from("fact:prose value threshold"),
        Column("source", "source", quiet=True),
        Column("at", "at", quiet=True),
    )
    rows = tuple((each.code, *row) for each in found.findings for row in rows_of(columns, each.evidence))
    return Section("evidence", "evidence", (_FINDING, *columns), rows, named_only=True, heads=2)


def _queues(found: model.Diagnosis) -> Section:
    rows = tuple((each.code, *row) for each in found.findings for row in rows_of(QUEUE_COLUMNS, each.queues))
    return Section("queues", "queues of the findings", (_FINDING, *QUEUE_COLUMNS), rows, named_only=True, heads=4)


def _items(found: model.Diagnosis) -> Iterator[tuple[dict[str, str], Struct]]:
    """Findings and undecided rules with their names: consumers and topic, and a number for equal names."""
    times: Counter[tuple[str, str]] = Counter()
    for name, items in (("findings", found.findings), ("unknown", found.unknown)):
        times.clear()
        for each in items:
            about = (
                " ".join(filter(None, (*each.consumers, each.topic))) if isinstance(each, model.GroupFinding) else ""
            )
            times[each.code, about] += 1
            number = times[each.code, about]
            numbered = about if number == 1 else f"{about} {number}".strip()
            yield {"group": found.group, "list": name, "about": numbered}, each
