"""Connections: stores and servers."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, Iterable, Optional, Sequence

from . import _native
from ._errors import UsageError
from ._load_options import LoadOptions, Size
from ._options import PathLike, paths, words
from ._progress import ProgressOption, Watcher
from ._report import Report
from ._result import Result

if TYPE_CHECKING:
    from typing_extensions import Unpack


class Connection:
    """A store that this process reads and writes, or a server. :func:`connect` makes it.

    Threads may share it. It is of the process that made it: after a fork, connect anew.
    """

    def __init__(self, native: _native.Connection, place: str) -> None:
        self._native = native
        #: What it was connected to.
        self.place = place

    def load(
        self,
        inputs: Any,
        table: Optional[str] = None,
        *,
        progress: ProgressOption = None,
        **options: "Unpack[LoadOptions]",
    ) -> Report:
        """Loads files, or a data frame, into a table: all of it becomes visible at once, or nothing.

        ``inputs`` are names as ``coload load`` takes them (files, globs, ``s3://``, ``https://``, ``postgres://`` and others),
        or an object with rows: a data frame of pandas or polars, a table or a reader of pyarrow, anything with
        ``__arrow_c_stream__``. Rows of Arrow are not copied.

        ``options`` are the flags of ``coload load`` with underscores: ``max_rejects="1%"``, ``null=["NA", "-"]``,
        ``columns="a BIGINT, b DATE"``, ``replace=True``, ``set={"source": "@file"}``. ``coload.load_options()`` lists them.

        ``progress`` is a function that is called with a :class:`Progress`, or whether a bar is shown; without it there is one
        on terminals and in notebooks. Ctrl-C stops the load, and the store is as it was.

        >>> import coload
        >>> _ = open("orders.csv", "w").write("id;price\\n1;2,50\\n2;-\\n")
        >>> db = coload.connect("loads")
        >>> db.load("orders.csv", delimiter=";", decimal_separator=",", null="-", replace=True).rows
        2
        >>> db.sql("SELECT * FROM orders").fetchall()
        [(1, Decimal('2.50')), (2, None)]
        """
        return _load(self._native.load, inputs, {"table": table, **options}, progress)

    def sql(self, statement: str, params: Optional[Sequence[Any]] = None) -> Result:
        """Runs a statement; ``params`` are the values of its ``?`` or ``$1``, ``$2``. One that writes is done when this returns;
        of a query the rows are still being made.

        >>> import coload
        >>> db = coload.connect("statements")
        >>> db.sql("SELECT ? + 1 AS n", [41]).fetchall()
        [(42,)]
        """
        result = Result(self._native.start(statement, params))
        # What is wrong is told here, and a statement that writes is done although nobody looks at its answer.
        result._described()
        return result

    def execute(self, statement: str, params: Optional[Sequence[Any]] = None) -> int:
        """Runs a statement to its end; the number of rows that it wrote, or answered.

        >>> import coload
        >>> db = coload.connect("statements")
        >>> db.execute("CREATE TABLE IF NOT EXISTS numbers (n BIGINT)")
        0
        >>> db.execute("INSERT INTO numbers VALUES (?), (?)", [1, 2])
        2
        """
        with self.sql(statement, params) as result:
            return _count(result)

    def executemany(self, statement: str, rows: Iterable[Sequence[Any]]) -> int:
        """Runs an INSERT, UPDATE or DELETE for each row of values; the number of rows that were written. Rows of an INSERT
        become visible at once.

        >>> import coload
        >>> db = coload.connect("statements")
        >>> db.execute("CREATE TABLE IF NOT EXISTS pairs (a BIGINT, b VARCHAR)")
        0
        >>> db.executemany("INSERT INTO pairs VALUES (?, ?)", [(1, "x"), (2, None)])
        2
        """
        rows = [tuple(row) for row in rows]
        if not rows:
            return 0
        return _count(Result(self._native.start_for_each(statement, rows)))

    def close(self) -> None:
        """Closes it. Results that are open keep what they need."""
        self._native.close()

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self._native.closed

    def __enter__(self) -> "Connection":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<coload.Connection {self.place!r}{' (closed)' if self.closed else ''}>"


def _count(result: Result) -> int:
    if result.columns == ["count"] and result.types == ["DECIMAL(20,0)"]:
        return sum(int(row[0]) for row in result)
    return sum(1 for _ in result)


def _frame(inputs: Any) -> Any:
    """The object that has a stream of Arrow, if the inputs are rows; None if they are names."""
    if hasattr(inputs, "__arrow_c_stream__"):
        return inputs
    if hasattr(inputs, "__arrow_c_array__") or hasattr(inputs, "__dataframe__"):
        import pyarrow

        # Data frames of pandas before 2.2, and single batches.
        if type(inputs).__module__.split(".")[0] == "pandas":
            return pyarrow.Table.from_pandas(inputs)
        return pyarrow.table(inputs)
    return None


def _load(native: Any, inputs: Any, options: Any, progress: ProgressOption) -> Report:
    frame = _frame(inputs)
    if frame is not None:
        if options.get("table") is None:
            raise UsageError("table: give the name of the table, as rows of a program have none")
        kind = type(inputs)
        name = f"{kind.__module__.split('.')[0]}.{kind.__qualname__}"
        said, given = [*words("load", options), "--", name], (_without_index(frame), name)
    else:
        said, given = [*words("load", options), "--", *paths(inputs)], None
    watcher = Watcher(progress)
    try:
        text, notes = native(said, given, watcher.callback)
    finally:
        watcher.end()
    return Report(json.loads(text), notes)


def _without_index(frame: Any) -> Any:
    """A data frame of pandas whose index is no column: a range that counts its rows."""
    if type(frame).__module__.split(".")[0] != "pandas" or not hasattr(frame, "index"):
        return frame
    import pandas
    import pyarrow

    index = frame.index
    is_count = isinstance(index, pandas.RangeIndex) and index.name is None
    if not is_count and any(name is None for name in index.names):
        raise UsageError(
            "the index of the data frame has no name, and would be lost: name it to make it a column "
            "(df.rename_axis('id')), or leave it out (df.reset_index(drop=True))"
        )
    return pyarrow.Table.from_pandas(frame, preserve_index=not is_count)


def connect(
    place: PathLike,
    *,
    user: Optional[str] = None,
    password: Optional[str] = None,
    token: Optional[str] = None,
    tls_ca: Optional[PathLike] = None,
    tls_certificate: Optional[PathLike] = None,
    tls_key: Optional[PathLike] = None,
    threads: Optional[int] = None,
    memory: Optional[Size] = None,
    spill: Optional[PathLike] = None,
    create: bool = True,
) -> Connection:
    """Opens the store of a directory, or connects to a server: ``coload://host:port``, with TLS ``coloads://host:port``.

    A directory that is absent or empty becomes a store, unless ``create`` is false. ``threads``, ``memory`` (bytes, or a text
    such as ``"1GiB"``) and ``spill`` (a folder) are what statements on a store may use. ``user``, ``password`` or ``token``
    are those of a server, and ``tls_ca``, ``tls_certificate``, ``tls_key`` files of PEM; what is not given is taken from
    the variables that the command reads (COLOAD_PASSWORD, COLOAD_TOKEN, COLOAD_TLS_CA and others).

    >>> import coload
    >>> with coload.connect("shop") as db:
    ...     db.sql("SELECT 1 + 1").fetchone()
    (2,)
    """
    named = os.fspath(place)
    if not isinstance(named, str):
        raise TypeError("the name of a store is a str or a path")
    if user is not None:
        scheme, found, rest = named.partition("://")
        if not found or scheme not in ("coload", "coloads"):
            raise UsageError(f"user: {named} is a directory, and users are those of servers")
        if "@" in rest.partition("/")[0]:
            raise UsageError("user: the address names a user already")
        named = f"{scheme}://{user}@{rest}"

    def text(path: Optional[PathLike]) -> Optional[str]:
        return None if path is None else os.fspath(path)

    options = {
        "password": password,
        "token": token,
        "tls_ca": text(tls_ca),
        "tls_certificate": text(tls_certificate),
        "tls_key": text(tls_key),
        "threads": threads,
        "memory": None if memory is None else _bytes(memory),
        "spill": text(spill),
        "create": create,
    }
    return Connection(_native.Connection(named, options), named)


def _bytes(size: Size) -> int:
    """Bytes of a size."""
    if isinstance(size, int):
        return size
    return _native.size(size)
