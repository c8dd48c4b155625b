from enum import IntEnum


class ExitCode(IntEnum):
    """What a command's exit code says; `views/explanations.toml` explains each."""

    OK = 0
    UNEXPECTED = 1
    USAGE = 2
    CONDITION = 3
    DATA = 4
    ENDPOINT = 5
    INTERRUPTED = 130
