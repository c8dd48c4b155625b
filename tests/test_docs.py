"""What docs/ says of dependencies and tests is so: each licence is the package's own, each test is there."""

from __future__ import annotations

import doctest
import re
import tomllib
from importlib import metadata
from importlib.util import find_spec
from itertools import chain
from pathlib import Path

import pytest

from conftest import TIERS

ROOT = Path(__file__).resolve().parent.parent
SECTION = re.compile(r"^## (.+)$", re.MULTILINE)
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
COPYLEFT = {"GPL", "LGPL", "AGPL", "SSPL"}


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def names(requirements: list[str]) -> set[str]:
    found = (re.match(r"[\w.-]+", requirement) for requirement in requirements)
    return {normal(match[0]) for match in found if match} - {"rmqlb"}


def table(*titles: str) -> dict[str, str]:
    """Package → licence, from the sections of these titles."""
    text = (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8")
    _, *parts = SECTION.split(text)
    rows: dict[str, str] = {}
    for title, part in zip(parts[::2], parts[1::2], strict=True):
        if title in titles:
            cells = [
                [cell.strip() for cell in line.strip("|").split("|")] for line in part.splitlines() if line[:1] == "|"
            ]
            rows |= {row[0]: row[-1] for row in cells if row[0] not in ("package", "---")}
    return rows


RUN_TIME, PIPELINE, WORK = table("At run time"), table("The pipeline"), table("For work on rmqlb")
ON_DEMAND = table("On demand")
ALL = RUN_TIME | ON_DEMAND | PIPELINE | WORK


def project() -> dict[str, object]:
    with open(ROOT / "pyproject.toml", "rb") as file:
        found: dict[str, object] = tomllib.load(file)["project"]
    return found


def closure(wanted: set[str]) -> set[str]:
    """The packages and all that they need here, without their extras."""
    found: set[str] = set()
    while wanted:
        name = wanted.pop()
        found.add(name)
        needs = [need for need in metadata.requires(name) or [] if ";" not in need]
        wanted |= names(needs) - found
    return found


def test_every_dependency_stands_where_it_belongs() -> None:
    found = project()
    extras = found["optional-dependencies"]
    assert isinstance(extras, dict)
    assert extras.keys() == {"pipeline", "keyring", "test", "dev", "docs", "fuzz"}
    assert isinstance(found["dependencies"], list)
    direct = names(found["dependencies"])
    assert direct <= RUN_TIME.keys()
    assert names(extras["keyring"]) == ON_DEMAND.keys()
    assert names(extras["pipeline"]) == PIPELINE.keys()
    assert (
        names([*extras["test"], *extras["dev"], *extras["docs"], *extras["fuzz"]]) - PIPELINE.keys() - direct
        == WORK.keys()
    )


def test_the_bounds_that_the_docs_give_a_reason_for_are_those_of_the_project() -> None:
    found = project()
    extras = found["optional-dependencies"]
    assert isinstance(extras, dict)
    assert isinstance(found["dependencies"], list)
    bounds = re.findall(r"^\| ([\w-]+) \| ([\d.]+) \|", (ROOT / "docs" / "dependencies.md").read_text(), re.MULTILINE)
    assert len(bounds) == 5
    for name, bound in bounds:
        asked = [line for line in chain(found["dependencies"], *extras.values()) if names([line]) == {name}]
        assert asked
        assert all(f">={bound}," in f"{line}," for line in asked)


def test_what_comes_along_at_run_time_is_told() -> None:
    found = project()
    assert isinstance(found["dependencies"], list)
    assert closure(names(found["dependencies"])) <= RUN_TIME.keys()


@pytest.mark.parametrize("name", sorted(ALL.keys() & {normal(found.name) for found in metadata.distributions()}))
def test_the_licence_is_the_one_that_the_package_names(name: str) -> None:
    """Of those that are installed here."""
    told = metadata.metadata(name).json
    expression = told.get("license_expression") or told.get("license") or ""
    classifiers = [line.rpartition(" :: ")[2] for line in told.get("classifier", []) if line.startswith("License")]
    allowed = {word for line in classifiers for word in CLASSIFIERS[line]}
    assert (
        ALL[name] == expression
        or (name in NAMES_NONE and not expression and not allowed)
        or re.split(" AND | OR ", ALL[name])[0] in allowed
        or f"{ALL[name]} License" == expression
    )


def test_nothing_at_run_time_asks_rmqlb_to_change_its_own_licence() -> None:
    words = {word.partition("-")[0] for licence in RUN_TIME.values() for word in licence.split()}
    assert words & COPYLEFT == set()


def test_every_test_that_the_docs_name_is_there() -> None:
    text = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")
    named = re.findall(r"`((?:tests|fuzz)/[\w/]+\.py)`", text)
    assert len(named) > 20
    assert [path for path in named if not (ROOT / path).is_file()] == []


def test_the_promises_are_numbered_through() -> None:
    text = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")
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


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    links = re.findall(r"\]\((?!https?:)([^)#]*)(#[^)]*)?\)", page.read_text(encoding="utf-8"))
    assert [link for link, _ in links if not (page.parent / link).exists()] == []
    for link, anchor in links:
        target = page.parent / link if link else page
        assert not anchor or anchor[1:] in anchors(target), f"{link}{anchor}"


def anchors(page: Path) -> set[str]:
    """What its headings are called in a link."""
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


def test_every_place_that_the_guide_sends_to_is_there() -> None:
    named = set(PLACE.findall(GUIDE)) - TO_BE_MADE
    assert len(named) > 20
    assert [
        place for place in sorted(named) if not any((root / place).exists() for root in (ROOT, ROOT / "rmqlb"))
    ] == []


def test_every_name_that_the_guide_sends_to_stands_in_its_file() -> None:
    named = re.findall(r"`(\w+)`\s+(?:of\s+|\()\s*`([\w/]+\.py)`", GUIDE)
    assert len(named) > 8
    for name, place in named:
        file = next(root / place for root in (ROOT, ROOT / "rmqlb") if (root / place).exists())
        assert re.search(rf"\b{name}\b", file.read_text(encoding="utf-8")), f"{name} is not in {place}"


def test_every_file_of_the_map_is_there() -> None:
    """Where a part is described, its files are named without its folder."""
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    folders = [ROOT, ROOT / "rmqlb", *(folder for folder in (ROOT / "rmqlb").rglob("*") if folder.is_dir())]
    named = set(PLACE.findall(text))
    assert len(named) > 10
    assert [place for place in sorted(named) if not any((folder / place).exists() for folder in folders)] == []


def test_the_path_of_a_document_is_as_the_map_shows_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    done = doctest.testfile(str(ROOT / "docs" / "architecture.md"), module_relative=False, encoding="utf-8")
    assert done.attempted > 8
    assert done.failed == 0


def test_the_guide_has_every_tier_and_what_ci_checks() -> None:
    tiers = re.findall(r"^\| (\w+) \| `pytest -m (\w+)`", GUIDE, re.MULTILINE)
    assert tiers == [(name, name) for name in TIERS]
    ci = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    (checked,) = re.findall(r"-m mypy (.+)", GUIDE)
    assert f"mypy {checked}\n" in ci


def test_what_the_guide_runs_is_there() -> None:
    pinned = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    for module in re.findall(r"python -m ([\w.]+)", GUIDE):
        # The tools of other extras need not be installed where the default tests run.
        assert find_spec(module) or f'"{module}' in pinned, module
    for path in re.findall(r"tests/[\w/]+\.py", GUIDE):
        assert (ROOT / path).is_file(), path
