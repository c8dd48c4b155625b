"""The noise of a JVM around mqadmin's output."""

from __future__ import annotations

import re
from collections.abc import Iterator

_NOISE = (
    r"OpenJDK |Java HotSpot|WARNING: |SLF4J: |RocketMQLog:|Picked up |log4j:|\[\d+\.\d+s\]\[|"
    r"\d\d:\d\d:\d\d,\d{3} \|-"  # logback's own status: 5.5.0 without its script's settings prints 240 such lines
)
_MOST_NOISE = 10_000  # lines before a command's own output


def without_noise(text: str) -> str:
    """Blank the leading lines of a JVM or its logging; line numbers in errors stay true."""
    for number, start, line in _lines(text):
        if number > _MOST_NOISE:
            break
        if line.strip() and not re.match(_NOISE, line):
            return "\n" * (number - 1) + text[start:]
    return text


def is_noise(line: str) -> bool:
    return re.match(_NOISE, line) is not None


def failed_command(text: str) -> str | None:
    """The reason in a stack trace instead of an answer, or None."""
    if "SubCommandException" not in text and "MQClientException" not in text:
        return None
    match = re.search(r"CODE: -?\d+\s+DESC: [^\n]*", text)
    return match[0] if match else text.strip().partition("\n")[0]


def _lines(text: str) -> Iterator[tuple[int, int, str]]:
    """Number from 1, start and text of each line; a list of all could fill the memory."""
    number, start = 1, 0
    while start < len(text):
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        yield number, start, text[start:end]
        number, start = number + 1, end + 1
