"""The answer of a statement."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Iterator, List, Optional, Tuple

from . import _native

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

Row = Tuple[Any, ...]


class Result:
    """The answer of a statement: columns, and rows that are taken as they come, once.

    Memory does not depend on how many rows there are, unless they are kept: :meth:`arrow`, :meth:`df`, :meth:`pl` and
    :meth:`fetchall` keep all. Dropped or closed before its end, the statement ends.

    >>> import coload
    >>> db = coload.connect("results")
    >>> result = db.sql("SELECT value, value * 2 AS double FROM range(3)")
    >>> result.columns
    ['value', 'double']
    >>> result.fetchone()
    (0, 0)
    >>> list(result)
    [(1, 2), (2, 4)]
    """

    def __init__(self, rows: _native.Rows) -> None:
        self._rows = rows
        self._columns: Optional[List[Tuple[str, str, bool]]] = None
        self._ready: List[Row] = []
        self._next = 0
        self._is_taken = False

    def _described(self) -> List[Tuple[str, str, bool]]:
        if self._columns is None:
            self._columns = self._rows.columns()
        return self._columns

    @property
    def columns(self) -> List[str]:
        """Names of the columns; waits until the statement has started, and one that writes is done."""
        return [name for name, _, _ in self._described()]

    @property
    def types(self) -> List[str]:
        """Types of the columns, as SQL names them.

        >>> import coload
        >>> coload.connect("results").sql("SELECT 1 AS a, 'x' AS b, 1.5 AS c").types
        ['BIGINT', 'VARCHAR', 'DECIMAL(2,1)']
        """
        return [kind for _, kind, _ in self._described()]

    # Streams of Arrow

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The rows as a stream of Arrow, which pyarrow, polars, pandas, DuckDB and others take without a copy."""
        self._take()
        return self._rows.__arrow_c_stream__(requested_schema)

    def _take(self) -> None:
        if self._is_taken or self._next < len(self._ready):
            raise ValueError("rows of this result were taken already: run the statement again")
        self._is_taken = True

    def reader(self) -> "pyarrow.RecordBatchReader":
        """The rows as a ``pyarrow.RecordBatchReader``, whose batches come as they are made.

        >>> import coload
        >>> reader = coload.connect("results").sql("SELECT * FROM range(100000)").reader()
        >>> sum(batch.num_rows for batch in reader)
        100000
        """
        import pyarrow

        self._described()
        return pyarrow.RecordBatchReader.from_stream(self)

    def arrow(self) -> "pyarrow.Table":
        """All rows as a ``pyarrow.Table``.

        >>> import coload
        >>> coload.connect("results").sql("SELECT 1 AS a").arrow().to_pydict()
        {'a': [1]}
        """
        reader = self.reader()
        try:
            return reader.read_all()
        except Exception:
            self._rows.raise_failed()
            raise

    def df(self, **options: Any) -> "pandas.DataFrame":
        """All rows as a pandas data frame; options are those of ``pyarrow.Table.to_pandas``.

        >>> import coload
        >>> coload.connect("results").sql("SELECT 1 AS a, 'x' AS b").df()
           a  b
        0  1  x
        """
        return self.arrow().to_pandas(**options)

    def pl(self) -> "polars.DataFrame":
        """All rows as a polars data frame.

        >>> import coload
        >>> coload.connect("results").sql("SELECT 1 AS a").pl()["a"].to_list()
        [1]
        """
        import polars

        self._described()
        try:
            return polars.DataFrame(self)
        except BaseException:
            self._rows.raise_failed()
            raise

    # Rows as tuples

    def _more(self) -> bool:
        """Whether there are rows that were not taken."""
        while self._next >= len(self._ready):
            if self._is_taken:
                return False
            batch = self._rows.next_rows()
            if batch is None:
                self._is_taken = True
                return False
            self._ready, self._next = batch, 0
        return True

    def fetchone(self) -> Optional[Row]:
        """The next row, or None at the end."""
        if not self._more():
            return None
        self._next += 1
        return self._ready[self._next - 1]

    def fetchmany(self, size: int = 1) -> List[Row]:
        """The next rows, at most so many.

        >>> import coload
        >>> coload.connect("results").sql("SELECT * FROM range(10)").fetchmany(2)
        [(0,), (1,)]
        """
        rows: List[Row] = []
        while len(rows) < size and self._more():
            end = min(self._next + size - len(rows), len(self._ready))
            rows += self._ready[self._next : end]
            self._next = end
        return rows

    def fetchall(self) -> List[Row]:
        """The rows that are left."""
        rows: List[Row] = []
        while self._more():
            rows += self._ready[self._next :]
            self._next = len(self._ready)
        return rows

    def __iter__(self) -> Iterator[Row]:
        while self._more():
            self._next += 1
            yield self._ready[self._next - 1]

    def cancel(self) -> None:
        """Ends the statement, from any thread: whoever waits for rows gets :class:`UnavailableError`."""
        self._rows.cancel()

    def close(self) -> None:
        """Ends the statement, and lets its rows go."""
        self._ready, self._next, self._is_taken = [], 0, True
        self._rows.cancel()

    def __enter__(self) -> "Result":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<coload.Result {'taken' if self._is_taken else 'with rows to take'}>"
