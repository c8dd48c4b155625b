import os
from collections.abc import Sequence

from rmqlb.cli.common.declare import Options, Text, written
from rmqlb.errors import UsageError
from rmqlb.model.result import Finding
from rmqlb.model.snapshot import ClusterSnapshot
from rmqlb.sources.atomic_file import replace_file
from rmqlb.views.envelope import Envelope
from rmqlb.views.report import Report


def write_whole(path: str, text: str, option: str, *, mode: int | None = None) -> None:
    """Replace a file: an interrupt leaves the old file or the new one (raises UsageError).

    A symbolic link is replaced, not followed. A device or a pipe is written to as it is.

    Args:
        mode: who may open the file; None keeps the mode of the old file, or takes that of the umask.
    """
    try:
        if os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path):
            with open(path, "w", encoding="utf-8") as special:
                special.write(text)
        else:
            replace_file(path, text, mode=mode)
    except (OSError, ValueError) as error:
        raise cannot_write(option, path, error) from None


def cannot_write(option: str, path: str, error: Exception) -> UsageError:
    return UsageError(f"{option} {path}: {getattr(error, 'strerror', None) or error}", code="cannot-write")


def snapshot_envelope(snapshot: ClusterSnapshot, findings: Sequence[Finding] = ()) -> Envelope:
    """The content of a snapshot file, which `-s` and the pipeline read."""
    from rmqlb.sources.formats.snapshot_file import to_document
    from rmqlb.views.formats.machine import envelope

    return envelope(Report("rmqlb/snapshot", to_document(snapshot), (), ()), "fetch-routes", snapshot, findings)


class PageOptions(Options):
    html: Text = written("FILE|-", "Also write the result as one HTML page.", for_verb=False)

    @property
    def files(self) -> dict[str, str]:
        """Option → its file, of those that are given."""
        given = {f"--{name}": getattr(self, name, None) for name in ("svg", "html")}
        return {option: path for option, path in given.items() if path is not None}

    def check(self) -> None:
        """Refuse two files on stdout, and a folder that is not there, before anything is read."""
        if [*self.files.values()].count("-") > 1:
            raise UsageError(f"{' - and '.join(self.files)} - both write to stdout")
        for option, path in self.files.items():
            try:
                os.stat(os.path.join(os.path.dirname(path) or ".", "."))
            except (OSError, ValueError) as error:
                raise cannot_write(option, path, error) from None


class PictureOptions(PageOptions):
    svg: Text = written("FILE|-", "Also write the screen with the timeline as SVG.", for_verb=False)
