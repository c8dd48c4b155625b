"""The completion of zsh: one function a command, in the words of `_arguments`.

Names of contexts go to `compadd` as words, which quotes them; they are never evaluated.
"""

from __future__ import annotations

from tools.manual.tree import CommandPage, OptionPage
from tools.manual.values import Value, value_of

_HEAD = r"""#compdef rmqlb
# rmqlb(1) completion for zsh. Written by python -m tools.manual from the code: change that instead.

_rmqlb_contexts() {
    local line
    local -a names columns
    for line in "${(@f)$(_call_program contexts ${(q)_rmqlb_program} context list -q -o csv 2>/dev/null)}"; do
        columns=("${(@s:,:)line}")
        names+=("$columns[2]")
    done
    names[1]=()
    compadd "$@" -a names
}
"""


def zsh_script(program: CommandPage) -> str:
    """The script."""
    lines = [_HEAD, *(_one(command) for command in program.all())]
    lines += ["local _rmqlb_program=$words[1]"]
    lines += ["[[ $_rmqlb_program == '~/'* ]] && _rmqlb_program=$HOME/${_rmqlb_program[3,-1]}", '_rmqlb_at "$@"']
    return "\n".join(lines) + "\n"


def _one(command: CommandPage) -> str:
    specs = [_option(command, option) for option in command.options]
    lines = [f"{command.function}() {{"]
    if command.commands:
        lines += ['    local curcontext="$curcontext" state line', "    local -a commands"]
        specs += ["'1:command:->command'", "'*::argument:->argument'"]
    else:
        specs += [_argument(command, argument) for argument in command.arguments]
    lines.append("    _arguments -s -S" + (" -C" if command.commands else "") + " \\")
    lines += [f"        {spec} \\" for spec in specs[:-1]] + [f"        {specs[-1]}"]
    if command.commands:
        lines += ["    case $state in", "        command)", "            commands=("]
        for below in command.commands:
            lines.append(f"                {_quoted(f'{below.name}:{_described(below.help.summary)}')}")
        lines += ["            )", "            _describe -t commands command commands", "            ;;"]
        lines += ["        argument)", "            case $line[1] in"]
        lines += [f"                {below.name}) {below.function} ;;" for below in command.commands]
        lines += ["            esac", "            ;;", "    esac"]
    return "\n".join([*lines, "}", ""])


def _option(command: CommandPage, option: OptionPage) -> str:
    """A specification: names that exclude one another, help, and what the value is."""
    names = (*option.names, *option.negations)
    help_text = "[" + _described(option.help.rstrip(".")) + "]"
    value = "" if option.metavar is None else ":" + _message(option.metavar) + ":" + _action(value_of(command, option))
    forms = [name if option.metavar is None else f"{name}+" if len(name) == 2 else f"{name}=" for name in names]
    before = "*" if option.repeatable else f"({' '.join(names)})" if len(names) > 1 else ""
    if len(forms) == 1:
        return _quoted(before + forms[0] + help_text + value)
    return f"{_quoted(before)}{{{','.join(forms)}}}{_quoted(help_text + value)}"


def _argument(command: CommandPage, argument: OptionPage) -> str:
    head = "*:" if argument.repeatable else ":" if argument.required else "::"
    return _quoted(head + _message(argument.metavar or "") + ":" + _action(value_of(command, argument)))


def _action(value: Value) -> str:
    match value.kind:
        case "words":
            return f"({' '.join(map(_escaped, value.words))})"
        case "beginnings":
            return " compadd -S '' -- " + " ".join(_quoted(_message(word)) for word in value.words)
        case "files":
            return "_files"
        case "folders":
            return "_files -/"
        case "nothing":
            return " "
        case kind:
            return f"_rmqlb_{kind}"


def _described(text: str) -> str:
    return text.replace("\\", "\\\\").replace("[", "\\[").replace("]", "\\]").replace(":", "\\:")


def _message(metavar: str) -> str:
    return metavar.replace(":", "\\:")


def _escaped(word: str) -> str:
    return "".join(char if char.isalnum() or char in "-_." else f"\\{char}" for char in word)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"
