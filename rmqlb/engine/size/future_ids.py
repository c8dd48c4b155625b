"""Client IDs of consumers that do not run yet, for strategies that look at them: several sets, each of which may come.

A set is a list: a group of n consumers has its first n IDs, so that a larger group is a smaller one that has grown.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rmqlb.engine.allocate import names_inside
from rmqlb.engine.allocate.pin import host
from rmqlb.engine.allocate.rules import RULES
from rmqlb.engine.allocate.strategy import Settings
from rmqlb.engine.randomness import Draws, stream_key
from rmqlb.errors import DataError
from rmqlb.model.group_size import SizeQuestion
from rmqlb.model.message_queue import sort_client_ids

_THREAD = 19
"""The stream of these numbers."""


def future_ids(strategy: str, settings: Settings, question: SizeQuestion, number: int) -> list[list[str]]:
    """So many different IDs for each trial, in the order in which consumers join (raises DataError).

    They look as `ClientConfig.buildMQClientId` and `changeInstanceNameToPID` make them, `IP@PID#NANOSECONDS`. Where
    machines or zones decide they are on machines of the present consumers; where CONFIG lists name consumers they are
    these in random order, and others behind them. Where consumers subscribe to different topics the present ones come
    first, in the order in which `plan-rebalance --scale-to` keeps them.
    """
    names = names_inside(strategy, settings)
    config = settings.config if "CONFIG" in names and isinstance(settings.config, Mapping) else {}
    machines = sorted({host(client_id) for client_id in question.present})
    looks = next((name for name in names if name in RULES and RULES[name].decides in ("machine", "name")), None)
    if looks is not None and looks != "CONFIG" and not machines:
        raise DataError(
            f"{looks} looks at the machines of consumers, and those of future ones are taken from the present ones: "
            "none is known",
            hint="use a source that has the consumers of the group, or compare other strategies",
            code="consumers-unknown",
        )
    first = sort_client_ids(question.present) if question.subscribed else []
    known = [client_id for client_id in sort_client_ids(config) if client_id not in first]
    trials = (Draws(stream_key(question.seed, trial, _THREAD)) for trial in range(question.trials))
    return [
        [*first, *_shuffled(known, draws), *_drawn(draws, machines if looks else (), number)][:number]
        for draws in trials
    ]


def _drawn(draws: Draws, machines: Sequence[str], number: int) -> Iterator[str]:
    taken: set[str] = set()
    while len(taken) < number:
        parts = [draws.below(256) for _ in range(3)]
        address = machines[draws.below(len(machines))] if machines else f"10.{parts[0]}.{parts[1]}.{parts[2]}"
        client_id = f"{address}@{1 + draws.below(99_999)}#{draws.below(10**15)}"
        if client_id not in taken:
            taken.add(client_id)
            yield client_id


def _shuffled(known: Sequence[str], draws: Draws) -> list[str]:
    left = list(known)
    return [left.pop(draws.below(len(left))) for _ in known]
