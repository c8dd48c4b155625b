from typing import TYPE_CHECKING

from rmqlb.cli.common.declare import Panel, Text, Texts, about, command, own, shown
from rmqlb.cli.common.options import OutputOptions, SourceOptions, StrategyOptions
from rmqlb.cli.common.output_files import PictureOptions
from rmqlb.cli.common.terminal import Terminal
from rmqlb.errors import UsageError

if TYPE_CHECKING:
    from rmqlb.cli.common.recorder import GroupRecorder, Schedule
    from rmqlb.model.recording import Recording
    from rmqlb.model.result import Finding
    from rmqlb.model.snapshot import ClusterSnapshot

_replay = Panel("Replay")


class RecordOptions(PictureOptions, StrategyOptions):
    group: Text = own("-g GROUP", "Consumer group.", positional="GROUP")
    topic: Texts = own("-t TOPIC", "Topics; repeatable; default: the group's topics.")
    every: Text = about("TIME", "Time between two samples. At least 1s; default: 1s.")
    until: Text = about(
        "converged|TIME",
        "End when the group has changed and is converged, after a time (90s), or at one (2026-11-22T16:00:00Z).",
    )
    for_: Text = about("TIME", "End after it whatever happens; default 10m.")
    event_at: Text = about(
        "TIME", "When the event happened, as 2026-11-22T16:00:00.250Z; default: the first change seen."
    )
    fail_on: Texts = shown(
        "CONDITION", "Exit 3 when it is met: 'differences>0', 'longest-gap-at-most-ms>5000'; repeatable."
    )
    against: Texts = _replay(
        "FILE|-",
        "Compare with this plan, or simulation (several are its trials), that -o json wrote before.",
        stdin="-",
    )
    tolerance: str = _replay("TIME", "So much earlier or later than predicted is as predicted.", "1s")
    replay: Text = _replay("FILE|-", "Show a recording again that -o json wrote, instead of a live group.", stdin="-")


@command
def record(source: SourceOptions, options: RecordOptions, output: OutputOptions) -> None:
    """Record the owners of a live group's queues while something happens.

    Examples:
      rmqlb record -s rocketmq://127.0.0.1:9876 -g order-svc --until converged
      rmqlb record --replay examples/recording.json
      rmqlb record --replay examples/recording.json --section changes --fail-on 'unassigned>0'

    It takes a sample every second. A change lies between the request of the last sample that showed the former owner
    and the last answer of the first sample that shows the new one; of a gap the longest and the shortest possible
    length are shown.
    A consumer that does not answer has unknown queues, and a sample that fails is a gap in what is known; neither ends
    it. Ctrl-C does, with what was seen so far and exit code 0. -o jsonl writes each change when it is seen.

    Converged: each queue has one owner, in two samples the one that the reported strategy predicts; where none can be
    predicted, the same one for 25 s. --until converged waits for a first change. --for ends it in any case.

    --against says of each queue whether it was as predicted, earlier, later, with another owner or not yet moved. Times
    of a simulation count from --event-at, or from when the consumer that leaves first has left, otherwise from the
    first change of an owner.

    Exit codes: 0 done, 2 usage, 3 a --fail-on condition is met, 4 the group is not there or its consumers do not share
    its queues, 5 endpoint unreachable at the first sample.
    """
    from msgspec.structs import replace

    from rmqlb.cli.common.show_or_watch import judge, require_known
    from rmqlb.engine.record.compare import FIGURES, compared, judged, must_be_askable
    from rmqlb.verbs import amounts
    from rmqlb.verbs.parse import conditions
    from rmqlb.verbs.stored import expected, recorded

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
    _show(recording, snapshot, findings, terminal, is_replayed=replayed is not None)
    judge(recording.conditions, terminal)


def _reject_live_options(chosen: RecordOptions) -> None:
    live = {f"--{name.rstrip('_')}": getattr(chosen, name) for name in ("group", "topic", "every", "until", "for_")}
    for option, value in (live | {"--strategy-option": chosen.strategy_options}).items():
        if value:
            hint = "leave one of them out"
            raise UsageError(f"--replay shows a recording again, and {option} is of a live group", hint=hint)


def _name(chosen: RecordOptions) -> str:
    if not chosen.group:
        raise UsageError("which group?", hint="name one with --group", code="which-group")
    return chosen.group


def _recorder(source: SourceOptions, chosen: RecordOptions, terminal: Terminal) -> "GroupRecorder":
    from rmqlb.cli.common.reading import Reader
    from rmqlb.cli.common.recorder import GroupRecorder
    from rmqlb.model.snapshot import Wanted
    from rmqlb.sources.source_text import is_live
    from rmqlb.verbs.selection import select
    from rmqlb.verbs.strategies import Strategies

    if source.source is not None and not is_live(source.source):
        hint = "name NameServers or a Dashboard with -s; --replay FILE shows a recording again"
        raise UsageError(f"{source.source} is not a running cluster: nothing changes there", hint=hint)
    reader = Reader(source, terminal)
    named, topics = select(_name(chosen)), tuple(dict.fromkeys(chosen.topic or ()))
    name = _name(chosen)
    if named.several:
        name = named.only(reader.fetch(Wanted(several=named.names, owners=False))) or name
    schedule = _schedule(chosen)
    strategies = Strategies(chosen.strategy_options)
    strategies.must_apply(reported=True)
    return GroupRecorder(reader, name, topics, strategies.settings_for(topics, name), schedule, terminal)


def _schedule(chosen: RecordOptions) -> "Schedule":
    from rmqlb.cli.common.recorder import Schedule
    from rmqlb.cli.common.watch import LEAST_S
    from rmqlb.verbs.amounts import duration_us, moment_ms

    def seconds(text: str, option: str) -> float:
        return duration_us(text, option) / 1e6

    text, until = chosen.every or "1s", chosen.until
    every_s, for_s = seconds(text, "--every"), seconds(chosen.for_ or "10m", "--for")
    if every_s < LEAST_S:
        hint = "a consumer answers on the threads that its brokers need, and is asked once per second at most"
        raise UsageError(f"--every {text}: shorter than 1s", hint=hint)
    if until is not None and "T" in until:
        return Schedule(every_s, until_converged=False, for_s=for_s, at_ms=moment_ms(until, "--until"))
    if until is not None and until != "converged":
        try:
            until_s = seconds(until, "--until")
        except UsageError as error:
            error.hint = "write converged, a time as 90s, or a moment as 2026-11-22T16:00:00Z"
            raise
        for_s = min(until_s, for_s) if chosen.for_ else until_s
    return Schedule(every_s, until == "converged", for_s, at_ms=None)


def _show(
    recording: "Recording",
    snapshot: "ClusterSnapshot",
    findings: "tuple[Finding, ...]",
    terminal: Terminal,
    *,
    is_replayed: bool,
) -> None:
    from rmqlb.engine.record.follow import lines_of
    from rmqlb.views.formats.machine import as_json_lines
    from rmqlb.views.record import recording_report

    report = recording_report(recording)
    if terminal.format != "jsonl":
        terminal.show(report, snapshot, findings)
        return
    if not terminal.fills_stdout(report, snapshot, findings) and is_replayed:
        terminal.write(as_json_lines(lines_of(recording)))
    terminal.warn(findings)
