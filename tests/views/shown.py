import io
import re
from xml.etree import ElementTree as ET

from rich.console import Console

from rmqlb.views.formats.people import print_tables
from rmqlb.views.report import Report


def on_a_terminal(report: Report, width: int, *sections: str) -> str:
    console = Console(file=io.StringIO(), width=width, color_system=None, highlight=False, markup=False, emoji=False)
    print_tables(report.only(sections, screen=True), console)
    file = console.file
    assert isinstance(file, io.StringIO)
    return file.getvalue()


def parsed(page: str) -> ET.Element:
    """A page of HTML, whose elements must all end."""
    return ET.fromstring(re.sub(r"<!DOCTYPE[^>]*>|<(meta|br)\b[^>]*>", "", page))
