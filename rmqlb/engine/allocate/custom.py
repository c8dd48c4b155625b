"""Strategies that users write: a Python function with the arguments of `AllocateMessageQueueStrategy.allocate`.

- A function is called as a client calls its strategy object: for each consumer, each time, with its own lists. It makes
  all checks itself, including those of empty lists.
- An exception counts as the client's. A wrong return value is a mistake in the user's file, with its own error.
"""

from collections.abc import Sequence

from rmqlb.engine.allocate.strategy import Settings, StrategyFunction
from rmqlb.engine.arguments import kind_of, quietly, shortened, thrown
from rmqlb.errors import CustomAnswerError, CustomStrategyError
from rmqlb.model.message_queue import MessageQueue

_MOST_TIMES = 10


class CustomStrategy:
    def __init__(
        self,
        name: str,
        function: StrategyFunction,
        queues: Sequence[MessageQueue],
        client_ids: Sequence[str],
        settings: Settings,
    ) -> None:
        self._name, self._function, self._group = name, function, settings.group
        self._queues, self._known, self._client_ids = queues, frozenset(queues), client_ids
        self._returned: set[MessageQueue] = set()

    def share(self, client_id: str) -> Sequence[MessageQueue]:
        try:
            answer: object = quietly(self._function, self._group, client_id, list(self._queues), list(self._client_ids))
        except (Exception, SystemExit) as error:
            raise CustomStrategyError(thrown(error, self._function)) from error
        return self._checked(answer)

    def why(self, queue: MessageQueue) -> str:
        if queue in self._returned:
            return f"{self._name} returns it for this consumer"
        return f"{self._name} returns it for no consumer"

    def why_idle(self, client_id: str) -> str:
        return f"{self._name} returns no queue for it"

    def _checked(self, answer: object) -> list[MessageQueue]:
        some = "return a list of some of the given queues"
        if answer is None:
            raise self._wrong("returned None", "return a list; [] where a Java class returns null")
        if not isinstance(answer, list | tuple):
            raise self._wrong(f"returned {kind_of(answer)}", some)
        if len(answer) > _MOST_TIMES * len(self._queues):
            given = f"{len(self._queues):,}"
            raise self._wrong(f"returned {len(answer):,} queues, but got {given}", "return each queue once")
        for queue in answer:
            if not isinstance(queue, MessageQueue):
                text = f"returned a list with {kind_of(queue)} in it: {shortened(repr(queue), 60)}"
                raise self._wrong(text, some)
            if queue not in self._known:
                text = f"returned {queue}, which is not one of the {len(self._queues)} given queues"
                raise self._wrong(text, f"{some}; for a fixed list use the strategy CONFIG")
        self._returned.update(answer)
        return list(dict.fromkeys(answer))

    def _wrong(self, what: str, hint: str) -> CustomAnswerError:
        return CustomAnswerError(f"strategy {self._name} {what}", hint=hint)
