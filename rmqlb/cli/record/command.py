"""`rmqlb record`."""

from rmqlb.cli.common.options import OutputOptions, SourceOptions, StrategyOptions, command
from rmqlb.cli.common.terminal import Terminal
from rmqlb.cli.record.options import PredictionOptions, RecordedOptions, WatchedOptions


@command
def record(
    *,
    source: SourceOptions,
    watched: WatchedOptions,
    shown: RecordedOptions,
    strategy_options: StrategyOptions,
    output: OutputOptions,
    prediction: PredictionOptions,
) -> None:
    """Record which consumer owns each queue of a live group while something happens.

    Examples:
      rmqlb record -s rocketmq://127.0.0.1:9876 -g order-svc --until converged

      rmqlb record --replay examples/recording.json

      rmqlb record --replay examples/recording.json --section changes --fail-on 'unassigned>0'

    It looks every second. A change lies between the request of the last look that showed the former owner and the last
    answer of the first look that shows the new one; of a gap the longest and the shortest possible length are shown.
    A consumer that does not answer has unknown queues, and a look that fails is a gap in what is known; neither ends
    it. Ctrl-C does, with what was seen so far and exit code 0. -o jsonl writes each change when it is seen.

    Converged: each queue has one owner, in two looks the one that the reported strategy predicts; where none can be
    predicted, the same one for 25 s. --until converged waits for a first change. --for ends it in any case.

    --against says of each queue whether it was as predicted, earlier, later, with another owner or not yet moved. Times
    of a simulation count from --event-at, or from when the consumer that leaves first has left, otherwise from the
    first change of an owner.

    Exit codes: 0 done, 2 usage, 3 a --fail-on condition is met, 4 the group is not there or its consumers do not share
    its queues, 5 endpoint unreachable at the first look.
    """
    from rmqlb.cli.record.run import run

    terminal = Terminal("record", output, more_formats=("jsonl",))
    run(source, watched, shown, strategy_options, prediction, terminal)
