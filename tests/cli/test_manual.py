import posixpath
import re
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

from rmqlb.cli.results import RESULTS
from rmqlb.cli.settings import check_value
from rmqlb.engine.allocate.rules import NAMES
from rmqlb.model.snapshot import Wanted
from rmqlb.sources.dump import DumpSource
from rmqlb.sources.user_files.config_file import read_user_file
from tests.support.mismatches import every_case
from tools.docs_site import contents, on_page_markdown
from tools.manual.config_page import USER_EXAMPLE
from tools.manual.files import all_files, reference_pages
from tools.manual.markdown import as_markdown, file_of, row
from tools.manual.roff import Marked, Page, bold, escaped, italic
from tools.manual.snapshot_page import EXAMPLE
from tools.manual.strategies_page import CASES, picture
from tools.manual.tree import command_tree

from .run import ROOT


def printed(page: str, width: int = 300) -> str:
    if shutil.which("groff") is None:
        pytest.skip("groff is not installed")
    line = ["groff", "-man", "-ww", "-Tutf8", "-P-cbou", f"-rLL={width}n"]
    done = subprocess.run(line, input=page, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout


def test_what_is_committed_is_what_is_made() -> None:
    paths = [path for folder in ("man", "completions") for path in (ROOT / folder).rglob("*") if path.is_file()]
    committed = {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in paths}
    assert committed == all_files(), "run python -m tools.manual"
    pages = {path for path in all_files() if path.startswith("man/man1/")}
    assert pages == {f"man/man1/{command.page}.1" for command in command_tree().all()}


def test_every_variable_of_the_environment_is_told() -> None:
    variables = {
        name
        for path in (ROOT / "rmqlb").rglob("*.py")
        for name in re.findall(r"\bRMQLB_[A-Z][A-Z_]*[A-Z]\b", path.read_text(encoding="utf-8"))
    }
    variables.discard("RMQLB_NAME")  # it stands for all of them in a docstring
    page = all_files()["man/man1/rmqlb.1"]
    assert variables >= {"RMQLB_SOURCE", "RMQLB_PAGER"}
    assert [name for name in sorted(variables) if f"\\fB{name}\\fR" not in page] == []


def test_groff_has_no_warning() -> None:
    for path, text in all_files().items():
        if path.startswith("man/"):
            printed(text)


TEXTS = (
    *(".SH INJECTED", "'br", ".", "\\", '.\\" a comment', r"\fBbold\fR \n(.H \e"),
    *("a - b -- --option 'x' `y` ^ ~ \" # %", "[x] {y} $(touch z) & | ; <>"),
)


@every_case("text", TEXTS)
def test_text_comes_out_as_it_went_in(text: str) -> None:
    page = Page("x", 1, "nothing")
    page.heading("Here")
    page.verbatim([text])
    page.paragraph(escaped(text))
    page.item(escaped(text), escaped(text))
    lines = [line.strip() for line in printed(page.text()).splitlines()]
    beside = [f"{text} {text}"] if len(text) < 7 else [text, text]  # a short term has its text on the same line
    found = [" ".join(line.split()) for line in lines if line.startswith(text)]
    assert found == [" ".join(line.split()) for line in (text, text, *beside)]


def test_every_strategy_is_drawn_as_the_engine_deals() -> None:
    assert sorted(CASES) == sorted(NAMES)
    page = all_files()["man/man7/rmqlb-strategies.7"]
    assert all(f'.SS "{name}"' in page for name in NAMES)
    assert picture("AVG_BY_CIRCLE") == [
        "            broker-a   broker-b      broker-a   broker-b",
        "            0 1 2 3 4  0 1 2 3 4     0 1 2 3 4  0 1 2 3 4",
        "10.0.0.1@g  # . . # .  . # . . #     # . . . #  . . . # .",
        "10.0.0.2@g  . # . . #  . . # . .     . # . . .  # . . . #",
        "10.0.0.3@g  . . # . .  # . . # .     . . # . .  . # . . .",
        "10.0.0.4@g                           . . . # .  . . # . .",
        "",
        "7 of 10 queues move",
    ]
    assert any(line.startswith("(unassigned)") for line in picture("MACHINE_ROOM"))


def test_the_examples_of_the_pages_are_read(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(EXAMPLE)
    snapshot = DumpSource(str(tmp_path / "s.yaml")).fetch(Wanted(group="pay-svc"))
    assert snapshot.group("pay-svc").client_ids == ("10.0.1.7@4711", "10.0.1.8@4711")
    assert len(snapshot.route("Payments").subscribe_queues()) == 8
    (tmp_path / "config.yaml").write_text(USER_EXAMPLE)
    (tmp_path / "config.yaml").chmod(0o600)
    assert list(read_user_file(str(tmp_path / "config.yaml"), check_value).contexts) == ["prod", "staging"]


@every_case(("text", "shown"), [
    ('a - b, it\'s "x" ~ ^ %', 'a - b, it\'s "x" ~ ^ %'),
    ("*not* emphasis, a_b, _c_", "\\*not\\* emphasis, a_b, \\_c\\_"),
    ("<b> & `code` \\n", "\\<b> & \\`code\\` \\\\n"),
    (".SH no heading", ".SH no heading"),
])  # fmt: skip
def test_text_comes_out_of_markdown_as_it_went_in(text: str, shown: str) -> None:
    page = Page("rmqlb-x", 1, "nothing")
    page.heading("Here")
    page.paragraph(escaped(text))
    page.verbatim([text])
    page.item(Marked(f"{bold('--x')} {italic('N')}"), escaped(text))
    made = as_markdown(page).splitlines()
    assert made[0] == "# rmqlb x"
    assert made[made.index("## Here") + 2] == shown
    assert made[made.index("```text") + 1] == text
    assert made[-1] == f"- `--x` *N*: {shown}"


def test_a_page_leads_to_those_that_it_names() -> None:
    page = Page("rmqlb-x", 1, "nothing")
    page.see_also([("rmqlb-config", 5), ("rmqlb-config", 1)])
    with_section = Page("rmqlb-config", 5, "settings")
    assert "- [rmqlb-config(1)](rmqlb-config.md)" in as_markdown(page)
    assert "- [rmqlb-config(5)](config.md)" in as_markdown(page)
    assert as_markdown(with_section).startswith("# rmqlb-config(5)\n\nSettings.")
    assert file_of("rmqlb-config", 5) != file_of("rmqlb-config", 1)
    assert row(("a|b", "c")) == "| a\\|b | c |"


@every_case(("place", "link", "shown"), [
    ("architecture.md", "[guide](../CONTRIBUTING.md)", "guide (`CONTRIBUTING.md`)"),
    ("how-to/a.md", "[policy](../../examples/policy.yaml)", "policy (`examples/policy.yaml`)"),
    ("how-to/a.md", "[output](../output.md#json)", "[output](../output.md#json)"),
    ("index.md", "[site](https://192.0.2.1/x)", "[site](https://192.0.2.1/x)"),
    ("index.md", "[manual](../man/man1/rmqlb.1)", "[manual](reference/rmqlb.md)"),
    ("how-to/a.md", "[config(5)](../../man/man5/rmqlb-config.5)", "[config(5)](../reference/config.md)"),
])  # fmt: skip
def test_a_link_off_the_site_leads_to_the_reference_or_names_its_file(place: str, link: str, shown: str) -> None:
    page = SimpleNamespace(file=SimpleNamespace(src_uri=place))
    assert on_page_markdown(link, page=page, config=None, files=None) == shown


def test_every_command_and_every_result_has_a_page_that_the_index_leads_to() -> None:
    pages = reference_pages()
    commands = {f"reference/{file_of(command.page, 1)}" for command in command_tree().all()}
    results = {f"reference/json/{result.name.removeprefix('rmqlb/')}.md" for result in RESULTS}
    assert commands | results < pages.keys()
    found: set[str] = set()
    left = ["reference/index.md"]
    while left:
        page = left.pop()
        found.add(page)
        links = re.findall(r"\]\((?!https?:)([^)#]+)[^)]*\)", pages[page])
        left += {posixpath.normpath(posixpath.join(posixpath.dirname(page), link)) for link in links} - found
    assert found == pages.keys()
    assert "| `ownersObserved` | array<string> |" in pages["reference/tables.md"]


def test_the_contents_have_the_folder_of_results_at_the_end() -> None:
    pages = ["reference/rmqlb-x.md", "reference/json/plan.md", "reference/codes.md", "reference/index.md"]
    assert contents(pages, "reference") == [
        "reference/index.md", "reference/codes.md", "reference/rmqlb-x.md", {"JSON": ["reference/json/plan.md"]},
    ]  # fmt: skip
