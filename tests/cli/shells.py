"""What the real shells offer when the completion key is pressed behind a command line."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
SCRIPTS = {"bash": "rmqlb.bash", "zsh": "_rmqlb", "fish": "rmqlb.fish"}

_BASH = """
source "$SCRIPT"
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_rmqlb
printf '%s\\n' "${COMPREPLY[@]}"
"""
_ZSH = r"""
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell "PS1= PROMPT2= RPROMPT=; unsetopt zle_bracketed_paste 2>/dev/null; bindkey -e; bindkey '^I' complete-word"
zpty -w shell 'autoload -U compinit; compinit -u -D; autoload -U +X _rmqlb; compdef _rmqlb rmqlb'
zpty -w shell 'zstyle ":completion:*" list-colors; LISTMAX=0'
zpty -w shell 'compadd() {
    local -a hits
    if [[ ${@[1,(i)(-|--)]} == *-(O|A|D)* ]]; then builtin compadd "$@"; return; fi
    builtin compadd -O hits "$@"
    (( $#hits )) && print -rl -- "${hits[@]}" >>"$HITS"
    builtin compadd "$@"
}'
zpty -w shell 'done-completing() { print -r -- "$BUFFER" >"$BUFFERED"; BUFFER=exit; zle accept-line }; zle -N done-completing; bindkey "^X" done-completing'
zpty -w shell "print ready >\"$READY\""
while [[ ! -s $READY ]]; do zpty -r -t shell line; sleep 0.02; done
zpty -w -n shell "$TYPED"$'\t'$'\x18'
while [[ ! -e $BUFFERED ]]; do zpty -r -t shell line; sleep 0.02; done
zpty -d shell
"""


def need(tool: str) -> str:
    """The tool's path. In CI a missing one is a failure."""
    path = shutil.which(tool)
    if path is None:
        if os.environ.get("CI"):
            pytest.fail(f"{tool} is not installed")
        pytest.skip(f"{tool} is not installed")
    return path


def program(folder: Path) -> Path:
    """A folder with rmqlb in it, for the PATH."""
    binaries = folder / "bin"
    if not binaries.exists():
        binaries.mkdir()
        (binaries / "rmqlb").write_text(f'#!/bin/sh\nPYTHONPATH="{ROOT}" exec "{sys.executable}" -m rmqlb "$@"\n')
        (binaries / "rmqlb").chmod(0o755)
    return binaries


def offered(shell: str, line: str, folder: Path) -> list[str]:
    """What the shell offers behind the line, sorted.

    Args:
        shell: bash, zsh or fish.
        line: as typed so far; its last word is the one to complete.
        folder: the working directory, with bin/rmqlb and, in cache/, what completion remembers.
    """
    tool = need(shell)
    env = {
        **os.environ,
        "PATH": f"{program(folder)}:{os.environ['PATH']}",
        "HOME": str(folder),
        "XDG_CACHE_HOME": str(folder / "cache"),
        "XDG_CONFIG_HOME": str(folder / "config"),
        "SCRIPT": str(ROOT / "completions" / SCRIPTS[shell]),
        "LC_ALL": "C.UTF-8",
        "TERM": "dumb",
    }
    if shell == "bash":
        arguments = [tool, "--norc", "-c", _BASH, "bash", *line.replace("=", " = ").split(" ")]  # as bash splits
    elif shell == "fish":
        arguments = [tool, "--no-config", "-c", 'source $SCRIPT; complete -C "$TYPED"']
        env["TYPED"] = line
    else:
        hits = folder / "hits"
        hits.unlink(missing_ok=True)
        names = {"HITS": hits, "READY": folder / "ready", "BUFFERED": folder / "buffered"}
        for path in (names["READY"], names["BUFFERED"]):
            path.unlink(missing_ok=True)
        env |= {name: str(path) for name, path in names.items()}
        env |= {"TYPED": line, "FPATH": f"{ROOT / 'completions'}:{env.get('FPATH', '')}".rstrip(":")}
        if "FPATH" not in os.environ:
            found = subprocess.run([tool, "-fc", "print -r -- ${(j.:.)fpath}"], capture_output=True, text=True, check=True)
            env["FPATH"] = f"{ROOT / 'completions'}:{found.stdout.strip()}"
        arguments = [tool, "-f", "-c", _ZSH]
    done = subprocess.run(arguments, env=env, cwd=folder, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert shell == "zsh" or done.stderr == "", done.stderr
    if shell == "zsh":
        text = (folder / "hits").read_text() if (folder / "hits").exists() else ""
    else:
        text = done.stdout
    return sorted({word.partition("\t")[0] for word in text.splitlines() if word})
