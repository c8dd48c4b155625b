import json
from pathlib import Path
from typing import Any

import pytest

from .run import run


class Desk:
    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.home = folder / "home"
        self.user_file = self.home / ".config" / "rmqlb" / "config.yaml"
        self.project = folder / "project"
        self.project.mkdir()
        self.home.mkdir()
        monkeypatch.setenv("HOME", str(self.home))
        monkeypatch.setenv("XDG_CONFIG_HOME", str(self.home / ".config"))
        monkeypatch.chdir(self.project)

    def user(self, text: str, mode: int = 0o600) -> None:
        self.user_file.parent.mkdir(parents=True, exist_ok=True)
        self.user_file.write_text(text)
        self.user_file.chmod(mode)

    def secret(self, text: str, mode: int = 0o600) -> str:
        path = self.home / "secret"
        path.write_text(text + "\n")
        path.chmod(mode)
        return str(path)


def settings(*args: str, env: dict[str, str] | None = None) -> dict[str, dict[str, Any]]:
    ran = run("config", "show", "-o", "json", *args, env=env)
    assert ran.code == 0, ran.stderr
    return {setting["key"]: setting for setting in json.loads(ran.stdout)["data"]["settings"]}
