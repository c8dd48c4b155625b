"""Which groups a verb looks at, and what the caller says of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from rmqlb.engine.allocate.strategy import Settings
from rmqlb.engine.group import Given, Group, resolve
from rmqlb.engine.plan.changes import placeholders
from rmqlb.errors import DataError, RmqlbError, UsageError
from rmqlb.model.finding import Finding
from rmqlb.model.snapshot import ClusterSnapshot, Wanted, is_pattern
from rmqlb.verbs.globs import each_matches
from rmqlb.verbs.parse import names_of, require_members, sdks, texts_of
from rmqlb.verbs.source import Reader

Found = TypeVar("Found")
SettingsOf = Callable[[Sequence[str], str | None], Settings]
"""What strategy objects of a group's consumers were constructed with, given its topics and its name."""


class Selection(Struct, frozen=True):
    """The groups that a caller names, and what it says of them."""

    names: tuple[str, ...] = ()  # of groups, or patterns of names; () is the only one there is
    topics: tuple[str, ...] = ()  # only these; () takes those that each group subscribes to
    # client IDs, or a number of invented ones; None takes those of the source
    consumers: tuple[str, ...] | int | None = None
    retry: bool = False  # each group's retry topic too
    sdk: tuple[str, ...] = ()  # client libraries, as `go` for all consumers or `ID=go` for one

    def __post_init__(self) -> None:
        """Refuse what cannot be meant, before anything is read (raises UsageError)."""
        sdks(self.sdk)
        of_one = [text for text in self.sdk if "=" in text]
        if not self.several or (self.consumers is None and not of_one):
            return
        listed = ", ".join(self.names)
        if self.consumers is not None:
            typed = self.consumers if isinstance(self.consumers, int) else ",".join(self.consumers)
            text = f"--consumers {typed}: the consumers of which of the groups {listed}?"
            raise UsageError(text, hint="give --consumers with one --group", code="which-group")
        text = f"--sdk {of_one[0]}: a consumer of which of the groups {listed}?"
        hint = "give --sdk ID=NAME with one --group, or --sdk NAME for all consumers"
        raise UsageError(text, hint=hint, code="which-group")

    @property
    def several(self) -> bool:
        """More than one group may be meant: a pattern counts as several names, however many groups it matches."""
        return len(self.names) > 1 or any(map(is_pattern, self.names))

    def wanted(self, source: Reader) -> Wanted:
        """The parts to read; a running cluster is only asked for those that are named (raises UsageError)."""
        if source.live and not self.names and not (self.consumers is not None and self.topics):
            hint = "name it with --group, or name --topic and --consumers"
            raise UsageError("which group?", hint=hint, code="which-group")
        wanted = Wanted(self.topics or None, next(iter(self.names), None), retry=self.retry)
        return replace(wanted, group=None, several=self.names) if self.several else wanted

    def given(self, *, strategy: str | None = None, by_pop: bool = False) -> Given:
        usual, by_id = sdks(self.sdk)
        number = self.consumers if isinstance(self.consumers, int) else None
        ids = self.consumers if isinstance(self.consumers, tuple) else None
        return Given(
            client_ids=ids if number is None else tuple(placeholders(number)),
            placeholders=number is not None,
            topics=self.topics,
            retry=self.retry,
            strategy=strategy,
            sdk=usual,
            sdk_of=by_id,
            by_pop=by_pop,
        )

    def resolve(
        self,
        snapshot: ClusterSnapshot,
        name: str | None,
        settings_of: SettingsOf,
        *,
        strategy: str | None = None,
        by_pop: bool = False,
    ) -> Group:
        group = resolve(snapshot, name, None, self.given(strategy=strategy, by_pop=by_pop))
        settings = settings_of([route.topic for route in group.known_routes], group.name)
        return group.with_settings(settings)

    def require_named(self, client_ids: Collection[str]) -> None:
        require_members(sdks(self.sdk)[1], client_ids, "--sdk")

    def names_in(self, snapshot: ClusterSnapshot) -> tuple[str, ...]:
        names = Wanted(several=self.names).groups_among(snapshot.groups)
        patterns = [name for name in self.names if is_pattern(name)]
        each_matches("group", patterns, snapshot.groups, names, snapshot.endpoint)
        return names

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
    """Each finding once: as it is where it holds for all groups, otherwise with the name of its group."""
    times = Counter(finding for _, own in findings for finding in set(own))
    named = (
        finding
        if times[finding] == len(findings) or name == finding.group
        else replace(finding, message=f"group {name}: {finding.message}")
        for name, own in findings
        for finding in own
    )
    yield from dict.fromkeys(named)


def select(
    group: str | Sequence[str] | None = None,
    topics: Sequence[str] = (),
    consumers: Sequence[str] | int | None = None,
    sdk: str | Sequence[str] | Mapping[str, str] | None = None,
    *,
    include_retry: bool = False,
) -> Selection:
    """The groups that plain arguments of a verb ask for (raises UsageError)."""
    if isinstance(sdk, Mapping):
        texts = tuple(f"{client_id}={name}" for client_id, name in sdk.items())
    else:
        texts = texts_of(sdk or ())
    ids = consumers if consumers is None or isinstance(consumers, int) else texts_of(consumers)
    return Selection(names_of(group or ()), names_of(topics), ids, include_retry, texts)
