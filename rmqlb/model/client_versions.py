"""A stretch of client versions whose rules are the same."""

from __future__ import annotations

from msgspec import Struct


class ClientVersions(Struct, frozen=True):
    """From the oldest to the newest version; None is open at that end.

    >>> str(ClientVersions("5.1.1", "5.1.3")), str(ClientVersions("5.3.3", None)), str(ClientVersions(None, None))
    ('5.1.1 to 5.1.3', '5.3.3 and newer', 'all versions')
    """

    oldest: str | None
    newest: str | None

    def __str__(self) -> str:
        if self.oldest is None:
            return "all versions" if self.newest is None else f"{self.newest} and older"
        if self.newest is None:
            return f"{self.oldest} and newer"
        return self.oldest if self.oldest == self.newest else f"{self.oldest} to {self.newest}"

    def up_to(self, newer: ClientVersions) -> ClientVersions:
        """Both stretches, and all between them.

        >>> str(ClientVersions(None, "4.7.1").up_to(ClientVersions("4.8.0", "4.8.0")))
        '4.8.0 and older'
        """
        return ClientVersions(self.oldest, newer.newest)
