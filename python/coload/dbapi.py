"""DB-API 2.0 (PEP 249) on stores and servers.

>>> from coload import dbapi
>>> with dbapi.connect("dbapi") as connection, connection.cursor() as cursor:
...     _ = cursor.execute("CREATE TABLE IF NOT EXISTS points (x BIGINT NOT NULL, y DOUBLE)")
...     _ = cursor.executemany("INSERT INTO points VALUES (?, ?)", [(1, 0.5), (2, None)])
...     print(cursor.rowcount)
...     _ = cursor.execute("SELECT x, y FROM points WHERE x >= ? ORDER BY x LIMIT 2", (1,))
...     print([column[0] for column in cursor.description], cursor.fetchall())
2
['x', 'y'] [(1, 0.5), (2, None)]

There are no transactions over several statements: each statement is one, so that ``commit`` has nothing to do, and
``rollback`` is refused.
"""

from __future__ import annotations

import datetime
import re
from typing import Any, Iterable, Iterator, List, Optional, Sequence, Tuple

from . import _connection
from ._errors import (
    DatabaseError,
    DataError,
    Error,
    IntegrityError,
    InterfaceError,
    InternalError,
    NotSupportedError,
    OperationalError,
    ProgrammingError,
    Warning,
)
from ._options import PathLike
from ._result import Result, Row

__all__ = [
    "BINARY",
    "Binary",
    "Connection",
    "Cursor",
    "DATETIME",
    "DataError",
    "DatabaseError",
    "Date",
    "DateFromTicks",
    "Error",
    "IntegrityError",
    "InterfaceError",
    "InternalError",
    "NUMBER",
    "NotSupportedError",
    "OperationalError",
    "ProgrammingError",
    "ROWID",
    "STRING",
    "Time",
    "TimeFromTicks",
    "Timestamp",
    "TimestampFromTicks",
    "Warning",
    "apilevel",
    "connect",
    "paramstyle",
    "threadsafety",
]

apilevel = "2.0"
#: Threads may share the module and connections.
threadsafety = 2
#: ``WHERE a = ?``
paramstyle = "qmark"

Date = datetime.date
Time = datetime.time
Timestamp = datetime.datetime
Binary = bytes


def DateFromTicks(ticks: float) -> datetime.date:
    """The day of so many seconds since 1970, here."""
    return datetime.date.fromtimestamp(ticks)


def TimeFromTicks(ticks: float) -> datetime.time:
    """The time of day of so many seconds since 1970, here."""
    return datetime.datetime.fromtimestamp(ticks).time()


def TimestampFromTicks(ticks: float) -> datetime.datetime:
    """The time of so many seconds since 1970, here."""
    return datetime.datetime.fromtimestamp(ticks)


class _Types:
    """Equal to the types of its kind, as a description has them."""

    def __init__(self, *names: str) -> None:
        self._names = frozenset(names)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, _Types):
            return self._names == other._names
        return isinstance(other, str) and other.partition("(")[0] in self._names

    def __hash__(self) -> int:
        return hash(self._names)


STRING = _Types("VARCHAR", "CHAR", "UUID")
BINARY = _Types("BINARY", "VARBINARY")
NUMBER = _Types("BOOLEAN", "SMALLINT", "INTEGER", "BIGINT", "DECIMAL", "REAL", "DOUBLE")
DATETIME = _Types("DATE", "TIME", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE", "INTERVAL")
ROWID = _Types()

#: A column: name, type, and five things of which precision, scale and whether NULL may stand there are known.
Column = Tuple[str, str, None, None, Optional[int], Optional[int], Optional[bool]]

_DIGITS = re.compile(r"DECIMAL\((\d+),\s*(\d+)\)")
_WRITES = re.compile(r"\s*(?:--[^\n]*\n\s*|/\*.*?\*/\s*)*(insert|update|delete|copy|create)\b", re.I | re.S)


def _column(described: Tuple[str, str, bool]) -> Column:
    name, kind, nullable = described
    digits = _DIGITS.fullmatch(kind)
    precision, scale = (int(digits[1]), int(digits[2])) if digits else (None, None)
    return (name, kind, None, None, precision, scale, nullable)


class Cursor:
    """Statements one after the other, and the rows of the last."""

    def __init__(self, connection: "Connection") -> None:
        #: The connection that made it.
        self.connection = connection
        #: Rows that :meth:`fetchmany` takes.
        self.arraysize = 1
        #: The columns of the last answer; None where there is none.
        self.description: Optional[List[Column]] = None
        #: Rows that the last statement wrote; -1 where that is not known.
        self.rowcount = -1
        #: Of no use here.
        self.lastrowid = None
        self._result: Optional[Result] = None
        self._closed = False

    def _begin(self) -> _connection.Connection:
        if self._closed:
            raise InterfaceError("the cursor is closed")
        if self._result is not None:
            self._result.close()
        self._result, self.description, self.rowcount = None, None, -1
        return self.connection._open()

    def execute(self, operation: str, parameters: Optional[Sequence[Any]] = None) -> "Cursor":
        """Runs a statement."""
        result = self._begin().sql(operation, parameters)
        described = result._described()
        is_count = [(name, kind) for name, kind, _ in described] == [("count", "DECIMAL(20,0)")]
        if is_count and _WRITES.match(operation):
            self.rowcount = sum(int(row[0]) for row in result)
        elif described:
            self._result, self.description = result, [_column(of) for of in described]
        return self

    def executemany(self, operation: str, seq_of_parameters: Iterable[Sequence[Any]]) -> "Cursor":
        """Runs an INSERT, UPDATE or DELETE for each row of values."""
        self.rowcount = self._begin().executemany(operation, seq_of_parameters)
        return self

    def _rows(self) -> Result:
        if self._closed:
            raise InterfaceError("the cursor is closed")
        if self._result is None:
            raise ProgrammingError("no statement with rows was run")
        return self._result

    def fetchone(self) -> Optional[Row]:
        """The next row, or None at the end."""
        return self._rows().fetchone()

    def fetchmany(self, size: Optional[int] = None) -> List[Row]:
        """The next rows, at most so many."""
        return self._rows().fetchmany(self.arraysize if size is None else size)

    def fetchall(self) -> List[Row]:
        """The rows that are left."""
        return self._rows().fetchall()

    def fetch_arrow_table(self) -> Any:
        """The rows as a ``pyarrow.Table``; no row may have been taken."""
        return self._rows().arrow()

    def __iter__(self) -> Iterator[Row]:
        return iter(self._rows())

    def setinputsizes(self, sizes: object) -> None:
        """Does nothing."""

    def setoutputsize(self, size: object, column: object = None) -> None:
        """Does nothing."""

    def close(self) -> None:
        """Ends its statement."""
        if self._result is not None:
            self._result.close()
        self._result, self._closed = None, True

    def __enter__(self) -> "Cursor":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Connection:
    """A connection of DB-API 2.0; ``native`` is the one of :mod:`coload`."""

    Warning = Warning
    Error = Error
    InterfaceError = InterfaceError
    DatabaseError = DatabaseError
    DataError = DataError
    OperationalError = OperationalError
    IntegrityError = IntegrityError
    InternalError = InternalError
    ProgrammingError = ProgrammingError
    NotSupportedError = NotSupportedError

    def __init__(self, native: _connection.Connection) -> None:
        #: The connection of :mod:`coload`, which loads.
        self.native = native

    def _open(self) -> _connection.Connection:
        if self.native.closed:
            raise InterfaceError("the connection is closed")
        return self.native

    def cursor(self) -> Cursor:
        """A new cursor."""
        self._open()
        return Cursor(self)

    def commit(self) -> None:
        """Does nothing: each statement is published when it is done."""
        self._open()

    def rollback(self) -> None:
        """Is refused: each statement is published when it is done."""
        raise NotSupportedError("there is nothing to roll back: each statement is published when it is done")

    def close(self) -> None:
        """Closes it."""
        self.native.close()

    def __enter__(self) -> "Connection":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def connect(place: PathLike, **options: Any) -> Connection:
    """A connection; ``place`` and ``options`` are those of :func:`coload.connect`."""
    return Connection(_connection.connect(place, **options))
