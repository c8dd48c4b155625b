"""The manual, the shells' completions and the reference of the site, written from the command tree.

`python -m tools.manual` writes `man/` and `completions/`; a test compares them with the command tree.
mkdocs makes the reference with the site, through `tools/docs_site.py`. `tree.py` reads the commands, `help_text.py`
takes their help apart. Pages are made by `*_page.py` with `roff.py`, the reference by `reference.py` with
`tables_page.py` and `markdown.py`; the completions are Typer's scripts. Only `__main__.py` writes files. Pages bear the
version and no date: equal code gives equal bytes.
"""
