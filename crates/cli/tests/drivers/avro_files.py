"""Writes files of Avro with fastavro, as people have them, and compares what Coload exports of them.

Usage: avro_files.py write FOLDER | avro_files.py check FILE EXPORT.csv | avro_files.py large FILE ROWS CODEC
"""

import csv
import datetime as dt
import decimal
import json
import random
import struct
import sys
import uuid

import fastavro

ROWS = 4_000
CODECS = ["null", "deflate", "snappy", "zstandard", "bzip2", "xz"]
checks = 0

decimal.getcontext().prec = 60


def logical(of, meaning, /, **more):
    return {"type": of, "logicalType": meaning, **more}


POINT = {
    "type": "record",
    "name": "Point",
    "namespace": "org.shapes",
    "fields": [
        {"name": "x", "type": "int"},
        {"name": "label", "type": ["null", {"type": "record", "name": "Label", "fields": [{"name": "text", "type": "string"}]}]},
    ],
}

SCHEMA = {
    "type": "record",
    "name": "Row",
    "namespace": "org.example",
    "doc": "A field of each type.",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "number", "type": ["null", "int"], "default": None},
        {"name": "big", "type": ["long", "null"]},
        {"name": "single", "type": ["null", "float"]},
        {"name": "double", "type": ["null", "double"]},
        {"name": "flag", "type": ["null", "boolean"]},
        {"name": "nothing", "type": "null"},
        {"name": "text", "type": ["null", "string"]},
        {"name": "bytes", "type": ["null", "bytes"]},
        {"name": "fixed", "type": ["null", {"type": "fixed", "name": "Four", "size": 4}]},
        {"name": "suit", "type": ["null", {"type": "enum", "name": "Suit", "symbols": ["SPADES", "HEARTS", "CLUBS"]}]},
        {"name": "again", "type": "Suit"},
        {"name": "money", "type": ["null", logical("bytes", "decimal", precision=12, scale=2)]},
        {"name": "wide", "type": ["null", logical("fixed", "decimal", precision=33, scale=4, name="Wide", size=15)]},
        {"name": "day", "type": ["null", logical("int", "date")]},
        {"name": "clock_ms", "type": ["null", logical("int", "time-millis")]},
        {"name": "clock_us", "type": ["null", logical("long", "time-micros")]},
        {"name": "ts_ms", "type": ["null", logical("long", "timestamp-millis")]},
        {"name": "ts_us", "type": ["null", logical("long", "timestamp-micros")]},
        {"name": "local_ms", "type": ["null", logical("long", "local-timestamp-millis")]},
        {"name": "local_us", "type": ["null", logical("long", "local-timestamp-micros")]},
        {"name": "key", "type": ["null", logical("string", "uuid")]},
        {"name": "point", "type": ["null", POINT]},
        {"name": "list", "type": ["null", {"type": "array", "items": ["null", "int"]}]},
        {"name": "points", "type": {"type": "array", "items": "org.shapes.Point"}},
        {"name": "counts", "type": {"type": "map", "values": "double"}},
        {"name": "either", "type": ["null", "long", "string", "bytes"]},
        {"name": "money_list", "type": {"type": "array", "items": logical("bytes", "decimal", precision=9, scale=3)}},
        {"name": "moments", "type": {"type": "array", "items": logical("long", "timestamp-micros")}},
        {"name": "tail", "type": ["string"]},
    ],
}

# What fastavro writes by its numbers and bytes: its logical types are later than it.
RAW = {
    "type": "record",
    "name": "Raw",
    "fields": [
        {"name": "nanos", "type": logical("long", "timestamp-nanos")},
        {"name": "local_nanos", "type": logical("long", "local-timestamp-nanos")},
        {"name": "span", "type": logical("fixed", "duration", name="Span", size=12)},
        {"name": "id", "type": logical("fixed", "uuid", name="Id", size=16)},
        {"name": "odd", "type": logical("string", "date")},
    ],
}

# A record within itself.
CHAIN = {
    "type": "record",
    "name": "Chain",
    "fields": [{"name": "value", "type": "long"}, {"name": "next", "type": ["null", "Chain"]}],
}


def rows():
    random.seed(8)
    zone = dt.timezone.utc
    start = dt.datetime(2001, 2, 3, 4, 5, 6)
    words = ["", "a", 'q"\\', "line\n", "é😀", "x" * 50]

    def maybe(value):
        return None if random.random() < 0.1 else value

    def point(n):
        return {"x": n, "label": maybe({"text": random.choice(words)})}

    for n in range(ROWS):
        yield {
            "id": n,
            "number": maybe(n * 1_000_003 % 2**31 - 2**30),
            "big": maybe(n * 7_919_000_003 - 2**40),
            "single": maybe(n / 8),
            "double": maybe(n / 3),
            "flag": maybe(n % 3 == 0),
            "nothing": None,
            "text": maybe(f'"é", {n}\n' if n % 5 else "x" * (n % 300 + 1)),
            "bytes": maybe(n.to_bytes(3, "big")),
            "fixed": maybe(n.to_bytes(4, "big")),
            "suit": maybe(["SPADES", "HEARTS", "CLUBS"][n % 3]),
            "again": "CLUBS",
            "money": maybe(decimal.Decimal(n * 7919 - 10**7).scaleb(-2)),
            "wide": maybe(decimal.Decimal(n * 10**25 - 10**27).scaleb(-4)),
            "day": maybe(dt.date(1960, 1, 1) + dt.timedelta(n)),
            "clock_ms": maybe((start + dt.timedelta(milliseconds=n * 7)).time().replace(microsecond=n % 1000 * 1000)),
            "clock_us": maybe((start + dt.timedelta(microseconds=n * 77)).time()),
            "ts_ms": maybe(start.replace(tzinfo=zone) + dt.timedelta(milliseconds=n * 86_399)),
            "ts_us": maybe(start.replace(tzinfo=zone) - dt.timedelta(microseconds=n * 86_399_001)),
            "local_ms": maybe(start + dt.timedelta(milliseconds=n * 86_399)),
            "local_us": maybe(start - dt.timedelta(microseconds=n * 86_399_001)),
            "key": maybe(uuid.UUID(int=n * 2**100 + n)),
            "point": maybe(point(n)),
            "list": maybe([maybe(k) for k in range(n % 4)]),
            "points": [point(k) for k in range(n % 3)],
            "counts": {random.choice(words) + str(k): k / 4 for k in range(n % 4)},
            "either": random.choice([None, n, f"text {n}", b"\x00\xff"]),
            "money_list": [decimal.Decimal(k - 1).scaleb(-3) for k in range(n % 3)],
            "moments": [start.replace(tzinfo=zone) + dt.timedelta(microseconds=k) for k in range(n % 3)],
            "tail": random.choice(words),
        }


def write(folder):
    whole = list(rows())
    for number, codec in enumerate(CODECS):
        with open(f"{folder}/{codec}.avro", "wb") as out:
            fastavro.writer(out, SCHEMA, whole, codec=codec, sync_interval=[16_000, 500, 200_000][number % 3])
    with open(f"{folder}/raw.avro", "wb") as out:
        record = {
            "nanos": 1_500_000_000_123_456_000,
            "local_nanos": -1_000,
            "span": struct.pack("<III", 14, 3, 1500),
            "id": bytes(range(16)),
            "odd": "no date",
        }
        fastavro.writer(out, RAW, [record])
    chain = None
    for n in range(20):
        chain = {"value": n, "next": chain}
    with open(f"{folder}/chain.avro", "wb") as out:
        fastavro.writer(out, CHAIN, [chain, {"value": 7, "next": None}])
    swapped = {"type": "record", "name": "S", "fields": [{"name": "name", "type": "string"}, {"name": "id", "type": "long"}]}
    with open(f"{folder}/swapped.avro", "wb") as out:
        fastavro.writer(out, swapped, [{"name": "c", "id": 4}])
    with open(f"{folder}/empty.avro", "wb") as out:
        fastavro.writer(out, swapped, [])
    equal(True, True, "written")


def flat(schema, value, name, found, named):
    """Adds the columns of a value, and what each holds."""
    if isinstance(schema, str) and schema in named:
        schema = named[schema]
    if isinstance(schema, list):
        kinds = [kind for kind in schema if kind != "null"]
        if len(kinds) == 1:
            return flat(kinds[0], value, name, found, named)
    if isinstance(schema, dict) and schema["type"] == "record":
        for field in schema["fields"]:
            inner = None if value is None else value[field["name"]]
            flat(field["type"], inner, f"{name}.{field['name']}" if name else field["name"], found, named)
        return
    has_many = isinstance(schema, list) or isinstance(schema, dict) and schema["type"] in ("array", "map")
    found.append((name, value, has_many, schema))


def json_of(value):
    if isinstance(value, dict):
        return {key: json_of(item) for key, item in value.items()}
    if isinstance(value, list):
        return [json_of(item) for item in value]
    if isinstance(value, float):
        return decimal.Decimal(value)
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, dt.datetime):
        return moment(value)
    return value


def moment(value):
    shown = value.strftime("%Y-%m-%d %H:%M:%S") + (f".{value.microsecond:06}".rstrip("0") if value.microsecond else "")
    return shown + ("+00" if value.tzinfo else "")


def text(value):
    """A value as Coload's CSV has it."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        return "\\x" + value.hex()
    if isinstance(value, dt.datetime):
        return moment(value)
    if isinstance(value, dt.time):
        return value.strftime("%H:%M:%S") + (f".{value.microsecond:06}".rstrip("0") if value.microsecond else "")
    if isinstance(value, decimal.Decimal):
        return f"{value:f}"
    return str(value)


def check(path, export):
    with open(path, "rb") as file:
        reader = fastavro.reader(file)
        schema, records = reader.writer_schema, list(reader)
    with open(export, newline="", encoding="utf-8") as file:
        found = list(csv.reader(file))
    equal(len(found) - 1, len(records), "rows")
    named = {"org.shapes.Point": POINT, "org.example.Suit": "string"}
    for row, record in enumerate(records):
        columns = []
        flat(schema, record, "", columns, named)
        if row == 0:
            equal(found[0], [name for name, *_ in columns], "names")
        for (name, value, has_many, _), got in zip(columns, found[row + 1]):
            where = f"{name} of row {row}"
            if has_many and value is not None:
                equal(json.loads(got, parse_float=decimal.Decimal), json_of(value), where)
            elif isinstance(value, float):
                equal(float(got), value, where)
            else:
                equal(got, text(value), where)


def large(path, count, codec):
    schema = {
        "type": "record",
        "name": "L",
        "fields": [
            {"name": "id", "type": "long"},
            {"name": "price", "type": "double"},
            {"name": "money", "type": logical("bytes", "decimal", precision=15, scale=2)},
            {"name": "day", "type": ["null", logical("int", "date")]},
            {"name": "kind", "type": {"type": "enum", "name": "K", "symbols": ["AIR", "RAIL", "SHIP", "TRUCK"]}},
            {"name": "note", "type": "string"},
        ],
    }
    kinds = schema["fields"][4]["type"]["symbols"]

    def made():
        day = dt.date(1992, 1, 1)
        for n in range(count):
            yield {
                "id": n,
                "price": n * 7919 % 10**6 / 64,
                "money": decimal.Decimal(n * 7919 % 10**7).scaleb(-2),
                "day": day + dt.timedelta(n * 31 % 2500),
                "kind": kinds[n * 7 % 4],
                "note": f"note {n * 7919 % 1000003} of it",
            }

    with open(path, "wb") as out:
        fastavro.writer(out, schema, made(), codec=codec, sync_interval=64_000)
    equal(True, True, "written")


def equal(found, expected, what):
    global checks
    checks += 1
    if found != expected:
        sys.exit(f"{what}: {found!r}, and {expected!r} was expected")


commands = {"write": write, "check": check, "large": lambda path, count, codec: large(path, int(count), codec)}
commands[sys.argv[1]](*sys.argv[2:])
print(f"{checks} checks")
