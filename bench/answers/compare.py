"""Whether two answers are the same rows, in whatever order."""

import datetime
import decimal
import math
import struct

# Digits that floats must agree in: sums are added in different orders.
SIGNIFICANT = 9


def same(coload, duck):
    """Whether rows as texts are the rows that DuckDB gave."""
    if len(coload.rows) != len(duck.rows):
        return False
    ours = [tuple(map(read, row, other_types(duck, coload), coload.types)) for row in coload.rows]
    theirs = [tuple(map(plain, row, coload.types)) for row in duck.rows]
    if sorted(map(key, ours)) == sorted(map(key, theirs)):
        return True
    pairs = zip(sorted(ours, key=key), sorted(theirs, key=key))
    return all(all(map(near, a, b)) for a, b in pairs)


def same_rows(one, other):
    """Whether two answers of one engine are the same."""
    if len(one.rows) != len(other.rows):
        return False
    rows = []
    for answer in (one, other):
        kinds = [type(None)] * len(answer.types)
        rows.append(sorted((tuple(map(read, r, kinds, answer.types)) for r in answer.rows), key=key))
    return all(all(map(near, a, b)) for a, b in zip(*rows))


def other_types(duck, coload):
    """The Python type of each column, of the first value that has one."""
    width = len(coload.types)
    types = [type(None)] * width
    for row in duck.rows:
        for at, value in enumerate(row[:width]):
            if types[at] is type(None) and value is not None:
                types[at] = type(value)
    return types


def read(text, kind, arrow):
    """A text as the value that it stands for."""
    if text is None:
        return None
    if arrow.startswith("Float"):
        return real(float(text), arrow)
    if arrow.startswith(("Int", "UInt", "Decimal")):
        return float(text) if kind is float else decimal.Decimal(text)
    if arrow == "Boolean":
        return text == "true"
    if arrow.startswith(("Timestamp", "Time64", "Date")):
        return instant(text)
    return text


def plain(value, arrow):
    """A value of DuckDB as `read` would give it."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, float):
        return real(value, arrow)
    if isinstance(value, (int, decimal.Decimal)):
        if arrow.startswith("Float"):
            return real(float(value), arrow)
        return decimal.Decimal(value)
    if isinstance(value, (datetime.datetime, datetime.date, datetime.time)):
        return instant(value.isoformat())
    if arrow.startswith(("Timestamp", "Date")):
        # Of years that Python does not have.
        return instant(value)
    return value


def instant(text):
    """One form for dates, times and timestamps: midnight is the date, and zeros at the end go."""
    text = text.replace("T", " ").removesuffix(" 00:00:00")
    # Rust writes a year of five digits with its sign.
    text = text.removeprefix("+")
    if "(BC)" in text:
        # DuckDB has no year 0.
        year, rest = text.replace(" (BC)", "").split("-", 1)
        text = f"{1 - int(year):04d}-{rest}".removesuffix(" 00:00:00")
    return text.rstrip("0").rstrip(".") if "." in text else text


def real(value, arrow):
    if arrow == "Float32" and not math.isinf(value):
        try:
            value = struct.unpack("f", struct.pack("f", value))[0]
        except OverflowError:
            value = math.copysign(math.inf, value)
    return value + 0.0


def key(row):
    return tuple(
        (1, "") if v is None else (0, f"{v:.{SIGNIFICANT}g}" if isinstance(v, float) else text(v))
        for v in row
    )


def text(value):
    if isinstance(value, decimal.Decimal):
        return f"{value.normalize():f}"
    return str(value)


def near(a, b):
    if isinstance(a, float) and isinstance(b, float):
        both = (a, b)
        if any(map(math.isnan, both)):
            return all(map(math.isnan, both))
        # An average of decimals has four more digits than they have.
        return a == b or math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-4)
    return a == b
