"""What the start of a command imports, by whose it is: a part of `python -m benchmarks.startup`.

How many modules a command loads does not depend on the machine, so their numbers are held; the times are shares of the
same run's whole.
"""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from benchmarks.measuring import clean_environment

OURS, STANDARD, OTHERS = "rmqlb", "standard library", "others"
SHOWN = (OURS, "typer", "rich", "msgspec", "tabulate", "yaml", STANDARD, OTHERS)
_PREFIX = "import time:"


@dataclass(frozen=True)
class Imports:
    """The modules of one process, by whose they are.

    Attributes:
        modules: how many.
        micros: microseconds in their own code.
    """

    modules: Counter[str]
    micros: Counter[str]

    def cell(self, whose: str) -> str:
        """The number of modules and the share of the import time, as the table shows them."""
        if not self.modules[whose]:
            return "–"
        return f"{self.modules[whose]} ({self.micros[whose] / max(self.micros.total(), 1):.0%})"


def imports(program: Sequence[str], arguments: Sequence[str]) -> Imports:
    """What a command imports, as `python -X importtime` tells; what the interpreter itself loads counts too.

    Names for completion are not kept: the module that writes them is loaded only where there are new ones.

    Args:
        program: the interpreter and what makes it rmqlb: the installed script, or `-m rmqlb`.
        arguments: rmqlb's.

    Raises:
        RuntimeError: the command failed.
    """
    line = [program[0], "-X", "importtime", *program[1:], *arguments]
    done = subprocess.run(  # noqa: S603 - our own command
        line, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=clean_environment(), check=False
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(line)} ended with {done.returncode}")
    return parse(done.stderr.splitlines())


def parse(lines: Iterable[str]) -> Imports:
    """The report of `-X importtime`; other lines are passed over.

    >>> parse(["import time:       120 |        300 |   rmqlb.errors", "import time: self [us] | x | y"]).modules
    Counter({'rmqlb': 1})
    """
    modules: Counter[str] = Counter()
    micros: Counter[str] = Counter()
    for line in lines:
        taken, _, rest = line.removeprefix(_PREFIX).partition("|")
        if line.startswith(_PREFIX) and taken.strip().isdigit():
            whose = _whose(rest.partition("|")[2].strip())
            modules[whose] += 1
            micros[whose] += int(taken)
    return Imports(modules, micros)


def _whose(module: str) -> str:
    top = module.partition(".")[0]
    if top in SHOWN:
        return top
    return STANDARD if top in sys.stdlib_module_names or top.startswith("_") else OTHERS
