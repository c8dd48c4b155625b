"""The first lines of owners: whether each queue has one owner, and whether it is the predicted one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rmqlb.model.finding import ERROR, WARNING
from rmqlb.model.owners import OwnersReport, StrategyOwners
from rmqlb.model.sdk_use import sdks_text
from rmqlb.model.words import all_or_some, at_least, counted, named, of_all
from rmqlb.views.report import BETWEEN


def basis(report: OwnersReport) -> StrategyOwners:
    """The strategy to compare with: the only one that consumers report, or the one with the fewest mismatches."""
    reported = [each for each in report.strategies if each.strategy in report.strategies_reported]
    if len(reported) == 1 == len(report.strategies_reported):
        return reported[0]
    return min(report.strategies, key=lambda each: each.mismatches or 0)


def predicted_by(report: OwnersReport) -> tuple[str, int | None]:
    """Whose prediction the observed owners are held against, and how many differ: the mix's, where it is known."""
    if report.mixed_mismatches is not None:
        return f"{' and '.join(report.strategies_reported)} together", report.mixed_mismatches
    compared = basis(report)
    return compared.strategy, compared.mismatches


def grave(report: OwnersReport) -> str:
    """How grave it is: red where a queue has not one owner, yellow where others than predicted own some."""
    observed = report.observed_queues
    compared = basis(report)
    if any(report.bad_owners) or compared.queues_of_duplicate_client_ids:
        return ERROR
    if not observed:
        return ERROR if any(s.unassigned or s.duplicate_owners for s in report.strategies) else ""
    return WARNING if predicted_by(report)[1] else "inOrder"


def facts(report: OwnersReport) -> tuple[str, ...]:
    """The verdict, then what is compared and how well other strategies fit."""
    known = [*_strategies(report), *filter(None, [sdks_text(report.sdks)])]
    lines = [list(_of_what(report)), known, list(asked_text(report))]
    return (headline(report), *(f"  {BETWEEN.join(parts)}" for parts in lines if parts))


def headline(report: OwnersReport) -> str:
    """The group, its consumers, and the verdict."""
    processes = len(report.sorted_consumers)
    consumers = len(set(report.sorted_consumers))
    shared = f" ({processes} processes)" if processes > consumers else ""
    return f"{report.group or 'a group'}, {counted(consumers, 'consumer')}{shared}: {'; '.join(_verdict(report))}"


def _verdict(report: OwnersReport) -> Iterator[str]:
    observed, queues = report.observed_queues, len(report.queues)
    if not observed:
        yield from _predicted(report)
        return
    unassigned, several = report.bad_owners
    compared = basis(report)
    least = at_least(len(observed) < queues)
    if report.broadcasting:
        yield f"BROADCASTING, each consumer reads every queue{'' if compared.mismatches else ', as observed'}"
    yield from _bad(unassigned, several, queues, least)
    if number := compared.queues_of_duplicate_client_ids:
        yield f"{of_all(number, queues)} {'is' if number == 1 else 'are'} read by several processes of one client ID"
    one = f"each of {counted(queues, 'queue')} has one observed owner" if not report.broadcasting else ""
    if len(observed) < queues:
        one = f"owners of {of_all(len(observed), queues)} are observed, each has one"
    name, mismatches = predicted_by(report)
    bad = unassigned or several
    if mismatches:
        text = f"observed owners of {of_all(mismatches, queues)} differ from the prediction of {name}"
        yield from ([text] if bad or not one else [one, text])
    elif one:
        predict = "predicts" if report.mixed_mismatches is None else "predict"
        yield f"{'all observed owners' if bad else f'{one},'} as {name} {predict}"


def _bad(unassigned: int, several: int, queues: int, least: str = "") -> Iterator[str]:
    """The queues without one owner; `least` where there may be more of them."""
    if unassigned:
        yield f"{least}{of_all(unassigned, queues)} {'is' if unassigned == 1 else 'are'} unassigned"
    if several:
        yield f"{least}{of_all(several, queues)} {'has' if several == 1 else 'have'} duplicate owners"


def _predicted(report: OwnersReport) -> Iterator[str]:
    """The verdict where no owner is observed: of each strategy that leaves a queue without one owner, else of all."""
    bad = False
    for what, field in (
        ("unassigned", "unassigned"),
        ("with duplicate owners", "duplicate_owners"),
        ("read by several processes of one client ID", "queues_of_duplicate_client_ids"),
    ):
        numbers = [(getattr(s, field), s.strategy) for s in report.strategies if getattr(s, field)]
        if numbers:
            bad = True
            queues = len(report.queues)
            yield f"predicted {what}: {', '.join(f'{of_all(number, queues)} under {name}' for number, name in numbers)}"
    if not bad:
        names = ", ".join(s.strategy for s in report.strategies)
        yield f"each of {counted(len(report.queues), 'queue')} gets one owner under {names} (no owner is observed)"


def _of_what(report: OwnersReport) -> Iterator[str]:
    yield f"{counted(len(report.topics), 'topic')} {named(report.topics)}"
    lags = [queue.lag for queue in report.queues]
    known = [lag for lag in lags if lag is not None]
    if known:
        yield f"lag {sum(known):,}{'' if len(known) == len(lags) else ' or more'}"
    compared = basis(report)
    if len(report.strategies) == 1 or report.observed_queues:
        yield from (f"{counted(compared.idle, 'idle consumer')} under {compared.strategy}",) if compared.idle else ()
        yield from (f"imbalance {compared.imbalance:.2f}",) if compared.imbalance is not None else ()


def _strategies(report: OwnersReport) -> Iterator[str]:
    """What consumers report, and how many observed owners differ from each strategy."""
    reported, consumers = report.strategies_reported, len(set(report.sorted_consumers))
    told = sum(reported.values())
    by = all_or_some(told, consumers, "consumer")
    if len(reported) == 1:
        yield f"strategy {next(iter(reported))}, reported by {by}"
    elif reported:
        yield f"strategies {', '.join(f'{name} ({n})' for name, n in reported.items())}, reported by {by}"
    mixed, compared = report.mixed_mismatches is not None, basis(report)
    others = [s for s in report.strategies if s.mismatches is not None and (mixed or s is not compared)]
    fitting = [s.strategy for s in others if not s.mismatches]
    if fitting:
        yield f"{', '.join(fitting)} predict{'s' * (len(fitting) == 1)} the same owners"
    yield from (f"{s.strategy} differs in {counted(s.mismatches, 'queue')}" for s in others if s.mismatches)


def asked_text(report: OwnersReport) -> Iterator[str]:
    """What brokers answer on behalf of consumers, in a few words."""
    asked = report.broker_assignments
    if asked:
        number, differ = sum(each.consumers for each in asked), sum(len(each.mismatches) for each in asked)
        names = named(dict.fromkeys(each.broker_name for each in asked))
        yield f"asked what {names} assign{'s' * (len(asked) == 1)}: " + (
            f"{of_all(differ, number, 'answer')} differ from the prediction"
            if differ
            else f"{counted(number, 'answer')} as predicted"
        )


def summed_bad(reports: Sequence[OwnersReport]) -> Iterator[str]:
    """The queues of several groups that have not one owner."""
    numbers = [report.bad_owners for report in reports]
    queues = sum(len(report.queues) for report in reports)
    unassigned, several = (sum(each[at] for each in numbers) for at in (0, 1))
    yield from _bad(unassigned, several, queues)


def summed_mismatches(reports: Sequence[OwnersReport]) -> str:
    """Whether the observed owners of several groups are the predicted ones."""
    queues = sum(len(report.queues) for report in reports)
    observed = [report for report in reports if report.observed_queues]
    mismatches = sum(predicted_by(report)[1] or 0 for report in observed)
    if mismatches:
        return f"observed owners of {of_all(mismatches, queues)} differ from the prediction"
    if not observed:
        return f"{counted(queues, 'queue')}, no owner is observed"
    number = sum(len(report.observed_queues) for report in observed)
    return f"observed owners of {f'all {queues}' if number == queues else f'{number} of {queues}'} queues as predicted"
