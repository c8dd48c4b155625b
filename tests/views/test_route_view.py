from rmqlb.model.route import BrokerData, QueueData, TopicRouteData
from rmqlb.model.snapshot import RouteSighting
from rmqlb.views.report import Report
from rmqlb.views.route_view import route_report
from tests.support.builders import HERE, route
from tests.support.mismatches import every_case

PARTLY = TopicRouteData("T", (QueueData("a", 4, 2, 6), QueueData("b", 2, 2, 4)), route(a=1, b=1).broker_datas)


def report(*routes: TopicRouteData) -> Report:
    return route_report([RouteSighting(each, HERE) for each in routes])


@every_case(("found", "verdict", "grave"), [
    (route(a=4, b=2), "topic T: 6 readable and 6 writable queues on 2 brokers, each with a master", "inOrder"),
    (PARTLY, "topic T: 6 readable and 2 writable queues on 2 brokers, each with a master", "inOrder"),
    (route(masters=False, b=1, a=1), "topic T: 2 readable and 0 writable queues on 2 brokers; without a master: a, b", "error"),
    (route(perm=2, a=1), "topic T: 0 readable and 1 writable queues on 1 broker, each with a master", "error"),
    (TopicRouteData("T", (), (BrokerData("c", "a", {0: "a:1"}),)), "topic T: 0 readable and 0 writable queues on 1 broker, each with a master", "error"),
    (TopicRouteData("T", (), ()), "topic T: 0 readable and 0 writable queues on 0 brokers", "error"),
])  # fmt: skip
def test_the_first_line_counts_queues_and_brokers(found: TopicRouteData, verdict: str, grave: str) -> None:
    shown = report(found)
    assert (shown.facts, shown.grave) == ((verdict,), grave)


def test_several_topics_are_summed_and_those_without_queues_named() -> None:
    one, unread, masterless = route("A", a=4), route("B", perm=2, a=4), route("C", masters=False, b=2)
    assert report(one, unread, masterless).facts == (
        "3 topics: 6 readable and 8 writable queues on 2 brokers; without a master: b",
        "  no readable queue: B",
        "  no writable queue: C",
    )
    assert report(one, route("B", a=1)).grave == "inOrder"


def test_slaves_are_shown_where_there_are_any() -> None:
    with_slave = TopicRouteData("T", (QueueData("a", 1, 1, 6),), (BrokerData("c", "a", {0: "a:1", 1: "a:2"}),))
    for found, is_shown in ((route(a=4, b=1), False), (with_slave, True)):
        assert [column.shown for column in report(found).sections[0].columns if column.key == "slaves"] == [is_shown]
