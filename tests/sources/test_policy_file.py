from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmqlb.engine.allocate.rules import NAMES
from rmqlb.errors import UsageError
from rmqlb.model.policy import LIMITS, Limit, Policy, Rule, Waiver
from rmqlb.sources.formats.yaml_text import read_yaml
from rmqlb.sources.user_files import policy_file
from rmqlb.sources.user_files.policy_file import parse_policy, read_policy
from tests.support.mismatches import every_case

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
    Limit("strategies", ("AVG", "OurOwnStrategy")),
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


def rule(text: str) -> str:
    """A policy whose one rule has these lines besides its name, from line 3 on."""
    return "rules:\n  - name: r\n" + "".join(f"    {line}\n" for line in text.split("\n"))


def limits(text: str) -> str:
    return rule(f"groups: g\nlimits: {{{text}}}")


def waiver(text: str) -> str:
    return limits("idle: 0") + f"waivers:\n  - {{{text}}}\n"


EXAMPLE = "write rules: [{name: even, groups: ['*'], limits: {idle: 0}}]"
DATE_HINT = "write YYYY-MM-DD, the last day on which it counts"
SHARE_HINT = "write 0% to 100%, as in 50%"
GROUP_LIMITS = ", ".join(name for name, kind in LIMITS.items() if kind.about == "group")
BAD = [
    ("", ", line 1: nothing is not a mapping", EXAMPLE),
    ("{}", ", line 1: the key rules is missing", EXAMPLE),
    ("rules: []", ", line 1: rules: the list is empty", EXAMPLE),
    ("rules:\n- 7", ", line 2: rules[0]: 7 is not a mapping", None),
    ("# x\nrule: []", ", line 2: rule: there is no key 'rule' here", "did you mean rules?"),
    ("rules: []\nwaivers: 1\n5: 6", ", line 3: 5: there is no key 5 here", "there are the keys rules, waivers"),
    (rule("group: g\nlimits: {idle: 0}"), ", line 3: rules[0].group: there is no key 'group' here", "did you mean groups?"),
    (rule("limits: {idle: 0}"), ", line 2: rules[0]: a rule is about groups or about topics", "name one of them: groups: ['*']"),
    (rule("groups: []\nlimits: {idle: 0}"), ", line 3: rules[0].groups: the list is empty", None),
    (rule("groups: [a, 12]\nlimits: {idle: 0}"), ", line 3: rules[0].groups[1]: 12 is not a text", "put it in quotes"),
    (rule("groups: ['']\nlimits: {idle: 0}"), ", line 3: rules[0].groups[0]: it is empty", None),
    (rule("groups: {a: b}\nlimits: {idle: 0}"), ", line 3: rules[0].groups: a mapping is not a list", None),
    (rule(f"groups: {'x' * 1001}\nlimits: {{idle: 0}}"), ", line 3: rules[0].groups: longer than 1000 characters", None),
    (rule("groups: *\nlimits: {idle: 0}"), ", line 3, column 14: did not find expected alphabetic or numeric character", "put patterns in quotes: '*'"),
    (rule("groups: *x\nlimits: {idle: 0}"), ", line 3: YAML aliases are not read", "put patterns in quotes: '*'"),
    (rule("groups: g\nlimits: {}"), ", line 4: rules[0].limits: a rule needs a limit", f"there are {GROUP_LIMITS}"),
    (rule("groups: g\nlimits:\n  idle: 0\n  idel: 0"), ", line 6: rules[0].limits.idel: there is no key 'idel' here", "did you mean idle?"),
    (limits("minBrokers: 2"), ", line 4: rules[0].limits.minBrokers: minBrokers is no limit of groups", f"limits of groups are {GROUP_LIMITS}"),
    (limits(f"lag: {10**400}"), f", line 4: rules[0].limits.lag: {'1' + '0' * 79} is more than {2**63 - 1}", None),
    (limits("idle: -1"), ", line 4: rules[0].limits.idle: -1 is less than 0", None),
    (limits("idle: 1.5"), ", line 4: rules[0].limits.idle: 1.5 is not a whole number", None),
    (limits("idle: none"), ", line 4: rules[0].limits.idle: 'none' is not a number", None),
    (limits("imbalance: 0.9"), ", line 4: rules[0].limits.imbalance: 0.9 is less than 1", None),
    *(
        (limits(f"movedOnBrokerLoss: {value}"), f", line 4: rules[0].limits.movedOnBrokerLoss: {shown} is not a percentage", SHARE_HINT)
        for value, shown in (("50", "50"), ("101%", "'101%'"), ("-1%", "'-1%'"), ("1e1%", "'1e1%'"), ("'%'", "'%'"), ("1.2.3%", "'1.2.3%'"), ("[1]", "a list"))
    ),
    (limits("strategies: AVGE"), ", line 4: rules[0].limits.strategies: there is no strategy AVGE", "did you mean AVG?"),
    (rule("groups: g\nlimits: {idle: 0}\nseverity: fatal"), ", line 5: rules[0].severity: there is no severity fatal", "there are the severities error, info, warning"),
    (rule("groups: g\nlimits: {idle: 0}\nassume: AVRG"), ", line 5: rules[0].assume: there is no strategy AVRG", "did you mean AVG?"),
    (rule("groups: g\nlimits: {idle: 0}\nskipOffline: 1"), ", line 5: rules[0].skipOffline: 1 is neither true nor false", None),
    (rule("topics: g\nlimits: {minBrokers: 1}\nskipOffline: true"), ", line 5: rules[0].skipOffline: a topic is not offline; the key is for rules about groups", None),
    (rule("topics: g\nlimits: {minBrokers: 1}\nassume: AVG"), ", line 5: rules[0].assume: a rule about topics assumes no strategy", None),
    (limits("idle: 0") + "  - {name: r, groups: g, limits: {idle: 0}}", ", line 5: rules[1].name: two rules are called r", None),
    (waiver("reason: x, until: 2026-01-01"), ", line 6: waivers[0]: a waiver names a rule, a group or a topic", None),
    (waiver("group: g, until: 2026-01-01"), ", line 6: waivers[0]: the key reason is missing", None),
    (waiver("group: g, topic: t, reason: x, until: 2026-01-01"), ", line 6: waivers[0].topic: a waiver names a group or a topic, not both", "write two waivers"),
    (waiver("rule: rr, reason: x, until: 2026-01-01"), ", line 6: waivers[0].rule: there is no rule rr", "did you mean r?"),
    (waiver("rule: r, limit: lag, reason: x, until: 2026-01-01"), ", line 6: waivers[0].limit: there is no limit lag", "there are the limits idle"),
    *(
        (waiver(f"group: g, reason: x, until: {value}"), f", line 6: waivers[0].until: {shown} is not a date", DATE_HINT)
        for value, shown in (("2026-02-30", "'2026-02-30'"), ("2026-W01-1", "'2026-W01-1'"), ("20260101", "20260101"), ("soon", "'soon'"))
    ),
    (waiver("group: g, reason: ' ', until: 2026-01-01"), ", line 6: waivers[0].reason: it is empty", None),
    ("rules: [1\n", ", line 2, column 1: did not find expected ',' or ']'", None),
]  # fmt: skip


@every_case(("text", "problem", "hint"), BAD, ids=lambda value: repr(value)[:60])
def test_a_mistake_is_one_line_that_says_where(text: str, problem: str, hint: str | None, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        read(text, tmp_path)
    assert caught.value.message == f"{tmp_path}/p.yaml{problem}"
    assert (caught.value.hint, caught.value.code) == (hint, "policy-invalid")


def test_a_file_that_is_too_large_or_no_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="larger than 1048576 bytes") as caught:
        read(b"#" * (policy_file.MAX_BYTES + 1), tmp_path)
    assert caught.value.hint == "a policy has at most 1 MB"
    with pytest.raises(UsageError, match="line 2 is not UTF-8 text"):
        read(b"rules:\n\xff", tmp_path)
    with pytest.raises(UsageError, match=r"--policy none\.yaml: No such file"):
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
