"""The sweep with what its worst cases cost over time, and with the command that shows each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from rmqlb.engine.sweep.commands import Commands
from rmqlb.engine.sweep.effects import Effect
from rmqlb.engine.sweep.group_cases import GroupCases
from rmqlb.engine.sweep.losses import Taken
from rmqlb.engine.sweep.simulated import GAP_TRIALS, Producers, failing_brokers, gap_events, gap_ms, has_gaps
from rmqlb.engine.sweep.subject import AnySwept, Swept
from rmqlb.engine.sweep.topic_cases import TopicCases
from rmqlb.model.policy import GROUP
from rmqlb.model.progress import Progress
from rmqlb.model.sweep import Counterexample, FailureSweep, Loss, Simulated, Worst

_Case = tuple[str, tuple[int, ...]]
"""The name of a group or topic, and the places of the losses."""
_Found = dict[_Case, float | None]


class _Send(Struct):
    """Producers of a topic while brokers fail."""

    of: TopicCases
    case: _Case
    failing: tuple[tuple[str, bool], ...]
    lost: float  # share of the producers' queues that is lost


def with_simulations(
    sweep: FailureSweep,
    groups: Sequence[Swept[GroupCases]],
    topics: Sequence[Swept[TopicCases]],
    taken: Sequence[Taken],
    commands: Commands | None,
    most: int,
    progress: Progress,
) -> FailureSweep:
    """The sweep, with so many simulations of each kind at most."""
    places = {each.loss: place for place, each in reversed([*enumerate(taken)])}
    shown = [(each.name, _places(each, places, taken)) for each in sweep.counterexamples]
    of_groups = [case for case, each in zip(shown, sweep.counterexamples, strict=True) if each.about == GROUP]
    gaps, gaps_of = _gaps(of_groups, groups, taken, most, progress)
    shares, sends = _sends(shown, topics, taken, most, progress)
    by_group, by_topic = ({each.name: each for each in groups}, {each.name: each for each in topics})
    told = (
        _of_group(each, by_group[each.name], case, taken, commands, gaps)
        if each.about == GROUP
        else _of_topic(each, by_topic[each.name], case, taken, commands, shares)
        for each, case in zip(sweep.counterexamples, shown, strict=True)
    )
    return replace(
        sweep,
        counterexamples=tuple(told),
        groups=tuple(replace(each, gap_ms=_worst(gaps, each.group, taken)) for each in sweep.groups),
        topics=tuple(replace(each, failed_share=_worst(shares, each.topic, taken)) for each in sweep.topics),
        gaps=Simulated(len(gaps), gaps_of),
        sends=sends,
    )


def _places(one: Counterexample, places: Mapping[Loss, int], taken: Sequence[Taken]) -> tuple[int, ...]:
    """The second of two processes with one client ID stands behind the first."""
    found: list[int] = []
    for loss in one.losses:
        place = places[loss]
        found.append(place + 1 if place in found and taken[place + 1].loss == loss else place)
    return tuple(found)


def _effect(subject: AnySwept, case: _Case, taken: Sequence[Taken]) -> Effect:
    mask = 0
    for place in case[1]:
        mask |= subject.of.atoms.mask(taken[place])
    return subject.effect(mask)


def _of_case(case: _Case, taken: Sequence[Taken]) -> list[Taken]:
    return [taken[place] for place in case[1]]


def _gaps(
    shown: Sequence[_Case],
    groups: Sequence[Swept[GroupCases]],
    taken: Sequence[Taken],
    most: int,
    progress: Progress,
) -> tuple[_Found, int]:
    """The longest gaps: of the counterexamples, then of the case of each group that moves most."""
    touched = {each.name: each for each in groups if each.judged.classes}
    most_moved = ((name, each.judged.classes[_most_moved(each)].last) for name, each in touched.items())
    effects = {case: _effect(touched[case[0]], case, taken) for case in (*shown, *most_moved)}
    wanted = [case for case, effect in effects.items() if has_gaps(touched[case[0]].of, effect)][:most]
    found: _Found = {}
    for done, case in enumerate(wanted):
        progress("gaps", done, len(wanted))
        found[case] = gap_ms(touched[case[0]].of, effects[case], _of_case(case, taken))
    return found, sum(len(each.judged.classes) for each in touched.values())


def _most_moved(subject: Swept[GroupCases]) -> int:
    def moved(mask: int) -> int:
        outcome = subject.of.outcome(subject.effect(mask))
        return -1 if outcome.unassigned else outcome.moved

    return max(subject.judged.classes, key=moved)


def _sends(
    shown: Sequence[_Case],
    topics: Sequence[Swept[TopicCases]],
    taken: Sequence[Taken],
    most: int,
    progress: Progress,
) -> tuple[_Found, Simulated]:
    """The shares of failed attempts: of the counterexamples, then where the most of the producers' queues are lost."""
    producers, own = Producers(), set(shown)
    wanted = [each for subject in topics for each in _candidates(subject, taken, own)]
    wanted.sort(key=lambda each: (each.case not in own, -each.lost))
    number = len({producers.key(each.of, each.failing) for each in wanted})
    shares: _Found = {}
    ran = 0
    for each in wanted:
        if not producers.known(producers.key(each.of, each.failing)):
            if ran == most:
                continue
            progress("sends", ran, min(number, most))
            ran += 1
        shares[each.case] = producers.failed_share(each.of, each.failing)
    return shares, Simulated(ran, number)


def _candidates(subject: Swept[TopicCases], taken: Sequence[Taken], own: set[_Case]) -> Iterator[_Send]:
    """What takes brokers of the producers' list: by processes that end, and by machines that fall silent."""
    queues = subject.of.queues
    cases = [(subject.name, case) for each in subject.judged.classes.values() for case in (each.first, each.last)]
    for case in dict.fromkeys((*cases, *(each for each in own if each[0] == subject.name))):
        failing = failing_brokers(subject.of, _effect(subject, case, taken), _of_case(case, taken))
        if failing:
            lost = sum(queues[name] for name, _ in failing) / sum(queues.values())
            yield _Send(subject.of, case, failing, lost)


def _of_group(
    one: Counterexample,
    subject: Swept[GroupCases],
    case: _Case,
    taken: Sequence[Taken],
    commands: Commands | None,
    gaps: _Found,
) -> Counterexample:
    gap = gaps.get(case)
    if commands is None:
        return replace(one, gap_ms=gap)
    cases = subject.of
    assume = cases.members.group_strategy if cases.basis == "assumed" else None
    topics, effect = [route.topic for route in cases.routes], _effect(subject, case, taken)
    command = commands.plan(one.name, topics, cases.atoms.client_ids, effect, assume)
    if gap is None:
        return replace(one, command=command)
    events = gap_events(cases, effect, _of_case(case, taken))
    simulated = commands.simulate(one.name, topics, events, GAP_TRIALS, assume, orderly=bool(cases.orderly))
    return replace(one, gap_ms=gap, command=command, gap_command=simulated)


def _of_topic(
    one: Counterexample,
    subject: Swept[TopicCases],
    case: _Case,
    taken: Sequence[Taken],
    commands: Commands | None,
    shares: _Found,
) -> Counterexample:
    failing = failing_brokers(subject.of, _effect(subject, case, taken), _of_case(case, taken))
    topic = None if one.topic is None else replace(one.topic, failed_share=shares.get(case))
    command = commands.send(one.name, failing) if commands is not None and failing else None
    return replace(one, topic=topic, command=command)


def _worst(found: _Found, name: str, taken: Sequence[Taken]) -> Worst | None:
    known = [(value, case) for (of, case), value in found.items() if of == name and value is not None]
    if not known:
        return None
    value, case = max(known, key=lambda each: (each[0], -len(each[1])))
    return Worst(value, tuple(taken[place].loss for place in case))
