"""Texts from the data, fit for the page and its pictures."""

from __future__ import annotations

import html

from rmqlb.views.formats.text import clip, fit_for_xml

LONGEST = 48
"""Characters of a name in a table."""


def shown(text: str, longest: int = LONGEST) -> str:
    r"""A text with nothing in it that steers a reader's eye or that XML refuses, its two ends when it is long.

    >>> shown("a\x1b[31m\u202e\uffff"), shown("abcdefghij", 7)
    ('a\\x1b[31m\\u202e\\uffff', 'abcd…ij')
    """
    return clip(fit_for_xml(text), longest)


def name_html(text: str, longest: int = LONGEST) -> str:
    """A text from the data as HTML, its own direction of writing kept to itself; the whole is its tooltip when cut.

    >>> name_html("<b>")
    '<bdi>&lt;b&gt;</bdi>'
    """
    whole = fit_for_xml(text)
    cut = clip(whole, longest)
    tooltip = "" if cut == whole else f' title="{html.escape(whole)}"'
    return f"<bdi{tooltip}>{html.escape(cut)}</bdi>"
