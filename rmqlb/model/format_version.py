"""The version of every result and every snapshot that rmqlb writes; snapshots of 1.x are read too."""

from __future__ import annotations

FORMAT_VERSION = "2.0"
