"""Each rule of a diagnosis in words: what is in order where it finds nothing, and what is the case where it does."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from msgspec import Struct

from rmqlb.model.diagnosis import GroupFinding
from rmqlb.model.words import at_least, counted, named, of_all


class RuleWords(Struct, frozen=True):
    """What is said of a rule.

    Attributes:
        in_order: where it finds nothing.
        found: where it finds something, with `{who}` (consumers), `{values}` (the values of its evidence), `{number}`
            (the largest number in it), `{topics}`, `{queues}` (how many) and `{brokers}` (of these); `[one|several]` by
            the number of consumers.
        of_queues: how it goes on where queues are concerned, with `{queues}` and what they do, `{wait}`; empty where
            their owners say it.
    """

    in_order: str
    found: str
    of_queues: str = ""


_WAIT = "; {queues} {wait}"
_IN = " in {queues}"
WORDS: Mapping[str, RuleWords] = {
    "broker-silent": RuleWords("all brokers answer", "{brokers} does not answer"),
    "broker-gone": RuleWords("no broker has left the routes", "{brokers} has left the routes"),
    "no-consumer-online": RuleWords("consumers are online", "no consumer is visible"),
    "behind-proxy": RuleWords("no clients of a Proxy", "its consumers are clients of a Proxy"),
    "pop-consumption": RuleWords("no consumption by POP", "its consumers take messages by POP"),
    "duplicate-client-id": RuleWords(
        "each process has its own client ID",
        "{number} processes share [the client ID|each of the client IDs] {who}",
    ),
    "broker-unreachable-from-consumer": RuleWords("consumers reach all brokers", "{who} [does|do] not reach {brokers}"),
    "stale-connections": RuleWords("no stale connections", "brokers list stale connections of {who}"),
    "split-consumer-view": RuleWords("all brokers list the same consumers", "brokers list different consumers"),
    "mixed-strategies": RuleWords("one strategy", "its consumers run different strategies: {values}"),
    "subscription-mismatch": RuleWords("subscriptions agree", "its consumers subscribe to different topics or tags"),
    "mixed-sdks": RuleWords(
        "one client language", "its consumers use client libraries of different languages: {values}"
    ),
    "no-read-queues": RuleWords("all topics have readable queues", "no queue of {topics} can be read"),
    "frozen-consumer": RuleWords("all processes answer", "{who} [stands|stand] still", _WAIT),
    "consume-failing": RuleWords(
        "listeners consume their messages", "{who} [fails|fail] to consume most of [its|their] messages"
    ),
    "blocked-consumer": RuleWords(
        "no listener is blocked", "the [listener|listeners] of {who} [is|are] blocked", _WAIT
    ),
    "flow-control": RuleWords("no consumer is at its limit of cached messages", "flow control stops {who}", _WAIT),
    "pull-stopped": RuleWords("all consumers pull", "{who} [has|have] stopped pulling", _WAIT),
    "head-blocked": RuleWords("no message holds up others", "a message that is not consumed holds up others", _WAIT),
    "lock-lost": RuleWords("orderly consumers hold their locks", "{who} [has|have] lost the lock of queues", _WAIT),
    "dropped-but-consuming": RuleWords(
        "no consumer consumes queues that it lost", "{who} [consumes|consume] queues that belong to others"
    ),
    "hot-queue": RuleWords(
        "no queue gets far more messages than others", "a queue of {topics} gets far more messages than the others"
    ),
    "slow-consumer": RuleWords("no consumer is slower than its share", "{who} [is|are] slower than [its|their] share"),
    "lag-growing": RuleWords("lag is not growing", "lag is growing", _IN),
    "lag-stalled": RuleWords("lag is not stalled", "lag is stalled", _IN),
    "offset-rewound": RuleWords("offsets move forward", "offsets went back", _IN),
    "consumer-gone": RuleWords(
        "no consumer ended without a word", "{queues} wait for the locks of a consumer that ended without a word"
    ),
    "unassigned-queues": RuleWords("each queue has an owner", "{queues} without an owner, and nothing explains it"),
    "duplicate-owners": RuleWords(
        "no queue has duplicate owners", "{queues} with duplicate owners, and nothing explains it"
    ),
    "mismatch": RuleWords(
        "owners are as predicted", "the observed owners differ from the prediction, and nothing explains it", _IN
    ),
    "more-consumers-than-queues": RuleWords(
        "enough queues for all consumers", "more consumers than queues, {who} [is|are] idle"
    ),
    "idle-by-strategy": RuleWords("the strategy gives each consumer a queue", "the strategy gives {who} no queue"),
}
"""By code."""


def words_of(code: str) -> RuleWords:
    """The words of a rule; of one that has none its code stands for them."""
    return WORDS.get(code) or RuleWords(f"no {code}", code)


def in_order(codes: Sequence[str]) -> list[str]:
    """What is in order, in words."""
    return [words_of(code).in_order for code in codes]


def what_is_found(
    findings: Sequence[GroupFinding], queues: int | None = None, owners_unknown: int | None = None
) -> str:
    """What findings of one code say, in words.

    Args:
        queues: how many the group has; None when that is not known.
        owners_unknown: queues whose owners are unknown: more of them may be unassigned or have duplicate owners.
    """
    least = at_least(owners_unknown) if findings[0].code in ("unassigned-queues", "duplicate-owners") else ""
    words = words_of(findings[0].code)
    ids = list(dict.fromkeys(client_id for each in findings for client_id in each.consumers))
    values = dict.fromkeys(str(one.value) for each in findings for one in each.evidence)
    number = max((one.value for each in findings for one in each.evidence if isinstance(one.value, int)), default=0)
    brokers = dict.fromkeys(queue.broker_name for each in findings for queue in each.queues)
    concerned = len({queue for each in findings for queue in each.queues})
    said = {
        "who": named(ids) or "consumers",
        "values": named(values),
        "number": str(number or "several"),
        "brokers": named(brokers) or "a broker",
        "topics": named(dict.fromkeys(each.topic for each in findings if each.topic is not None)) or "a topic",
        "wait": "waits" if concerned == 1 else "wait",
        "queues": least + counted(concerned, "queue") if queues is None else least + of_all(concerned, queues),
    }
    text = words.found + (words.of_queues if concerned else "")
    return re.sub(r"\{(\w+)\}", lambda match: said[match[1]], _by_number(text, len(ids)))


def _by_number(text: str, number: int) -> str:
    """`[one|several]` replaced by what fits the number.

    >>> _by_number("{who} [has|have] it", 1), _by_number("{who} [has|have] it", 2)
    ('{who} has it', '{who} have it')
    """
    parts = []
    for part in text.split("["):
        choice, bracket, rest = part.partition("]")
        one, _, several = choice.partition("|")
        parts.append(f"{one if number == 1 else several}{rest}" if bracket else part)
    return "".join(parts)
