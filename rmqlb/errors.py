"""Every error that rmqlb raises on purpose.

    RmqlbError
    ├── UsageError        what was asked for cannot be done          (exit 2)
    │   ├── JavaArgumentError     what Java refuses as an argument; a ValueError too
    │   └── CustomCodeError       the user's own strategy or selector cannot be loaded   (exit 1)
    ├── DataError         data is missing or contradictory           (exit 4)
    │   ├── DocumentError     a document cannot be read, and where
    │   ├── AllocationError   a RocketMQ client would throw this while allocating
    │   │   └── CustomStrategyError   a strategy of the user's own raised       (exit 1)
    │   ├── CustomAnswerError     the user's own strategy or selector returns what no client could use   (exit 1)
    │   └── JavaArithmeticError   likewise while it picks from an empty list; a ZeroDivisionError too
    └── EndpointError     the far side is unreachable or refuses     (exit 5)
        └── ProtocolError     the far side's bytes are not RocketMQ's protocol

A message is one line: what happened and where. A hint is one line: what to try next. A code is for scripts, and for
`rmqlb explain`: each class has one, which an error that is worth an explanation of its own replaces. A code means one
exit code.
"""

from __future__ import annotations


class RmqlbError(Exception):
    """The root of the tree.

    Args:
        problem: one line, what happened and where (file, line, field path or URL).
        prefix: what comes before the problem in the message; whoever tells the error under another name leaves it out.
        hint: one line, what to try next, or None.
        hint_names_options: the hint is for a command line that reads one source.
        group: the consumer group that the problem names.
        code: stable, kebab-case, of the catalogue in `views/explanations.toml`; None is that of the class.
    """

    code = "unexpected"
    exit_code = 1  # of a command that ends with the error

    def __init__(
        self,
        problem: str,
        *,
        prefix: str = "",
        hint: str | None = None,
        hint_names_options: bool = False,
        group: str | None = None,
        code: str | None = None,
    ) -> None:
        super().__init__(prefix + problem)
        self.message = prefix + problem
        self.problem = problem
        self.hint = hint
        self.hint_names_options = hint_names_options
        self.group = group
        if code is not None:
            self.code = code


class UsageError(RmqlbError):
    """The command line asks for something that cannot be done."""

    code, exit_code = "usage", 2


class DataError(RmqlbError):
    """The data does not hold what was asked for, or contradicts itself."""

    code, exit_code = "data", 4


class DocumentError(DataError):
    code = "document"


class AllocationError(DataError):
    """What a client throws while it allocates; the text is RocketMQ's own."""

    code = "allocation"


class CustomStrategyError(AllocationError):
    code, exit_code = "custom-raised", 1


class CustomCodeError(UsageError):
    code, exit_code = "custom-code", 1


class CustomAnswerError(DataError):
    code, exit_code = "custom-answer", 1


class JavaArithmeticError(DataError, ZeroDivisionError):
    """Java would throw an ArithmeticException: a queue is picked from an empty list."""


class JavaArgumentError(UsageError, ValueError):
    """Java would throw an IllegalArgumentException."""


class EndpointError(RmqlbError):
    """The far side cannot be reached, does not answer in time, or refuses."""

    code, exit_code = "endpoint", 5


class ProtocolError(EndpointError):
    code = "protocol"
