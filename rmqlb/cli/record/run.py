"""From the options of `record` to its exit code."""

from __future__ import annotations

from msgspec.structs import replace

from rmqlb.cli.common import amounts
from rmqlb.cli.common.fail_on import conditions, judge, require_known
from rmqlb.cli.common.options import SourceOptions, StrategyOptions
from rmqlb.cli.common.pictures import draw
from rmqlb.cli.common.reading import Reader
from rmqlb.cli.common.strategies import Strategies
from rmqlb.cli.common.terminal import Terminal
from rmqlb.cli.record.files import expected, recorded
from rmqlb.cli.record.group import GroupRecorder, Watched
from rmqlb.cli.record.looking import schedule
from rmqlb.cli.record.options import DirectoryOptions, PredictionOptions, RecordedOptions, WatchedOptions
from rmqlb.engine.fail_on_figures.of_recording import RECORDING_FIGURES, must_be_askable, try_on_recording
from rmqlb.engine.record.compare import Expected, compared
from rmqlb.errors import UsageError
from rmqlb.model.recording import Recording
from rmqlb.model.snapshot import ClusterSnapshot, is_pattern
from rmqlb.sources.source_text import is_live
from rmqlb.views.record.view import recorded_group, recording_report


def run(
    source: SourceOptions,
    watched: WatchedOptions,
    directory: DirectoryOptions,
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
    if directory.to is not None:
        from rmqlb.cli.record.snapshots import write_snapshots

        _must_be_alone(shown, prediction)
        write_snapshots(source, watched, directory, terminal)
        return
    if directory.evidence:
        raise UsageError("--evidence goes with --to", hint="a recording has owners alone; fetch-routes --evidence too")
    if prediction.replay is not None:
        if terminal.format == "jsonl":
            raise UsageError("-o jsonl is of a live group, as it changes", hint="--replay shows the whole: -o json")
        if prediction.replay == "-" and "-" in (prediction.against or ()):
            raise UsageError("--replay - and --against - both read stdin")
        recording, snapshot = recorded(prediction.replay, event_at)
        predicted = _expected(prediction, recording.group)
    else:
        recorder = _recorder(source, watched, strategies, terminal)
        predicted = _expected(prediction, _name(watched))  # what is wrong there is told before minutes pass
        recording, snapshot = recorder.run(event_at)
    if predicted is not None:
        name = ", ".join("stdin" if path == "-" else path for path in prediction.against or ())
        recording = replace(recording, comparison=compared(recording, predicted, name, tolerance_ms))
    judged = replace(recording, conditions=tuple(try_on_recording(each, recording) for each in asked))
    require_known(judged.conditions, "leave the condition out to see the recording")
    _show(judged, snapshot, shown, terminal)
    judge(judged.conditions, terminal)


def _must_be_alone(shown: RecordedOptions, prediction: PredictionOptions) -> None:
    given = {
        "--replay": prediction.replay,
        "--against": prediction.against,
        "--fail-on": shown.fail_on,
        shown.named or "": shown.named,
    }
    for option, value in given.items():
        if value:
            raise UsageError(f"--to writes snapshots, and {option} is of a recording", hint="leave one of them out")


def _name(watched: WatchedOptions) -> str:
    names = list(dict.fromkeys(watched.group or ()))
    if len(names) != 1 or is_pattern(names[0]):
        hint = "name one with --group; with --to snapshots of several are written"
        raise UsageError("which group?", hint=hint, code="which-group")
    return names[0]


def _recorder(
    source: SourceOptions, watched: WatchedOptions, given: StrategyOptions, terminal: Terminal
) -> GroupRecorder:
    must_be_live(source)
    name, topics = _name(watched), tuple(dict.fromkeys(watched.topic or ()))
    when = schedule(watched, "1s", "10m")
    strategies = Strategies(given.strategy_option)
    strategies.must_apply(reported=True)
    settings = strategies.settings_for(topics, name)
    return GroupRecorder(Watched(Reader(source, terminal), name, topics, settings), when, terminal)


def must_be_live(source: SourceOptions) -> None:
    """Refuse what cannot change."""
    if source.source is not None and not is_live(source.source):
        raise UsageError(
            f"{source.source} is not a running cluster: nothing changes there",
            hint="name NameServers or a Dashboard with -s; --replay FILE shows a recording again",
        )


def _expected(prediction: PredictionOptions, group: str) -> Expected | None:
    return expected(prediction.against, group) if prediction.against else None


def _show(recording: Recording, snapshot: ClusterSnapshot, shown: RecordedOptions, terminal: Terminal) -> None:
    report = recording_report(recording)
    draw(recorded_group(recording), report.facts, report, (), shown, terminal)
    if not shown.fill_stdout and terminal.format != "jsonl":
        terminal.show(report, snapshot, ())
