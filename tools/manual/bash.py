"""The completion of bash, 4.4 or newer: one function, which starts no program but for the names of contexts.

Measured, to have the options of a command Python takes a fifth of a second and more; the script, a few milliseconds.
So it knows the tree by itself. Names of contexts are never evaluated, and what is inserted is quoted.
"""

from __future__ import annotations

from tools.manual.tree import CommandPage, OptionPage
from tools.manual.values import Value, value_of

_HEAD = r"""# rmqlb(1) completion for bash 4.4 or newer.
# Written by python -m tools.manual from the code: change that instead.

# Offer what begins as the current word does, quoted as that is: names of contexts may hold anything.
_rmqlb_words() {
    local word quoted quote= typed=$cur
    case $cur in
        [\'\"]*) quote=${cur:0:1} typed=${cur:1} ;;
    esac
    for word; do
        if [[ -z $quote && $typed == *\\* ]]; then
            printf -v quoted %q "$word"
            [[ $quoted == "$typed"* ]] && COMPREPLY+=("$quoted")
        elif [[ $word == "$typed"* ]]; then
            case $quote in
                \') [[ $word == *\'* ]] || COMPREPLY+=("$word") ;;
                \") [[ $word == *[\"\$\`\\!]* ]] || COMPREPLY+=("$word") ;;
                *) printf -v quoted %q "$word" && COMPREPLY+=("$quoted") ;;
            esac
        fi
    done
}

# The same, where more follows without a blank.
_rmqlb_beginnings() {
    compopt -o nospace 2>/dev/null
    _rmqlb_words "$@"
}

_rmqlb_contexts() {
    local line names=() program=${COMP_WORDS[0]}
    [[ $program == '~/'* ]] && program=$HOME/${program:2}
    while IFS= read -r line; do
        line=${line#*,}
        names+=("${line%%,*}")
    done < <("$program" context list -q -o csv 2>/dev/null)
    _rmqlb_words "${names[@]:1}"
}

_rmqlb_files() {
    compopt -o default 2>/dev/null
}

_rmqlb_folders() {
    compopt -o dirnames 2>/dev/null
}
"""

_MAIN = """
_rmqlb() {
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} path= word
    COMPREPLY=()
    # Words are cut at = and : too. Behind a long option's = stands its value, behind others what only the user knows.
    [[ $cur == : || $prev == : ]] && return
    if [[ $cur == = ]]; then
        [[ $prev == --* ]] || return
        cur=
    elif [[ $prev == = ]]; then
        prev=${COMP_WORDS[COMP_CWORD-2]}
        [[ $prev == --* ]] || return
    fi
    for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
        case $path/$word in
"""


def bash_script(program: CommandPage) -> str:
    """The script."""
    commands = list(program.all())
    lines = [_HEAD, *(_one(command) for command in commands), _MAIN.rstrip("\n")]
    for command in commands:
        if command.path:
            above, path = " ".join(command.path[:-1]), " ".join(command.path)
            lines.append(f"            {_quoted(f'{above}/{command.name}')}) path={_quoted(path)} ;;")
    lines += ["        esac", "    done", "    case $path in"]
    lines += [f"        {_quoted(' '.join(command.path))}) {command.function} ;;" for command in commands]
    lines += ["    esac", "}", "", "complete -F _rmqlb rmqlb"]
    return "\n".join(lines) + "\n"


def _one(command: CommandPage) -> str:
    """The function of a command: after an option its values, after a dash the options, else what may stand there."""
    lines = [f"{command.function}() {{", "    case $prev in"]
    by_call: dict[str, list[str]] = {}
    for option in command.options:
        if option.metavar is not None:
            by_call.setdefault(_call(value_of(command, option)), []).extend(option.names)
    lines += [f"        {'|'.join(names)}) {call}; return ;;" for call, names in by_call.items()]
    options = _call(Value("words", _names(command.options)))
    positional = _positional(command)
    if positional is None:
        return "\n".join([*lines, "    esac", f"    {options}", "}", ""])
    lines += [
        "    esac",
        "    case $cur in",
        f"        -*) {options} ;;",
        f"        *) {positional} ;;",
        "    esac",
        "}",
    ]
    return "\n".join([*lines, ""])


def _positional(command: CommandPage) -> str | None:
    if command.commands:
        return _call(Value("words", tuple(below.name for below in command.commands)))
    if command.arguments:
        return _call(value_of(command, command.arguments[-1]))
    return None


def _call(value: Value) -> str:
    match value.kind:
        case "words":
            return " ".join(("_rmqlb_words", *map(_quoted, value.words)))
        case "beginnings":
            return " ".join(("_rmqlb_beginnings", *map(_quoted, value.words)))
        case "nothing":
            return ":"
        case kind:
            return f"_rmqlb_{kind}"


def _names(options: tuple[OptionPage, ...]) -> tuple[str, ...]:
    return tuple(name for option in options for name in (*option.names, *option.negations) if name.startswith("--"))


def _quoted(text: str) -> str:
    """As one word of the shell, in single quotes where it needs them."""
    return text if text.replace("-", "").replace("_", "").isalnum() else "'" + text.replace("'", "'\\''") + "'"
