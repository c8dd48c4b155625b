"""What the real shells offer when the completion key is pressed behind a command line."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
SCRIPTS = {"bash": "rmqlb.bash", "zsh": "_rmqlb", "fish": "rmqlb.fish"}
SHELLS = tuple(SCRIPTS)

_BASH = """
source "$SCRIPT"
for line; do
    # As readline splits it, at blanks and at each equals sign.
    IFS=' ' read -ra COMP_WORDS <<<"${line//=/ = }"
    [[ $line == *[\\ =] ]] && COMP_WORDS+=('')
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    _rmqlb
    for word in "${COMPREPLY[@]}"; do printf '%s\\n' "$word"; done
    echo ---
done
"""
_FISH = """
source $SCRIPT
for line in $argv
    complete -C $line
    echo ---
end
"""
# Each line is typed in a shell on a terminal of its own, and what its widgets pass to compadd is written down.
_ZSH = r"""
zmodload zsh/zpty
rm -f "$TALK/buffer"
zpty shell zsh -f -i
zpty -w shell "PS1= PS2= RPS1=; bindkey -e; bindkey '^I' complete-word; unsetopt auto_list auto_menu list_beep"
zpty -w shell 'autoload -U compinit; compinit -u -D; autoload -U +X _rmqlb; compdef _rmqlb rmqlb'
zpty -w shell 'compadd() {
    local -a hits
    if [[ ${@[1,(i)(-|--)]} != *-(O|A|D)* ]]; then
        builtin compadd -O hits "$@"
        (( $#hits )) && print -rl -- "${hits[@]}" >>"$TALK/hits"
    fi
    builtin compadd "$@"
}'
zpty -w shell 'finish() { print -r -- "$BUFFER" >"$TALK/buffer"; BUFFER=; }; zle -N finish; bindkey "^T" finish'
zpty -w shell 'print >"$TALK/buffer"'
wait-for-it() {
    local line
    while [[ ! -s $TALK/buffer ]]; do zpty -r -t shell line; sleep 0.01; done
}
wait-for-it
for line; do
    rm -f "$TALK/hits" "$TALK/buffer"
    zpty -w -n shell "$line"$'\t'$'\x14'
    wait-for-it
    [[ -e $TALK/hits ]] && cat "$TALK/hits"
    print -- ---
done
zpty -d shell
"""
_PROGRAMS = {"bash": ("--norc", "-c", _BASH, "bash"), "zsh": ("-f", "-c", _ZSH, "zsh"), "fish": ("-N", "-c", _FISH)}


def need(tool: str) -> str:
    """The tool's path."""
    path = shutil.which(tool)
    if path is None:
        pytest.skip(f"{tool} is not installed")
    return path


def program(folder: Path) -> Path:
    """A folder with rmqlb in it, for the PATH."""
    binaries = folder / "bin"
    if not binaries.exists():
        binaries.mkdir(parents=True)
        (binaries / "rmqlb").write_text(f'#!/bin/sh\nPYTHONPATH="{ROOT}" exec "{sys.executable}" -m rmqlb "$@"\n')
        (binaries / "rmqlb").chmod(0o755)
    return binaries


def environment(folder: Path) -> dict[str, str]:
    """Of a shell at home in the folder, whose configuration is `config/` there."""
    return {
        **os.environ,
        "PATH": f"{program(folder)}:{os.environ['PATH']}",
        "HOME": str(folder),
        "XDG_CONFIG_HOME": str(folder / "config"),
        "LC_ALL": "C.UTF-8",
        "TERM": "dumb",
    }


def offered(shell: str, lines: Sequence[str], folder: Path, more: Mapping[str, str] | None = None) -> list[set[str]]:
    """What the shell offers behind each line, whose last word is the one to complete.

    Args:
        shell: bash, zsh or fish.
        lines: as typed so far.
        folder: the working directory, see `environment`.
        more: variables that are others than there.
    """
    tool = need(shell)
    env = (
        environment(folder)
        | dict(more or {})
        | {"SCRIPT": str(ROOT / "completions" / SCRIPTS[shell]), "TALK": str(folder)}
    )
    if shell == "zsh":
        told = [tool, "-fc", "print -r -- ${(j.:.)fpath}"]
        known = subprocess.run(told, env=env, capture_output=True, text=True, check=True).stdout.strip()
        env["FPATH"] = f"{ROOT / 'completions'}:{known}"
    done = subprocess.run(
        [tool, *_PROGRAMS[shell], *lines], env=env, cwd=folder, capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    *answers, rest = done.stdout.split("---\n")
    assert (rest, len(answers)) == ("", len(lines))
    # fish adds a description behind a tabulator.
    return [{word.partition("\t")[0] for word in answer.splitlines() if word} for answer in answers]


def typed_in_bash(line: str, folder: Path) -> str:
    """The command line of an interactive bash on a terminal, after the completion key."""
    import pty

    buffer = folder / "buffer"
    buffer.unlink(missing_ok=True)
    script = ROOT / "completions" / "rmqlb.bash"
    startup = folder / "bashrc"
    startup.write_text(
        f"source {script}\nPS1='ready> '\n"
        """bind -x '"\\C-t": printf "%s" "$READLINE_LINE" >buffer.aside; mv buffer.aside buffer; exit'\n"""
    )
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(folder)
        os.execve(need("bash"), ["bash", "--rcfile", str(startup), "-i"], environment(folder))
    shown = b""
    while b"ready> " not in shown:
        shown += os.read(terminal, 4096)
    os.write(terminal, line.encode() + b"\t\x14")
    try:
        while os.read(terminal, 4096):
            pass
    except OSError:  # how a terminal ends
        pass
    finally:
        os.close(terminal)
        os.waitpid(child, 0)
    return buffer.read_text()
