"""From the options of `record` to its exit code."""

from __future__ import annotations

from msgspec.structs import replace

from rmqlb.cli.common.fail_on import conditions, judge, require_known
from rmqlb.cli.common.options import SourceOptions, StrategyOptions
from rmqlb.cli.common.pictures import draw
from rmqlb.cli.common.reading import Reader
from rmqlb.cli.common.terminal import Terminal
from rmqlb.cli.record.files import expected, recorded
from rmqlb.cli.record.group import GroupRecorder, Watched
from rmqlb.cli.record.looking import must_be_live, schedule
from rmqlb.cli.record.options import PredictionOptions, RecordedOptions, WatchedOptions
from rmqlb.engine.fail_on_figures.of_recording import RECORDING_FIGURES, must_be_askable, try_on_recording
from rmqlb.engine.record.compare import Expected, compared
from rmqlb.engine.record.follow import lines_of
from rmqlb.errors import UsageError
from rmqlb.model.finding import Finding
from rmqlb.model.recording import Recording
from rmqlb.model.snapshot import ClusterSnapshot, is_pattern
from rmqlb.verbs import amounts
from rmqlb.verbs.strategies import Strategies
from rmqlb.views.formats.machine import as_json_lines
from rmqlb.views.record.view import recorded_group, recording_report

LEAVE_OUT = "leave one of them out"


def run(
    source: SourceOptions,
    watched: WatchedOptions,
    shown: RecordedOptions,
    strategies: StrategyOptions,
    prediction: PredictionOptions,
    terminal: Terminal,
) -> None:
    """What the command does with its options; everything that needs no source is checked before it is asked."""
    shown.check()
    asked = conditions(shown.fail_on or (), RECORDING_FIGURES)
    must_be_askable(asked, is_compared=bool(prediction.against))
    event_at = None if watched.event_at is None else amounts.moment_ms(watched.event_at, "--event-at")
    tolerance_ms = amounts.whole_ms(prediction.tolerance, "--tolerance")
    if prediction.replay is not None:
        _must_be_shown_again(watched, strategies)
        if prediction.replay == "-" and "-" in (prediction.against or ()):
            raise UsageError("--replay - and --against - both read stdin")
        recording, snapshot, findings = recorded(prediction.replay, event_at)
        predicted = _expected(prediction, recording.group)
    else:
        recorder = _recorder(source, watched, strategies, terminal)
        predicted = _expected(prediction, _name(watched))  # what is wrong there is told before minutes pass
        recording, snapshot, findings = recorder.run(event_at)
    if predicted is not None:
        name = ", ".join("stdin" if path == "-" else path for path in prediction.against or ())
        recording = replace(recording, comparison=compared(recording, predicted, name, tolerance_ms))
    judged = replace(recording, conditions=tuple(try_on_recording(each, recording) for each in asked))
    require_known(judged.conditions, "leave the condition out to see the recording")
    _show(judged, snapshot, findings, shown, terminal, is_replayed=prediction.replay is not None)
    judge(judged.conditions, terminal)


def _must_be_shown_again(watched: WatchedOptions, strategies: StrategyOptions) -> None:
    given = {
        "--group": watched.group,
        "--topic": watched.topic,
        "--every": watched.every,
        "--until": watched.until,
        "--for": watched.for_,
        "--strategy-option": strategies.strategy_option,
    }
    for option, value in given.items():
        if value:
            raise UsageError(f"--replay shows a recording again, and {option} is of a live group", hint=LEAVE_OUT)


def _name(watched: WatchedOptions) -> str:
    if not watched.group or is_pattern(watched.group):
        raise UsageError("which group?", hint="name one with --group", code="which-group")
    return watched.group


def _recorder(
    source: SourceOptions, watched: WatchedOptions, given: StrategyOptions, terminal: Terminal
) -> GroupRecorder:
    must_be_live(source)
    reader = Reader(source, terminal)
    name, topics = _name(watched), tuple(dict.fromkeys(watched.topic or ()))
    when = schedule(watched)
    strategies = Strategies(given.strategy_option)
    strategies.must_apply(reported=True)
    settings = strategies.settings_for(topics, name)
    return GroupRecorder(Watched(reader, name, topics, settings), when, terminal)


def _expected(prediction: PredictionOptions, group: str) -> Expected | None:
    return expected(prediction.against, group) if prediction.against else None


def _show(
    recording: Recording,
    snapshot: ClusterSnapshot,
    findings: tuple[Finding, ...],
    shown: RecordedOptions,
    terminal: Terminal,
    *,
    is_replayed: bool,
) -> None:
    report = recording_report(recording)
    draw(recorded_group(recording), report.facts, report, findings, shown, terminal)
    if shown.fill_stdout:
        terminal.warn(findings)
        return
    if terminal.format != "jsonl":
        terminal.show(report, snapshot, findings)
    elif is_replayed:
        terminal.write(as_json_lines(lines_of(recording)))
    if terminal.format == "jsonl":
        terminal.warn(findings)
