"""OpenMetrics text, read by Prometheus's own parser and held to what a textfile collector asks besides."""

from collections.abc import Iterable

from prometheus_client import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_openmetrics
from prometheus_client.parser import text_string_to_metric_families as read_classic

from rmqlb.views.metrics import METRICS

Labels = frozenset[tuple[str, str]]
Metrics = dict[str, dict[Labels, float]]
_KNOWN = {metric.full_name: metric for metric in METRICS}


def labelled(**labels: str) -> Labels:
    return frozenset(labels.items())


def read_metrics(text: str) -> Metrics:
    """Every sample of the text.

    Raises:
        ValueError: it is no OpenMetrics, or node_exporter would refuse it, or a series stands in it twice.
    """
    families = list(read_openmetrics(text))  # type: ignore[no-untyped-call]
    found = _samples(families)
    for family in families:
        known = _KNOWN.get(family.name)
        if known is None or (family.documentation, family.type, family.unit) != (known.help, "gauge", known.unit):
            raise ValueError(f"{family.name} is not as the catalogue has it")
        if not {label for labels in found[family.name] for label, _ in labels} <= {*known.labels}:
            raise ValueError(f"{family.name} has labels that the catalogue does not name")
    written = sum(not line.startswith("#") for line in text.splitlines())
    if written != sum(map(len, found.values())):
        raise ValueError("a series stands there twice, or a line was passed over")
    if _samples(read_classic(text)) != found:
        raise ValueError("the classic format reads it otherwise")
    return found


def _samples(families: Iterable[Metric]) -> Metrics:
    found: Metrics = {}
    for family in families:
        own = found.setdefault(family.name, {})
        for sample in family.samples:
            if sample.timestamp is not None or sample.name != family.name:
                raise ValueError(f"{sample.name} has a time or another name than its family")
            own[frozenset(sample.labels.items())] = sample.value
    return found
