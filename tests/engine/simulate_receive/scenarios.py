from fractions import Fraction

from rmqlb.model.route import TopicRouteData
from rmqlb.model.send_scenario import HOST_LOSS_US, REFUSED_US, Failure, Moment, Reaction
from rmqlb.model.simulate_receive import SECOND_US, QueueRate
from tests.support.builders import route

TWO = route(a=8, b=8)
MINUTE_US = 60 * SECOND_US


def rates(topic: TopicRouteData, **per_second: float) -> tuple[QueueRate, ...]:
    """So many messages per second of each broker, the same for each of its queues: `rates(TWO, a=5)`."""
    return tuple(
        QueueRate(data.broker_name, queue, Fraction(per_second[data.broker_name]) / data.read_queue_nums)
        for data in topic.queue_datas
        if data.broker_name in per_second
        for queue in range(data.read_queue_nums)
    )


def _failing(broker: str, reaction: Reaction, begin_s: int, end_s: int | None, notices_us: int) -> Failure:
    end = None if end_s is None else Moment(us=end_s * SECOND_US)
    return Failure(broker, reaction, Moment(us=begin_s * SECOND_US), end, notices_us)


def refused(broker: str, begin_s: int, end_s: int | None) -> Failure:
    return _failing(broker, Reaction("refused", "refused", 0, REFUSED_US), begin_s, end_s, 0)


def silent(broker: str, begin_s: int, end_s: int | None) -> Failure:
    return _failing(broker, Reaction("timeout", "timeout"), begin_s, end_s, HOST_LOSS_US)
