import csv
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from jsonschema import Draft202012Validator

from rmqlb.cli.results import RESULTS, result_names, result_of
from rmqlb.model.configuration import ENDPOINT, SETTINGS
from rmqlb.model.result import Finding
from rmqlb.model.snapshot import ClusterSnapshot
from rmqlb.views.envelope import Envelope, PrintedResult
from rmqlb.views.formats.machine import as_json, envelope
from rmqlb.views.json_schema import shapes_in
from rmqlb.views.report import FORMATS, Report
from tests.cli.run import Desk, run
from tests.support.any_value import any_of
from tests.support.mismatches import every_case
from tests.support.pages import DOCS, blocks
from tests.support.schemas import must_fit, problems, published, schema_of
from tests.test_golden import GOLDEN, ROOT


@every_case("result", RESULTS, ids=lambda result: str(result.name))
def test_a_schema_describes_every_object_and_key(result: PrintedResult) -> None:
    schema = schema_of(result.name)
    Draft202012Validator.check_schema(schema)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["title"] == result.name
    for name, each in {**schema["$defs"], "": schema}.items():
        assert each["description"].endswith("."), name
        undescribed = [key for key, inner in each["properties"].items() if not inner["description"].endswith(".")]
        assert undescribed == [], f"{name}: annotate its fields with what they mean"
        # Further keys are allowed, missing ones are not; a snapshot may leave out keys that have a default.
        assert "additionalProperties" not in each, name
        shape = shapes_in(Envelope, result.shape).get(name)
        if result.kind != "snapshot" and shape is not None and not shape.__struct_config__.omit_defaults:
            assert set(each["required"]) == each["properties"].keys(), name


def printed(path: Path) -> str:
    _, _, rest = path.read_text(encoding="utf-8").partition("\n")
    return rest.partition("\n--- stderr\n")[0]


def test_a_result_of_every_command_is_recorded_and_fits() -> None:
    names = set()
    for path in sorted(GOLDEN.rglob("*.json.txt")):
        value = json.loads(printed(path))
        assert problems(value) == [], path.name
        assert value["command"] in schema_of(value["schema"])["properties"]["command"]["enum"]
        names.add(path.name.partition(".")[0])
    assert {command for result in RESULTS for command in result.commands if " " not in command} - names == set()


def test_recorded_lines_and_what_is_written_by_hand_fit() -> None:
    traced = [json.loads(line) for line in printed(GOLDEN / "send-jsonl-traced.txt").splitlines()]
    for line in traced:
        must_fit(line, "rmqlb/lost-message" if "reason" in line else "rmqlb/attempt")
    assert ["reason" in line for line in traced] == [False] * 4 + [True, False]
    must_fit(json.loads((ROOT / "examples" / "cluster.json").read_text(encoding="utf-8")), "rmqlb/snapshot")
    (by_hand,) = blocks(DOCS / "sources.md", "yaml")
    must_fit(json.loads(json.dumps(yaml.safe_load(by_hand))), "rmqlb/snapshot")


SOME = ("rmqlb/plan", "rmqlb/route", "rmqlb/check", "rmqlb/groups", "rmqlb/pipeline")
"""Shapes of every kind of field: msgspec writes all of them in one way."""


@every_case("result", [result for result in RESULTS if result.name in SOME], ids=lambda result: str(result.name))
def test_any_value_of_a_shape_fits_its_schema(result: PrintedResult) -> None:
    @settings(max_examples=5, deadline=None, suppress_health_check=list(HealthCheck))
    @given(any_of(result.shape))
    def printed_as_json(data: Any) -> None:
        report = Report(result.name, data, (), (), {})
        around = envelope(report, result.commands[0], ClusterSnapshot("dump", "x"), (Finding("mismatch", "x"),))
        must_fit(json.loads(as_json(around)))

    printed_as_json()


EVERY_KEY = """
context: a
output: json
color: never
source-timeout: 9s
source-retries: 1
max-size: 1MB
contexts:
  a: {source: http://h, user: me, access-key: k, secret: env:X, ca-file: /ca, client-cert: /cert, client-key: /key,
    tls-name: n, proxy: ["p:8080"], map-address: ["a:1=b:2"], source-timeout: 5s, source-retries: 3}
"""


def test_contexts_and_settings_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk(tmp_path, monkeypatch)
    desk.user(EVERY_KEY)
    written = yaml.safe_load(EVERY_KEY)
    assert set(written) == {key.name for key in SETTINGS} | {"contexts"}
    assert set(written["contexts"]["a"]) == {key.name for key in ENDPOINT}
    for words in ("context show", "context add b -s http://h", "context use b", "context list", "context remove b"):
        ran = run(*words.split())
        assert ran.code == 0, ran.stderr
        must_fit(json.loads(ran.stdout))
    shown = json.loads(run("context", "show", "a").stdout)["data"]["context"]
    assert None not in shown.values()
    ran = run("config", "show", "--context", "a")
    must_fit(json.loads(ran.stdout))
    keys = {setting["key"] for setting in json.loads(ran.stdout)["data"]["settings"]}
    assert keys >= {key.name for key in (*SETTINGS, *ENDPOINT)}


def test_the_strict_schema_is_strict() -> None:
    error = {"code": "usage", "message": "m", "hint": None, "exitCode": 2}
    good = {"schema": "rmqlb/error", "formatVersion": "2.0", "error": error}
    more = {**good, "error": {**error, "more": 1}}
    assert (problems(good), bool(problems(more)), published("error").is_valid(more)) == ([], True, True)
    for key in error:
        assert not published("error").is_valid({**good, "error": {k: v for k, v in error.items() if k != key}})
    assert not published("error").is_valid({**good, "schema": "rmqlb/plan"})


@every_case("name", result_names())
def test_a_schema_goes_by_its_commands_and_by_its_own_name(name: str) -> None:
    ran = run("schema", *name.split())
    result = result_of(name)
    assert result is not None
    assert (json.loads(ran.stdout)["title"], ran.code, ran.stderr) == (result.name, 0, "")


def test_a_key_is_listed_with_its_whole_path() -> None:
    shown = {fmt: run("schema", "plan-rebalance", "-o", fmt).stdout for fmt in FORMATS}
    assert all(key in text for text in shown.values() for key in schema_of("rmqlb/plan")["properties"])
    rows = list(csv.reader(shown["csv"].splitlines()))
    assert rows[0] == ["key", "type", "required", "meaning"]
    assert ["data.topics[].queues[].lag", "integer, or null", "yes", "messages not yet read."] in rows
    nested = run("schema", "simulate-send", "-o", "csv").stdout
    assert "\ndata.trials.share.*.low,number,yes," in nested
    assert "\ndata.attempts[].atMs,number,yes," in nested
    optional = [row[:3] for row in csv.reader(run("schema", "snapshot", "-o", "csv").stdout.splitlines())]
    assert ["data.groups[].clientIds", "array of string, or null", "no"] in optional
