"""The values that a shell offers for options and arguments."""

import re

from rmqlb.cli import click


def values(context: click.Context, parameter: click.Parameter, begun: str) -> list[click.CompletionItem]:
    found = known_values(
        context.command_path.partition(" ")[2],
        max(parameter.opts, key=len),
        parameter.metavar or "",
        getattr(parameter, "help", None) or "",
    )
    return [click.CompletionItem(each) for each in found if each.startswith(begun)]


def known_values(command: str, option: str, metavar: str, text: str) -> tuple[str, ...]:
    """The values of an option or argument that are known: words, and names of figures, tables and contexts.

    Args:
        command: its path as typed, without the program.
        option: its long name.
        metavar: what stands for its value.
        text: its help, which lists formats.
    """
    from rmqlb.cli.help_text import known_names

    if option == "--output":
        from rmqlb.views.report import FORMATS

        known = (*FORMATS, "jsonl", "prometheus", "junit", "sarif")
        return tuple(word for word in re.findall(r"[a-z]+", text.partition("default")[0]) if word in known)
    if names := known_names(command, option):
        return names
    if option == "--context" or (metavar == "NAME" and command in ("context use", "context show", "context remove")):
        from rmqlb.cli.settings import read_configuration

        return tuple(read_configuration().contexts)
    if metavar in ("STRATEGY", "STRATEGY|all"):
        from rmqlb.engine.allocate.rules import NAMES

        return (*NAMES, *(("all",) if metavar.endswith("all") else ()))
    if metavar == "SEVERITY":
        from rmqlb.model.finding import SEVERITIES

        return SEVERITIES
    if metavar.strip("[]") == "CODE":
        from rmqlb.views.explanations import explanations

        return tuple(explanations())
    if metavar.strip("[]") == "COMMAND":
        from rmqlb.cli.results import known_names as results

        return tuple(name for name in results() if " " not in name)
    # Small letters stand for themselves.
    return tuple(word for word in metavar.split("|") if re.fullmatch(r"[a-z][a-z0-9.-]*", word))
