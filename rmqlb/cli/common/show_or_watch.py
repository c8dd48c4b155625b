"""Show a moment, once or again and again."""

from collections.abc import Callable
from typing import Annotated

from msgspec import Struct

from rmqlb.cli.common import amounts
from rmqlb.cli.common.fail_on import judge
from rmqlb.cli.common.options import SourceOptions, output_option
from rmqlb.cli.common.terminal import SnapshotView, Terminal
from rmqlb.errors import UsageError

_SHORTEST_S = 0.1


class WatchOptions(Struct, frozen=True):
    """Whether to look again, and how often."""

    watch: Annotated[
        str | None,
        output_option(
            metavar="TIME", help="Look again every TIME until Ctrl-C; in a pipe, JSON lines of what changes."
        ),
    ] = None
    rounds: Annotated[int | None, output_option(min=1, metavar="N", help="With --watch: end after N looks.")] = None


def check_watch(options: WatchOptions, source: SourceOptions, consumers: str | None, terminal: Terminal) -> None:
    """Refuse, before any work, a watch that cannot be kept."""
    if options.watch is None:
        if options.rounds is not None:
            raise UsageError("--rounds goes with --watch", hint="--watch 5s --rounds 3 looks three times")
        return
    if amounts.seconds(options.watch, "--watch") < _SHORTEST_S:
        raise UsageError(f"--watch {options.watch}: shorter than 100ms")
    if "-" in (source.source, (consumers or "").removeprefix("@")):
        raise UsageError("--watch reads its source again and again, and stdin can be read once", hint="name a file")
    terminal.must_redraw_or_stream()


def show(look: Callable[[], SnapshotView], options: WatchOptions, terminal: Terminal) -> None:
    """Show what there is to see, once or as long as it is watched; conditions that are met end either."""
    if options.watch is None:
        seen = look()
        terminal.show(seen.report, seen.snapshot, seen.findings)
    else:
        from rmqlb.cli.common.watch import watch

        seen = watch(look, terminal, amounts.seconds(options.watch, "--watch"), options.rounds)
    judge(seen.tried, terminal)
