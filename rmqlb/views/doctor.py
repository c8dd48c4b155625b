"""A source that was checked step by step, for people."""

from collections import Counter
from collections.abc import Sequence

from rmqlb.model.doctor import SourceCheck, SourceStep
from rmqlb.model.result import counted, named, of_all
from rmqlb.views.columns import columns_from
from rmqlb.views.report import Report, section_of

_SIGNS = {"works": "inOrder", "partly": "warning", "fails": "error", "notTried": "unknown"}
_MOST_STEPS = 20
_OF_BROKERS = ("broker", "permissions", "clock")
_STEPS = columns_from(
    "status=:sign step server result:prose remedy/hidden code/hidden", status=lambda each: _SIGNS[each.status]
)


def doctor_report(found: SourceCheck) -> Report:
    numbers, failed = Counter(each.status for each in found.steps), found.failed
    tried = numbers["works"] + numbers["fails"]
    left = f", {numbers['notTried']} not tried" if numbers["notTried"] else ""
    facts = (f"{found.source} works: {counted(tried, 'check')} passed{left}",)
    if found.status == "partly":
        servers = named(dict.fromkeys((each.server or each.step).partition(" ")[0] for each in failed))
        facts = (f"{found.source} works, except for {servers}: {of_all(len(failed), tried, 'check')} fail{left}",)
    if found.status == "fails":
        facts = (f"{found.source} does not work: {failed[0].result}",)
    remedies = dict.fromkeys(f"{each.server or each.step}: {each.remedy}" for each in failed if each.remedy)
    section = section_of("steps", "steps", _STEPS, found.steps, brief=_brief(found.steps))
    return Report("rmqlb/doctor", found, facts, (section,), grave=_SIGNS[found.status], closing=tuple(remedies))


def _brief(steps: Sequence[SourceStep]) -> tuple[int, ...] | None:
    """With many brokers, the steps of brokers that work are left out."""
    if len(steps) <= _MOST_STEPS:
        return None
    return tuple(at for at, each in enumerate(steps) if each.status == "fails" or each.step not in _OF_BROKERS)
