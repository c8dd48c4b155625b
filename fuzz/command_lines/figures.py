"""Where each figure of `--fail-on` stands in the JSON of its command: under its own name, but for those said here."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from math import inf
from typing import Any

from rmqlb.engine.conditions import Figures
from rmqlb.engine.plan.rebalance import PLAN_FIGURES
from rmqlb.engine.rebalance.figures import GROUP_FIGURES, ROLLOUT_FIGURES
from rmqlb.engine.send.findings import SEND_FIGURES
from rmqlb.engine.show_groups import GROUPS_FIGURES
from rmqlb.engine.simulate_receive.simulate_receive import RECEIVE_FIGURES
from rmqlb.engine.size_group.size_group import SIZE_FIGURES
from rmqlb.engine.sweep_failures.sweep import SWEEP_FIGURES

Json = Any

FIGURES: Mapping[str, Figures] = {
    "show-groups": GROUPS_FIGURES,
    "plan-rebalance": PLAN_FIGURES,
    "simulate-rebalance": GROUP_FIGURES,
    "plan-rollout": ROLLOUT_FIGURES,
    "simulate-send": SEND_FIGURES,
    "simulate-receive": RECEIVE_FIGURES,
    "size-group": SIZE_FIGURES,
    "sweep-failures": SWEEP_FIGURES,
}
"""Command → what its conditions may name."""


def figure_places(command: str, data: Json) -> Iterator[tuple[str, float | None]]:
    """The figures of a result, as `--fail-on` names them, with their values in the JSON.

    Unknown ones are None; a length of time that is not over at the end is without end, whatever the JSON says of it.

    Args:
        command: one of `FIGURES`.
        data: its result, without trials when it sends.

    Raises:
        KeyError: a figure is not in the JSON.
    """
    if command == "plan-rebalance":
        yield from _of_plan(data["summary"])
    elif command == "show-groups":
        yield from _of_groups(data)
    elif command == "simulate-rebalance":
        yield from _of_group(data)
    elif command == "plan-rollout":
        yield from _of_rollout(data)
    elif command == "simulate-receive":
        yield from _of_receive(data)
    elif command == "size-group":
        yield from _of_size(data)
    elif command == "sweep-failures":
        yield from _of_sweep(data)
    else:
        yield from _of_send(data)


def _of_plan(summary: Json) -> Iterator[tuple[str, float | None]]:
    """Those of the end are `after`; of moves in excess the fewest possible are taken off."""
    observed = summary["observed"]
    for name in PLAN_FIGURES.names:
        key = _camel(name.removeprefix("observed-"))
        if name == "excess-moves":
            yield name, None if summary["minimumMoves"] is None else summary["moved"] - summary["minimumMoves"]
        elif name.endswith("-queues-per-consumer"):
            each = summary["after"]["queuesPerConsumer"]
            yield name, each and each[name.partition("-")[0]]
        elif name == "mismatches" or name.startswith("observed-"):
            yield name, None if observed is None else observed[key]
        else:
            yield name, (summary["after"] if key in summary["after"] else summary)[key]


def _of_groups(data: Json) -> Iterator[tuple[str, float | None]]:
    """A group that is offline has no unassigned queues for this: nobody is there to own them."""
    for name in ("groups-with-errors", "groups-with-warnings", "groups-unknown", "groups-offline"):
        yield name, data["summary"][_camel(name.removeprefix("groups-"))]
    for line in data["groups"]:
        for name in GROUPS_FIGURES.of_subject if "]" not in line["group"] else ():
            value = 0 if name == "unassigned" and line["status"] == "offline" else line[_camel(name)]
            yield f"{name}[{line['group']}]", value


def _of_group(data: Json) -> Iterator[tuple[str, float | None]]:
    spreads = data["trials"]
    for name in GROUP_FIGURES.names:
        if spreads is None:
            value = data["figures"][_camel(name)]
            endless = value is None if name == "convergence-ms" else _goes_on(name, data["figures"])
            yield name, inf if endless else value
        else:
            yield from _of_spread(name, spreads)


def _of_rollout(data: Json) -> Iterator[tuple[str, float | None]]:
    yield "misassigned", data["misassigned"]
    for choice in data["choices"]:
        if choice["best"]:
            yield "takes-ms", inf if choice["takesMs"] is None else choice["takesMs"]
            for name in GROUP_FIGURES.names:
                yield from _of_spread(name, choice)


def _of_spread(name: str, trials: Json) -> Iterator[tuple[str, float | None]]:
    """Without end in one trial is without end."""
    figures = trials["figures"]
    spread = figures[_camel(name)]
    endless = trials["converged"] < trials["trials"] if name == "convergence-ms" else _goes_on(name, figures)
    for suffix, key in (("", "p95"), ("[max]", "max"), ("[p50]", "p50")):
        yield name + suffix, inf if endless else None if spread is None else spread[key]


def _goes_on(name: str, figures: Json) -> bool:
    """It is a length of time that is not over at the end, of some queue in some trial."""
    kinds = {"gap": "WithGap", "overlap": "WithOverlap", "outage": "WithOutage", "unread": "Unread"}
    kind = next((key for word, key in kinds.items() if word in name), None)
    if kind is None or not name.endswith("-ms"):
        return False
    left = figures[f"queues{kind}AtEnd"]
    return bool(left["max"] if isinstance(left, dict) else left)


def _of_send(data: Json) -> Iterator[tuple[str, float | None]]:
    for name in SEND_FIGURES.names:
        yield name, data["totals"][_camel(name)]
    stored = any(each["stored"] for each in data["brokers"])
    for broker in data["brokers"]:
        for name in SEND_FIGURES.of_subject if "]" not in broker["brokerName"] else ():
            value = broker[_camel(name)]
            if name == "share":
                value = 100 * value if stored else None
            yield f"{name}[{broker['brokerName']}]", value


def _of_receive(data: Json) -> Iterator[tuple[str, float | None]]:
    """What is never redelivered takes no time; a number that is not found is without end."""
    wait = data["wait"] if data["trials"] is None else data["trials"]["wait"]
    for name in RECEIVE_FIGURES.names:
        key = _camel(name.partition("-")[2])
        if name.startswith("wait-"):
            yield name, wait and wait[key]
        elif name.startswith("back-"):
            yield name, data["back"][key] if data["back"] else 0
        elif name == "unpolled-ms":
            yield name, max(broker["longestUnpolledMs"] for broker in data["brokers"])
        elif name == "receives-needed":
            # Without a target nobody can ask for it.
            if data["target"] is not None:
                yield name, inf if data["target"]["receives"] is None else data["target"]["receives"]
        else:
            yield name, data["totals"][_camel(name)]
    for broker in data["brokers"]:
        for name in RECEIVE_FIGURES.of_subject if "]" not in broker["brokerName"] else ():
            own = {"receives": broker["receives"], "unpolled-ms": broker["longestUnpolledMs"]}
            if name not in own:
                own[name] = broker["wait"] and broker["wait"][_camel(name.partition("-")[2])]
            yield f"{name}[{broker['brokerName']}]", own[name]


def _of_size(data: Json) -> Iterator[tuple[str, float | None]]:
    """Of the answer, or of what comes nearest."""
    found = data["consumers"] is not None
    yield "unsatisfied", not found
    yield "consumers", data["consumers"]
    yield "queues-per-broker", data["queuesPerBroker"] if found else None
    yield "imbalance", data["best"]["imbalance"]
    yield "idle", data["best"]["idle"]


def _of_sweep(data: Json) -> Iterator[tuple[str, float | None]]:
    """Those of groups are of the worst case of all, and of each."""
    cases = {"broken-cases": data["cases"]["broken"], "broken-singles": data["cases"]["brokenSingles"]}
    cases["unwritable-topics"] = sum(topic["unwritable"] > 0 for topic in data["topics"])
    for name in SWEEP_FIGURES.names:
        if name in cases or _camel(name) in data:
            yield name, cases[name] if name in cases else len(data[_camel(name)])
            continue
        worst = [(each["group"], (each[_camel(name)] or {}).get("value")) for each in data["groups"]]
        known = [value for _, value in worst if value is not None]
        yield name, max(known, default=0) if len(known) == len(worst) else None
        yield from ((f"{name}[{subject}]", value) for subject, value in worst if "]" not in subject)


def _camel(name: str) -> str:
    """A figure's name as a key: `longest-gap-ms` is `longestGapMs`."""
    return re.sub(r"-([a-z])", lambda match: match[1].upper(), name)
