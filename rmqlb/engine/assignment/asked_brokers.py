"""What brokers answer consumers that let them assign their queues, beside what is predicted of each asked broker."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rmqlb.engine.assignment.by_broker import DEFAULT_SHARE, AskedBroker, query_assignment
from rmqlb.engine.assignment.consumers import reported_strategies
from rmqlb.engine.assignment.detect import DEFAULT
from rmqlb.model.finding import Finding
from rmqlb.model.group import ConsumerGroup
from rmqlb.model.message_queue import MessageQueue
from rmqlb.model.owners import AssignedQueue, AssignmentMismatch, BrokerAssignments
from rmqlb.model.route import TopicRouteData
from rmqlb.model.snapshot import AssignmentAnswer, AssignmentQuestion
from rmqlb.model.words import counted, of_all


def assignment_questions(group: ConsumerGroup, routes: Sequence[TopicRouteData]) -> Iterator[AssignmentQuestion]:
    """Every broker of each topic is asked for each consumer, if some consumer lets brokers assign its queues.

    A client asks any of them, and each answers by its own list of consumers and its own route. It names the strategy of
    its own.
    """
    if not any(report.client_rebalance is False for report in group.reports.values()):
        return
    strategies = reported_strategies(group)
    for route in routes:
        for broker in sorted(route.broker_datas, key=lambda broker: broker.broker_name):
            if broker.address is None:
                continue
            for client_id in dict.fromkeys(group.client_ids or ()):
                yield AssignmentQuestion(
                    route.topic, client_id, strategies.get(client_id, DEFAULT), broker.broker_name, broker.address
                )


def compare_assignments(
    group: ConsumerGroup,
    routes: Sequence[TopicRouteData],
    answers: Mapping[AssignmentQuestion, AssignmentAnswer],
) -> tuple[BrokerAssignments, ...]:
    """The answers of each broker for each topic, with those that are not the predicted ones."""
    queues = {route.topic: route.subscribe_queues() for route in routes}
    found: dict[tuple[str, str], list[AssignmentQuestion]] = {}
    for question in answers:
        found.setdefault((question.topic, question.broker_name), []).append(question)
    return tuple(
        BrokerAssignments(
            topic,
            broker_name,
            tuple(sorted({mode for each in asked if (mode := answers[each].mode) is not None})),
            len(asked),
            tuple(
                AssignmentMismatch(each.client_id, _listed(answers[each].queues), _listed(predicted[0]))
                for each in asked
                if answers[each].queues not in (predicted := _predicted(group, each, answers[each], queues[topic]))
            ),
        )
        for (topic, broker_name), asked in sorted(found.items())
    )


def assignment_findings(asked: Sequence[BrokerAssignments], questions: int) -> Iterator[Finding]:
    """That brokers answer otherwise than predicted, and that some were not asked or did not answer."""
    differ = [(each, mismatch) for each in asked for mismatch in each.mismatches]
    number = sum(each.consumers for each in asked)
    if differ:
        each, mismatch = differ[0]
        yield Finding(
            "assignment-mismatch",
            f"{of_all(len(differ), number, 'answer')} of brokers differ from the prediction; first {each.broker_name} "
            f"for {mismatch.client_id}, topic {each.topic}: answered {_text(mismatch.queues_answered)}, predicted "
            f"{_text(mismatch.queues_predicted)}",
            consumers=tuple(dict.fromkeys(mismatch.client_id for _, mismatch in differ)),
        )
    if number < questions:
        text = f"what brokers assign: {counted(questions - number, 'question')} of {questions} without an answer"
        yield Finding("assignments-not-asked", text)


def _predicted(
    group: ConsumerGroup, asked: AssignmentQuestion, answer: AssignmentAnswer, queues: Sequence[MessageQueue]
) -> list[frozenset[MessageQueue] | None]:
    """What the broker answers by each `popShareQueueNum` that it may have, in the mode that it says it has."""
    listed = next((view.client_ids for view in group.views or () if view.broker_addr == asked.address), None)
    shares = (group.pop_share_queue_nums or {}).get(asked.topic) or (DEFAULT_SHARE,)
    found = []
    for share in shares if answer.mode == "POP" else (DEFAULT_SHARE,):
        broker = AskedBroker(asked.broker_name, listed, "POP" if answer.mode == "POP" else "PULL", share)
        predicted = query_assignment(broker, asked.strategy, asked.topic, queues, [asked.client_id])[asked.client_id]
        found.append(None if predicted is None else frozenset(predicted))
    return found


def _listed(queues: frozenset[MessageQueue] | None) -> tuple[AssignedQueue, ...] | None:
    return None if queues is None else tuple(AssignedQueue(q.broker_name, q.queue_id) for q in sorted(queues))


def _text(queues: tuple[AssignedQueue, ...] | None) -> str:
    if queues is None:
        return "nothing"
    return ", ".join(f"{queue.broker_name}:{queue.queue_id}" for queue in queues) or "no queue"
