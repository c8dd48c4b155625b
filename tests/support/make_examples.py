"""Makes `examples/` from the captures of a real cluster: `python -m tests.support.make_examples`.

The captured answers are replayed on loopback and read by rmqlb's own Dashboard source. Members whose own report was
not captured are left as unreported; the time is that of the captures.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from rmqlb.model.snapshot import ClusterSnapshot, Wanted
from rmqlb.sources.dashboard import DashboardReads, HttpSettings
from rmqlb.sources.formats.snapshot_file import to_document
from rmqlb.sources.live import LiveSource
from rmqlb.views.formats.machine import as_json, envelope
from rmqlb.views.report import Report
from tests.support.replay_dashboard import Replay, dashboard

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
CAPTURED_AT = datetime(2026, 11, 21, 2, 2, 7, tzinfo=UTC)
GROUPS = ("audit-svc", "bill-svc", "order-svc")


def captured_at() -> datetime:
    """The clock of the captures."""
    return CAPTURED_AT


def cluster_json() -> str:
    """The text of `examples/cluster.json`."""
    with dashboard(Replay()) as replay:
        snapshots = [
            LiveSource(DashboardReads(replay.url, HttpSettings(), clock=captured_at), captured_at).fetch(
                Wanted(group=group)
            )
            for group in GROUPS
        ]
        whole = ClusterSnapshot(
            kind="dashboard",
            endpoint=replay.url,
            taken_at=CAPTURED_AT,
            routes={topic: route for snapshot in snapshots for topic, route in snapshot.routes.items()},
            groups={name: group for snapshot in snapshots for name, group in snapshot.groups.items()},
        )
        report = Report("rmqlb/snapshot", to_document(whole), (), (), {})
        text = as_json(envelope(report, "fetch-routes", whole, ()))
        return text.replace(replay.url, "http://127.0.0.1:8082")


if __name__ == "__main__":
    (EXAMPLES / "cluster.json").write_text(cluster_json())
