"""A topic that does not exist yet: the producer takes the queues of `TBW102`, the template of automatic creation."""

from __future__ import annotations

from msgspec.structs import replace

from rmqlb.model.route import TopicRouteData

TEMPLATE = "TBW102"
DEFAULT_QUEUES = 4


def new_topic_route(template: TopicRouteData, topic: str) -> TopicRouteData:
    """The route that a producer makes of the template's for a topic without one.

    Each broker gets as many queues as the template has read queues, at most four (`defaultTopicQueueNums`). Mirrors
    `MQClientInstance.updateTopicRouteInfoFromNameServer` with `isDefault` (4.9.8 and 5.5.0).
    """

    def queues(read_queue_nums: int) -> int:
        return min(DEFAULT_QUEUES, read_queue_nums)

    return replace(
        template,
        topic=topic,
        queue_datas=tuple(
            replace(data, read_queue_nums=queues(data.read_queue_nums), write_queue_nums=queues(data.read_queue_nums))
            for data in template.queue_datas
        ),
    )
