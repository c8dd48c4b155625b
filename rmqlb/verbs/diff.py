from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from rmqlb.engine.conditions import declared
from rmqlb.engine.diff import compare_snapshots, diff_findings, predicted_group, prediction_summary
from rmqlb.engine.record.compare import Expected
from rmqlb.engine.source_findings import source_findings
from rmqlb.errors import DocumentError
from rmqlb.model.diff import DiffSummary, PredictionDiff, PredictionSummary, SnapshotDiff
from rmqlb.model.result import Meta, Progress, no_progress, side_of, with_meta
from rmqlb.model.snapshot import ClusterSnapshot, Everything, Wanted
from rmqlb.verbs.parse import conditions, in_vain_of, names_of
from rmqlb.verbs.source import AnySource, Reader, reader
from rmqlb.verbs.strategies import reported_strategies

FIGURES = declared(DiffSummary)
PREDICTION_FIGURES = declared(PredictionSummary)


def diff(
    before: AnySource,
    after: AnySource,
    groups: str | Sequence[str] = (),
    *,
    system: bool = False,
    strategy_options: str | Sequence[str] = (),
    fail_on: str | Sequence[str] = (),
    progress: Progress = no_progress,
) -> SnapshotDiff:
    """Compare two snapshots of a cluster: what changed, and which change moved each queue.

    `before` and `after` are sources; `progress` receives the number of compared groups.
    """
    parsed = conditions(fail_on, FIGURES)
    wanted = Everything(groups=names_of(groups), system=system)
    strategies = reported_strategies(strategy_options)
    first, then = (_fetch(reader(each), Wanted(everything=wanted)) for each in (before, after))
    names = {*first.groups, *then.groups}
    taken = {name for name in names if wanted.takes_group(name)}
    in_vain = in_vain_of("group", wanted.groups, names, taken, f"{first.endpoint} and {then.endpoint}")
    settings = strategies.settings_for([*first.routes, *then.routes])
    found = compare_snapshots(first, then, wanted, settings=settings, progress=progress)
    tried = tuple(condition.judge(found.summary) for condition in parsed)
    findings = (*diff_findings(found), *in_vain, *source_findings(first), *source_findings(then))
    return with_meta(replace(found, conditions=tried), Meta(then, tuple(dict.fromkeys(findings))))


def diff_prediction(
    prediction: Mapping[str, Expected],
    file: str,
    after: AnySource,
    groups: str | Sequence[str] = (),
    *,
    fail_on: str | Sequence[str] = (),
    progress: Progress = no_progress,
) -> PredictionDiff:
    """Compare a stored plan or simulation (group → its owners) with a snapshot; () is every group of the prediction."""
    parsed = conditions(fail_on, PREDICTION_FIGURES)
    wanted = Everything(groups=names_of(groups))
    names = sorted(name for name in prediction if not groups or wanted.takes_group(name))
    in_vain = in_vain_of("group", wanted.groups, set(prediction), set(names), file)
    then = _fetch(reader(after), Wanted(everything=Everything(groups=tuple(names), system=True)))
    found = []
    for done, name in enumerate(names):
        progress("groups", done, len(names))
        found.append(predicted_group(prediction[name], name, then))
    summary = prediction_summary(found)
    tried = tuple(condition.judge(summary) for condition in parsed)
    result = PredictionDiff(file, side_of(then), summary, tuple(found), tried)
    return with_meta(result, Meta(then, tuple(dict.fromkeys((*in_vain, *source_findings(then))))))


def _fetch(source: Reader, wanted: Wanted) -> ClusterSnapshot:
    try:
        return source.fetch(wanted)
    except DocumentError as error:
        if error.code in ("topic-not-named", "group-not-named"):  # one argument could not name it for both sides
            error.hint = "compare snapshots, as fetch-routes writes them"
        raise
