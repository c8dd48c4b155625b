"""A policy from a YAML or JSON file, with file, line and key in each error.

Errors are `UsageError`s: a broken policy must not look like incomplete data.
"""

import re
from collections.abc import Collection, Mapping
from datetime import date
from decimal import Decimal
from importlib.resources import files
from typing import TypeVar

from rmqlb.errors import UsageError
from rmqlb.model.diagnosis import CODES
from rmqlb.model.limits import LONGEST_US, time_us
from rmqlb.model.policy import GROUP, LIMITS, TOPIC, Bound, Limit, Policy, Rule, Waiver
from rmqlb.model.result import ERROR, SEVERITIES, milliseconds
from rmqlb.model.snapshot import suggestion
from rmqlb.sources.user_files.strict_yaml import Path, StrictReader, shown
from rmqlb.sources.user_files.text_file import read_text

MAX_BYTES = 1 << 20
_MOST = 2**63 - 1  # Java counts messages in a long
_RULE_KEYS = ("name", "groups", "topics", "exclude", "limits", "severity", "assume", "skipOffline")
_WAIVER_KEYS = ("rule", "group", "topic", "limit", "cluster", "reason", "owner", "until")
_EXAMPLE = "write rules: [{name: even, groups: ['*'], limits: {idle: 0}}]"

Name = TypeVar("Name", bound=str)


def read_policy(path: str, strategies: Collection[str]) -> Policy:
    """The policy in a file, or on stdin for `-`; `strategies` may be assumed (raises UsageError)."""
    text = read_text(path, "--policy", MAX_BYTES, "the limit is 1 MB")
    return parse_policy(text, "stdin" if path == "-" else path, strategies)


def built_in_text(name: str = "built_in_policy.yaml") -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def parse_policy(text: str, where: str, strategies: Collection[str]) -> Policy:
    reader = _PolicyReader(text, where, strategies)
    return reader.policy(reader.document())


class _PolicyReader(StrictReader):
    def __init__(self, text: str, where: str, strategies: Collection[str]) -> None:
        super().__init__(text, where, _EXAMPLE)
        self._strategies = strategies

    def fault(self, problem: str, hint: str | None) -> UsageError:
        return UsageError(problem, hint=hint, code="policy-invalid")

    def policy(self, value: object) -> Policy:
        document = self.mapping(value, (), ("rules", "waivers"), ("rules",))
        rules: dict[str, Rule] = {}
        for index, item in enumerate(self.items(document["rules"], ("rules",))):
            rule = self._rule(item, ("rules", index))
            if rule.name in rules:
                self.refuse(("rules", index, "name"), f"two rules are called {rule.name}")
            rules[rule.name] = rule
        items = enumerate(self.items(document["waivers"], ("waivers",), least=0) if "waivers" in document else ())
        waivers = tuple(self._waiver(item, ("waivers", i), rules) for i, item in items)
        return Policy(self.where, tuple(rules.values()), waivers)

    def _rule(self, value: object, path: Path) -> Rule:
        found = self.mapping(value, path, _RULE_KEYS, ("name", "limits"))
        if ("groups" in found) == ("topics" in found):
            self.refuse(path, "a rule needs either groups or topics", "name one of them, as in groups: ['*']")
        about, key = (GROUP, "groups") if "groups" in found else (TOPIC, "topics")
        if "assume" in found and about == TOPIC:
            self.refuse((*path, "assume"), "a rule about topics cannot assume a strategy")
        if "skipOffline" in found and about == TOPIC:
            self.refuse((*path, "skipOffline"), "the key is only for rules about groups")
        assume, skip = found.get("assume"), found.get("skipOffline", False)
        if not isinstance(skip, bool):
            self.refuse((*path, "skipOffline"), f"{shown(skip)} is neither true nor false")
        return Rule(
            name=self.name(found["name"], (*path, "name")),
            about=about,
            patterns=self.texts(found[key], (*path, key)),
            limits=self._limits(found["limits"], (*path, "limits"), about),
            exclude=self.texts(found["exclude"], (*path, "exclude")) if "exclude" in found else (),
            severity=self._one_of(found.get("severity", ERROR), (*path, "severity"), SEVERITIES, "severities"),
            assume=None if assume is None else self._strategy(assume, (*path, "assume")),
            skip_offline=skip,
        )

    def _limits(self, value: object, path: Path, about: str) -> tuple[Limit, ...]:
        known = [name for name, kind in LIMITS.items() if kind.about == about]
        if isinstance(value, dict):
            for name in value:
                if name in LIMITS and name not in known:
                    here = f"limits of {about}s: {', '.join(known)}"
                    self.refuse((*path, name), f"{name} is not a limit of {about}s", here)
        found = self.mapping(value, path, known, ())
        if not found:
            self.refuse(path, "a rule needs a limit", f"known limits: {', '.join(known)}")
        return tuple(Limit(name, self._bound(bound, (*path, name))) for name, bound in found.items())

    def _bound(self, value: object, path: Path) -> Bound:
        unit = LIMITS[str(path[-1])].unit
        if unit == "names":
            return tuple(self._allowed(text, path) for text in self.texts(value, path))
        if unit == "noneOf":
            return tuple(self._one_of(text, path, CODES, "findings") for text in self.texts(value, path))
        if unit == "share":
            return self._share(value, path)
        if unit == "ms":
            return self._time_ms(value, path)
        if isinstance(value, bool) or not isinstance(value, int | float):
            self.refuse(path, f"{shown(value)} is not a number")
        if unit != "ratio" and not isinstance(value, int):
            self.refuse(path, f"{shown(value)} is not a whole number")
        least = 0 if unit == "count" else 1
        if not least <= value <= _MOST:
            self.refuse(path, f"{shown(value)} is {f'less than {least}' if value < least else f'more than {_MOST}'}")
        return value

    def _share(self, value: object, path: Path) -> float:
        number = value.removesuffix("%").strip() if isinstance(value, str) and value.endswith("%") else ""
        share = Decimal(number if re.fullmatch(r"\d{1,99}(\.\d*)?|\.\d+", number) else "NaN") / 100
        if share.is_nan() or not 0 <= share <= 1:
            self.refuse(path, f"{shown(value)} is not a percentage", "write 0% to 100%, as in 50%")
        return float(share)

    def _time_ms(self, value: object, path: Path) -> float:
        us = time_us(value.strip().lower()) if isinstance(value, str) else None
        if us is None:
            self.refuse(path, f"{shown(value)} is not a time", "write a number with a unit, as in 10m or 1h30m")
        if us > LONGEST_US:
            self.refuse(path, f"{shown(value)} is longer than a year")
        return milliseconds(us)

    def _waiver(self, value: object, path: Path, rules: Mapping[str, Rule]) -> Waiver:
        found = self.mapping(value, path, _WAIVER_KEYS, ("reason", "until"))
        if not found.keys() & {"rule", "group", "topic"}:
            self.refuse(path, "a waiver names a rule, a group or a topic")
        if {"group", "topic"} <= found.keys():
            self.refuse((*path, "topic"), "a waiver names a group or a topic, not both", "write two waivers")
        texts = ("reason", "group", "topic", "cluster", "owner")
        names = {key: self.name(found[key], (*path, key)) for key in texts if key in found}
        if "rule" in found:
            names["rule"] = self._one_of(found["rule"], (*path, "rule"), rules, "rules")
        if "limit" in found:
            limits = [each.name for each in rules[names["rule"]].limits] if "rule" in names else LIMITS
            names["limit"] = self._one_of(found["limit"], (*path, "limit"), limits, "limits")
        return Waiver(until=self._date(found["until"], (*path, "until")), **names)

    def _date(self, value: object, path: Path) -> date:
        is_like_one = isinstance(value, str) and re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", value)
        try:
            return date.fromisoformat(str(value) if is_like_one else "")
        except ValueError:
            self.refuse(path, f"{shown(value)} is not a date", "write YYYY-MM-DD, the last day of the waiver")

    def _strategy(self, value: object, path: Path) -> str:
        return self._one_of(self.name(value, path).upper(), path, self._strategies, "strategies")

    def _allowed(self, text: str, path: Path) -> str:
        """A strategy's name, or the class name of a user's own one."""
        is_class = text.upper() != text and text.upper() not in self._strategies
        return text if is_class else self._strategy(text, path)

    def _one_of(self, value: object, path: Path, known: Collection[Name], kind: str) -> Name:
        name = self.name(value, path)
        found = next((each for each in known if each == name), None)
        if found is None:
            singular = kind.removesuffix("ies") + "y" if kind.endswith("ies") else kind.removesuffix("s")
            self.refuse(path, f"there is no {singular} {name}", suggestion(kind, name, known))
        return found
