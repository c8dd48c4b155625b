"""The catalogue of codes, `explanations.toml`: meaning, cause and remedy of findings, errors and exit codes."""

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Annotated, Literal

from msgspec import Struct

from rmqlb.decoding import convert
from rmqlb.views.columns import columns_from
from rmqlb.views.report import Report, section_of

_CATALOGUE = "explanations.toml"
_KINDS = {"finding": "a finding", "error": "an error", "exit": "an exit code"}


class Explanation(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Meaning, cause and remedy of a code."""

    code: Annotated[str, "code of a finding or an error, or an exit code as text"]
    kind: Annotated[Literal["finding", "error", "exit"], "finding, error, or exit for an exit code"]
    exit_code: Annotated[int | None, "exit code of the command; null for a finding"] = None
    means: Annotated[str, "the meaning, a sentence"]
    why: Annotated[str, "the cause"]
    todo: Annotated[str, "the remedy"]


class RuleWords(Struct, frozen=True, rename="camel"):
    """The words of a finding of a diagnosis (`findings.toml`)."""

    in_order: str
    found: str
    queues: str = ""


@cache
def rule_words() -> dict[str, RuleWords]:
    text = files("rmqlb.views").joinpath("findings.toml").read_text(encoding="utf-8")
    return convert(tomllib.loads(text), dict[str, RuleWords])


class Explanations(Struct, frozen=True):
    """Explanations of codes."""

    explanations: Annotated[tuple[Explanation, ...], "code by code"]


def explanations() -> dict[str, Explanation]:
    text = files("rmqlb.views").joinpath(_CATALOGUE).read_text(encoding="utf-8")
    written = [
        {"code": code, "exitCode": int(code) if one["kind"] == "exit" else None, **one}
        for code, one in tomllib.loads(text).items()
    ]
    return {one.code: one for one in convert(written, list[Explanation])}


def explanation_report(
    codes: Iterable[str], catalogue: Mapping[str, Explanation], *, for_people: bool = False
) -> Report:
    chosen = tuple(catalogue[code] for code in codes)
    columns = columns_from("code kind/1 exitCode:number/hidden means=it_means:prose why/hidden todo/hidden")
    named_only = for_people and len(chosen) == 1
    section = section_of("explanations", "codes", columns, chosen, heads=1, named_only=named_only)
    more = "rmqlb explain lists all codes" if named_only else ""
    return Report("rmqlb/explanations", Explanations(chosen), _facts(chosen), (section,), more=more)


def _facts(chosen: Sequence[Explanation]) -> tuple[str, ...]:
    if len(chosen) != 1:
        return (f"{len(chosen)} codes; rmqlb explain CODE gives the cause and the remedy",)
    (one,) = chosen
    ends = f", exit code {one.exit_code}" if one.kind == "error" else ""
    return (one.means, f"  {one.code}, {_KINDS[one.kind]}{ends}", f"why: {one.why}", f"what to do: {one.todo}")
