"""Exceptions: one class for each kind of failure, and those of DB-API 2.0 above them."""

from __future__ import annotations

from typing import Optional, Tuple


class Warning(Exception):  # noqa: A001 - the name that DB-API 2.0 gives
    """Of DB-API 2.0; never raised."""


class Error(Exception):
    """Anything that fails in this package."""


class InterfaceError(Error):
    """The package is used wrongly: a connection that is closed, or of another process."""


class DatabaseError(Error):
    """Something that the store, the server or the data is the reason of."""


class DataError(DatabaseError):
    """The data is the reason."""


class OperationalError(DatabaseError):
    """The world is the reason: disks, networks, limits."""


class IntegrityError(DatabaseError):
    """Of DB-API 2.0; a key that comes twice is told as :class:`SqlError` or :class:`UsageError`."""


class InternalError(DatabaseError):
    """A fault of the package."""


class ProgrammingError(DatabaseError):
    """The request is the reason."""


class NotSupportedError(DatabaseError):
    """What is asked for is not there."""


class UsageError(ProgrammingError):
    """An option, a name or a combination that cannot be served: change the request."""


class SqlError(ProgrammingError):
    """A statement that is wrong: it is no SQL, or names what is not there."""


class InputError(DataError):
    """A record that cannot be a row: mend the data, or allow rejects.

    >>> import coload
    >>> _ = open("bad.csv", "w").write("n\\n1\\nx\\n")
    >>> with coload.connect("errors") as db:
    ...     try:
    ...         db.load("bad.csv", columns="n BIGINT")
    ...     except coload.InputError as error:
    ...         print(error.file, error.line, error.column)
    bad.csv 3 1
    """

    #: The input, as it was given.
    file: Optional[str] = None
    #: The line on which the record starts, from 1 on; None where only the byte is known.
    line: Optional[int] = None
    #: The field, from 1 on; None where the whole record is meant.
    column: Optional[int] = None
    #: The byte at which the record starts, from 0 on.
    byte: Optional[int] = None


class LimitError(OperationalError):
    """A limit was met: raise it, or ask for less."""


class UnavailableError(OperationalError):
    """A disk, a file or a network is not there, or the statement was cancelled: the same may be tried again."""


class RefusedError(OperationalError):
    """A server or a database said no; its code is in the text."""


class StoreError(DatabaseError):
    """Stored bytes are not what was written: keep the files, and see ``coload verify``."""


_KINDS = {
    "limit": LimitError,
    "unavailable": UnavailableError,
    "refused": RefusedError,
    "corrupt": StoreError,
}


def of_kind(
    kind: str, doing: str, text: str, place: Optional[Tuple[str, int, int, int]]
) -> Error:
    """The exception of an error of the library."""
    if kind == "input":
        error = InputError(text)
        if place is not None:
            error.file, error.byte = place[0], place[2]
            error.line, error.column = place[1] or None, place[3] or None
        return error
    if kind == "invalid":
        return SqlError(text) if doing == "statement" else UsageError(text)
    return _KINDS.get(kind, InternalError)(text)
