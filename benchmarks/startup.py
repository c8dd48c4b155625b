"""What the start of commands takes, in units of `import typer`: `python -m benchmarks.startup`."""

from __future__ import annotations

import argparse
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from benchmarks.installation import ROOT, Installation, installation
from benchmarks.measuring import Spread, in_turns, machine, markdown, ratio

PEER = 'python -c "import typer"'
EXAMPLE = str(ROOT / "examples" / "cluster.json")
POLICY = str(ROOT / "benchmarks" / "policy.yaml")


@dataclass(frozen=True)
class Case:
    """One command line, whether the user has contexts and settings, and what it must not exceed.

    Attributes:
        arguments: rmqlb's.
        hold: on its processor time, in units of the peer's.
        configured: there is a configuration file.
    """

    arguments: tuple[str, ...]
    hold: float | None = None
    configured: bool = False

    @property
    def name(self) -> str:
        """The command as the tables show it."""
        line = " ".join(("rmqlb", *self.arguments)).replace(f"{ROOT}/", "")
        return line + " # with a configuration" * self.configured


SOURCE = ("-s", EXAMPLE)
GROUP = (*SOURCE, "-g", "order-svc")
PLAN = ("plan-rebalance", *GROUP, "--add", "1", "-o")
CASES = (
    Case(("--version",), hold=1.5),
    Case(("--help",), hold=4.0),
    Case(("plan-rebalance", *SOURCE, "--help"), hold=4.0),
    Case((*PLAN, "json"), hold=2.0),
    Case((*PLAN, "json"), hold=2.3, configured=True),
    Case((*PLAN, "table"), hold=3.0),
    Case((*PLAN, "table"), hold=3.3, configured=True),
)


CONFIGURATION = "source-timeout: 3s\ncontexts:\n" + "".join(
    f"  c{number}: {{source: 'rocketmq://mq{number}:9876', access-key: me, secret: 'env:MQ'}}\n" for number in range(10)
)


def measured(installed: Installation, rounds: int) -> dict[str, Spread]:
    """The bare interpreter's and each case's processor time in units of the peer's, by name.

    A start waits for nothing, so on a quiet machine this is its time; on a busy one it is what can still be measured.
    """
    with tempfile.TemporaryDirectory() as home:
        file = Path(home, "rmqlb", "config.yaml")
        file.parent.mkdir()
        file.write_text(CONFIGURATION)
        file.chmod(0o600)
        configured = ["env", f"XDG_CONFIG_HOME={home}"]
        commands = {
            PEER: [installed.python, "-c", "import typer"],
            "python -c pass": [installed.python, "-c", "pass"],
            **{
                case.name: [*(configured if case.configured else ()), installed.rmqlb, *case.arguments]
                for case in CASES
            },
        }
        usages = in_turns(commands, rounds)
    times = {name: [usage.cpu_seconds for usage in each] for name, each in usages.items()}
    peer = times.pop(PEER)
    return {name: ratio(ours, peer) for name, ours in times.items()}


def broken(ratios: dict[str, Spread]) -> list[str]:
    """A line for each hold that is broken."""
    return [
        f"{case.name}: {ratios[case.name].median:.2f}, and at most {case.hold} is allowed"
        for case in CASES
        if case.hold is not None and ratios[case.name].median > case.hold
    ]


def main() -> None:
    """Measure, print the table, and with `--check` end with 1 when a hold is broken."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.startup", description=__doc__)
    parser.add_argument("--rounds", type=int, default=40, metavar="N", help="turns that count (default: %(default)s)")
    parser.add_argument("--venv", type=Path, metavar="DIR", help="measure the rmqlb installed there, not a fresh one")
    parser.add_argument("--check", action="store_true", help="exit code 1 when a hold is broken")
    options = parser.parse_args()
    sys.stdout.write(f"{machine()}, {options.rounds} turns\n\n")
    with installation(options.venv) as installed:
        ratios = measured(installed, options.rounds)
    holds = {case.name: f"≤ {case.hold}" for case in CASES if case.hold is not None}
    rows = [(f"`{name}`", spread, holds.get(name, "")) for name, spread in ratios.items()]
    sys.stdout.write(markdown(("command, whole process", "time / `import typer`", "limit"), rows) + "\n")
    complaints = broken(ratios)
    sys.stdout.writelines(f"\nhold broken: {line}\n" for line in complaints)
    sys.exit(1 if options.check and complaints else 0)


if __name__ == "__main__":
    main()
