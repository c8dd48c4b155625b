from collections.abc import Mapping
from typing import Any

from rmqlb.cli.common.declare import Panel, Text, Texts, about, command, own, shown
from rmqlb.cli.common.options import OutputOptions, SourceOptions, StrategyOptions
from rmqlb.cli.common.output_files import PictureOptions
from rmqlb.cli.common.terminal import Terminal
from rmqlb.errors import UsageError

_replay = Panel("Replay")


class RecordOptions(PictureOptions, StrategyOptions):
    group: Text = own("-g GROUP", "Consumer group to record.", positional="GROUP")
    topic: Texts = own("-t TOPIC", "Topics by name; default: the group's topics; repeatable.")
    every: Text = about("TIME", "Time between samples; at least 1s; default: 1s.")
    until: Text = about(
        "converged|TIME",
        "Stop when converged, after a duration, or at a point in time. With converged, the group must have changed "
        "first; a duration is 90s, a point in time 2026-11-22T16:00:00Z.",
    )
    for_: Text = about("TIME", "Duration of the recording; default: 10m. With --until, it may end earlier.")
    event_at: Text = about(
        "TIME", "Time of the event; default: the first observed change. Write it as 2026-11-22T16:00:00.250Z."
    )
    fail_on: Texts = shown("CONDITION", "Exit 3 if a condition holds: 'differences>0'; repeatable.")
    against: Texts = _replay(
        "FILE|-",
        "Plan or simulation to compare with, from -o json. Several simulations count as trials of one.",
        stdin="-",
    )
    tolerance: str = _replay("TIME", "Time difference that still counts as predicted.", "1s")
    replay: Text = _replay("FILE|-", "Recording to show again, from -o json. It replaces a live group.", stdin="-")


@command
def record(source: SourceOptions, options: RecordOptions, output: OutputOptions) -> None:
    """Record the queue owners of a live group during a change.

    Examples:
      rmqlb record -s rocketmq://127.0.0.1:9876 -g order-svc --until converged
      rmqlb record --replay examples/recording.json
      rmqlb record --replay examples/recording.json --section changes --fail-on 'unassigned>0'

    rmqlb takes a sample every second, or at the interval of --every. The exact time of an owner change is unknown: it
    is after the request of the last sample with the old owner, and before the last response of the first sample with
    the new owner. Each gap therefore has a shortest and a longest possible length. If a consumer does not answer, the
    owners of its queues are unknown. If a sample fails, all owners are unknown at that time. The recording continues in
    both cases. Ctrl-C ends the recording with exit code 0 and shows the samples so far. With -o jsonl, each change is
    written when it is observed.

    A group has converged when each queue has one owner, and two samples show the owner that the reported strategy
    predicts. If no owner can be predicted, the owner must stay the same for 25 s. --until converged waits for a first
    change. --for ends the recording in any case.

    --against compares each queue with the prediction: as predicted, earlier, later, with another owner, or not yet
    moved. Times of a simulation count from --event-at. Without --event-at, times count from the moment when the first
    consumer leaves. If none leaves, times count from the first change of an owner.

    Exit codes: 0 done, 2 usage, 3 a --fail-on condition is met, 4 the group does not exist or its consumers do not
    share its queues, 5 endpoint unreachable at the first sample.
    """
    from msgspec.structs import replace

    from rmqlb.cli.common.show_or_watch import judge, require_known
    from rmqlb.engine.record.compare import FIGURES, compared, judged, must_be_askable
    from rmqlb.engine.record.follow import lines_of
    from rmqlb.verbs import amounts
    from rmqlb.verbs.parse import conditions
    from rmqlb.verbs.stored import expected, recorded
    from rmqlb.views.formats.machine import as_json_lines
    from rmqlb.views.record import recording_report

    terminal = Terminal("record", output, more_formats=("jsonl",), files=options)
    parsed = conditions(options.fail_on, FIGURES)
    against, replayed = options.against or (), options.replay
    live = {name: getattr(options, name) for name in ("group", "topic", "every", "until", "for_")}
    must_be_askable(parsed, is_compared=bool(against))
    event_at = amounts.given(amounts.moment_ms, options.event_at, "--event-at")
    tolerance_ms = amounts.whole_ms(options.tolerance, "--tolerance")
    if replayed is not None:
        _reject_live_options(live, options)
        recording, snapshot, findings = recorded(replayed, event_at)
        predicted = expected(against, recording.group) if against else None
    else:
        from rmqlb.cli.recorder import recorder_of

        recorder = recorder_of(source, terminal, options.strategy_options, **live)
        predicted = expected(against, recorder.group) if against else None  # rejects a bad file before minutes pass
        recording, snapshot, findings = recorder.run(event_at)
    if predicted is not None:
        name = ", ".join("stdin" if path == "-" else path for path in against)
        recording = replace(recording, comparison=compared(recording, predicted, name, tolerance_ms))
    recording = replace(recording, conditions=judged(parsed, recording))
    require_known(recording.conditions, "leave the condition out to see the recording")
    report = recording_report(recording)
    if terminal.format != "jsonl":
        terminal.show(report, snapshot, findings)
    else:
        if not terminal.fills_stdout(report, snapshot, findings) and replayed is not None:
            terminal.write(as_json_lines(lines_of(recording)))
        terminal.warn(findings)
    judge(recording.conditions, terminal)


def _reject_live_options(live: Mapping[str, Any], chosen: RecordOptions) -> None:
    for name, value in (*live.items(), ("strategy-option", chosen.strategy_options)):
        if value:
            text = f"--replay shows a recording, but --{name.rstrip('_')} is for a live group"
            raise UsageError(text, hint="leave one of them out")
