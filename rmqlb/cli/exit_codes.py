"""The one table of exit codes."""

from __future__ import annotations

from enum import IntEnum

from rmqlb.errors import CustomStrategyError, DataError, EndpointError, RmqlbError, UsageError


class ExitCode(IntEnum):
    """What a command's exit code says."""

    OK = 0
    UNEXPECTED = 1
    USAGE = 2
    CONDITION = 3
    DATA = 4
    ENDPOINT = 5
    INTERRUPTED = 130


MEANINGS = {
    ExitCode.OK: "done; a plan with moves is done too",
    ExitCode.UNEXPECTED: "an unexpected failure: a bug in rmqlb, a full disk, or a strategy of your own that raises",
    ExitCode.USAGE: "the command line asks for something that cannot be done",
    ExitCode.CONDITION: "a --fail-on condition was met, or a limit of a policy failed",
    ExitCode.DATA: "data is missing or contradictory",
    ExitCode.ENDPOINT: "the endpoint cannot be reached or refuses",
    ExitCode.INTERRUPTED: "interrupted",
}

_BY_ERROR: tuple[tuple[type[RmqlbError], ExitCode], ...] = (
    (CustomStrategyError, ExitCode.UNEXPECTED),
    (UsageError, ExitCode.USAGE),
    (DataError, ExitCode.DATA),
    (EndpointError, ExitCode.ENDPOINT),
)


def exit_code_of(error: RmqlbError) -> ExitCode:
    """The exit code of an error."""
    return next((code for kind, code in _BY_ERROR if isinstance(error, kind)), ExitCode.UNEXPECTED)
