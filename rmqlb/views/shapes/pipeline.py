"""`rmqlb/pipeline` and `rmqlb/fleet`."""

from __future__ import annotations

from typing import Literal, TypedDict

StageState = Literal["written", "unchanged"]


class TableData(TypedDict):
    """A table that a stage writes.

    Attributes:
        table: its name.
        rows: how many it has.
    """

    table: str
    rows: int


class StageData(TypedDict):
    """A stage that ran.

    Attributes:
        stage: its name.
        state: written, or unchanged when there was nothing to do.
        seconds: how long it took.
        tables: what it writes, in this order.
        counts: what else was counted, by name.
    """

    stage: str
    state: StageState
    seconds: float
    tables: list[TableData]
    counts: dict[str, int]


class PipelineData(TypedDict):
    """What the stages of a pipeline have done.

    Attributes:
        warehouse: the folder of the tables.
        stages: in the order in which they ran.
    """

    warehouse: str
    stages: list[StageData]


class DamagedData(TypedDict):
    """A damaged document among the generated ones.

    Attributes:
        file: its path in the folder.
        position: which document of the file, from 1.
        damage: what is wrong with it.
    """

    file: str
    position: int
    damage: str


class FleetData(TypedDict):
    """A generated fleet; all numbers but clusters count every night.

    Attributes:
        folder: where it is.
        clusters: clusters.
        files: files, damaged ones included.
        snapshots: good documents.
        topics: topics with a route.
        groups: groups.
        pairs: subscriptions of groups to topics with a route, %RETRY% topics left out.
        queues: queues of these pairs.
        observed: queues with offsets, %RETRY% ones included.
        bytes: of all files.
        faults: kind of fault → groups that have it, counted once.
        badFiles: the damaged documents.
    """

    folder: str
    clusters: int
    files: int
    snapshots: int
    topics: int
    groups: int
    pairs: int
    queues: int
    observed: int
    bytes: int
    faults: dict[str, int]
    badFiles: list[DamagedData]
