"""Who names metrics besides the program: the page, its alerts, and the dashboard name those that exist, with their labels."""

import json
import re
from collections.abc import Iterator
from itertools import combinations
from typing import Any

from rmqlb.views.metrics import METRICS
from tests.cli.run import ROOT
from tests.support.mismatches import every_case
from tests.support.pages import DOCS, blocks

PAGE = DOCS / "how-to" / "prometheus.md"
BY_NAME = {metric.full_name: metric for metric in METRICS}
DASHBOARD: dict[str, Any] = json.loads((ROOT / "examples" / "grafana-dashboard.json").read_text(encoding="utf-8"))
VARIABLES = {each["name"]: each for each in DASHBOARD["templating"]["list"]}
PANELS: list[dict[str, Any]] = DASHBOARD["panels"]
_FUNCTIONS = {"and", "sum", "min", "topk", "time", "by", "label_values"}


def expressions() -> Iterator[str]:
    yield from (line for block in blocks(PAGE, "text") for line in block.splitlines())
    yield from (target["expr"] for panel in PANELS for target in panel["targets"])
    yield from (each["definition"] for each in VARIABLES.values() if each["type"] == "query")


def labels_used(expression: str) -> set[str]:
    matched = {label for inside in re.findall(r"\{(.*?)\}", expression) for label in re.findall(r"(\w+)=", inside)}
    summed = {label for inside in re.findall(r"by \((.*?)\)", expression) for label in inside.split(", ")}
    return matched | summed | {*re.findall(r"^label_values\(.*, (\w+)\)$", expression)}


@every_case("expression", [*expressions()])
def test_an_expression_names_metrics_that_exist_and_their_labels(expression: str) -> None:
    names = re.findall(r"rmqlb_\w+", expression)
    labels = set.intersection(*({*BY_NAME[name].labels} for name in names[1:] or names))
    assert labels_used(expression) <= {*BY_NAME[names[0]].labels}
    assert {*re.findall(r"\bon \((\w+)\)", expression)} <= labels
    words = {*re.findall(r"\b[a-z_]+\b", re.sub(r"\{.*?\}|(by|on) \(.*?\)", "", expression))}
    assert words <= {*names, *labels, *_FUNCTIONS}


@every_case("panel", PANELS, ids=lambda panel: panel["title"])
def test_a_panel_shows_labels_of_its_metric(panel: dict[str, Any]) -> None:
    for target in panel["targets"]:
        name = re.findall(r"rmqlb_\w+", target["expr"])[0]
        assert {*re.findall(r"\{\{(\w+)\}\}", target["legendFormat"])} <= {*BY_NAME[name].labels}
        assert {*re.findall(r"\$(\w+)", target["expr"])} <= VARIABLES.keys()
        assert panel["datasource"] == target["datasource"] == {"type": "prometheus", "uid": "${datasource}"}


def test_panels_are_apart_and_show_what_each_command_writes_and_the_page_lists_every_metric() -> None:
    assert len({panel["id"] for panel in PANELS}) == len(PANELS)
    places = [panel["gridPos"] for panel in PANELS]
    assert all(place["x"] + place["w"] <= 24 for place in places)
    for one, other in combinations(places, 2):
        apart = [one[at] + one[size] <= other[at] or other[at] + other[size] <= one[at] for at, size in ("xw", "yh")]
        assert any(apart), (one, other)
    shown = {name for each in expressions() for name in re.findall(r"rmqlb_\w+", each)}
    for name in ("queue_owners", "queue_lag", "imbalance", "idle_consumers", "mismatches", "findings", "check_limits"):
        assert f"rmqlb_{name}" in shown
    rows = re.findall(r"^\| `(\w+)` \| (.*?) \| (.*) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert rows == [(metric.full_name, ", ".join(metric.labels), metric.help) for metric in METRICS]
