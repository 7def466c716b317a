"""Values that Python's library has no class for."""

from __future__ import annotations

from typing import NamedTuple


class Interval(NamedTuple):
    """A value of INTERVAL. Its parts stay apart, as a month has no fixed number of days."""

    months: int
    days: int
    nanoseconds: int
