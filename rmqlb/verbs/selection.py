"""The groups that a verb reads, and what the caller says of them."""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TypedDict, TypeVar, Unpack

from msgspec import Struct
from msgspec.structs import replace

from rmqlb.engine.allocate.strategy import Settings
from rmqlb.engine.group import Given, Group, resolve
from rmqlb.engine.plan.changes import placeholders
from rmqlb.errors import DataError, RmqlbError, UsageError
from rmqlb.model.result import Finding, counted
from rmqlb.model.snapshot import ClusterSnapshot, Wanted, is_pattern
from rmqlb.verbs.parse import by_consumer, each_matches, names_of, require_members, texts_of
from rmqlb.verbs.parse import sdk as parse_sdk
from rmqlb.verbs.source import Reader

Found = TypeVar("Found")
SettingsOf = Callable[[Sequence[str], str | None], Settings]
"""What strategy objects of a group's consumers were constructed with, given its topics and its name."""


class GroupOptions(TypedDict, total=False):
    """The keyword arguments of verbs that say more of the groups."""

    topics: str | Sequence[str]  # only these; () takes those that the group subscribes to
    consumers: str | Sequence[str] | int | None  # client IDs or a number of invented ones, in place of the source's
    include_retry: bool  # include the group's retry topic
    sdk: str | Sequence[str] | Mapping[str, str] | None  # the client library of all, or client ID → library
    strategy_options: str | Sequence[str]  # settings of strategies, as `virtual-nodes=20`


class Selection(Struct, frozen=True):
    names: tuple[str, ...]  # of groups, or patterns of names; () is the only one there is
    given: Given

    def __post_init__(self) -> None:
        """Refuse what cannot be meant, before anything is read (raises UsageError)."""
        given, listed = self.given, ", ".join(self.names)
        if self.several and given.client_ids is not None:
            typed = len(given.client_ids) if given.placeholders else ",".join(given.client_ids)
            text = f"--consumers {typed}: which of the groups {listed} has these consumers?"
            raise UsageError(text, hint="pass --consumers with exactly one --group", code="which-group")
        for client_id, sdk in given.sdk_of.items() if self.several else ():
            text = f"--sdk {client_id}={sdk}: which of the groups {listed} has this consumer?"
            hint = "pass --sdk ID=NAME with exactly one --group, or --sdk NAME for all consumers"
            raise UsageError(text, hint=hint, code="which-group")

    @property
    def several(self) -> bool:
        """More than one group may be meant: a pattern counts as several names, however many groups it matches."""
        return len(self.names) > 1 or any(map(is_pattern, self.names))

    def wanted(self, source: Reader, *, may_be_new: bool = False) -> Wanted:
        """The parts to read; a running cluster is only asked for those that are named (raises UsageError)."""
        topics, name = self.given.topics, next(iter(self.names), None)
        if source.live and name is None and not (topics and (may_be_new or self.given.client_ids is not None)):
            hint = "name the group with --group, or name --topic and --consumers"
            if may_be_new:
                hint = "name the group with --group; if it does not run yet, name only its topics with --topic"
            raise UsageError("which group?", hint=hint, code="which-group")
        wanted = Wanted(topics or None, name, retry=self.given.retry)
        return replace(wanted, group=None, several=self.names) if self.several else wanted

    def resolve(
        self,
        snapshot: ClusterSnapshot,
        name: str | None,
        settings_of: SettingsOf,
        *,
        strategy: str | None = None,
        by_pop: bool = False,
    ) -> Group:
        group = resolve(snapshot, name, None, replace(self.given, strategy=strategy, by_pop=by_pop))
        return replace(group, settings=settings_of([route.topic for route in group.known_routes], group.name))

    def require_named(self, client_ids: Collection[str]) -> None:
        require_members(self.given.sdk_of, client_ids, "--sdk")

    def names_in(self, snapshot: ClusterSnapshot) -> tuple[str, ...]:
        names = Wanted(several=self.names).groups_among(snapshot.groups)
        patterns = [name for name in self.names if is_pattern(name)]
        each_matches("group", patterns, snapshot.groups, names, snapshot.endpoint)
        return names

    def only(self, snapshot: ClusterSnapshot) -> str | None:
        """The one group that is meant, for verbs about a single group: by name or by a pattern (raises RmqlbError)."""
        if not self.several:
            return next(iter(self.names), None)
        found = self.names_in(snapshot)
        if len(found) > 1:
            text = f"which group? {' '.join(self.names)} matches {counted(len(found), 'group')}"
            raise UsageError(text, hint=f"name one of {', '.join(found[:8])}", code="which-group")
        return found[0]

    def ask(
        self, snapshot: ClusterSnapshot, ask: Callable[[str | None], tuple[Found, tuple[Finding, ...]]]
    ) -> tuple[list[Found], tuple[Finding, ...]]:
        """The answer for each group, and the findings.

        A group that only a pattern matches, and for which there is no answer, is left out with a finding; one that is
        named in full raises its error, which then names it.
        """
        if not self.several:
            found, findings = ask(next(iter(self.names), None))
            return [found], tuple(dict.fromkeys(findings))
        answers: list[tuple[str, Found, tuple[Finding, ...]]] = []
        left_out: list[Finding] = []
        first: RmqlbError | None = None
        for name in self.names_in(snapshot):
            try:
                answers.append((name, *ask(name)))
            except RmqlbError as error:
                why = error.message
                if name != error.group:
                    error.message = f"group {name}: {why}"
                if name in self.names or not isinstance(error, DataError | UsageError):
                    raise
                first = first or error
                left_out.append(Finding("group-left-out", f"group {name} is left out: {why}", name))
        if first is not None and not answers:
            raise first
        each = [(name, findings) for name, _, findings in answers]
        return [found for _, found, _ in answers], (*_of_several(each), *left_out)


def _of_several(findings: Sequence[tuple[str, Sequence[Finding]]]) -> Iterator[Finding]:
    times = Counter(finding for _, own in findings for finding in set(own))
    named = (
        finding
        if times[finding] == len(findings) or name == finding.group
        else replace(finding, message=f"group {name}: {finding.message}")
        for name, own in findings
        for finding in own
    )
    yield from dict.fromkeys(named)


def select(group: str | Sequence[str] | None = None, **options: Unpack[GroupOptions]) -> Selection:
    """The groups that plain arguments of a verb ask for (raises TypeError, UsageError)."""
    if unknown := options.keys() - GroupOptions.__annotations__.keys():
        raise TypeError(f"unexpected keyword argument {min(unknown)!r}")
    consumers, sdk = options.get("consumers"), options.get("sdk")
    if isinstance(sdk, Mapping):
        sdk = [f"{client_id}={name}" for client_id, name in sdk.items()]
    usual, by_id = by_consumer(texts_of(sdk), "--sdk", parse_sdk)
    ids: Sequence[str] | None = placeholders(consumers) if isinstance(consumers, int) else consumers
    ids = None if ids is None else texts_of(ids)
    topics, retry = names_of(options.get("topics")), options.get("include_retry", False)
    given = Given(ids, isinstance(consumers, int), topics, retry, sdk=usual, sdk_of=by_id)
    return Selection(names_of(group), given)
