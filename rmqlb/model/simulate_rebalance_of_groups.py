"""The result of `simulate-rebalance` for several groups, with the producers of topics on failing brokers."""

from typing import Annotated

from msgspec import Struct

from rmqlb.model.result import Result
from rmqlb.model.simulate_rebalance import RebalanceResult
from rmqlb.model.simulate_send import SendResult


class SimulationsSummary(Struct, frozen=True, rename="camel"):
    """All groups together, and the producers."""

    groups: Annotated[int, "number of groups"]
    groups_affected: Annotated[int, "groups with an outage, a gap, an overlap or no convergence"]
    queues: Annotated[int, "queues of all groups; one that two groups read counts twice"]
    queues_with_gap: Annotated[int, "queues that had no owner at some time"]
    queues_with_overlap: Annotated[int, "queues that had several"]
    queues_with_outage: Annotated[int, "queues whose broker could not be read at some time"]
    queues_unread_at_end: Annotated[int, "queues that no consumer reads at the end"]
    queues_misassigned_throughout: Annotated[int, "queues that are misassigned at the beginning and at the end"]
    longest_gap_ms: Annotated[float, "the longest gap of any group"]
    longest_overlap_ms: Annotated[float, "the longest overlap of any group"]
    longest_outage_ms: Annotated[float, "the longest outage of any group"]
    unread_ms: Annotated[float, "the longest time in which no consumer read a queue: the longest wait of a message"]
    redelivered: Annotated[int | None, "bound of redelivered messages; null if a rate is unknown"]
    convergence_ms: Annotated[float | None, "from the first event until all groups have converged; null otherwise"]
    topics: Annotated[int, "topics of which producers were simulated"]
    messages: Annotated[int, "messages that these producers sent"]
    lost: Annotated[int, "of these, lost"]
    retried: Annotated[int, "of these, messages with more than one attempt"]
    longest_send_ms: Annotated[float | None, "the longest that a message took; null without producers"]


class RebalanceResults(Result, frozen=True):
    """Several consumer groups over time, and producers while brokers fail."""

    groups: Annotated[tuple[RebalanceResult, ...], "each group's simulation, as rmqlb/simulate-rebalance has it"]
    producers: Annotated[tuple[SendResult, ...], "a producer of each topic on a failing broker, as rmqlb/send has it"]
    summary: Annotated[SimulationsSummary, "all groups and producers in numbers"]
