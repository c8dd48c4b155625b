"""The page of a command: rmqlb(1), and one for each command below it."""

from __future__ import annotations

from collections.abc import Sequence

from rmqlb.cli.exit_codes import ExitCode
from rmqlb.cli.help_text import known_names
from rmqlb.views.explanations import explanations
from tools.manual.roff import Marked, Page, bold, coded, escaped, italic
from tools.manual.tree import OPTIONS, PROGRAM, CommandPage, Listing, OptionPage

OTHER_PAGES = (("rmqlb-config", 5), ("rmqlb-snapshot", 5), ("rmqlb-strategies", 7))
_MORE_VARIABLES = (
    ("RMQLB_PASSWORD", "The password of the user, used without --password-file. It overrides the secret of a context."),
    (
        "RMQLB_SECRET_KEY",
        "The secret key of the account, used without --secret-key-file. It overrides the secret of a context.",
    ),
    ("RMQLB_SECURITY_TOKEN", "The security token of temporary credentials."),
    ("NO_COLOR", "If not empty, turns colour off. --color always and --color never override it."),
    ("FORCE_COLOR", "If not empty, turns colour on, in pipes too; 0 turns it off. NO_COLOR and --color override it."),
    (
        "RMQLB_PAGER",
        "Pager for tables that are longer than the terminal; cat turns it off. Default: PAGER, then less -FRX.",
    ),
    ("XDG_CONFIG_HOME", "Directory of rmqlb/config.yaml. Default: ~/.config."),
)

_COMPLETIONS = (
    (
        "share/bash-completion/completions/rmqlb",
        "Completion for bash, below the environment that rmqlb is installed in: `source` it in ~/.bashrc.",
    ),
    (
        "share/zsh/site-functions/_rmqlb",
        "Completion for zsh: put its folder into `fpath` in ~/.zshrc, before `compinit`.",
    ),
    ("share/fish/vendor_completions.d/rmqlb.fish", "Completion for fish: `source` it in ~/.config/fish/config.fish."),
)


def command_page(command: CommandPage, program: CommandPage) -> Page:
    """The page of a command."""
    page = Page(command.page, 1, _lower(command.help.summary.rstrip(".")))
    page.heading("Synopsis")
    page.paragraph(_synopsis(command))
    page.heading("Description")
    page.paragraph(command.help.summary)
    _details(page, command)
    _examples(page, command)
    _commands(page, command)
    _options(page, command)
    _exit_status(page, command)
    _environment(page, command, program)
    _files(page, command)
    page.see_also(_related(command, program))
    return page


def _synopsis(command: CommandPage) -> Marked:
    parts = [bold(command.typed)]
    if command.options:
        parts.append(Marked(f"[{italic('OPTION')}]..."))
    if command.commands:
        parts.append(Marked(f"{italic('COMMAND')} [{italic('ARGUMENT')}]..."))
    for argument in command.arguments:
        name = italic((argument.metavar or "").removesuffix("…"))
        shown = f"{name}..." if argument.repeatable else name
        parts.append(Marked(shown if argument.required else f"[{shown}]"))
    return Marked(" ".join(parts))


def _details(page: Page, command: CommandPage) -> None:
    for block in command.help.details:
        if isinstance(block, Listing):
            page.paragraph(block.heading)
            page.verbatim(block.lines)
        else:
            page.paragraph(block)


def _examples(page: Page, command: CommandPage) -> None:
    if command.help.examples:
        page.heading("Examples")
        for example in command.help.examples:
            page.verbatim([example])


def _commands(page: Page, command: CommandPage) -> None:
    if command.commands:
        page.heading("Commands")
        for below in command.commands:
            page.item(Marked(f"{bold(below.page)}(1)"), below.help.summary)


def _options(page: Page, command: CommandPage) -> None:
    if command.arguments:
        page.heading("Arguments")
        for argument in command.arguments:
            page.item(italic(argument.metavar or ""), *_texts(argument))
    if not command.options:
        return
    page.heading("Options")
    for panel in dict.fromkeys((OPTIONS, *(option.panel for option in command.options))):
        options = [option for option in command.options if option.panel == panel]
        if panel != OPTIONS and options:
            page.subheading(panel)
        for option in options:
            page.item(_term(option), *_texts(option), *_known(command, option))


def _known(command: CommandPage, option: OptionPage) -> list[Marked]:
    """The words that the option knows, where its help does not name them."""
    words = known_names(" ".join(command.path), option.names[-1])
    return [Marked(f"The names are {_listed([bold(word) for word in words], 'and')}.")] if words else []


def _term(option: OptionPage) -> Marked:
    names = ", ".join(bold(name) for name in (*option.names, *option.negations))
    return Marked(names if option.metavar is None else f"{names} {italic(option.metavar)}")


def _texts(option: OptionPage) -> list[Marked]:
    text = escaped(option.help)
    if option.default is not None:
        text = Marked(f"{text} Default: {bold(option.default)}.")
    if option.variable is not None:
        text = Marked(f"{text} Also {bold(option.variable)} in the environment.")
    return [text] if text else [Marked("\\&")]


def _exit_status(page: Page, command: CommandPage) -> None:
    page.heading("Exit status")
    if command.help.exit_codes:
        for code, meaning in command.help.exit_codes:
            page.item(bold(str(code)), _sentence(meaning))
        if not any(code == ExitCode.UNEXPECTED for code, _ in command.help.exit_codes):
            page.paragraph("Every command may also end with 1, an unexpected failure, and 130, interrupted.")
        return
    for name, explanation in explanations().items():
        if explanation.kind == "exit":
            page.item(bold(name), coded(explanation.means))


def _environment(page: Page, command: CommandPage, program: CommandPage) -> None:
    """Of a command its own; of the program those of all its commands, and what no option sets."""
    if command.commands and command.path:
        return
    page.heading("Environment")
    if command.path:
        variables = {option.variable for option in command.options if option.variable}
        if variables:
            page.paragraph(
                "Options that are not on the command line may be set by " + _listed(sorted(variables), "and") + "."
            )
        page.paragraph(Marked(f"{bold('rmqlb')}(1) lists the other environment variables."))
        return
    setting: dict[str, set[str]] = {}
    for each in program.all():
        for option in each.options:
            if option.variable:
                setting.setdefault(option.variable, set()).add(option.names[-1])
    for variable, names in sorted(setting.items()):
        page.item(bold(variable), Marked(f"Default for {_listed([bold(name) for name in sorted(names)], 'and')}."))
    for variable, meaning in _MORE_VARIABLES:
        page.item(bold(variable), meaning)


def _files(page: Page, command: CommandPage) -> None:
    if command.path:
        return
    page.heading("Files")
    for path, use in _COMPLETIONS:
        page.item(italic(path), use)
    page.item(italic("~/.config/rmqlb/config.yaml"), Marked(f"Contexts and settings; see {bold('rmqlb-config')}(5)."))


def _related(command: CommandPage, program: CommandPage) -> list[tuple[str, int]]:
    if not command.path:
        return [*((each.page, 1) for each in program.commands), *OTHER_PAGES]
    parent = command.page.removesuffix(f"-{command.name}")
    below = [(each.page, 1) for each in command.commands]
    return [(PROGRAM, 1), *([(parent, 1)] if parent != PROGRAM else []), *below, *OTHER_PAGES]


def _listed(names: Sequence[str], last: str) -> str:
    """`a, b and c`, where `last` is the word before the last one."""
    return ", ".join(names[:-1]) + (f" {last} " if len(names) > 1 else "") + names[-1]


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]


def _sentence(text: str) -> Marked:
    return coded(text[:1].upper() + text[1:] + ("" if text.endswith(".") else "."))
