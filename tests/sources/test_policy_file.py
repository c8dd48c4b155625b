import json
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmqlb.engine.allocate.rules import NAMES
from rmqlb.errors import DataError, UsageError
from rmqlb.model.policy import LIMITS, Limit, Policy, Rule, Waiver
from rmqlb.sources.formats.yaml_text import read_yaml
from rmqlb.sources.user_files import policy_file
from rmqlb.sources.user_files.policy_file import parse_policy, read_policy

ROOT = Path(__file__).parent.parent.parent
FULL = """\
rules:
  - name: even
    groups: ["order-*", bill]
    exclude: order-test
    limits:
      minConsumers: 2
      imbalance: 1.5
      idle: 0
      movedOnConsumerLoss: 33.3%
      maxDrainTime: 1m30s
      strategies: [avg, OurOwnStrategy]
    severity: warning
    assume: avg_by_circle
    skipOffline: true
  - {name: topics, topics: "*", limits: {minBrokers: 2}}
waivers:
  - {rule: even, group: "order-*", limit: idle, reason: until it is corrected, until: 2026-12-31}
  - {topic: T, reason: a test topic, until: "2027-01-01"}
"""
OF_EVEN = (
    *(Limit("minConsumers", 2), Limit("imbalance", 1.5), Limit("idle", 0), Limit("movedOnConsumerLoss", 0.333)),
    *(Limit("maxDrainTime", 90_000), Limit("strategies", ("AVG", "OurOwnStrategy"))),
)
EVEN = Rule(
    "even", "group", ("order-*", "bill"), OF_EVEN, ("order-test",), "warning", "AVG_BY_CIRCLE", skip_offline=True
)
READ = (
    (EVEN, Rule("topics", "topic", ("*",), (Limit("minBrokers", 2),))),
    (
        Waiver("until it is corrected", date(2026, 12, 31), "even", "order-*", None, "idle"),
        Waiver("a test topic", date(2027, 1, 1), topic="T"),
    ),
)


def read(text: str | bytes, folder: Path) -> Policy:
    path = folder / "p.yaml"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return read_policy(str(path), NAMES)


def test_every_key_is_read_of_yaml_and_json_and_the_example_is_a_policy(tmp_path: Path) -> None:
    for text in (FULL, json.dumps(read_yaml(FULL, "p"), indent="\t")):
        policy = read(text, tmp_path)
        assert (policy.rules, policy.waivers, policy.where) == (*READ, str(tmp_path / "p.yaml"))
    policy = read_policy(str(ROOT / "examples" / "policy.yaml"), NAMES)
    assert ({rule.about for rule in policy.rules}, bool(policy.waivers)) == ({"group", "topic"}, True)


def test_a_file_that_is_too_large_or_no_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="larger than 1048576 bytes") as caught:
        read(b"#" * (policy_file.MAX_BYTES + 1), tmp_path)
    assert caught.value.hint == "the limit is 1 MB"
    with pytest.raises(UsageError, match="line 2 is not UTF-8 text"):
        read(b"rules:\n\xff", tmp_path)
    with pytest.raises(DataError, match=r"--policy none\.yaml: No such file"):
        read_policy("none.yaml", NAMES)


KEYS = ("rules", "name", "groups", "topics", "limits", "severity", "assume", "skipOffline", "rule", "until", *LIMITS)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    SCALARS | st.text(max_size=5) | st.sampled_from(["*", "50%", "AVG", "2026-12-31", "r"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
)


@given(VALUES, st.sampled_from([("rules", 0, "limits"), ("rules", 0, "groups"), ("waivers", 0, "until"), ("rules", 0)]))
def test_one_odd_value_in_a_good_policy_is_read_or_refused_with_its_line(
    value: object, path: tuple[str | int, ...]
) -> None:
    policy = json.loads(json.dumps(read_yaml(FULL, "p")))
    place = policy
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    try:
        assert len(parse_policy(json.dumps(policy), "p", NAMES).rules) == 2
    except UsageError as error:
        assert error.message.startswith("p, line 1")
