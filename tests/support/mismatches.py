"""One test for many cases: it runs them all and lists the ones that fail, by name. And the error that a call ends with."""

import functools
import gzip
import inspect
import json
import traceback
from base64 import b64decode
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import pytest

from rmqlb.errors import RmqlbError

SHOWN = 20
_NOT_PASSED = (Exception, pytest.fail.Exception, pytest.skip.Exception)
Ids = Sequence[object] | Callable[[Any], object] | None
Given = ParamSpec("Given")
Refused = TypeVar("Refused", bound=RmqlbError)
Kinds = type[Refused] | tuple[type[Refused], ...]


def every_case(names: str | Sequence[str], cases: Iterable[Any], ids: Ids = None) -> Callable[..., Callable[..., None]]:
    """Give a test its cases as `pytest.mark.parametrize` does, but as one item.

    Each case gets its own `tmp_path` and `monkeypatch`; it shares every other fixture with the other cases.

    Raises:
        ValueError: There is no case, or a case has a mark of its own.
    """
    columns = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    rows = [_case(columns, case, index, ids) for index, case in enumerate(cases)]
    if not rows:
        raise ValueError(f"there is no case of {columns}")

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(test)

        @functools.wraps(test)
        def run_each(**fixtures: Any) -> None:
            mismatches, first = [], None
            for index, (name, values) in enumerate(rows):
                with pytest.MonkeyPatch.context() as patch:
                    try:
                        test(**values, **_own(fixtures, index, patch))
                    except _NOT_PASSED as error:
                        first = first or error
                        line = traceback.extract_tb(error.__traceback__)[-1].lineno
                        mismatches.append(f"{name} (line {line}): {type(error).__name__}: {str(error)[:600]}")
            if mismatches:
                raise AssertionError(told(mismatches, len(rows))) from first

        left = [each for name, each in signature.parameters.items() if name not in columns]
        run_each.__signature__ = signature.replace(parameters=left)  # type: ignore[attr-defined]
        return run_each

    return decorate


def told(mismatches: Sequence[str], cases: int) -> str:
    more = [f"… and {len(mismatches) - SHOWN} more"] if len(mismatches) > SHOWN else []
    return "\n".join([f"{len(mismatches)} of {cases} cases do not match:", *mismatches[:SHOWN], *more])


def _own(fixtures: dict[str, Any], index: int, patch: pytest.MonkeyPatch) -> dict[str, Any]:
    own = {**fixtures, **({"monkeypatch": patch} if "monkeypatch" in fixtures else {})}
    if "tmp_path" in fixtures:
        own["tmp_path"] = Path(fixtures["tmp_path"]) / f"case{index}"
        own["tmp_path"].mkdir()
    return own


def _case(columns: Sequence[str], case: Any, index: int, ids: Ids) -> tuple[str, dict[str, Any]]:
    name, values = None, case if len(columns) > 1 else (case,)
    if isinstance(case, type(pytest.param())):
        if case.marks:
            raise ValueError(f"a case with a mark needs pytest.mark.parametrize: {case}")
        name, values = case.id, case.values
    if name is None and ids is not None and not callable(ids):
        name = str(ids[index])
    name = name or "-".join(str((ids(value) if callable(ids) else None) or repr(value))[:90] for value in values)
    return str(name), dict(zip(columns, values, strict=True))


def refusal(
    kinds: Kinds[Refused], call: Callable[Given, object], /, *args: Given.args, **more: Given.kwargs
) -> Refused:
    """The error that the call ends with; its message and its hint are one line each."""
    with pytest.raises(kinds) as caught:
        call(*args, **more)
    assert "\n" not in f"{caught.value.message}{caught.value.hint}"
    return caught.value


def first_by_default(cases: Iterable[Any]) -> list[Any]:
    """The cases of a family that starts processes, for `pytest.mark.parametrize`: all but the first are slow."""
    first, *others = cases
    return [first, *(pytest.param(case, marks=pytest.mark.slow) for case in others)]


def assert_recorded(file: Path, answers: Mapping[str, Iterable[str]], request: pytest.FixtureRequest) -> None:
    said = {name: "\n".join(lines) for name, lines in answers.items()}
    if request.config.getoption("--update-golden"):
        file.write_text("\n\n".join(f"# {name}\n{text}" for name, text in said.items()) + "\n", encoding="utf-8")
    recorded = dict(each.split("\n", 1) for each in file.read_text(encoding="utf-8")[2:].strip().split("\n\n# "))
    assert {name: text for name, text in said.items() if recorded.get(name) != text} == {}
    assert recorded.keys() == said.keys()


def assert_summaries_recorded(file: Path, summaries: Sequence[str], request: pytest.FixtureRequest) -> None:
    """Random cases, each by its number."""
    if request.config.getoption("--update-golden"):
        file.write_text(json.dumps(summaries, indent=0) + "\n")
    recorded = json.loads(file.read_text())
    assert len(summaries) == len(recorded)
    assert [f"{n}: {own}, not {recorded[n]}" for n, own in enumerate(summaries) if own != recorded[n]] == []


DATA = Path(__file__).parent.parent / "data"
FOLDER = DATA / "vectors"


def vectors(name: str) -> Iterator[dict[str, Any]]:
    with gzip.open(FOLDER / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def captured_frames(folder: str = "") -> dict[str, dict[str, Any]]:
    """Name → the manifest's entry, with the bytes of its `frame`; `folder`: binary, for binary headers."""
    entries = json.loads((DATA / "remoting" / folder / "manifest.json").read_text(encoding="utf-8"))
    return {entry["name"]: {**entry, "frame": b64decode(entry["frame"])} for entry in entries}


FIGURES: Counter[str] = Counter()
