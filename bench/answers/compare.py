"""Whether two answers are the same: rows, types and, where a statement says so, the order.

What may differ is listed here, and nothing else: names of types of one class, the average of decimals, the last digits of
floats, the form in which a time is printed.
"""

import datetime
import decimal
import math
import re
import struct

from pairs import Ordered

# Sorting must not round numbers of 38 digits.
decimal.getcontext().prec = 100

# Digits of floats that must agree: they are added in different orders.
FLOAT_RELATIVE = 1e-9
# What may be left where large floats cancel each other out.
FLOAT_ABSOLUTE = 1e-9
SORTED_DIGITS = 9

BEFORE_CHRIST = re.compile(r"\d{4}-\d\d-\d\d( \(BC\)| \(BC\) .*| .* \(BC\))")

YEAR_ZERO = re.compile(r"(0000|-\d{4})-\d\d-\d\d")

ARROW_CLASSES = (
    ("Int", "int"), ("UInt", "int"), ("Decimal", "decimal"), ("Float", "float"), ("Boolean", "bool"), ("Date", "date"),
    ("Timestamp", "timestamp"), ("Time", "time"), ("Utf8", "text"), ("LargeUtf8", "text"), ("Null", "null"),
)
DUCK_CLASSES = {
    "TINYINT": "int", "SMALLINT": "int", "INTEGER": "int", "BIGINT": "int", "HUGEINT": "int", "UTINYINT": "int",
    "USMALLINT": "int", "UINTEGER": "int", "UBIGINT": "int", "UHUGEINT": "int", "FLOAT": "float", "DOUBLE": "float",
    "BOOLEAN": "bool", "DATE": "date", "TIMESTAMP": "timestamp", "TIME": "time", "VARCHAR": "text", '"NULL"': "null",
}


def difference(coload, duck, statement):
    """What differs between rows as texts and the rows that DuckDB gave; None if nothing does."""
    if len(coload.rows) != len(duck.rows):
        return "the number of rows"
    if not coload.rows:
        return None
    classes = list(zip(map(arrow_class, coload.types), map(duck_class, duck.types)))
    for (ours, theirs), arrow, values in zip(classes, coload.types, zip(*duck.rows)):
        same = same_class(ours, theirs, arrow, statement[0])
        if not same and any(value is not None for value in values):
            return f"a type: {arrow}, {theirs}"
    kinds = [Kind(arrow, theirs) for arrow, (_, theirs) in zip(coload.types, classes)]
    ours = [tuple(kind.ours(v) for kind, v in zip(kinds, row)) for row in coload.rows]
    theirs = [tuple(kind.theirs(v) for kind, v in zip(kinds, row)) for row in duck.rows]
    return None if equal(ours, theirs, kinds, isinstance(statement, Ordered)) else "a value"


def difference_of_rows(one, other):
    """As `difference`, of two answers of Coload."""
    if len(one.rows) != len(other.rows):
        return "the number of rows"
    if not one.rows:
        return None
    kinds = [Kind(arrow, arrow_class(arrow)) for arrow in one.types]
    others = [Kind(arrow, arrow_class(arrow)) for arrow in other.types]
    if [k.name for k in kinds] != [k.name for k in others]:
        return "a type"
    read = lambda answer: [tuple(kind.ours(v) for kind, v in zip(kinds, row)) for row in answer.rows]
    return None if equal(read(one), read(other), kinds, False) else "a value"


def equal(ours, theirs, kinds, ordered):
    """Whether rows pair off. Any order that pairs them shows it: rounded floats do where sums differ in their last digits,
    and exact ones behind all else do where floats that differ round to the same."""
    near = lambda a, b: all(kind.same(x, y) for kind, x, y in zip(kinds, a, b))
    if ordered:
        return all(map(near, ours, theirs))
    return any(all(map(near, sorted(ours, key=key), sorted(theirs, key=key))) for key in (rounded, exact))


def arrow_class(arrow):
    return next((name for start, name in ARROW_CLASSES if arrow.startswith(start)), arrow)


def duck_class(name):
    return "decimal" if name.startswith("DECIMAL") else DUCK_CLASSES.get(name, name)


def same_class(ours, theirs, arrow, sql):
    """A sum of integers is a DECIMAL without digits after the point here, an average of decimals one with more digits."""
    if ours == theirs or "null" in (ours, theirs):
        return True
    if ours != "decimal":
        return False
    return theirs == "float" and "avg(" in sql or theirs == "int" and arrow.endswith(", 0)") and "sum(" in sql


class Kind:
    """How values of a column are read and compared."""

    def __init__(self, arrow, theirs):
        self.arrow, self.name = arrow, arrow_class(arrow)
        # The average of decimals: as a DOUBLE in DuckDB, and with four digits more than they have here.
        self.is_average = self.name == "decimal" and theirs == "float"
        scale = int(arrow.rstrip(")").split(",")[1]) if self.name == "decimal" else 0
        self.half_unit = 0.5 * 10.0**-scale

    def ours(self, text):
        """A text as the value that it stands for."""
        if text is None:
            return None
        if self.name == "float":
            return self.real(float(text))
        if self.name in ("int", "decimal"):
            return float(text) if self.is_average else decimal.Decimal(text)
        if self.name == "bool":
            return text == "true"
        if self.name in ("timestamp", "time", "date") or YEAR_ZERO.match(text):
            return instant(text)
        return text

    def theirs(self, value):
        """A value of DuckDB as `ours` would give it."""
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, float):
            return value if self.is_average else self.real(value)
        if isinstance(value, (int, decimal.Decimal)):
            return decimal.Decimal(value)
        if isinstance(value, (datetime.datetime, datetime.date, datetime.time)):
            return instant(value.isoformat())
        # Of years that Python does not have, and as text of years before the first.
        is_moment = self.name in ("timestamp", "date") or BEFORE_CHRIST.fullmatch(value)
        return instant(value) if is_moment else value

    def real(self, value):
        if self.arrow == "Float32" and not math.isinf(value):
            try:
                value = struct.unpack("f", struct.pack("f", value))[0]
            except OverflowError:
                value = math.copysign(math.inf, value)
        return value + 0.0

    def same(self, a, b):
        if isinstance(a, float) and isinstance(b, float):
            if math.isnan(a) or math.isnan(b):
                return math.isnan(a) and math.isnan(b)
            absolute = self.half_unit * 1.001 if self.is_average else FLOAT_ABSOLUTE
            return a == b or math.isclose(a, b, rel_tol=FLOAT_RELATIVE, abs_tol=absolute)
        return a == b


def instant(text):
    """One form for times: midnight is the date, and zeros at the end go."""
    text = text.replace("T", " ").removesuffix(" 00:00:00")
    # Rust writes a year of five digits with its sign.
    text = text.removeprefix("+")
    if "(BC)" in text:
        # DuckDB has no year 0.
        year, rest = text.replace(" (BC)", "").split("-", 1)
        year = 1 - int(year)
        text = f"{year:0{4 if year >= 0 else 5}d}-{rest}".removesuffix(" 00:00:00")
    return text.rstrip("0").rstrip(".") if "." in text else text


def rounded(row):
    return tuple(
        (1, "") if v is None else (0, f"{v:.{SORTED_DIGITS}g}" if isinstance(v, float) else text(v))
        for v in row
    )


def exact(row):
    others = tuple(None if isinstance(v, float) else (v is None, "" if v is None else text(v)) for v in row)
    floats = tuple((math.isnan(v), 0.0 if math.isnan(v) else v) if isinstance(v, float) else None for v in row)
    return [(0,) if v is None else (1, *v) for v in others + floats]


def text(value):
    if isinstance(value, decimal.Decimal):
        return f"{value.normalize():f}"
    return str(value)
