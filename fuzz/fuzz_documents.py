"""Fuzz the document readers: whatever the bytes, a value or one of our own errors.

    python fuzz/fuzz_documents.py -max_total_time=600

Needs atheris (`pip install -e '.[fuzz]'`). A folder named on the command line is where new inputs are kept; without
one the captures of the tests are the seeds and nothing is kept.
"""

from __future__ import annotations

import json
import sys
import tempfile
from base64 import b64decode
from pathlib import Path
from shutil import copy

import atheris  # type: ignore[import-untyped, import-not-found, unused-ignore]

with atheris.instrument_imports(include=["rmqlb"]):
    from rmqlb.errors import DocumentError, RmqlbError
    from rmqlb.model.snapshot import Wanted
    from rmqlb.remoting.frame import FrameDecoder
    from rmqlb.sources.dump import GZIP, read_document
    from rmqlb.sources.formats import (
        loose_json,  # noqa: F401 - to be watched
        snapshot_file,  # noqa: F401 - to be watched
        yaml_text,  # noqa: F401 - to be watched
    )
    from rmqlb.sources.formats.documents import decode, parse_documents
    from rmqlb.sources.formats.limits import inflate
    from rmqlb.sources.formats.loose_json import read_loose

DATA = Path(__file__).parent.parent / "tests" / "data"
WANTED = Wanted(topics=("T",), group="g")
LIMIT = 1 << 20


def one_input(data: bytes) -> None:
    """Read the bytes every way there is; where strict JSON reads them, the dialect's reader must agree."""
    try:
        parse_documents(data, "input")
    except DocumentError:
        pass
    try:
        body = inflate(data, LIMIT, "input") if data.startswith(GZIP) else data
        read_document(body, "input", WANTED, topic="T", group="g", limit=LIMIT)
    except RmqlbError:
        pass
    try:
        strict = decode(data, object, "input")
        text = data.decode("utf-8")
    except (DocumentError, UnicodeDecodeError):
        return
    loose, _ = read_loose(text, "input")
    # As text, so that 1, 1.0 and true differ, and -0.0 and 0.0, and the order of keys.
    if [json.dumps(value) for value in loose] != [json.dumps(strict)]:
        raise AssertionError(f"{strict!r} is read as {loose!r}")


def seeds(folder: Path) -> None:
    """The captured documents, and the bodies of the captured frames."""
    for kind in ("dashboard", "mqadmin"):
        for file in (DATA / kind).iterdir():
            copy(file, folder / f"{kind}-{file.name}")
    for entry in json.loads((DATA / "remoting" / "manifest.json").read_bytes()):
        for command in FrameDecoder().feed(b64decode(entry["frame"])):
            (folder / entry["name"]).write_bytes(command.body or b"{}")


def main() -> None:
    """Fuzz until the time given is over or something is found."""
    with tempfile.TemporaryDirectory() as folder:
        seeds(Path(folder))
        atheris.Setup([*sys.argv, folder], one_input)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
