"""What a run of the pipeline is asked for, beside its tables."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from datetime import date

from rmqlb.engine.allocate.rules import WITHOUT_SETTINGS
from rmqlb.engine.allocate.strategy import Settings
from rmqlb.model.size_group import SizeLimits
from rmqlb.pipeline.producers.send_rows import SendSchedule
from rmqlb.pipeline.row_filter import RowFilter

USUAL_SIZE = SizeLimits(max_imbalance=1.1, no_idle=True)
"""What is asked of a size when nothing is said, as in `size-group`."""
USUAL_LOSS_LIMITS = (("unassigned", 0.0), ("duplicateOwners", 0.0), ("minConsumers", 1.0), ("imbalance", 2.0))
"""Limits of groups in the built-in policy of `sweep-failures`, as far as a fleet's tables decide them."""
EVERY_TOPIC = "*"
"""What stands for a topic's name in a CONFIG list whose entries are meant for each topic."""


@dataclass(frozen=True)
class PipelinePlan:
    """What to look at, and with what in mind; `only` says which clusters, dates, groups and topics.

    Attributes:
        cluster: the name under which `inputs` are ingested; None takes it from each document.
        settings: what the consumers' strategy objects are taken to be constructed with.
        settings_text, schedule_text: where these come from, for a later run to see whether they are the same.
        as_of: the last date that counts; None for all. Of each cluster the last snapshot is looked at.
        include_retry: the groups' %RETRY% topics too.
        consumers: how many consumers more or fewer a what-if goes.
        size_limits: what a group of the right size keeps to.
        id_trials: sets of client IDs that are tried where IDs decide.
        loss_limits: limits of groups, with what they allow, that are held against each loss.
        report_to: None for `rmqlb-report` in the current folder.
        top: how many rows the report's lists have.
        keep_days: how many days of snapshots a compacted warehouse keeps; None for all.
        force: write tables anew even if they were made from just this.
    """

    inputs: tuple[str, ...] = ()
    cluster: str | None = None
    strategies: tuple[str, ...] = WITHOUT_SETTINGS
    settings: Settings = Settings()
    settings_text: str = ""
    as_of: date | None = None
    only: RowFilter = field(default_factory=RowFilter)
    include_retry: bool = False
    consumers: int = 2
    size_limits: SizeLimits = USUAL_SIZE
    id_trials: int = 20
    loss_limits: tuple[tuple[str, float], ...] = USUAL_LOSS_LIMITS
    schedule: SendSchedule = SendSchedule()
    schedule_text: str = ""
    report_to: str | None = None
    top: int = 20
    keep_days: int | None = None
    force: bool = False

    def digest(self, *names: str) -> str:
        """A short text that is equal only when these attributes are."""
        said = repr([(name, getattr(self, name)) for name in names])
        return hashlib.sha256(said.encode("utf-8", "surrogatepass")).hexdigest()[:16]
