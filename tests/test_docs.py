"""What docs/ says of dependencies and tests is so: each licence is the package's own, each test is there."""

import doctest
import re
import tomllib
from importlib import metadata
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from conftest import TIERS
from rmqlb.cli.results import SECTIONS
from tests.support.mismatches import every_case
from tests.support.pages import transcripts

ROOT = Path(__file__).resolve().parent.parent
DEPENDENCIES = (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8")
CLASSIFIERS = {
    "MIT License": {"MIT"},
    "BSD License": {"BSD-2-Clause", "BSD-3-Clause"},
    "Apache Software License": {"Apache-2.0"},
    "ISC License (ISCL)": {"ISC"},
    "Mozilla Public License 2.0 (MPL 2.0)": {"MPL-2.0"},
    "Python Software Foundation License": {"PSF", "PSF-2.0"},
    "GNU Lesser General Public License v3 (LGPLv3)": {"LGPL-3.0"},
    "GNU General Public License v2 (GPLv2)": {"GPL-2.0 with the Classpath exception"},
}
"""What older packages say instead of an SPDX expression, and which expressions it may be."""
NAMES_NONE = {"atheris"}


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def names(requirements: list[str]) -> set[str]:
    found = (re.match(r"[\w.-]+", requirement) for requirement in requirements)
    return {normal(match[0]) for match in found if match} - {"rmqlb"}


def table(title: str) -> dict[str, str]:
    _, *parts = re.split(r"^## (.+)$", DEPENDENCIES, flags=re.MULTILINE)
    section = dict(zip(parts[::2], parts[1::2], strict=True))[title]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if line[:1] == "|"]
    return {row[0]: row[-1] for row in rows if row[0] not in ("package", "---")}


RUN_TIME, PIPELINE, WORK = table("At run time"), table("The pipeline"), table("For work on rmqlb")
ON_DEMAND = table("On demand")
ALL = RUN_TIME | ON_DEMAND | PIPELINE | WORK
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]


def closure(wanted: set[str]) -> set[str]:
    found: set[str] = set()
    while wanted:
        name = wanted.pop()
        found.add(name)
        wanted |= names([need for need in metadata.requires(name) or [] if ";" not in need]) - found
    return found


def test_every_dependency_is_in_its_section_with_its_bound() -> None:
    assert EXTRAS.keys() == {"pipeline", "keyring", "test", "dev", "docs", "fuzz"}
    direct = names(PROJECT["dependencies"])
    assert direct <= closure(set(direct)) <= RUN_TIME.keys()
    assert names(EXTRAS["keyring"]) == ON_DEMAND.keys()
    assert names(EXTRAS["pipeline"]) == PIPELINE.keys()
    of_work = names([*EXTRAS["test"], *EXTRAS["dev"], *EXTRAS["docs"], *EXTRAS["fuzz"]])
    assert of_work - PIPELINE.keys() - direct == WORK.keys()
    bounds = re.findall(r"^\| ([\w-]+) \| ([\d.]+) \|", DEPENDENCIES, re.MULTILINE)
    assert len(bounds) == 5
    for name, bound in bounds:
        required = [line for line in chain(PROJECT["dependencies"], *EXTRAS.values()) if names([line]) == {name}]
        assert required
        assert all(f">={bound}," in f"{line}," for line in required)


@every_case("name", sorted(ALL.keys() & {normal(found.name) for found in metadata.distributions()}))
def test_the_licence_of_an_installed_package_is_its_own(name: str) -> None:
    of_package = metadata.metadata(name).json
    expression = of_package.get("license_expression") or of_package.get("license") or ""
    licences = [line.rpartition(" :: ")[2] for line in of_package.get("classifier", []) if line.startswith("License")]
    allowed = {word for line in licences for word in CLASSIFIERS[line]}
    assert (
        ALL[name] == expression
        or (name in NAMES_NONE and not expression and not allowed)
        or re.split(" AND | OR ", ALL[name])[0] in allowed
        or f"{ALL[name]} License" == expression
    )


def test_nothing_at_run_time_asks_rmqlb_to_change_its_own_licence() -> None:
    words = {word.partition("-")[0] for licence in RUN_TIME.values() for word in licence.split()}
    assert words & {"GPL", "LGPL", "AGPL", "SSPL"} == set()


def test_the_promises_are_numbered_and_name_tests_that_exist() -> None:
    text = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")
    named = re.findall(r"`((?:tests|fuzz)/[\w/]+\.py)`", text)
    assert len(named) > 20
    assert [path for path in named if not (ROOT / path).is_file()] == []
    rows = re.findall(r"^\| (\d+) \| (.+) \| (.+) \| (.+) \|$", text, re.MULTILINE)
    assert [int(number) for number, *_ in rows] == list(range(1, 31))
    assert all("`" in tests and figure for _, _, tests, figure in rows)


PAGES = (
    *(
        ROOT / name
        for name in ("README.md", "CONTRIBUTING.md", "benchmarks/README.md", "fuzz/README.md", "examples/README.md")
    ),
    *sorted((ROOT / "docs").rglob("*.md")),
)
GUIDE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
TO_BE_MADE = {"engine/allocate/NAME.py", "cli/VERB.py", "verbs/VERB.py"}
PLACE = re.compile(r"`([\w/.]+(?:\.py|\.toml|\.md|\.gz|\w/))`")


@every_case("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    links = re.findall(r"\]\((?!https?:)([^)#]*)(#[^)]*)?\)", page.read_text(encoding="utf-8"))
    assert [link for link, _ in links if not (page.parent / link).exists()] == []
    for link, anchor in links:
        target = page.parent / link if link else page
        assert not anchor or anchor[1:] in anchors(target), f"{link}{anchor}"


def anchors(page: Path) -> set[str]:
    titles = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title).strip().lower().replace(" ", "-") for title in titles}


def test_every_page_of_the_site_is_in_its_contents_and_reached_by_links() -> None:
    contents = re.findall(r"[\w/-]+\.md|reference/$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE)
    by_hand = [page.relative_to(ROOT / "docs").as_posix() for page in (ROOT / "docs").rglob("*.md")]
    assert sorted(contents) == sorted([*by_hand, "reference/"])
    found, left = set(), [ROOT / "README.md"]
    while left:
        page = left.pop()
        found.add(page)
        links = re.findall(r"\]\((?!https?:)([^)#]+\.md)[^)]*\)", page.read_text(encoding="utf-8"))
        left += [there for link in links if (there := (page.parent / link).resolve()) not in found]
    assert set((ROOT / "docs").rglob("*.md")) - found == set()


def test_the_guide_and_the_map_name_files_that_exist_and_names_in_them() -> None:
    roots = (ROOT, ROOT / "rmqlb")
    named = set(PLACE.findall(GUIDE)) - TO_BE_MADE
    assert len(named) > 20
    assert [place for place in sorted(named) if not any((root / place).exists() for root in roots)] == []
    in_files = re.findall(r"`(\w+)`\s+(?:of\s+|\()\s*`([\w/]+\.py)`", GUIDE)
    assert len(in_files) > 8
    for name, place in in_files:
        file = next(root / place for root in roots if (root / place).exists())
        assert re.search(rf"\b{name}\b", file.read_text(encoding="utf-8")), f"{name} is not in {place}"
    # Where a part is described, its files are named without its folder.
    folders = [ROOT, ROOT / "rmqlb", *(folder for folder in (ROOT / "rmqlb").rglob("*") if folder.is_dir())]
    on_the_map = set(PLACE.findall((ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")))
    assert len(on_the_map) > 10
    assert [place for place in sorted(on_the_map) if not any((folder / place).exists() for folder in folders)] == []


def test_the_path_of_a_document_is_as_the_map_shows_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    done = doctest.testfile(str(ROOT / "docs" / "architecture.md"), module_relative=False, encoding="utf-8")
    assert done.attempted > 8
    assert done.failed == 0


def test_the_guide_runs_what_is_there_and_has_every_tier() -> None:
    tiers = re.findall(r"^\| (\w+) \| `pytest -m (\w+)`", GUIDE, re.MULTILINE)
    assert tiers == [(name, name) for name in TIERS]
    (checked,) = re.findall(r"-m mypy (.+)", GUIDE)
    assert f"mypy {checked}\n" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    pinned = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    for module in re.findall(r"python -m ([\w.]+)", GUIDE):
        # The tools of other extras need not be installed where the default tests run.
        assert find_spec(module) or f'"{module}' in pinned, module
    for path in re.findall(r"tests/[\w/]+\.py", GUIDE):
        assert (ROOT / path).is_file(), path


# -- the ten questions of somebody on call: at most two commands each, and their first line is the answer -----------------

ANSWERS = {
    "blame-lag": (r"1,500.*192\.0\.2\.52@3",),
    "scale": (r"10 to 20 of 25",),
    "restart-broker": (r"3 of 3 groups .*22 of 50 queues .* 1m;.* no message",),
    "duplicate-client-id": (r"4 of 8 .*192\.0\.2\.31@app",),
    "mixed-strategies": (r"2 of 8 .*AVG, AVG_BY_CIRCLE",),
    "compare-strategies": (r"1\.33.*1\.88", r"19 of 50"),
    "gate-in-ci": (r"1 of 35 limits failed: group bill-svc",),
    "how-many-consumers": (r"needs 9 consumers; 8 are too few: imbalance 1\.28 > 1\.1", r"needs 3 consumers; 2 are too few"),
    "what-changed": (r"2 of 3 .*18 .*1,500",),
    "all-groups": (r"4 groups.* 2 broken, 1 lagging, 1 ",),
}  # fmt: skip
"""Page → what the first lines of its first commands say, in whichever words."""


@every_case("name", ANSWERS)
def test_the_first_line_of_the_first_commands_is_the_answer(name: str) -> None:
    first = [shown.partition("\n")[0] for _, shown in transcripts(ROOT / "docs" / "how-to" / f"{name}.md")]
    for line, answer in zip(first, ANSWERS[name], strict=False):
        assert re.search(answer, line)


def test_the_ten_questions_are_those_of_the_contents() -> None:
    table = (ROOT / "docs" / "how-to" / "index.md").read_text(encoding="utf-8").partition("## More tasks")[0]
    assert sorted(re.findall(r"\]\(([\w-]+)\.md\)", table)) == sorted(ANSWERS)
    assert len(ANSWERS) == 10


def test_an_answer_names_only_tables_that_its_command_can_show() -> None:
    named = 0
    for page in PAGES:
        for command, shown in transcripts(page):
            tables = re.findall(r"--section ([\w-]+) shows", shown)
            tables += [
                each
                for more in re.findall(r"^--all shows more: (.+)$", shown, re.MULTILINE)
                for each in more.split(", ")
            ]
            *_, verb = re.findall(r"\brmqlb ([\w-]+)", command) or ("",)
            assert set(tables) <= set(SECTIONS.get(verb, ())), command
            named += len(tables)
    assert named > 20
