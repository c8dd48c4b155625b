from enum import IntEnum

from rmqlb.errors import (
    CustomAnswerError,
    CustomCodeError,
    CustomStrategyError,
    DataError,
    EndpointError,
    RmqlbError,
    UsageError,
)


class ExitCode(IntEnum):
    """What a command's exit code says; `views/explanations.toml` explains each."""

    OK = 0
    UNEXPECTED = 1
    USAGE = 2
    CONDITION = 3
    DATA = 4
    ENDPOINT = 5
    INTERRUPTED = 130


_BY_ERROR: tuple[tuple[type[RmqlbError], ExitCode], ...] = (
    (CustomCodeError, ExitCode.UNEXPECTED),
    (CustomStrategyError, ExitCode.UNEXPECTED),
    (CustomAnswerError, ExitCode.UNEXPECTED),
    (UsageError, ExitCode.USAGE),
    (DataError, ExitCode.DATA),
    (EndpointError, ExitCode.ENDPOINT),
)


def exit_code_of(error: RmqlbError) -> ExitCode:
    return next((code for kind, code in _BY_ERROR if isinstance(error, kind)), ExitCode.UNEXPECTED)
