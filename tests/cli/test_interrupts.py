"""Ctrl-C where Python drops it."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator

import pytest

from rmqlb.cli.error_boundary import heard_interrupts


def interrupted_at_its_end() -> Iterator[None]:
    try:
        yield
    finally:
        raise KeyboardInterrupt


def leave_one_behind() -> None:
    next(interrupted_at_its_end())  # nobody keeps it
    time.sleep(30)


def test_an_interrupt_of_a_generator_that_is_closed_is_raised_after_it() -> None:
    with pytest.raises(KeyboardInterrupt), heard_interrupts():
        leave_one_behind()


def of_no_use() -> Iterator[None]:
    try:
        yield
    finally:
        raise ValueError("odd")


def test_any_other_error_there_is_told_as_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda dropped: told.append(str(dropped.exc_value)))
    with heard_interrupts():
        next(of_no_use())
    assert told == ["odd"]
