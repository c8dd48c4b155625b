"""Changes a part of the product a place at a time and counts which changes the tests notice.

    pip install cosmic-ray coverage
    python -m tools.mutants --sample 200 --seed 1 rmqlb/engine/send -- tests/engine/send

cosmic-ray makes the mutants, at most one a place; each runs in a fork of one process that has collected the tests, where the
changed function takes the place of the original, until a test fails: of the tests that run the line, the quick ones
first. Caches are emptied before, and trials are kept in the test's own process: what a cache answers and what another
process does would count as not run. What changes a module's or a class's own statements is written into a copy of the
tree for a fresh process with the tests that enter the file. A mutant counts as noticed when a test, or such a process, needs
much longer, as a test run that hangs is. Each core has a process, for the measured run and for the mutants.
"""

from __future__ import annotations

import argparse
import ast
import gc
import os
import pickle
import random
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from difflib import unified_diff
from inspect import CO_NEWLOCALS
from pathlib import Path
from shutil import copytree, ignore_patterns
from tempfile import TemporaryDirectory, TemporaryFile
from types import CodeType, FunctionType
from typing import Any, TypeVar

import pytest

SPARE_SECONDS = 30
"""How much more processor time than in the measured run a test may need with a mutant, or all in a fresh process."""
MOST_FAILED = 3
"""Tests that fail on a loaded machine without a mutant are left out, but not more than that."""
LEFT_OUT = (
    *("ReplaceBinaryOperator_BitOr_", "Eq_Is", "RemoveDecorator", "VariableReplacer", "VariableInserter"),
    "ExceptionReplacer",
)
"""`|` joins types here, equal names and small numbers are the same object, a decorator is no answer, the next two need
arguments, and the last cannot read `except (A, B)`."""


@dataclass(frozen=True)
class Mutant:
    """One change of one file: its text before and after, and the line that it is at."""

    path: Path
    before: str
    after: str
    line: int

    def diff(self) -> str:
        """The lines that differ, without those around them."""
        return "\n".join(list(unified_diff(self.before.splitlines(), self.after.splitlines(), lineterm="", n=0))[2:])


Place = tuple[Path, int, int]
"""A file, a line and a column."""


def changes_of(path: Path) -> Iterator[tuple[Place, str, int]]:
    """Each change that cosmic-ray can make in a file: where, its operator, and which of the operator's changes it is."""
    from cosmic_ray.ast import ast_nodes, get_ast
    from cosmic_ray.plugins import get_operator, operator_names

    nodes = list(ast_nodes(get_ast(path.read_text())))
    for name in operator_names():
        if any(part in name for part in LEFT_OUT):
            continue
        operator = get_operator(name)()
        starts = (start for node in nodes for start, _ in operator.mutation_positions(node))
        for occurrence, (line, column) in enumerate(starts):
            yield (path, line, column), name, occurrence


def mutated(place: Place, operator: str, occurrence: int) -> Mutant | None:
    """The mutant, or None when it is no Python or does the same."""
    from cosmic_ray.mutating import mutate_code
    from cosmic_ray.plugins import get_operator

    path, line, column = place
    before = path.read_text()
    text = before.splitlines()[line - 1]
    # No product: the arguments after it have names. And what only guards against mistakes of our own changes no answer.
    if text.startswith("*,", column) or text[:column].endswith(("strict=", "frozen=")):
        return None
    after = mutate_code(before, get_operator(operator)(), occurrence)
    try:
        if after is None or compile(after, str(path), "exec") == compile(before, str(path), "exec"):
            return None
    except SyntaxError:
        return None
    return Mutant(path, before, after, line)


def sampled(paths: Sequence[Path], size: int, seed: int) -> list[Mutant]:
    """At most one mutant a place, places and mutants drawn by the seed."""
    drawn = random.Random(seed)
    places: dict[Place, list[tuple[Place, str, int]]] = {}
    for path in paths:
        for change in changes_of(path):
            places.setdefault(change[0], []).append(change)
    order = sorted(places)
    drawn.shuffle(order)
    chosen: list[Mutant] = []
    for place in order:
        changes = places[place]
        drawn.shuffle(changes)
        mutant = next((mutant for mutant in (mutated(*change) for change in changes) if mutant is not None), None)
        if mutant is not None:
            chosen.append(mutant)
        if len(chosen) == size:
            break
    return chosen


def codes(code: CodeType) -> Iterator[CodeType]:
    """The code of each function that is defined in it, in classes and in other functions too: those may live already."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            if constant.co_flags & CO_NEWLOCALS:
                yield constant
            yield from codes(constant)


def in_place(mutant: Mutant) -> bool:
    """Let running functions have the mutant's code; False when it changes what is run at import."""
    before = compile(mutant.before, str(mutant.path), "exec")
    after = compile(mutant.after, str(mutant.path), "exec")
    changed = {
        (old.co_qualname, old.co_firstlineno): new
        for old, new in zip(codes(before), codes(after), strict=True)
        if old != new
    }
    if not changed or _statements(before) != _statements(after):
        return False
    if _called_at_import(mutant.before) & {name for name, _ in changed}:
        return False
    patched = 0
    for function in [each for each in gc.get_objects() if isinstance(each, FunctionType)]:
        code = function.__code__
        key = (code.co_qualname, code.co_firstlineno)
        if key in changed and Path(code.co_filename) == mutant.path:
            function.__code__ = changed[key].replace(co_filename=code.co_filename)
            patched += 1
    return patched > 0


def _called_at_import(text: str) -> set[str]:
    """The functions that a module's own statements call: what they gave is there already."""
    own = (node for node in ast.parse(text).body if not isinstance(node, ast.FunctionDef))
    calls = (each.func for node in own for each in ast.walk(node) if isinstance(each, ast.Call))
    return {func.id for func in calls if isinstance(func, ast.Name)}


def _statements(code: CodeType) -> list[object]:
    """What a module's and its classes' own statements do."""
    own: list[object] = [code.co_code, code.co_names]
    for constant in code.co_consts:
        if not isinstance(constant, CodeType):
            own.append((type(constant), constant))
        elif not constant.co_flags & CO_NEWLOCALS:
            own += _statements(constant)
    return own


_Answer = TypeVar("_Answer")


def in_forks(number: int, do: Callable[[int], _Answer]) -> list[_Answer]:
    """What `do` answers for each number below this one, each in a fork of its own, at the same time."""
    with ExitStack() as opened:
        files = [opened.enter_context(TemporaryFile()) for _ in range(number)]
        children = []
        for place, file in enumerate(files):
            children.append(os.fork())
            if children[-1] == 0:
                code = 1
                try:
                    file.write(pickle.dumps(do(place)))
                    file.flush()
                    code = 0
                finally:
                    os._exit(code)
        ended = [os.waitpid(child, 0)[1] for child in children]
        if any(ended):
            raise RuntimeError("a process of the mutants ended with an error")
        for file in files:
            file.seek(0)
        return [pickle.load(file) for file in files]


class Forks:
    """A plugin that runs the collected tests once for each mutant, each time in a fork."""

    def __init__(self, mutants: Sequence[Mutant], arguments: Sequence[str]) -> None:
        self._mutants = mutants
        self._arguments = arguments
        self._processes = len(os.sched_getaffinity(0))
        self._seconds: dict[str, float] = {}
        self._tests_of: dict[Path, dict[int, set[str]]] = {}
        self._failed: dict[str, str] = {}
        self.alive: list[Mutant] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """How long each test takes, to have the quick ones first; which ones fail without a mutant."""
        if report.failed:
            self._failed[report.nodeid] = report.longreprtext[-2000:]
        self._seconds[report.nodeid] = self._seconds.get(report.nodeid, 0) + report.duration

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """All tests as they are, which must pass, then all mutants."""
        for seconds, tests_of, failed in in_forks(
            self._processes, lambda place: self._unchanged(session.items[place :: self._processes])
        ):
            self._seconds |= seconds
            self._failed |= failed
            for path, by_line in tests_of.items():
                for line, names in by_line.items():
                    self._tests_of.setdefault(path, {}).setdefault(line, set()).update(names)
        for name, text in self._failed.items():
            print(f"fails without any mutant: {name}\n{text}", flush=True)
        if len(self._failed) > MOST_FAILED:
            raise pytest.UsageError("the tests fail without any mutant")
        session.items = [item for item in session.items if item.nodeid not in self._failed]
        session.items.sort(key=lambda item: self._seconds.get(item.nodeid, 0))
        print(f"\n{len(session.items)} tests take {sum(self._seconds.values()):.0f} s", flush=True)
        for alive in in_forks(self._processes, lambda place: self._of_process(session, place)):
            self.alive += alive
        return True

    def _of_process(self, session: pytest.Session, place: int) -> list[Mutant]:
        """Those of the process's mutants that are alive."""
        alive = []
        with TemporaryDirectory(prefix="mutants") as folder:
            tree = Path(folder) / "tree"
            copytree(".", tree, symlinks=True, ignore=ignore_patterns(".venv*", "__pycache__", ".hypothesis"))
            mutants = self._mutants[place :: self._processes]
            for number, mutant in enumerate(mutants, 1):
                noticed = self._in_fork(session, mutant)
                if noticed is None:
                    entering = set().union(*self._tests_of[mutant.path].values()) - {"", *self._failed}
                    names = sorted(entering, key=lambda name: self._seconds.get(name, 0))
                    most = self._most(*(names or self._seconds))
                    noticed = _in_file(mutant, tree, ["-n0", *names] if names else self._arguments, most)
                if not noticed:
                    alive.append(mutant)
                    print(f"\nalive: {os.path.relpath(mutant.path)}:{mutant.line}\n{mutant.diff()}", flush=True)
                if number % 10 == 0 or number == len(mutants):
                    print(f"process {place}: {number} of {len(mutants)}, {len(alive)} alive", flush=True)
        return alive

    def _unchanged(self, items: Sequence[pytest.Item]) -> tuple[dict[str, float], Any, dict[str, str]]:
        """The seconds of each test, the tests of each line of the files with mutants, and the tests that failed."""
        from coverage import Coverage

        paths = {str(mutant.path) for mutant in self._mutants}
        measured = Coverage(data_file=None, include=sorted(paths))
        measured.start()
        for item in items:
            _forget("rmqlb")
            measured.switch_context(item.nodeid)
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
        measured.stop()
        tests_of = {}
        for name in paths:
            by_line = measured.get_data().contexts_by_lineno(name)
            tests_of[Path(name)] = {line: set(tests) for line, tests in by_line.items()}
        return self._seconds, tests_of, self._failed

    def _tests(self, session: pytest.Session, mutant: Mutant) -> list[pytest.Item]:
        """The tests that run the line that the mutant changes; those of its function where the line is part of another."""
        lines = self._tests_of[mutant.path]
        own = lines.get(mutant.line, set()) - {""}
        names = own or {name for line in _function_lines(mutant) for name in lines.get(line, ())}
        return [item for item in session.items if item.nodeid in names]

    def _most(self, *names: str) -> int:
        return SPARE_SECONDS + round(sum(self._seconds.get(name, 0) for name in names))

    def _in_fork(self, session: pytest.Session, mutant: Mutant) -> bool | None:
        """Whether a test failed; None when the mutant has to be in the file before anything is imported."""
        child = os.fork()
        if child == 0:
            os.setpgid(0, 0)
            silent = os.open(os.devnull, os.O_WRONLY)
            os.dup2(silent, 1)
            os.dup2(silent, 2)
            code = 3
            try:
                tests = self._tests(session, mutant)
                code = _run(session, [(each, self._most(each.nodeid)) for each in tests], mutant)
            finally:
                os._exit(code)
        _, status = os.waitpid(child, 0)
        return None if os.WIFEXITED(status) and os.WEXITSTATUS(status) == 2 else status != 0


def _function_lines(mutant: Mutant) -> range:
    """The lines of the innermost function around the mutant; all lines of the file outside of functions."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    whole = range(1, mutant.before.count("\n") + 2)
    around = [
        range(node.body[0].lineno, (node.end_lineno or node.lineno) + 1)
        for node in ast.walk(ast.parse(mutant.before))
        if isinstance(node, kinds) and node.lineno <= mutant.line <= (node.end_lineno or node.lineno)
    ]
    return min(around, key=len, default=whole)


def _run(session: pytest.Session, tests: Iterable[tuple[pytest.Item, int]], mutant: Mutant) -> int:
    """0 when all tests pass, 2 when the mutant cannot be put in place."""
    if not in_place(mutant):
        return 2
    _forget("rmqlb", "tests")
    for item, most in tests:
        resource.setrlimit(resource.RLIMIT_CPU, (round(time.process_time()) + most, resource.RLIM_INFINITY))
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
        if session.testsfailed:
            return 1
    return 0


def _forget(*packages: str) -> None:
    """Empty the caches of the functions and methods in these packages."""
    for module in [each for name, each in sys.modules.items() if name.split(".")[0] in packages]:
        own = list(vars(module).values())
        of_classes = [part for each in own if isinstance(each, type) for part in vars(each).values()]
        for each in (*own, *of_classes):
            if callable(clear := getattr(getattr(each, "__func__", each), "cache_clear", None)):
                clear()


def _in_file(mutant: Mutant, tree: Path, arguments: Sequence[str], most: int) -> bool:
    """Whether a test fails in a fresh process that finds the mutant in the file, in a copy of the tree."""
    path = tree / os.path.relpath(mutant.path)
    path.write_text(mutant.after)
    try:
        run = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-x", *arguments],
            cwd=tree,
            env={**os.environ, "PYTHONPATH": str(tree)},
            capture_output=True,
            check=False,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (most, most)),
        )
        return run.returncode != 0
    finally:
        path.write_text(mutant.before)


def main(arguments: Sequence[str]) -> int:
    """The mutants that no test notices, and how many there were."""
    parser = argparse.ArgumentParser(prog="python -m tools.mutants", description=__doc__)
    parser.add_argument("--sample", type=int, default=100, help="how many mutants (100)")
    parser.add_argument("--seed", type=int, default=1, help="which ones (1)")
    parser.add_argument("path", nargs="+", help="files and folders to change")
    split = list(arguments).index("--")
    chosen = parser.parse_args(arguments[:split])
    tests = list(arguments[split + 1 :])
    paths = [Path(name).resolve() for name in chosen.path]
    files = sorted(file for path in paths for file in (path.rglob("*.py") if path.is_dir() else [path]))
    mutants = sampled(files, chosen.sample, chosen.seed)
    forks: Any = Forks(mutants, tests)
    os.cpu_count = lambda: 1
    ended = pytest.main(["-p", "no:terminal", *tests], plugins=[forks])
    if ended is not pytest.ExitCode.OK:
        return 1
    print(f"{len(mutants)} mutants, {len(mutants) - len(forks.alive)} noticed, {len(forks.alive)} alive")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
