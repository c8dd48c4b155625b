r"""Metrics as OpenMetrics text, of which each line is one of Prometheus's classic text format too.

Both formats escape backslashes, quotes and line ends, and neither has an escape for other characters that steer a
terminal or a reader's eye. So a label has the name as `visible` shows it, with its own backslashes doubled: two names
never become one, and nothing raw is written.
"""

from __future__ import annotations

from collections.abc import Iterable

from rmqlb.views.formats.text import visible
from rmqlb.views.metrics import METRICS, Metric, Sample


def as_prometheus(samples: Iterable[Sample]) -> str:
    """The samples that are known, metric by metric; one of which nothing is known is left out."""
    lines: dict[Metric, list[str]] = {metric: [] for metric in METRICS}
    for sample in samples:
        if sample.value is not None:
            lines[sample.metric].append(_line(sample, sample.value))
    parts = (part for metric, own in lines.items() if own for part in (*_head(metric), *own))
    return "\n".join((*parts, "# EOF\n"))


def label_value(name: str) -> str:
    r"""What a name is in a label, before the format's own escapes.

    >>> label_value("orders"), label_value("a\x1b"), label_value("a\\x1b")
    ('orders', 'a\\x1b', 'a\\\\x1b')
    """
    return visible(name.replace("\\", "\\\\"))


def _head(metric: Metric) -> tuple[str, ...]:
    name = metric.full_name
    unit = (f"# UNIT {name} {metric.unit}",) if metric.unit else ()
    return (f"# HELP {name} {metric.help}", f"# TYPE {name} gauge", *unit)


def _line(sample: Sample, value: float) -> str:
    given = ((label, sample.labels.get(label)) for label in sample.metric.labels)
    labels = ",".join(f'{label}="{_escaped(name)}"' for label, name in given if name)
    return f"{sample.metric.full_name}{f'{{{labels}}}' if labels else ''} {value!r}"


def _escaped(name: str) -> str:
    """Of what the format has to escape, line ends are no longer there."""
    return label_value(name).replace("\\", r"\\").replace('"', r"\"")
