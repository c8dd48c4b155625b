from typing import TYPE_CHECKING

from rmqlb.cli.common.declare import Panel, Text, Texts, about, command, own, shown
from rmqlb.cli.common.options import OutputOptions, SourceOptions, StrategyOptions
from rmqlb.cli.common.output_files import PictureOptions
from rmqlb.cli.common.terminal import Terminal
from rmqlb.errors import UsageError

if TYPE_CHECKING:
    from rmqlb.cli.common.recorder import GroupRecorder, Schedule

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
    must_be_askable(parsed, is_compared=bool(against))
    event_at = amounts.given(amounts.moment_ms, options.event_at, "--event-at")
    tolerance_ms = amounts.whole_ms(options.tolerance, "--tolerance")
    if replayed is not None:
        _reject_live_options(options)
        recording, snapshot, findings = recorded(replayed, event_at)
        predicted = expected(against, recording.group) if against else None
    else:
        recorder = _recorder(source, options, terminal)
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


def _reject_live_options(chosen: RecordOptions) -> None:
    live = {f"--{name.rstrip('_')}": getattr(chosen, name) for name in ("group", "topic", "every", "until", "for_")}
    for option, value in (live | {"--strategy-option": chosen.strategy_options}).items():
        if value:
            hint = "leave one of them out"
            raise UsageError(f"--replay shows a recording, but {option} is for a live group", hint=hint)


def _recorder(source: SourceOptions, chosen: RecordOptions, terminal: Terminal) -> "GroupRecorder":
    from rmqlb.cli.common.reading import Reader
    from rmqlb.cli.common.recorder import GroupRecorder
    from rmqlb.model.snapshot import Wanted
    from rmqlb.sources.source_text import is_live
    from rmqlb.verbs.selection import select
    from rmqlb.verbs.strategies import reported_strategies

    if source.source is not None and not is_live(source.source):
        hint = "name NameServers or a Dashboard with -s; --replay FILE shows a recording again"
        raise UsageError(f"{source.source} is not a running cluster: nothing changes there", hint=hint)
    reader, name = Reader(source, terminal), chosen.group
    if not name:
        raise UsageError("which group?", hint="name a group with --group", code="which-group")
    named, topics = select(name), tuple(dict.fromkeys(chosen.topic or ()))
    if named.several:
        name = named.only(reader.fetch(Wanted(several=named.names, owners=False))) or name
    settings = reported_strategies(chosen.strategy_options or ()).settings_for(topics, name)
    return GroupRecorder(reader, name, topics, settings, _schedule(chosen), terminal)


def _schedule(chosen: RecordOptions) -> "Schedule":
    from rmqlb.cli.common.recorder import Schedule
    from rmqlb.cli.common.watch import LEAST_S
    from rmqlb.verbs.amounts import duration_us, moment_ms

    text, until = chosen.every or "1s", chosen.until
    every_s, for_s = duration_us(text, "--every") / 1e6, duration_us(chosen.for_ or "10m", "--for") / 1e6
    if every_s < LEAST_S:
        hint = "pass 1s or more: consumers answer on the threads that also serve brokers"
        raise UsageError(f"--every {text}: shorter than 1s", hint=hint)
    if until is not None and "T" in until:
        return Schedule(every_s, until_converged=False, for_s=for_s, at_ms=moment_ms(until, "--until"))
    if until is not None and until != "converged":
        try:
            until_s = duration_us(until, "--until") / 1e6
        except UsageError as error:
            error.hint = "write converged, a duration such as 90s, or a point in time such as 2026-11-22T16:00:00Z"
            raise
        for_s = min(until_s, for_s) if chosen.for_ else until_s
    return Schedule(every_s, until == "converged", for_s, at_ms=None)
