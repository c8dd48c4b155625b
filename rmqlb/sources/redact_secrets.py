"""Secrets in what a server says: some repeat in an error what they were given."""

from __future__ import annotations

_SHORTEST = 4
"""Shorter ones would be found in ordinary words; they are no secrets."""


def redact_secrets(text: str, *secrets: str | None) -> str:
    """The text with each secret replaced by `***`.

    >>> redact_secrets("bad password s3cret", "s3cret", None)
    'bad password ***'
    """
    for secret in secrets:
        if secret and len(secret) >= _SHORTEST:
            text = text.replace(secret, "***")
    return text
