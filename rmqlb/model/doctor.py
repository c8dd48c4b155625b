"""What `rmqlb doctor` finds out about a source, step by step."""

from typing import Annotated, Literal

from msgspec import Struct

from rmqlb.model.result import Result

StepStatus = Literal["works", "fails", "notTried"]


class SourceStep(Struct, frozen=True):
    """One step of reading a source."""

    step: Annotated[str, "as name, port, protocol, NameServer, broker, permissions or clock"]
    server: Annotated[str | None, "the address or name that was tried; null where none is known yet"]
    status: Annotated[StepStatus, "notTried after a step that it needs, or where the server cannot say"]
    result: Annotated[str, "one line: what answered, what is wrong, or why it was not tried"]
    remedy: Annotated[str | None, "what to do, such as an option to add; null where nothing is known to help"] = None
    code: Annotated[str | None, "of the error, for rmqlb explain; null where there is none"] = None


class SourceCheck(Result, frozen=True):
    """A source, checked step by step."""

    source: Annotated[str, "the source's URL or path, never with a secret in it"]
    status: Annotated[Literal["works", "partly", "fails"], "partly: some of its servers work"]
    steps: Annotated[tuple[SourceStep, ...], "in the order in which a command needs them"]

    @property
    def failed(self) -> list[SourceStep]:
        return [each for each in self.steps if each.status == "fails"]
