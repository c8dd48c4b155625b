from __future__ import annotations

import csv
import io
import json

import yaml

from .run import EXAMPLE, SKEWED, run


def test_the_shape_does_not_depend_on_the_count() -> None:
    one, every = (json.loads(run("explain", *code, "-o", "json").stdout)["data"] for code in (("mismatch",), ()))
    assert one["explanations"][0] in every["explanations"]
    rows = list(csv.DictReader(io.StringIO(run("explain", "-o", "csv").stdout, newline="")))
    assert [row["code"] for row in rows] == [entry["code"] for entry in every["explanations"]]
    assert list(rows[0]) == list(every["explanations"][0])
    assert yaml.safe_load(run("explain", "mismatch", "-o", "yaml").stdout)["data"] == one


def test_the_code_at_the_end_of_a_line_is_the_one_to_ask_for() -> None:
    said = run("plan-rebalance", "-s", SKEWED, "--topic", "Skewed", "--consumers", "a,a").stderr.splitlines()
    warned = [line for line in said if line.startswith(("warning: ", "info: ")) and line.endswith("]")]
    failed = run("show-route", "-s", EXAMPLE, "--topic", "Skewd").stderr.splitlines()[:1]
    for line in (*warned, *failed):
        code = line[line.rindex("[") :]
        assert run("explain", code).stdout.splitlines()[1].startswith(f"  {code[1:-1]}, a")
    assert [line.rpartition("[")[2] for line in (*warned, *failed)] == [
        "duplicate-client-id]",
        "assumed-strategy]",
        "topic-not-found]",
    ]
