"""The completion of fish: a line for each command and each option.

Fish takes what a function prints as words, quotes them, and evaluates nothing of them.
"""

from __future__ import annotations

from tools.manual.tree import CommandPage, OptionPage
from tools.manual.values import Value, value_of

_HEAD = """\
# rmqlb(1) completion for fish. Written by python -m tools.manual from the code: change that instead.

# Whether the command that is being typed is this one.
function __rmqlb_at
    set -l path
    for word in (commandline -opc)[2..-1]
        switch "$path/$word"
"""
_REST = """\
        end
    end
    test "$path" = "$argv"
end

function __rmqlb_contexts
    set -l program (commandline -opc)[1]
    string match -q '~/*' -- $program; and set program $HOME/(string sub -s 3 -- $program)
    command -q $program; or return 0
    $program context list -q -o csv 2>/dev/null | tail -n +2 | cut -d , -f 2
end

complete -c rmqlb -f
"""


def fish_script(program: CommandPage) -> str:
    """The script."""
    commands = list(program.all())
    lines = [_HEAD.rstrip("\n")]
    for command in commands:
        if command.path:
            above, path = " ".join(command.path[:-1]), " ".join(command.path)
            lines += [
                f"            case {_quoted(f'{above}/{command.name}')}",
                f"                set path {_quoted(path)}",
            ]
    lines.append(_REST)
    for command in commands:
        head = f"complete -c rmqlb -n {_quoted(' '.join(('__rmqlb_at', *command.path)))}"
        for below in command.commands:
            lines.append(f"{head} -a {_quoted(below.name)} -d {_quoted(below.help.summary.rstrip('.'))}")
        lines += [f"{head} {_offer(value_of(command, argument))}" for argument in command.arguments]
        lines += [_option(head, command, option) for option in command.options]
    return "\n".join(lines) + "\n"


def _option(head: str, command: CommandPage, option: OptionPage) -> str:
    names = [f"-s {name[1:]}" if len(name) == 2 else f"-l {name[2:]}" for name in (*option.names, *option.negations)]
    value = "" if option.metavar is None else " -r " + _offer(value_of(command, option))
    described = _quoted(option.help.rstrip("."))
    return f"{head} {' '.join(names)}{value} -d {described}"


def _offer(value: Value) -> str:
    """What -a is given is a list that fish evaluates: each word stands in quotes of its own in it."""
    match value.kind:
        case "words" | "beginnings":
            return f"-f -a {_quoted(' '.join(map(_word, value.words)))}"
        case "files":
            return "-F"
        case "folders":
            return "-f -a '(__fish_complete_directories)'"
        case "contexts":
            return "-f -a '(__rmqlb_contexts)'"
        case _:
            return "-f"


def _word(text: str) -> str:
    return text if text.replace("-", "").replace("_", "").replace(".", "").isalnum() else _quoted(text)


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
