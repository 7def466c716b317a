"""Writes files and streams of Arrow, and files of Parquet, with pyarrow and DuckDB, as people have them, and compares what
Coload exports of them.

Usage: arrow_files.py write FOLDER | arrow_files.py parquet FOLDER | arrow_files.py check FILE EXPORT.csv
       arrow_files.py large FILE ROWS | arrow_files.py large_parquet FILE ROWS
"""

import csv
import datetime as dt
import decimal
import json
import random
import sys

import duckdb
import pyarrow as pa
import pyarrow.feather
import pyarrow.ipc
import pyarrow.parquet as pq

ROWS = 4_000
EPOCH = dt.datetime(1970, 1, 1)
checks = 0


def table():
    """A column of each type that Coload has, NULLs among the values."""
    random.seed(8)

    def some(value):
        return [None if random.random() < 0.1 else value(n) for n in range(ROWS)]

    day = dt.date(1999, 1, 1)
    money = decimal.Context(prec=76)
    columns = {
        "id": pa.array(range(ROWS), pa.int64()),
        "i8": pa.array(some(lambda n: n % 256 - 128), pa.int8()),
        "u8": pa.array(some(lambda n: n % 256), pa.uint8()),
        "i16": pa.array(some(lambda n: n - 5000), pa.int16()),
        "u16": pa.array(some(lambda n: 65_535 - n), pa.uint16()),
        "i32": pa.array(some(lambda n: -(2**31) + n), pa.int32()),
        "u32": pa.array(some(lambda n: 2**32 - 1 - n), pa.uint32()),
        "u64": pa.array(some(lambda n: 2**64 - 1 - n), pa.uint64()),
        "half": pa.array(some(lambda n: n / 4 - 7), pa.float32()).cast(pa.float16()),
        "single": pa.array(some(lambda n: n / 3), pa.float32()),
        "double": pa.array(some(lambda n: n / 3), pa.float64()),
        "d32": pa.array(some(lambda n: decimal.Decimal(n).scaleb(-2)), pa.decimal32(7, 2)),
        "d64": pa.array(some(lambda n: decimal.Decimal(-n).scaleb(-3)), pa.decimal64(15, 3)),
        "d128": pa.array(some(lambda n: decimal.Decimal(n * 10**25).scaleb(-4, money)), pa.decimal128(33, 4)),
        "d256": pa.array(some(lambda n: decimal.Decimal(-n * 10**30).scaleb(-4, money)), pa.decimal256(38, 4)),
        "flag": pa.array(some(lambda n: n % 3 == 0), pa.bool_()),
        "nothing": pa.nulls(ROWS),
        "day32": pa.array(some(lambda n: day + dt.timedelta(n)), pa.date32()),
        "day64": pa.array(some(lambda n: day + dt.timedelta(n)), pa.date64()),
        "time_s": pa.array(some(lambda n: n), pa.time32("s")),
        "time_ms": pa.array(some(lambda n: n * 7), pa.time32("ms")),
        "time_us": pa.array(some(lambda n: n * 77), pa.time64("us")),
        "time_ns": pa.array(some(lambda n: n * 7000), pa.time64("ns")),
        "ts_s": pa.array(some(lambda n: n * 86_399 - 10**9), pa.timestamp("s")),
        "ts_ms": pa.array(some(lambda n: n * 86_399 - 10**9), pa.timestamp("ms")),
        "ts_us": pa.array(some(lambda n: n * 86_399_001 - 10**12), pa.timestamp("us")),
        "ts_ns": pa.array(some(lambda n: n * 86_399_000 - 10**12), pa.timestamp("ns")),
        "zone": pa.array(some(lambda n: n * 86_399_001), pa.timestamp("us", tz="Europe/Berlin")),
        "text": pa.array(some(lambda n: f'"é", {n}\n' if n % 5 else "x" * (n % 300 + 1)), pa.string()),
        "large": pa.array(some(lambda n: f"large {n}"), pa.large_string()),
        "view": pa.array(some(lambda n: "v" * (n % 40 + 1)), pa.string_view()),
        "bytes": pa.array(some(lambda n: n.to_bytes(3, "big")), pa.binary()),
        "wide": pa.array(some(lambda n: n.to_bytes(16, "big")), pa.large_binary()),
        "seen": pa.array(some(lambda n: n.to_bytes(n % 20 + 2, "big")), pa.binary_view()),
        "fixed": pa.array(some(lambda n: n.to_bytes(4, "big")), pa.binary(4)),
        "coded": pa.array(some(lambda n: f"code {n * n % 97}")).dictionary_encode(),
        "number": pa.array(some(lambda n: n % 50 * 10**6)).dictionary_encode(),
    }
    ends = list(range(7, ROWS, 7)) + [ROWS]
    values = pa.array([None if n % 11 == 0 else f"run {n % 13}" for n in range(len(ends))])
    columns["runs"] = pa.RunEndEncodedArray.from_arrays(pa.array(ends, pa.int32()), values)
    return pa.table(columns)


def without_prefix(file):
    """A file whose schema has no length before it, as polars 2 writes it; zeros behind it keep the places of all else."""
    assert file[8:12] == b"\xff\xff\xff\xff"
    end = 16 + int.from_bytes(file[12:16], "little")
    return file[:8] + file[16:end] + bytes(8) + file[end:]


def write(folder):
    whole = table()
    for name, compression in [("plain", "uncompressed"), ("lz4", "lz4"), ("zstd", "zstd")]:
        pa.feather.write_feather(whole, f"{folder}/{name}.feather", compression=compression, chunksize=1500)
        with open(f"{folder}/{name}.feather", "rb") as file, open(f"{folder}/{name}.arrow", "wb") as bare:
            bare.write(without_prefix(file.read()))
    options = {"plain": None, "lz4": "lz4", "zstd": "zstd"}
    for name, codec in options.items():
        how = pa.ipc.IpcWriteOptions(compression=codec)
        with pa.ipc.new_stream(f"{folder}/{name}.arrows", whole.schema, options=how) as writer:
            for batch in whole.to_batches(max_chunksize=777):
                writer.write_batch(batch)
    # Dictionaries that others take the place of, and such as grow.
    for name, deltas in [("replaced", False), ("grown", True)]:
        how = pa.ipc.IpcWriteOptions(emit_dictionary_deltas=deltas)
        schema = pa.schema([("id", pa.int64()), ("coded", pa.dictionary(pa.int32(), pa.string()))])
        words = [f"word {n}" for n in range(9)]
        with pa.ipc.new_stream(f"{folder}/{name}.arrows", schema, options=how) as writer:
            for n in range(8):
                known = words[: n + 2] if deltas else words[n % 3 : n % 3 + 5]
                keys = pa.array([None if k == 3 else k % len(known) for k in range(10)], pa.int32())
                coded = pa.DictionaryArray.from_arrays(keys, pa.array(known))
                writer.write_batch(pa.record_batch([pa.array(range(n * 10, n * 10 + 10)), coded], schema=schema))
    nested = pa.table(
        {
            "list": pa.array([[1, 2], None, []]),
            "id": pa.array([1, 2, 3]),
            "struct": pa.array([{"a": 1, "b": "x"}, None, {"a": 2, "b": None}]),
            "map": pa.array([[("k", 1)], [], None], pa.map_(pa.string(), pa.int64())),
            "name": pa.array(["a", "b", None]),
            "took": pa.array([1, 2, 3], pa.duration("s")),
        }
    )
    pa.feather.write_feather(nested, f"{folder}/nested.arrow", compression="zstd")
    swapped = pa.table({"name": ["c"], "id": [4]})
    pa.feather.write_feather(swapped, f"{folder}/swapped.arrow")
    big = pa.table({"id": [1], "huge": pa.array([decimal.Decimal(5)], pa.decimal256(50, 2))})
    pa.feather.write_feather(big, f"{folder}/big.arrow")
    equal(True, True, "written")


def parquet(folder):
    whole = table()
    # What Parquet has no type for, or pyarrow does not write.
    whole = whole.drop_columns(["runs"])
    for name in ["d32", "d64"]:
        kind = whole.schema.field(name).type
        at = whole.schema.get_field_index(name)
        whole = whole.set_column(at, name, whole[name].cast(pa.decimal128(kind.precision, kind.scale)))
    numbers = ["id", "i8", "u8", "i16", "u16", "i32", "u32", "u64", "day32", "time_us", "ts_us", "ts_ns", "number"]
    deltas = dict.fromkeys(numbers, "DELTA_BINARY_PACKED")
    deltas |= dict.fromkeys(["text", "bytes", "view"], "DELTA_BYTE_ARRAY")
    deltas |= dict.fromkeys(["large", "wide"], "DELTA_LENGTH_BYTE_ARRAY")
    deltas |= dict.fromkeys(["single", "double", "half", "fixed", "ts_ms", "zone"], "BYTE_STREAM_SPLIT")
    writers = {
        "snappy": {"row_group_size": 1500},
        "zstd": {"compression": "zstd", "use_dictionary": False, "data_page_version": "2.0"},
        "gzip": {"compression": "gzip", "version": "1.0", "row_group_size": 777},
        "lz4": {"compression": "lz4", "data_page_size": 500, "write_page_checksum": True, "dictionary_pagesize_limit": 300},
        "deltas": {"compression": "none", "use_dictionary": False, "column_encoding": deltas, "data_page_size": 900},
        "integers": {"store_decimal_as_integer": True, "write_page_index": True},
    }
    for name, options in writers.items():
        pq.write_table(whole, f"{folder}/{name}.parquet", **options)
    local = whole.drop_columns(["zone"])
    pq.write_table(local, f"{folder}/int96.parquet", use_deprecated_int96_timestamps=True)
    pq.write_table(whole.select(["id"]), f"{folder}/brotli.parquet", compression="brotli")
    finer = pa.table({"ts": pa.array([0, 1500, 3000], pa.timestamp("ns"))})
    pq.write_table(finer, f"{folder}/finer.parquet")
    nested = pa.table(
        {
            "list": pa.array([[1, 2], None, []]),
            "id": pa.array([1, 2, 3]),
            "struct": pa.array([{"a": 1, "b": "x"}, None, {"a": 2, "b": None}]),
            "map": pa.array([[("k", 1)], [], None], pa.map_(pa.string(), pa.int64())),
            "name": pa.array(["a", "b", None]),
        }
    )
    pq.write_table(nested, f"{folder}/nested.parquet")
    pq.write_table(pa.table({"name": ["c"], "id": [4]}), f"{folder}/swapped.parquet")
    pq.write_table(pa.table({"id": [1], "huge": pa.array([decimal.Decimal(5)], pa.decimal256(50, 2))}), f"{folder}/big.parquet")
    names = "id, i8, u8, i16, u16, i32, u32, u64, single, double, d128, flag, day32, time_us, ts_s, ts_ms, ts_us, zone, text, bytes, coded"
    duckdb.sql(f"COPY (SELECT {names} FROM '{folder}/snappy.parquet') TO '{folder}/duckdb.parquet'")
    duckdb.sql(f"COPY (SELECT {names} FROM '{folder}/snappy.parquet') TO '{folder}/duckdb2.parquet' (PARQUET_VERSION V2, COMPRESSION zstd)")
    equal(True, True, "written")


def nested(folder):
    """Lists, maps and groups within each other, with all that may be NULL or empty, in pages of few values."""
    random.seed(9)

    def maybe(make):
        return None if random.random() < 0.15 else make()

    def many(make, most=4):
        return lambda: [maybe(make) for _ in range(random.randrange(most))]

    def number():
        return random.randrange(-5, 1000)

    def word():
        return random.choice(["", "a", 'q"\\', "line\n", "é😀", "x" * 50])

    def point():
        return {"x": maybe(number), "way": maybe(many(word)), "deep": maybe(lambda: {"f": maybe(number), "n": maybe(many(many(number)))})}

    deep = pa.struct([("f", pa.int16()), ("n", pa.list_(pa.list_(pa.int64())))])
    kind = pa.struct([("x", pa.int32()), ("way", pa.list_(pa.string())), ("deep", deep)])
    day = dt.date(2020, 1, 1)
    moment = dt.datetime(2020, 1, 1, 12, 30, 15, 250000)
    columns = {
        "id": (pa.int64(), None),
        "ints": (pa.list_(pa.int64()), many(number)),
        "words": (pa.large_list(pa.list_(pa.string())), many(many(word))),
        "point": (kind, point),
        "points": (pa.list_(kind), many(point)),
        "counts": (pa.map_(pa.string(), pa.int64()), lambda: [(f"k{n}", maybe(number)) for n in range(random.randrange(4))]),
        "by_day": (pa.map_(pa.date32(), kind), lambda: [(day + dt.timedelta(n), maybe(point)) for n in range(random.randrange(3))]),
        "money": (pa.list_(pa.decimal128(20, 3)), many(lambda: decimal.Decimal(number()).scaleb(-3))),
        "whens": (pa.list_(pa.timestamp("us")), many(lambda: moment + dt.timedelta(seconds=number()))),
        "zones": (pa.list_(pa.timestamp("ms", tz="UTC")), many(lambda: moment)),
        "days": (pa.list_(pa.date32()), many(lambda: day + dt.timedelta(number()))),
        "flags": (pa.list_(pa.bool_()), many(lambda: number() % 2 == 0)),
        "raw": (pa.list_(pa.binary()), many(lambda: word().encode() + b"\xff")),
        "half": (pa.list_(pa.float64()), many(lambda: number() / 8)),
        "tail": (pa.string(), word),
    }
    rows = {name: [n if make is None else maybe(make) for n in range(2000)] for name, (_, make) in columns.items()}
    whole = pa.table({name: pa.array(rows[name], kind) for name, (kind, _) in columns.items()})
    writers = {
        "one": {"row_group_size": 700, "data_page_size": 300, "use_dictionary": False},
        "two": {"data_page_version": "2.0", "compression": "zstd", "data_page_size": 200, "write_batch_size": 10},
        "coded": {"compression": "gzip", "dictionary_pagesize_limit": 100, "write_batch_size": 7, "data_page_size": 60},
    }
    for name, options in writers.items():
        pq.write_table(whole, f"{folder}/nested_{name}.parquet", **options)
    # DuckDB writes the same with pages and levels of its own.
    duckdb.sql(f"COPY (SELECT * FROM '{folder}/nested_one.parquet') TO '{folder}/nested_duckdb.parquet' (ROW_GROUP_SIZE 2048)")
    equal(True, True, "written")


def check_nested(path, export):
    """Compares columns of groups, and lists and maps as JSON."""
    whole = pq.ParquetFile(path).read()
    names, columns = [], []

    def flat(name, kind, values):
        if pa.types.is_struct(kind):
            for field in kind:
                inner = [None if value is None else value[field.name] for value in values]
                flat(f"{name}.{field.name}", field.type, inner)
        else:
            names.append(name)
            columns.append([told(value, kind) for value in values])

    for field in whole.schema:
        flat(field.name, field.type, whole[field.name].to_pylist())
    with open(export, newline="") as file:
        found = list(csv.reader(file))
    equal(found[0], names, "names")
    equal(len(found) - 1, whole.num_rows, "rows")
    for at, (name, column) in enumerate(zip(names, columns)):
        for row, value in enumerate(column):
            text = found[row + 1][at]
            try:
                got = json.loads(text, parse_float=decimal.Decimal) if isinstance(value, (list, dict)) else text
            except ValueError as error:
                raise AssertionError(f"{name}, row {row}: {text}: {error}") from error
            want = value if isinstance(value, (list, dict)) else ("" if value is None else str(value))
            equal(got, want, f"{name}, row {row}: {text}")


def told(value, kind):
    """A value as JSON has it that Coload makes of lists and maps; of others as text."""
    if value is None:
        return None
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return [told(item, kind.value_type) for item in value]
    if pa.types.is_map(kind):
        return {str(told(key, kind.key_type)): told(item, kind.item_type) for key, item in value}
    if pa.types.is_struct(kind):
        return {field.name: told(value[field.name], field.type) for field in kind}
    if isinstance(value, (bool, int, decimal.Decimal)):
        return value
    if isinstance(value, float):
        return decimal.Decimal(value)
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, dt.datetime):
        shown = value.strftime("%Y-%m-%d %H:%M:%S") + (f".{value.microsecond:06}".rstrip("0") if value.microsecond else "")
        return shown + ("+00" if value.tzinfo else "")
    return str(value)


def text(value, kind):
    """A value as Coload's CSV has it."""
    if value is None:
        return ""
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        kind = kind.value_type
    if pa.types.is_boolean(kind):
        return "true" if value else "false"
    if isinstance(value, bytes):
        return "\\x" + value.hex()
    if pa.types.is_time(kind) or pa.types.is_timestamp(kind):
        return moment(value, kind)
    if isinstance(value, decimal.Decimal):
        return f"{value:f}"
    return str(value)


def moment(value, kind):
    """`value` counts the units of its type."""
    nanos = value * {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}[kind.unit]
    seconds, nanos = divmod(nanos, 10**9)
    assert nanos % 1000 == 0
    whole = EPOCH + dt.timedelta(seconds=seconds)
    fraction = f".{nanos // 1000:06}".rstrip("0") if nanos else ""
    shown = whole.strftime("%H:%M:%S") + fraction
    if pa.types.is_timestamp(kind):
        shown = whole.strftime("%Y-%m-%d ") + shown + ("+00" if kind.tz else "")
    return shown


def values(column):
    """The values of a column; moments as the numbers that stand there."""
    kind = column.type
    if pa.types.is_time(kind) or pa.types.is_timestamp(kind):
        width = pa.int32() if kind.bit_width == 32 else pa.int64()
        column = column.cast(width)
    return column.to_pylist()


def check(path, export):
    with open(path, "rb") as file:
        magic = file.read(6)
    if magic.startswith(b"PAR1"):
        whole = pq.ParquetFile(path).read()
        compare(whole.schema.names, whole.to_batches(), export)
        return
    is_file = magic == b"ARROW1"
    reader = pa.ipc.open_file(path) if is_file else pa.ipc.open_stream(path)
    batches = [reader.get_batch(n) for n in range(reader.num_record_batches)] if is_file else list(reader)
    compare(reader.schema.names, batches, export)


def compare(names, batches, export):
    with open(export, newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))
    equal(rows[0], names, "names")
    equal(len(rows) - 1, sum(batch.num_rows for batch in batches), "rows")
    at = 1
    for batch in batches:
        for number, column in enumerate(batch.columns):
            for row, value in enumerate(values(column)):
                found = rows[at + row][number]
                kind = column.type
                if value is not None and pa.types.is_floating(kind):
                    equal(float(found), float(value) if kind != pa.float32() else single(found, value), "float")
                    continue
                equal(found, text(value, kind), f"{batch.schema.names[number]} of row {at + row}")
        at += batch.num_rows


def single(found, value):
    """A float of 32 bits has a shorter text than as one of 64."""
    equal(pa.scalar(float(found), pa.float32()).as_py(), value, "float of 32 bits")
    return float(found)


def large(path, rows):
    schema = pa.schema([("id", pa.int64()), ("note", pa.string())])
    with pa.ipc.new_file(path, schema) as writer:
        for first in range(0, rows, 1_000_000):
            ids = pa.array(range(first, min(rows, first + 1_000_000)))
            notes = pa.array([f"note {n * 7919 % 1000003} of it" for n in ids.to_pylist()])
            writer.write_batch(pa.record_batch([ids, notes], schema=schema))
    equal(True, True, "written")


def large_parquet(path, rows):
    """One row group."""
    with pq.ParquetWriter(path, pa.schema([("id", pa.int64()), ("note", pa.string())])) as writer:
        notes = pa.array([f"note {n * 7919 % 1000003} of it" for n in range(rows)])
        writer.write_table(pa.table({"id": pa.array(range(rows)), "note": notes}), row_group_size=rows)
    equal(True, True, "written")


def equal(found, expected, what):
    global checks
    checks += 1
    if found != expected:
        sys.exit(f"{what}: {found!r}, and {expected!r} was expected")


commands = {
    "write": write,
    "parquet": parquet,
    "nested": nested,
    "check_nested": check_nested,
    "check": check,
    "large": lambda path, rows: large(path, int(rows)),
    "large_parquet": lambda path, rows: large_parquet(path, int(rows)),
}
commands[sys.argv[1]](*sys.argv[2:])
print(f"{checks} checks")
