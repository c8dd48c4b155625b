"""rmqlb-config(5): the configuration files, from the keys that are read and the options that they stand for."""

from __future__ import annotations

from rmqlb.model.configuration import ENDPOINT, SETTINGS, Key
from rmqlb.views.report import FORMATS
from tools.manual.roff import Marked, Page, bold, coded, escaped, italic
from tools.manual.tree import CommandPage

USER_EXAMPLE = """\
context: staging
output: table
source-timeout: 10s
contexts:
  prod:
    source: rocketmq://10.0.0.1:9876,10.0.0.2:9876
    access-key: viewer
    secret: keyring:rmqlb/prod
  staging:
    source: https://mq.example:8082
    user: admin
    secret: file:~/.mq-staging
"""
_KINDS = {
    "text": "text",
    "count": "whole number",
    "amount": "text or number",
    "path": "path, absolute or starting with ~/",
    "texts": "list of texts",
}
_MEANINGS = {
    "output": f"{', '.join(FORMATS)}; default: table on a terminal, plain in a pipe. A command without "
    "this format uses its default.",
    "source": "Location of the cluster: rocketmq://HOST:9876,... for NameServers, http(s)://... for a Dashboard, or a "
    "file. This key is required.",
    "secret": "Location of the password or secret key: file:PATH for the first line of a file, env:NAME for an "
    "environment variable, or keyring:SERVICE/USER for the desktop's keyring (the extra rmqlb[keyring]).",
}
_LAYERS = (
    ("flag", "the command line."),
    ("environment", "the variable RMQLB_ plus the option's name, such as RMQLB_MAX_SIZE."),
    ("context", "the active context, for the keys of a context (below)."),
    ("user file", "$XDG_CONFIG_HOME/rmqlb/config.yaml, or ~/.config/rmqlb/config.yaml."),
    ("default", "the default on the command's manual page."),
)


def config_page(program: CommandPage) -> Page:
    """The page."""
    page = Page("rmqlb-config", 5, "contexts and settings of rmqlb")
    page.heading("Description")
    page.paragraph(
        "You can keep recurring options in a file, and give names to endpoints. rmqlb takes a setting from "
        "the first of these places that has it:"
    )
    for layer, meaning in _LAYERS:
        page.item(bold(layer), meaning)
    page.paragraph(
        "`rmqlb config show` lists each setting and which layer set it, with file and line. The file is YAML. "
        "An unknown key, or a value of the wrong type, is an error; the message has its line."
    )
    page.heading("Contexts")
    page.paragraph(
        "A context is a named endpoint: the location of the cluster, the user, and the location of the secret. `rmqlb "
        "context add`, `list`, `use`, `show` and `remove` manage the contexts in the user file. `add`, `use` and "
        "`remove` delete the comments in this file. A source on the command line or in the environment replaces the "
        "whole context, so rmqlb never sends the context's user and secret to another source."
    )
    page.heading("Examples")
    page.paragraph("A user file:")
    page.verbatim(USER_EXAMPLE.splitlines())
    page.heading("Keys of the user file")
    for key in SETTINGS:
        page.item(_term(key), _meaning(key, program))
    page.item(Marked(f"{bold('contexts')} (mapping)"), "The contexts by name.")
    page.heading("Keys of a context")
    for key in ENDPOINT:
        page.item(_term(key), _meaning(key, program))
    page.heading("Files")
    page.item(
        italic("~/.config/rmqlb/config.yaml"),
        "The user file. Other users must not be able to change it, or to read it if it names the location of a "
        "secret: use mode 600.",
    )
    page.see_also(
        [("rmqlb", 1), *((each.page, 1) for each in program.all() if each.path[:1] in (("context",), ("config",)))]
    )
    return page


def _term(key: Key) -> Marked:
    return Marked(f"{bold(key.name)} ({escaped(_KINDS[key.kind])})")


def _meaning(key: Key, program: CommandPage) -> Marked:
    """The help of the option that the key stands for."""
    if key.name in _MEANINGS:
        return coded(_MEANINGS[key.name])
    option = next(
        option
        for command in program.all()
        for option in command.options
        if f"--{key.name}" in option.names and option.variable
    )
    return escaped(option.help)
