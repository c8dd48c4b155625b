"""Answers of real servers, frame by frame: `tests/data/remoting`."""

from __future__ import annotations

import json
from base64 import b64decode
from pathlib import Path
from typing import Any

_FOLDER = Path(__file__).parent.parent / "data" / "remoting"


def captured_frames(folder: str = "") -> dict[str, dict[str, Any]]:
    """Name → the manifest's entry, with the bytes of its `frame`; `folder`: binary, for binary headers."""
    entries = json.loads((_FOLDER / folder / "manifest.json").read_text(encoding="utf-8"))
    return {entry["name"]: {**entry, "frame": b64decode(entry["frame"])} for entry in entries}
