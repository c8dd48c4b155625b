from rmqlb.model.rates import RateSource
from rmqlb.views.numbers import duration


def rate_source(source: RateSource) -> str:
    """Where rates come from.

    >>> rate_source(RateSource(("500",), None)), rate_source(RateSource(("T=5",), 60_000))
    ('--rate 500', '--rate T=5, otherwise from 2 samples over 1m')
    """
    typed = " ".join(f"--rate {text}" for text in source.given)
    if source.over_ms is None:
        return typed
    samples = f"from 2 samples over {duration(source.over_ms)}"
    return f"{typed}, otherwise {samples}" if typed else samples
