"""Reads Parquet files of a load with pyarrow and DuckDB, as people have them, and compares every value.

parquet_files.py write FILE.csv          writes rows of all types, with what is hard to write
parquet_files.py types DIR [COPIES]      checks that the files hold these rows, so many times
parquet_files.py table DIR FILE.tbl      checks that the files hold the rows of a TPC-H table
"""

import csv
import sys
from datetime import date, datetime, time, timezone
from decimal import Decimal
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet

checks = 0


def equal(found, expected, what):
    global checks
    assert found == expected, f"{what}: {found!r} is not {expected!r}"
    checks += 1


TYPES = {
    "id": ("BIGINT", pa.int64(), False),
    "flag": ("BOOLEAN", pa.bool_(), True),
    "small": ("SMALLINT", pa.int16(), True),
    "whole": ("INTEGER", pa.int32(), True),
    "large": ("BIGINT", pa.int64(), True),
    "money": ("DECIMAL(9,2)", pa.decimal128(9, 2), True),
    "more": ("DECIMAL(18,0)", pa.decimal128(18, 0), True),
    "most": ("DECIMAL(38,10)", pa.decimal128(38, 10), True),
    "real": ("REAL", pa.float32(), True),
    "double": ("DOUBLE", pa.float64(), True),
    "day": ("DATE", pa.date32(), True),
    "hour": ("TIME", pa.time64("us"), True),
    "moment": ("TIMESTAMP", pa.timestamp("us"), True),
    "instant": ("TIMESTAMP WITH TIME ZONE", pa.timestamp("us", "UTC"), True),
    "text": ("VARCHAR", pa.string(), True),
    "code": ("CHAR(3)", pa.string(), False),
    "bytes": ("BINARY", pa.binary(), True),
    "key": ("UUID", pa.string(), True),
}
BLOCK = 997


def utc(*parts):
    return datetime(*parts, tzinfo=timezone.utc)


# For each column: the values that follow one another, with a number of them that has nothing to do with that of others.
VALUES = {
    "flag": [True, None, False],
    "small": [-32768, 32767, 0, None, 7],
    "whole": [-2147483648, None, 2147483647, 0],
    "large": [-9223372036854775808, 9223372036854775807, None],
    "money": [Decimal("-9999999.99"), Decimal("9999999.99"), Decimal("0.01"), None, Decimal("0.00")],
    "more": [Decimal("999999999999999999"), None, Decimal("-1")],
    "most": [Decimal("9" * 28 + "." + "9" * 10), Decimal("-" + "9" * 28 + "." + "9" * 10), None, Decimal("0E-10")],
    "real": [1.5, -0.25, None, 2.0**-126, float("inf")],
    "double": [1e300, 5e-324, -0.1, None, float("-inf")],
    "day": [date(1, 1, 1), date(9999, 12, 31), date(1970, 1, 1), None, date(2024, 2, 29)],
    "hour": [time(0), time(23, 59, 59, 999999), None, time(12, 0, 0, 1)],
    "moment": [datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999), None],
    "instant": [utc(1969, 12, 31, 23, 59, 59, 999999), utc(2038, 1, 19, 3, 14, 8), None],
    "text": ["", None, "a,b", 'say "so"', "line\nbreak", "naïve 数 🦀", " blanks ", "NULL", "x" * 3000, "\u0301"],
    "code": ["abc", "", "é数 "],
    "bytes": [b"", None, b"\x00\xff", b"\xde\xad\xbe\xef" * 40],
    "key": ["00000000-0000-0000-0000-000000000000", None, "ffffffff-ffff-ffff-ffff-ffffffffffff"],
}
ROWS = 30_000


def value(column, row):
    if column == "id":
        return row
    # Values come alone and in runs, and of some columns in parts of the file only.
    values = VALUES[column]
    if column in ("money", "text") and row % BLOCK > 900:
        return None
    if column == "text" and row % 5 == 0:
        return f"{row * 7919 % 30011} and some text"
    if column == "large" and row % 2:
        return row * 1234567
    if column == "most" and row % 7 == 3:
        return Decimal(row * 10**12).scaleb(-10)
    step = row if row % BLOCK < 600 else row // 50
    return values[step % len(values)]


def field(column, value):
    """A value as a field of CSV: NULL is an empty one without quotes, and text stands in quotes."""
    if value is None:
        return ""
    if isinstance(value, bytes):
        return f'"\\x{value.hex()}"'
    if isinstance(value, (str, datetime)) or column == "hour":
        text = value.isoformat(sep=" ") if isinstance(value, datetime) else str(value)
        return '"' + text.replace('"', '""') + '"'
    if isinstance(value, float) and column == "real":
        return repr(value)
    return str(value).lower() if isinstance(value, bool) else format(value, "f") if isinstance(value, Decimal) else str(value)


def write(path):
    with open(path, "w", encoding="utf-8", newline="") as out:
        out.write(",".join(TYPES) + "\n")
        for row in range(ROWS):
            out.write(",".join(field(c, value(c, row)) for c in TYPES) + "\n")


def files(folder):
    found = sorted(Path(folder).glob("*.parquet"))
    assert found, f"no files in {folder}"
    return found


def check_types(folder, copies):
    paths = files(folder)
    for path in paths:
        file = pyarrow.parquet.ParquetFile(path)
        for name, (_, kind, nullable) in TYPES.items():
            column = file.schema_arrow.field(name)
            equal((column.type, column.nullable), (kind, nullable), f"{path.name}: type of {name}")
        for group in range(file.metadata.num_row_groups):
            check_statistics(file, group)
        equal(file.metadata.created_by.split(" ")[0], "coload", "created by")
    expected = {c: [value(c, row) for row in range(ROWS)] * copies for c in TYPES}
    table = pyarrow.dataset.dataset(folder).to_table()
    equal(table.num_rows, ROWS * copies, "rows of the dataset")
    order = pa.concat_tables([pyarrow.parquet.read_table(path) for path in paths])
    for column in TYPES:
        found = order.column(column).to_pylist()
        for row, (one, other) in enumerate(zip(found, expected[column])):
            equal(one, other, f"pyarrow: {column} of row {row}")
    # DuckDB shows instants in the zone of the session, as values with a zone of another library.
    columns = [f'epoch_us("{c}")' if c == "instant" else f'"{c}"' for c in TYPES]
    names = ", ".join(f"'{path}'" for path in paths)
    rows = duckdb.sql(f"SELECT {', '.join(columns)} FROM read_parquet([{names}])").fetchall()
    equal(len(rows), ROWS * copies, "rows of DuckDB")
    for row, found in enumerate(rows):
        for column, one in zip(TYPES, found):
            other = expected[column][row]
            if column == "instant" and other is not None:
                delta = other - utc(1970, 1, 1)
                other = (delta.days * 86400 + delta.seconds) * 10**6 + delta.microseconds
            equal(one, other, f"DuckDB: {column} of row {row}")
    check_filters(names, expected)


def check_statistics(file, group):
    """Statistics are there, and say what the rows are."""
    table = file.read_row_group(group)
    for index, name in enumerate(TYPES):
        statistics = file.metadata.row_group(group).column(index).statistics
        column = table.column(name)
        equal(statistics.null_count, column.null_count, f"NULLs of {name}")
        values = [v for v in column.to_pylist() if v is not None]
        if statistics.has_min_max and values and not isinstance(values[0], float):
            least, largest = statistics.min, statistics.max
            if isinstance(values[0], (str, bytes)):
                as_bytes = lambda v: v.encode() if isinstance(v, str) else v
                assert as_bytes(least) <= min(map(as_bytes, values)), name
                assert as_bytes(largest) >= max(map(as_bytes, values)), name
            elif name not in ("moment", "instant"):
                equal((least, largest), (min(values), max(values)), f"range of {name}")


def check_filters(names, expected):
    """Predicates go by statistics, dictionaries and the index of pages: they must not lose rows."""
    for column, literal, test in [
        ("small", "= 7", lambda v: v == 7),
        ("money", "> 0.005", lambda v: v is not None and v > Decimal("0.005")),
        ("most", "< 0", lambda v: v is not None and v < 0),
        ("double", "= -0.1", lambda v: v == -0.1),
        ("day", "= DATE '2024-02-29'", lambda v: v == date(2024, 2, 29)),
        ("text", "= ''", lambda v: v == ""),
        ("text", "= 'naïve 数 🦀'", lambda v: v == "naïve 数 🦀"),
        ("text", f"= '{'x' * 3000}'", lambda v: v == "x" * 3000),
        ("key", "> 'f'", lambda v: v is not None and v > "f"),
        ("flag", "IS NULL", lambda v: v is None),
    ]:
        sql = f'SELECT count(*) FROM read_parquet([{names}]) WHERE "{column}" {literal}'
        found = duckdb.sql(sql).fetchall()[0][0]
        equal(found, sum(map(test, expected[column])), f"{column} {literal}")


def check_table(folder, path):
    convert = {pa.int64(): int, pa.int32(): int, pa.date32(): date.fromisoformat, pa.string(): str}
    paths = files(folder)
    table = pa.concat_tables([pyarrow.parquet.read_table(path) for path in paths])
    with open(path, encoding="utf-8", newline="") as file:
        rows = [line[:-1] for line in csv.reader(file, delimiter="|", quoting=csv.QUOTE_NONE)]
    equal(table.num_rows, len(rows), "rows")
    names = ", ".join(f"'{path}'" for path in paths)
    others = duckdb.sql(f"SELECT * FROM read_parquet([{names}])").fetchall()
    equal(len(others), len(rows), "rows of DuckDB")
    for index, column in enumerate(table.schema):
        assert not column.nullable, column
        to = convert.get(column.type, Decimal)
        expected = [to(row[index]) for row in rows]
        equal(table.column(index).to_pylist(), expected, f"pyarrow: {column.name}")
        equal([row[index] for row in others], expected, f"DuckDB: {column.name}")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["write", path]:
            write(path)
        case ["types", folder, *copies]:
            check_types(folder, int(copies[0]) if copies else 1)
        case ["table", folder, path]:
            check_table(folder, path)
        case _:
            sys.exit(__doc__)
    print(f"{checks} checks")
