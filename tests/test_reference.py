import posixpath
import re
from types import SimpleNamespace

from rmqlb.cli.results import RESULTS
from tests.support.mismatches import every_case
from tools.docs_site import contents, on_page_markdown
from tools.manual.files import reference_pages
from tools.manual.markdown import as_markdown, file_of, row
from tools.manual.roff import Marked, Page, bold, escaped, italic
from tools.manual.tree import command_tree


@every_case(
    ("text", "shown"),
    [
        ('a - b, it\'s "x" ~ ^ %', 'a - b, it\'s "x" ~ ^ %'),
        ("*not* emphasis, a_b, _c_", "\\*not\\* emphasis, a_b, \\_c\\_"),
        ("<b> & `code` \\n", "\\<b> & \\`code\\` \\\\n"),
        (".SH no heading", ".SH no heading"),
    ],
)
def test_text_comes_out_as_it_went_in(text: str, shown: str) -> None:
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


@every_case(
    ("place", "link", "shown"),
    [
        ("architecture.md", "[guide](../CONTRIBUTING.md)", "guide (`CONTRIBUTING.md`)"),
        ("how-to/a.md", "[policy](../../examples/policy.yaml)", "policy (`examples/policy.yaml`)"),
        ("how-to/a.md", "[output](../output.md#json)", "[output](../output.md#json)"),
        ("index.md", "[site](https://192.0.2.1/x)", "[site](https://192.0.2.1/x)"),
        ("index.md", "[manual](../man/man1/rmqlb.1)", "[manual](reference/rmqlb.md)"),
        ("how-to/a.md", "[config(5)](../../man/man5/rmqlb-config.5)", "[config(5)](../reference/config.md)"),
    ],
)
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


def test_the_contents_have_the_folder_of_results_at_the_end() -> None:
    pages = ["reference/rmqlb-x.md", "reference/json/plan.md", "reference/codes.md", "reference/index.md"]
    assert contents(pages, "reference") == [
        "reference/index.md",
        "reference/codes.md",
        "reference/rmqlb-x.md",
        {"JSON": ["reference/json/plan.md"]},
    ]
