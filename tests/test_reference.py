"""The reference: text comes out as it went in, pages lead to one another, and the site leaves out what is no page."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from tools.docs_site import on_page_markdown
from tools.manual.markdown import as_markdown, file_of, row
from tools.manual.roff import Marked, Page, bold, escaped, italic


def page_of(text: str) -> Page:
    page = Page("rmqlb-x", 1, "nothing")
    page.heading("Here")
    page.paragraph(escaped(text))
    page.verbatim([text])
    page.item(Marked(f"{bold('--x')} {italic('N')}"), escaped(text))
    return page


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ('a - b, it\'s "x" ~ ^ %', 'a - b, it\'s "x" ~ ^ %'),
        ("*not* emphasis, a_b, _c_", "\\*not\\* emphasis, a_b, \\_c\\_"),
        ("<b> & `code` \\n", "\\<b> & \\`code\\` \\\\n"),
        (".SH no heading", ".SH no heading"),
    ],
)
def test_text_comes_out_as_it_went_in(text: str, shown: str) -> None:
    made = as_markdown(page_of(text)).splitlines()
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


def test_a_bar_in_a_cell_does_not_end_it() -> None:
    assert row(("a|b", "c")) == "| a\\|b | c |"


@pytest.mark.parametrize(
    ("place", "link", "shown"),
    [
        ("architecture.md", "[guide](../CONTRIBUTING.md)", "guide (`CONTRIBUTING.md`)"),
        ("how-to/a.md", "[policy](../../examples/policy.yaml)", "policy (`examples/policy.yaml`)"),
        ("how-to/a.md", "[output](../output.md#json)", "[output](../output.md#json)"),
        ("index.md", "[site](https://192.0.2.1/x)", "[site](https://192.0.2.1/x)"),
    ],
)
def test_a_link_that_leaves_the_site_names_its_file(place: str, link: str, shown: str) -> None:
    page = SimpleNamespace(file=SimpleNamespace(src_uri=place))
    assert on_page_markdown(link, page=page, config=None, files=None) == shown
