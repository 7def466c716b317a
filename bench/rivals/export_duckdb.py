"""DuckDB: COPY of a query into a file; and whether two files hold the same rows in the same order."""

import json
import sys

import duckdb
import rival


def main():
    mode, database, query, *rest = sys.argv[1:]
    connection = duckdb.connect(database, read_only=True)
    if mode == "write":
        file, threads = rest
        connection.execute(f"SET threads = {threads}")
        clock = rival.Clock()
        connection.execute(f"COPY ({query}) TO '{file}'")
        print(json.dumps(clock.stop()))
        return
    columns = connection.execute(f"DESCRIBE {query}").fetchall()
    sums = [checked(connection, file, {name: kind for name, kind, *_ in columns}) for file in rest]
    if sums[0] != sums[1]:
        sys.exit(f"{rest[0]}: {sums[0]}, {rest[1]}: {sums[1]}")


def checked(connection, file, types):
    """Rows, and a sum over what they hold and where they stand."""
    rows = f"read_parquet('{file}')"
    if file.endswith(".csv"):
        rows = f"read_csv('{file}', columns = {types}, header = true, delim = ',', quote = '\"', escape = '\"', allow_quoted_nulls = false, auto_detect = false)"
    values = ", ".join(f'CAST("{name}" AS {kind})' for name, kind in types.items())
    numbered = f"SELECT row_number() OVER () AS place, hash({values}) AS values FROM {rows}"
    return connection.execute(f"SELECT count(*), sum(hash(place, values)) FROM ({numbered})").fetchone()


main()
