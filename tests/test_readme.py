"""The README and the pages of docs/ tell the truth: their examples print what they say, and name what there is.

After a change that means to change output: `pytest tests/test_readme.py --update-golden`.
"""

import json
import re
import shutil
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from rmqlb.cli.exit_codes import ExitCode
from rmqlb.cli.results import figures_of
from rmqlb.engine.allocate.rules import NAMES
from rmqlb.model.group_scenario import TIMER_NAMES
from rmqlb.model.snapshot import Wanted
from rmqlb.sources.dump import DumpSource
from rmqlb.views.report import FORMATS
from tests.cli.run import ROOT
from tests.support.mismatches import every_case
from tests.support.pages import DOCS, PAGES, Terminal, as_typed, blocks, commands, languages, name_of
from tests.test_golden import GOLDEN
from tools.manual.tree import command_tree
from tools.screens import FOLDER, SCREENS
from tools.screens import picture as screen_picture

README = ROOT / "README.md"
LARGEST = 8_000
"""Bytes of the README."""
LANGUAGES = {"console", "python", "yaml", "sql", "sh", "cron", "ini", "text", ""}
"""Of blocks; what each is held by is below. Text, and what has no language, is no command."""
HELD_BY = {
    "python3 -m venv .venv && .venv/bin/pip install -q .": (".ci/run", "python3 -m venv .venv && .venv/bin/pip install -q"),
    "pipx install -q .": (".ci/installs", 'pipx" install -q .'),
    "uv tool install -q .": (".ci/installs", 'uv" tool install -q .'),
    ".venv/bin/pip install -q '.[pipeline]'": (".ci/oldest", "'.[pipeline]'"),
    "rmqlb pipeline run -w warehouse examples/fleet": ("tests/pipeline/test_commands.py", "def test_the_verdict_leaves_the_machine"),
    "rmqlb pipeline run -w warehouse snapshots --expect": ("tests/pipeline/test_commands.py", '"--expect"'),
    "rmqlb fetch-routes --all-contexts": ("tests/cli/test_fetch_routes.py", '"--all-contexts"'),
    "rmqlb context add ": ("tests/cli/test_bad_options.py", '"context add prod'),
    'duckdb -c "SELECT cluster': ("tests/pipeline/test_commands.py", "read_parquet("),
    "pip install -e '.[test]' cosmic-ray coverage": ("tools/mutants.py", "cosmic_ray"),
    "python -m tools.mutants": ("tools/mutants.py", "__main__"),
    "rmqlb record -s rocketmq://10.0.0.1:9876": ("tests/cli/test_record.py", '"record"'),
    "rmqlb fetch-routes -s rocketmq://10.0.0.1:9876 --every": ("tests/cli/test_fetch_routes.py", '"--every"'),
    "rmqlb pipeline run -w warehouse snapshots": ("tests/pipeline/test_commands.py", '"--expect"'),
    "rmqlb show-groups -s rocketmq://HOST:9876 --proxy": ("tests/cli/test_groups_without_owners.py", '"--proxy"'),
    "rmqlb context add prod -s rocketmq://HOST:9876 --proxy": ("tests/cli/test_groups_without_owners.py", '"context", "add"'),
    "rmqlb doctor -n HOST:9876": ("tests/sources/test_opening.py", 'run("doctor"'),
    "python -m pytest -q --figures": ("tests/conftest.py", "--figures"),
}  # fmt: skip
"""How a line that no test of this file runs begins → the file that runs it, or that it runs, and what stands there."""
OF_OTHERS = {"--archives", "--figures", "--sample", "--strict", "--value", "--warnings"}
"""Options of other programs that pages name."""
PICTURE = (
    "simulate-rebalance -s examples/cluster.json --group order-svc --topic Skewed --event 'broker-up broker-c:3@10s'"
)

with_commands = [page for page in PAGES if list(commands(page))]


@pytest.mark.parametrize("page", with_commands, ids=name_of)
def test_commands_print_what_the_page_shows(page: Path, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    if any(re.search(r"\bjq\b", command) for command in commands(page)) and shutil.which("jq") is None:
        pytest.skip("this machine has no jq")
    text = as_typed(page, Terminal(tmp_path))
    assert "Traceback" not in text
    if request.config.getoption("--update-golden"):
        page.write_text(text, encoding="utf-8")
    assert text == page.read_text(encoding="utf-8")


def test_the_picture_is_what_its_command_draws(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    (command,) = (command for command in commands(DOCS / "index.md") if "--svg" in command)
    assert PICTURE in " ".join(command.replace("\\\n", " ").split())
    assert "(docs/rebalance.svg)" in README.read_text(encoding="utf-8")
    Terminal(tmp_path).typed(command)
    drawn = (tmp_path / "rebalance.svg").read_text(encoding="utf-8")
    committed = DOCS / "rebalance.svg"
    if request.config.getoption("--update-golden"):
        committed.write_text(drawn, encoding="utf-8")
    assert drawn == committed.read_text(encoding="utf-8")


@every_case("name", SCREENS)
def test_a_screen_of_a_page_is_what_its_command_shows(name: str, request: pytest.FixtureRequest) -> None:
    drawn, committed = screen_picture(name), FOLDER / f"{name}.svg"
    if request.config.getoption("--update-golden"):
        committed.write_text(drawn, encoding="utf-8")
    assert texts_of(drawn) == texts_of(committed.read_text(encoding="utf-8"))
    assert [page for page in PAGES if f"screens/{name}.svg)" in page.read_text(encoding="utf-8")]


def texts_of(svg: str) -> list[str]:
    return [element.text or "" for element in ET.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]


@every_case("page", [page for page in PAGES if blocks(page, "python")], ids=name_of)
def test_the_python_of_a_page_runs(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if any(block.startswith(">>>") for block in blocks(page, "python")):
        return  # docs/architecture.md, a doctest of tests/test_docs.py
    monkeypatch.chdir(ROOT)
    exec(compile("".join(blocks(page, "python")), name_of(page), "exec"), {})


@every_case("page", [page for page in PAGES if blocks(page, "yaml")], ids=name_of)
def test_the_snapshots_written_by_hand_are_read(page: Path, tmp_path: Path) -> None:
    for example in blocks(page, "yaml"):
        assert example.startswith("schema: rmqlb/snapshot")
        (tmp_path / "s.txt").write_text(example)
        snapshot = DumpSource(str(tmp_path / "s.txt")).fetch(Wanted(group="pay-svc"))
        assert snapshot.group("pay-svc").client_ids == ("10.0.1.7@4711", "10.0.1.8@4711")
        assert len(snapshot.route("Payments").subscribe_queues()) == 8


@every_case("page", PAGES, ids=name_of)
def test_every_command_of_a_page_is_run_somewhere(page: Path) -> None:
    assert languages(page) <= LANGUAGES
    lines = [line for block in blocks(page, "sh") for line in block.replace("\\\n", "").splitlines()]
    if page != README:
        assert [line for line in lines if not line.startswith(tuple(HELD_BY))] == []
    assert not [block for block in (*blocks(page, "text"), *blocks(page, "")) if "rmqlb " in block]


@every_case("beginning", HELD_BY)
def test_what_runs_a_command_elsewhere_is_there(beginning: str) -> None:
    file, text = HELD_BY[beginning]
    assert text in (ROOT / file).read_text(encoding="utf-8")
    assert any(beginning in block for page in PAGES for block in blocks(page, "sh"))


def test_the_readme_is_short_and_ci_runs_its_tests() -> None:
    assert README.stat().st_size <= LARGEST
    assert len(list(commands(README))) == 3
    main, tests = (block.strip() for block in blocks(README, "sh"))
    assert "rmqlb plan-rebalance -s examples/" in main
    assert tests in (ROOT / ".ci" / "run").read_text()


TREE = command_tree()
OPTIONS = {name for command in TREE.all() for each in command.options for name in (*each.names, *each.negations)}


@every_case("page", PAGES, ids=name_of)
def test_every_option_that_a_page_names_is_one(page: Path) -> None:
    named = set(re.findall(r"(?<![\w-])--[a-z][\w-]*", page.read_text(encoding="utf-8")))
    assert named - OPTIONS - OF_OTHERS == set()


def text_of(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


def golden_data(name: str) -> dict[str, Any]:
    text = (GOLDEN / f"{name}.json.txt").read_text(encoding="utf-8")
    data: dict[str, Any] = json.loads(text[text.index("{") : text.index("--- stderr")])["data"]
    return data


def test_the_pages_name_every_strategy_timer_format_exit_code_figure_and_key() -> None:
    strategies, output = text_of("explanation/strategies.md"), text_of("output.md")
    assert [name for name in NAMES if f"| {name}" not in strategies] == []
    assert [timer for timer in TIMER_NAMES if timer not in text_of("explanation/rebalances.md")] == []
    assert [name for name in FORMATS if f"`{name}`" not in output] == []
    assert [code for code in ExitCode if f"| {code.value} |" not in output] == []
    for command in TREE.all():
        conditions = [each for each in command.options if each.metavar == "CONDITION"]
        for name in figures_of(" ".join(command.path)) if conditions else ():
            assert re.search(rf"\b{name.rstrip('[')}\b", output), f"docs/output.md: {name} of {command.typed}"
    plan, send = golden_data("plan-rebalance"), golden_data("simulate-send")
    named = {"group", "strategy", "strategyAfter", "topics", "consumers", "summary", "comparison", "conditions"}
    assert named <= plan.keys()
    assert [key for key in (*named, *(send.keys() - {"topic"})) if f"`{key}`" not in output] == []
    assert [key for key in send["attempts"][0] if key not in output] == []


def test_the_examples_are_what_the_captures_give() -> None:
    from tests.support.faults_and_evidence import NAMES, faults_json
    from tests.support.make_examples import cluster_json, cluster_later_json

    assert (ROOT / "examples" / "cluster.json").read_text() == cluster_json()
    assert (ROOT / "examples" / "cluster-later.json").read_text() == cluster_later_json()
    for name in NAMES:
        assert (ROOT / "examples" / f"{name}.json").read_text() == faults_json(name)
    assert (ROOT / "examples" / "topicRoute-Skewed.txt").read_bytes() == (
        ROOT / "tests/data/mqadmin/5.5.0-topicRoute-Skewed.txt"
    ).read_bytes()
