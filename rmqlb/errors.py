"""The errors that rmqlb raises on purpose.

    RmqlbError
    ├── UsageError        the request is impossible                  (exit 2)
    │   ├── JavaArgumentError     Java would reject an argument; also a ValueError
    │   └── CustomCodeError       a custom strategy or selector cannot be loaded         (exit 1)
    ├── DataError         data is missing or contradictory           (exit 4)
    │   ├── DocumentError     a document cannot be read
    │   ├── AllocationError   a RocketMQ client would throw this during allocation
    │   │   └── CustomStrategyError   a custom strategy raised an exception      (exit 1)
    │   ├── CustomAnswerError     a custom strategy or selector returned an unusable value      (exit 1)
    │   └── JavaArithmeticError   Java would fail to pick from an empty list; also a ZeroDivisionError
    └── EndpointError     the server is unreachable or refuses       (exit 5)
        └── ProtocolError     the server's bytes do not follow its protocol

A message is one line: what happened and where. A hint is one line: what to try next. A code is for scripts and for
`rmqlb explain`. Each class has a default code; an error with its own explanation has its own code. Each code has one
exit code.
"""


class RmqlbError(Exception):
    """The root of the tree.

    Args:
        problem: one line, what happened and where (file, line, field path or URL).
        prefix: text before the problem in the message; a caller that rewords the error leaves it out.
        hint: one line, what to try next, or None.
        hint_names_options: the hint names options, so it only fits a command that reads one source.
        group: the consumer group that the problem names.
        code: a stable code in kebab-case from `views/explanations.toml`; None is the class's code.
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
    """The command line requests something impossible."""

    code, exit_code = "usage", 2


class DataError(RmqlbError):
    """The data lacks what the request needs, or contradicts itself."""

    code, exit_code = "data", 4


class DocumentError(DataError):
    code = "document"


class AllocationError(DataError):
    """An exception that a client would throw during allocation, in RocketMQ's own words."""

    code = "allocation"


class CustomStrategyError(AllocationError):
    code, exit_code = "custom-raised", 1


class CustomCodeError(UsageError):
    code, exit_code = "custom-code", 1


class CustomAnswerError(DataError):
    code, exit_code = "custom-answer", 1


class JavaArithmeticError(DataError, ZeroDivisionError):
    """An ArithmeticException in Java: a pick from an empty list."""


class JavaArgumentError(UsageError, ValueError):
    """An IllegalArgumentException in Java."""


class EndpointError(RmqlbError):
    """The server cannot be reached, does not answer in time, or refuses."""

    code, exit_code = "endpoint", 5


class ProtocolError(EndpointError):
    code = "protocol"


def typed(option: str, text: str) -> str:
    """An option and its value as typed: some names end in what comes before the value, as `--set NAME=`."""
    return option + text if option.endswith(("=", "@")) else f"{option} {text}"
