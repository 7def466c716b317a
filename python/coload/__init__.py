"""Loads files and data frames into a compressed column store, and queries it with SQL.

>>> import coload
>>> _ = open("people.csv", "w").write("name,born\\nAda,1815-12-10\\nAlan,1912-06-23\\n")
>>> with coload.connect("start") as db:
...     report = db.load("people.csv", replace=True)
...     rows = db.sql("SELECT name FROM people WHERE born < DATE '1900-01-01'").fetchall()
>>> report.rows, rows
(2, [('Ada',)])
"""

from __future__ import annotations

from . import _native, dbapi
from ._connection import Connection, connect
from ._errors import (
    DatabaseError,
    DataError,
    Error,
    InputError,
    IntegrityError,
    InterfaceError,
    InternalError,
    LimitError,
    NotSupportedError,
    OperationalError,
    ProgrammingError,
    RefusedError,
    SqlError,
    StoreError,
    UnavailableError,
    UsageError,
)
from ._functions import Sniffed, load, load_options, sniff
from ._load_options import LoadOptions
from ._progress import Progress
from ._report import Report
from ._result import Result
from ._values import Interval

__version__: str = _native.version

__all__ = [
    "Connection",
    "DataError",
    "DatabaseError",
    "Error",
    "InputError",
    "IntegrityError",
    "InterfaceError",
    "InternalError",
    "Interval",
    "LimitError",
    "LoadOptions",
    "NotSupportedError",
    "OperationalError",
    "ProgrammingError",
    "Progress",
    "RefusedError",
    "Report",
    "Result",
    "Sniffed",
    "SqlError",
    "StoreError",
    "UnavailableError",
    "UsageError",
    "connect",
    "dbapi",
    "load",
    "load_options",
    "sniff",
]
