"""The group that options of a command ask for."""

from __future__ import annotations

from rmqlb.cli.common.options import GroupOptions
from rmqlb.engine.group import Group
from rmqlb.model.snapshot import ClusterSnapshot
from rmqlb.verbs.parse import members, require_members, sdks
from rmqlb.verbs.selection import Selection, SettingsOf


def group_of(
    snapshot: ClusterSnapshot,
    which: GroupOptions,
    settings_of: SettingsOf,
    *,
    strategy: str | None = None,
    broadcasting: bool = False,
    pop: bool = False,
) -> Group:
    """The group, whose consumers have to share its queues (raises DataError, UsageError).

    Args:
        snapshot: where it was seen.
        which: what the options ask for.
        settings_of: settings of strategies, by topics and group.
        strategy: what every consumer runs; None takes what they report or show.
        broadcasting: a BROADCASTING group is allowed.
        pop: a group that consumes by POP is allowed.
    """
    chosen = selection(which)
    group = chosen.resolve(snapshot, which.group, settings_of, strategy=strategy)
    group.must_share(broadcasting=broadcasting, pop=pop)
    return group


def selection(which: GroupOptions) -> Selection:
    """The one group that options ask for."""
    return Selection(
        (),
        tuple(dict.fromkeys(which.topic or ())),
        None if which.consumers is None else members(which.consumers),
        which.include_retry,
        tuple(which.sdk or ()),
    )


def require_named(which: GroupOptions, client_ids: set[str]) -> None:
    """Refuse the client library of a consumer that is never in the group (raises UsageError)."""
    require_members(sdks(which.sdk or ())[1], client_ids, "--sdk")
