"""Inputs of `bench/run sources`, made when they are wanted: the seven cases of seed 003, from a fixed seed, and lineitem.

    strings   case              bytes of a text   rows of a file   files   columns       1 GB in all
              many-rows                     100        1,000,000      10         1
              large-rows              1,000,000              100      10         1
              many-columns                1,000            1,000      10       100
              one-file                    1,000        1,000,000       1         1
              ten-files             1,000          100,000      10         1       one-file's bytes in ten
    sales     few-sales, sales       7 decimals       36,000,000 rows in 8 and in 200 files
    json      small-json             one document a file, 100,000 files
    lineitem  lineitem               6,001,215 rows as Parquet (snappy), written by DuckDB
              lineitem-one-group     the same in one row group, by pyarrow: all of it is looked at before its first row
              lineitem-json          its first 2,000,000 rows as lines of JSON

A fixture is a folder in the cache, named by a checksum of this file and of its parameters: what made it is known, and it
is made again only when that changes. A case at another scale has fewer rows, of the same size, in as many files.
"""

import hashlib
import json
import shutil
import subprocess
from pathlib import Path

from rivals.rival import read_schema

SEED = 20030
# Bytes of a row group, about: rows are then as many as fit.
ROW_GROUP_BYTES = 32 << 20
SALES_COLUMNS = ["net", "gross", "tax", "discount", "shipping", "cost", "margin"]

CASES = {
    "many-rows": {"kind": "strings", "bytes": 100, "rows": 1_000_000, "files": 10, "columns": 1},
    "large-rows": {"kind": "strings", "bytes": 1_000_000, "rows": 100, "files": 10, "columns": 1},
    "many-columns": {"kind": "strings", "bytes": 1_000, "rows": 1_000, "files": 10, "columns": 100},
    "one-file": {"kind": "strings", "bytes": 1_000, "rows": 1_000_000, "files": 1, "columns": 1},
    "ten-files": {"kind": "strings", "bytes": 1_000, "rows": 100_000, "files": 10, "columns": 1},
    "few-sales": {"kind": "sales", "rows": 36_000_000 // 8, "files": 8},
    "sales": {"kind": "sales", "rows": 36_000_000 // 200, "files": 200},
    "small-json": {"kind": "json", "rows": 1, "files": 100_000},
    "lineitem": {"kind": "lineitem", "format": "parquet", "rows": 6_001_215, "files": 1},
    "lineitem-one-group": {"kind": "lineitem", "format": "parquet", "rows": 6_001_215, "files": 1, "groups": 1},
    "lineitem-json": {"kind": "lineitem", "format": "json", "rows": 2_000_000, "files": 1},
}


def parameters(case, scale):
    """A case at a scale: fewer rows a file, or fewer files where each has one."""
    chosen = dict(CASES[case])
    of = "files" if chosen["kind"] == "json" else "rows"
    chosen[of] = max(1, round(chosen[of] * scale))
    return chosen


def checksum(case, chosen):
    what = Path(__file__).read_bytes() + json.dumps([case, SEED, chosen], sort_keys=True).encode()
    return hashlib.sha256(what).hexdigest()[:12]


def fixture(cache, case, scale, generator):
    """The folder with the files of a case, made unless it is there; its rows and bytes. `generator` is coload-bench."""
    chosen = parameters(case, scale)
    folder = cache / "sources" / f"{case}-{checksum(case, chosen)}"
    if not folder.is_dir():
        making = folder.with_suffix(".making")
        shutil.rmtree(making, ignore_errors=True)
        making.mkdir(parents=True)
        if chosen["kind"] == "lineitem":
            make_lineitem(making, chosen, cache, generator)
        else:
            {"strings": make_strings, "sales": make_sales, "json": make_json}[chosen["kind"]](making, chosen)
        making.rename(folder)
    files = sorted(folder.iterdir())
    return {
        "folder": folder,
        "format": "json" if "json" in case else "parquet",
        "rows": chosen["rows"] * chosen["files"],
        "files": len(files),
        "bytes": sum(file.stat().st_size for file in files),
    }


def random_of(number):
    import numpy

    return numpy.random.Generator(numpy.random.PCG64([SEED, number]))


def write(path, columns, names, row_bytes):
    import pyarrow
    import pyarrow.parquet

    table = pyarrow.Table.from_arrays(columns, names=names)
    pyarrow.parquet.write_table(
        table, path, compression="snappy", use_dictionary=False, row_group_size=max(1, ROW_GROUP_BYTES // row_bytes)
    )


def make_strings(folder, chosen):
    import numpy
    import pyarrow

    alphabet = numpy.frombuffer(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_", dtype=numpy.uint8)
    size, rows = chosen["bytes"], chosen["rows"]
    for number in range(chosen["files"]):
        random = random_of(number)
        columns = []
        for _ in range(chosen["columns"]):
            text = alphabet[random.integers(0, 64, size * rows, dtype=numpy.uint8)]
            ends = numpy.arange(rows + 1, dtype=numpy.int64) * size
            buffers = [None, pyarrow.py_buffer(ends), pyarrow.py_buffer(text)]
            columns.append(pyarrow.Array.from_buffers(pyarrow.large_utf8(), rows, buffers).cast(pyarrow.utf8()))
        names = [f"text_{column:03}" for column in range(chosen["columns"])]
        write(folder / f"{number:03}.parquet", columns, names, size * chosen["columns"])


def make_sales(folder, chosen):
    import numpy
    import pyarrow

    rows = chosen["rows"]
    for number in range(chosen["files"]):
        random = random_of(number)
        columns = []
        for column in range(len(SALES_COLUMNS)):
            cents = random.integers(0, 10 ** (4 + column), rows, dtype=numpy.int64)
            # 128 bits each, the low ones first; none is negative.
            wide = numpy.zeros((rows, 2), dtype=numpy.int64)
            wide[:, 0] = cents
            decimals = pyarrow.Array.from_buffers(pyarrow.decimal128(18, 2), rows, [None, pyarrow.py_buffer(wide)])
            columns.append(decimals)
        write(folder / f"{number:03}.parquet", columns, SALES_COLUMNS, 8 * len(SALES_COLUMNS))


def make_json(folder, chosen):
    random = random_of(0)
    cities = ["Aachen", "Bergen", "Chur", "Dover", "Espoo", "Fano"]
    for number in range(chosen["files"]):
        document = {
            "id": number,
            "customer": {"name": f"customer {int(random.integers(0, 5000))}", "city": cities[int(random.integers(0, 6))]},
            "amount": round(float(random.integers(100, 1_000_000)) / 100, 2),
            "paid": bool(random.integers(0, 2)),
            "note": "x" * int(random.integers(0, 60)),
        }
        (folder / f"{number:06}.json").write_text(json.dumps(document) + "\n")


def make_lineitem(folder, chosen, cache, generator):
    """The first rows of TPC-H's lineitem in another format, as DuckDB writes it, or pyarrow in so many row groups."""
    import duckdb

    command = [generator, "generate", "lineitem", "--scale", "1", "--cache", cache]
    text = Path(subprocess.run(list(map(str, command)), check=True, capture_output=True, text=True).stdout.strip())
    columns = ", ".join(f"'{column.name}': '{column.type}'" for column in read_schema(text.with_suffix(".sql")).columns)
    rows = f"SELECT * FROM read_csv('{text}', delim = '|', header = false, columns = {{{columns}}}) LIMIT {chosen['rows']}"
    form = "FORMAT parquet, COMPRESSION snappy" if chosen["format"] == "parquet" else "FORMAT json"
    if "groups" in chosen:
        import pyarrow.parquet

        table = duckdb.execute(rows).to_arrow_table()
        rows_of_group = -(-chosen["rows"] // chosen["groups"])
        pyarrow.parquet.write_table(table, folder / "lineitem.parquet", compression="snappy", row_group_size=rows_of_group)
        return
    duckdb.execute(f"COPY ({rows}) TO '{folder}/lineitem.{chosen['format']}' ({form})")
