"""The curve of a group's sizes in characters: imbalance upwards, a column a size."""

from __future__ import annotations

from collections.abc import Sequence

from rmqlb.model.group_size import GroupSize, SizePoint
from rmqlb.views.report import Cell, Column, Section

_LENGTH = 72
_HEIGHT = 6
_EDGE = "|"
_GOOD, _BAD, _LIMIT = "#", ":", "-"
_BETWEEN_TICKS = 5


def chart_section(size: GroupSize) -> Section:
    """For people: as wide as the terminal is."""
    return _drawn(size, _LENGTH)


def _drawn(size: GroupSize, length: int) -> Section:
    room = max(length - 2 * len(_EDGE), 1)
    step = -(-len(size.curve) // room)
    columns = [_best(size.curve[at : at + step]) for at in range(0, len(size.curve), step)]
    wide = 2 if 2 * len(columns) <= room else 1
    tops = [point.imbalance for point in columns if point.imbalance is not None]
    limit = size.limits.max_imbalance
    top = max((*tops, 1.0 if limit is None else limit, 1.01))
    floor, each = 1.0, (top - 1.0) / _HEIGHT
    rows: list[tuple[Cell, ...]] = []
    for level in reversed(range(_HEIGHT)):
        low = floor + level * each
        is_limit = (limit is not None and low <= limit < low + each) or (limit == top and level == _HEIGHT - 1)
        cells = (_cell(point, low, is_first=level == 0, is_limit=is_limit) for point in columns)
        label = f"{low + each:.2f}" if level == _HEIGHT - 1 else "1.00" if level == 0 else ""
        rows.append((label, _edged("".join(_widened(cell, wide) for cell in cells))))
    rows.append(("consumers", _edged(_ruler([point.consumers for point in columns], wide))))
    is_seen = limit is not None and any(_LIMIT in str(shown) for _, shown in rows[:-1])
    legend = [f"{_GOOD} = satisfies all", f"{_BAD} = does not", *([f"{_LIMIT} = {limit:g}"] if is_seen else [])]
    each_column = f", {step} sizes per column, of which the best is shown" if step > 1 else ""
    return Section(
        "chart",
        f"imbalance by number of consumers{each_column}",
        (Column("imbalance", "label"), Column(", ".join(legend), "strip", "strip")),
        tuple(rows),
        heads=1,
        draw=lambda other: _drawn(size, other),
    )


def _best(points: Sequence[SizePoint]) -> SizePoint:
    return min(points, key=lambda point: (not point.satisfied, point.imbalance or 0.0))


def _cell(point: SizePoint, low: float, *, is_first: bool, is_limit: bool) -> str:
    if point.imbalance is not None and (point.imbalance > low or is_first):
        return _GOOD if point.satisfied else _BAD
    return _LIMIT if is_limit else " "


def _widened(cell: str, wide: int) -> str:
    return cell if wide == 1 else cell + (cell if cell == _LIMIT else " ")


def _edged(shown: str) -> str:
    return f"{_EDGE}{shown}{_EDGE}"


def _ruler(numbers: Sequence[int], wide: int) -> str:
    width = len(numbers) * wide
    ruler = ""
    for at, number in enumerate(numbers):
        place, label = at * wide, str(number)
        is_round = at == 0 or number % _BETWEEN_TICKS == 0
        if is_round and place >= len(ruler) + bool(ruler) and place + len(label) <= width:
            ruler = ruler.ljust(place) + label
    return ruler.ljust(width)
