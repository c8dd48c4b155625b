"""Where configuration files are; finding them reads none.

Rules of this file:
- The user file is `$XDG_CONFIG_HOME/rmqlb/config.yaml`, or `~/.config/rmqlb/config.yaml`. As the XDG base directory
  specification says, a variable that is no absolute path counts as not set.
- The project file is the first `.rmqlb.yaml` from the working directory up to the root of its repository (the folder
  with `.git`) or to the home folder. Outside of both only the working directory is looked at: /tmp is everybody's.
- A project file that belongs to neither this user nor root is passed over.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping

PROJECT_FILE = ".rmqlb.yaml"


def user_file(environment: Mapping[str, str]) -> str | None:
    """The path of the user's file, there or not; None when nothing says where it would be."""
    base = _absolute(environment, "XDG_CONFIG_HOME")
    if base is None:
        home = _absolute(environment, "HOME")
        base = None if home is None else os.path.join(home, ".config")
    return None if base is None else os.path.join(base, "rmqlb", "config.yaml")


def project_file(environment: Mapping[str, str]) -> str | None:
    """The path of the project file, or None when there is none to read."""
    try:
        here = os.getcwd()
    except OSError:  # it was removed
        return None
    for folder in _folders(here, _absolute(environment, "HOME")):
        path = os.path.join(folder, PROJECT_FILE)
        try:
            status = os.stat(path)
        except OSError:
            continue
        if not stat.S_ISDIR(status.st_mode) and status.st_uid in (os.geteuid(), 0):
            return path
    return None


def _folders(here: str, home: str | None) -> Iterator[str]:
    folders: list[str] = []
    folder = here
    while True:
        folders.append(folder)
        above = os.path.dirname(folder)
        if folder == home or os.path.exists(os.path.join(folder, ".git")):
            return iter(folders)
        if above == folder:
            return iter((here,))
        folder = above


def _absolute(environment: Mapping[str, str], name: str) -> str | None:
    value = environment.get(name, "")
    return value if os.path.isabs(value) else None
