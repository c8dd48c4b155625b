"""What RocketMQ itself gave: answers of its classes, and answers of real servers frame by frame."""

import gzip
import json
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

DATA = Path(__file__).parent.parent / "data"
FOLDER = DATA / "vectors"


def vectors(name: str) -> Iterator[dict[str, Any]]:
    with gzip.open(FOLDER / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def captured_frames(folder: str = "") -> dict[str, dict[str, Any]]:
    """Name → the manifest's entry, with the bytes of its `frame`; `folder`: binary, for binary headers."""
    entries = json.loads((DATA / "remoting" / folder / "manifest.json").read_text(encoding="utf-8"))
    return {entry["name"]: {**entry, "frame": b64decode(entry["frame"])} for entry in entries}
