"""`--against`: an earlier plan or simulation, read again to say whether the cluster has moved on since."""

from __future__ import annotations

from msgspec import Struct, ValidationError

from rmqlb.decoding import convert
from rmqlb.engine.allocate.strategy import Settings
from rmqlb.errors import UsageError
from rmqlb.model.finding import Finding
from rmqlb.model.made_from import Against, MadeFrom
from rmqlb.model.snapshot import suggestion

MOST_BYTES = 256 << 20


class EarlierResults(Struct, frozen=True):
    """What the results in a file were made from; of several groups each."""

    file: str
    found: tuple[MadeFrom, ...]


def earlier_results(path: str | None, source: str | None) -> EarlierResults | None:
    """The file of `--against` (raises UsageError: it is no such result)."""
    if path is None:
        return None
    if path == source == "-":
        raise UsageError("-s - and --against - both read stdin")
    import json

    from rmqlb.sources.user_files.send_inputs import read_text

    text = read_text(path, "--against", MOST_BYTES, "it has at most 256 MB")
    where = "stdin" if path == "-" else path
    try:
        document = json.loads(text)
        data = document["data"]
        found = tuple(convert(part["madeFrom"], MadeFrom) for part in data.get("groups", [data]))
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError, ValidationError) as error:
        problem = f": {error}" if isinstance(error, ValidationError) else ""
        raise UsageError(
            f"--against {where}: it does not say what it was made from{problem}",
            hint="name what plan-rebalance, plan-rollout or a simulation wrote with -o json",
            code="not-a-result",
        ) from None
    return EarlierResults(where, found)


def _name(used: MadeFrom) -> str:
    return used.topics[0].topic if used.group is None and used.topics and not used.consumers else used.group or ""


def compared(
    now: MadeFrom, earlier: EarlierResults | None, settings: Settings | None = None
) -> tuple[Against | None, tuple[Finding, ...]]:
    """What has changed since the earlier result, and the finding when anything has.

    Raises:
        UsageError: the earlier result is of another group or topic.
    """
    if earlier is None:
        return None, ()
    from rmqlb.engine.diff.made_from import since

    names = [_name(each) for each in earlier.found]
    if _name(now) not in names:
        problem = f"--against {earlier.file}: it is not of {_name(now) or 'this group'}"
        raise UsageError(problem, hint=suggestion("results", _name(now), names), code="not-of-this")
    against = since(earlier.found[names.index(_name(now))], now, earlier.file, settings)
    if against.same:
        return against, ()
    text = f"the cluster has moved on since {earlier.file}: the result is of the cluster as it is now"
    return against, (Finding("moved-on", text, now.group),)
