from __future__ import annotations

from tests.support.builders import snapshot_text
from tests.support.mismatches import every_case

from .run import envelope_of

PLAN = ("plan-rebalance", "--add", "1")
COMMANDS = [
    (*PLAN, "--include-retry"),
    ("show-owners", "--include-retry"),
    ("simulate-rebalance", "--event", "join z@10s", "--include-retry"),
]


@every_case("command", COMMANDS, ids=" ".join)
@every_case("topics", [["T"], ["%RETRY%g", "T"], None])
@every_case("named", ["", "-t T", "-t T -t %RETRY%g", "-t T -g g"])
def test_the_retry_topic_is_taken_whatever_names_the_others(
    command: tuple[str, ...], topics: list[str] | None, named: str
) -> None:
    def shown(*routes: str) -> tuple[set[str], list[str]]:
        text = snapshot_text(*routes, clientIds=["a@1", "b@1"], topics=topics)
        document = envelope_of(*command, "-s", "-", *options, stdin=text)
        rows = document["data"]["topics" if command[0] == PLAN[0] else "queues"]
        return {row["topic"] for row in rows}, [finding["code"] for finding in document["findings"]]

    options = named.split()
    found, codes = shown("%RETRY%g", "T")
    assert (found, "not-subscribed" in codes) == ({"%RETRY%g", "T"}, False)
    if topics is not None:
        options = options[:2]
        found, codes = shown("T")
        assert (found, codes.count("no-route")) == ({"T"}, 1)
