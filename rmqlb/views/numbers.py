"""Numbers as people read them: 1,500 · 6.17 · 18.7 s · 1m20s · 33.3%."""


def number(value: float) -> str:
    """A count, or a figure with at most two places, fewer from 100 on.

    >>> number(1500), number(1500.0), number(6.1666), number(1.2), number(123.46), number(0.00049)
    ('1,500', '1,500', '6.17', '1.2', '123.5', '0.0005')
    """
    if abs(value) < 0.01:
        return f"{value:.1g}"
    return _short(f"{value:,.{1 if abs(value) >= 100 else 2}f}")


def beyond(value: float, limit: float, places: int = 2) -> str:
    """A figure beyond its limit, with more places where the difference needs them.

    >>> beyond(1.2, 1.1), beyond(1.1004, 1.1), beyond(1.0996, 1.1), beyond(81.6667, 80, 1), beyond(1500, 1000)
    ('1.20', '1.1004', '1.0996', '81.7', '1,500')
    """
    digits = next((digits for digits in range(places, 9) if round(value, digits) != limit), 9)
    return number(value) if value == int(value) else f"{value:,.{digits}f}"


def percent(share: float) -> str:
    """A fraction as a percentage; only nothing is 0%, and only the whole is 100%.

    >>> percent(0), percent(0.8), percent(0.3333), percent(0.00002), percent(0.99999), percent(1)
    ('0%', '80%', '33.3%', '0.002%', '99.999%', '100%')
    >>> percent(0.9999999), percent(1.0556)
    ('99.999%', '105.6%')
    """
    value = 100 * share
    if 0 < value < 0.1:
        return f"{value:.1g}%"
    return f"{min(value, 99.999):.3f}%" if 99.9 < value < 100 else f"{_short(f'{value:,.1f}')}%"


def duration(ms: float) -> str:
    """Milliseconds to three digits, or to the second from a minute on.

    >>> duration(0), duration(0.25), duration(999), duration(1054), duration(18_660), duration(45_000)
    ('0 s', '0.25 ms', '999 ms', '1.05 s', '18.7 s', '45 s')
    >>> duration(90_500), duration(3_600_000), duration(93_784_000), duration(999.6), duration(59_949), duration(59_950)
    ('1m30s', '1h', '1d2h3m', '1 s', '59.9 s', '1m')
    """
    if 0 < ms < 999.5:
        return f"{ms:.3g} ms"
    return f"{ms / 1000:.3g} s" if ms < 59_950 else _parts(round(ms / 1000))


def moment(ms: float) -> str:
    """A point in time to the millisecond: what happens one after the other is often as near.

    >>> moment(0), moment(0.25), moment(999), moment(10_054), moment(90_500), moment(3_600_000)
    ('0 s', '0.25 ms', '999 ms', '10.054 s', '1m30.5s', '1h')
    """
    if 0 < ms < 999.95:
        return f"{ms:.4g} ms"
    seconds = round(ms / 1000, 3)
    return f"{seconds:g} s" if seconds < 60 else _parts(seconds)


def about(ms: float) -> str:
    """Milliseconds in a sentence, to two digits or the second: more would promise too much.

    >>> about(0.3), about(56.4), about(999.9), about(1054), about(18_660), about(270_400)
    ('<1 ms', '56 ms', '1.0 s', '1.1 s', '18.7 s', '4m30s')
    """
    if ms < 999.5:
        return f"{ms:.0f} ms" if ms >= 1 or ms == 0 else "<1 ms"
    return f"{ms / 1000:.1f} s" if ms < 59_950 else duration(ms)


def _parts(seconds: float) -> str:
    parts = []
    for unit, length in (("d", 86_400), ("h", 3600), ("m", 60)):
        if seconds >= length:
            parts.append(f"{int(seconds // length)}{unit}")
            seconds = round(seconds % length, 3)
    return "".join([*parts, *([f"{seconds:g}s"] if seconds else [])][:3])


def _short(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text
