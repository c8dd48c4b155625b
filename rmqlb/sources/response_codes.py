"""Response codes of brokers, as users type them."""

from __future__ import annotations

from rmqlb.errors import UsageError
from rmqlb.remoting.codes import ResponseCode

FAILURES = [code.name for code in ResponseCode if code is not ResponseCode.SUCCESS]


def response_code(text: str, option: str) -> tuple[str, int] | None:
    """Name and number of a broker's response code, given by either; None if unknown (raises UsageError)."""
    name = text.upper()
    if text.isdecimal() and len(text) < 9:
        known = {code.value: code.name for code in ResponseCode}
        name = known.get(int(text), text)
        number = int(text)
    elif name in ResponseCode.__members__:
        number = ResponseCode[name].value
    else:
        return None
    if number == ResponseCode.SUCCESS:
        raise UsageError(f"{option}: SUCCESS is no failure")
    return name, number
