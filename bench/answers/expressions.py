"""Expressions at random, in both dialects.

An expression is a pair of texts: of Coload and of DuckDB. Where the dialects differ by design, so do the texts: `/` of
integers is `//` in DuckDB, and a division by zero, an error in one and NULL in the other, is NULL in both.
"""

from tables import KINDS, POOLS, literal

DEPTH_MAX = 3
COMPARISONS = ["=", "<>", "<", "<=", ">", ">="]
TYPES_OF = {}
for _type, _kind in KINDS.items():
    TYPES_OF.setdefault(_kind, []).append(_type)


class Pair(tuple):
    """Texts for Coload and DuckDB."""

    def __new__(cls, coload, duck=None):
        return tuple.__new__(cls, (coload, coload if duck is None else duck))


def both(pattern, *parts, duck=None):
    """Patterns with the parts in the place of {}."""
    duck = pattern if duck is None else duck
    return Pair(pattern.format(*(p[0] for p in parts)), duck.format(*(p[1] for p in parts)))


class Expressions:
    """Makes expressions over `columns`, triples of name, type and kind."""

    def __init__(self, random, columns):
        self.random, self.columns = random, columns

    def of(self, kind, depth=0):
        """An expression of a kind."""
        leaf = depth >= DEPTH_MAX or self.random.random() < 0.45
        return self.leaf(kind) if leaf else getattr(self, f"{kind}_")(depth + 1)

    def leaf(self, kind):
        named = [name for name, _, k in self.columns if k == kind]
        if named and self.random.random() < 0.75:
            return Pair(self.random.choice(named))
        sql_type = self.random.choice(TYPES_OF[kind])
        if self.random.random() < 0.08:
            return Pair(f"CAST(NULL AS {sql_type})")
        return Pair(literal(self.random.choice(POOLS[sql_type]), sql_type))

    def any_kind(self):
        kinds = sorted({kind for _, _, kind in self.columns})
        return self.random.choice(kinds)

    def choice(self, *makers):
        return self.random.choice(makers)()

    def case(self, kind, depth):
        parts = (self.bool_(depth), self.of(kind, depth), self.of(kind, depth))
        return both("CASE WHEN {} THEN {} ELSE {} END", *parts)

    def coalesce(self, kind, depth):
        return both("coalesce({}, {})", self.of(kind, depth), self.of(kind, depth))

    def nullif(self, kind, depth):
        return both("nullif({}, {})", self.of(kind, depth), self.of(kind, depth))

    def int_(self, depth):
        of = lambda kind: self.of(kind, depth)
        small = self.random.choice(["1", "2", "3", "-2"])
        return self.choice(
            lambda: both("({} + {})", of("int"), of("int")),
            lambda: both("({} - {})", of("int"), of("int")),
            lambda: both("({} * {})", of("int"), of("int")),
            lambda: both("({} * " + small + ")", of("int")),
            lambda: both("({} / nullif({}, 0))", of("int"), of("int"), duck="({} // nullif({}, 0))"),
            lambda: both("({} % nullif({}, 0))", of("int"), of("int")),
            lambda: both("(-{})", of("int")),
            lambda: both("abs({})", of("int")),
            lambda: both("CAST({} AS BIGINT)", of("dec")),
            lambda: both("CAST({} AS INTEGER)", of("dec")),
            lambda: both("CAST({} AS INTEGER)", of("dbl")),
            lambda: both("CAST({} AS BIGINT)", of("bool")),
            lambda: both("length({})", of("text")),
            lambda: both("({} - {})", of("date"), of("date")),
            lambda: both("CAST(extract(" + self.part() + " FROM {}) AS BIGINT)", of("ts")),
            lambda: both("CAST(extract(" + self.part(days=True) + " FROM {}) AS BIGINT)", of("date")),
            lambda: self.case("int", depth),
            lambda: self.coalesce("int", depth),
            lambda: self.nullif("int", depth),
        )

    def part(self, days=False):
        parts = ["year", "month", "day", "quarter", "doy", "dow", "week"]
        return self.random.choice(parts if days else parts + ["hour", "minute"])

    def dec_(self, depth):
        of = lambda kind: self.of(kind, depth)
        return self.choice(
            lambda: both("({} + {})", of("dec"), of("dec")),
            lambda: both("({} - {})", of("dec"), of("dec")),
            lambda: both("({} + 1.25)", of("dec")),
            lambda: both("({} * 2.5)", of("dec")),
            lambda: both("({} * {})", self.leaf("dec"), self.leaf("dec")),
            lambda: both("(-{})", of("dec")),
            lambda: both("abs({})", of("dec")),
            lambda: both("round({}, 1)", of("dec")),
            lambda: both("CAST({} AS DECIMAL(20,1))", of("dec")),
            lambda: both("CAST({} AS DECIMAL(24,3))", of("int")),
            lambda: self.case("dec", depth),
            lambda: self.coalesce("dec", depth),
        )

    def big_(self, depth):
        """DECIMAL of all 38 digits, beside no other: DuckDB takes digits after the point away then."""
        of = lambda kind: self.of(kind, depth)
        return self.choice(
            lambda: both("({} + {})", of("big"), of("big")),
            lambda: both("({} - {})", of("big"), of("big")),
            lambda: both("(-{})", of("big")),
            lambda: both("abs({})", of("big")),
            lambda: self.case("big", depth),
            lambda: self.coalesce("big", depth),
        )

    def dbl_(self, depth):
        of = lambda kind: self.of(kind, depth)
        return self.choice(
            lambda: both("({} + {})", of("dbl"), of("dbl")),
            lambda: both("({} - {})", of("dbl"), of("dbl")),
            lambda: both("({} * {})", of("dbl"), of("dbl")),
            lambda: both("({} / nullif({}, 0))", of("dbl"), of("dbl")),
            lambda: both("({} / nullif({}, 0))", of("dec"), of("dec")),
            lambda: both("({} / nullif({}, 0.0))", of("int"), of("dec")),
            lambda: both("(-{})", of("dbl")),
            lambda: both("abs({})", of("dbl")),
            lambda: both("round({})", of("dbl")),
            lambda: both("floor({})", of("dbl")),
            lambda: both("CAST({} AS DOUBLE)", of("int")),
            lambda: both("CAST({} AS DOUBLE)", of("dec")),
            lambda: self.case("dbl", depth),
            lambda: self.coalesce("dbl", depth),
        )

    def text_(self, depth):
        of = lambda kind: self.of(kind, depth)
        return self.choice(
            lambda: both("({} || {})", of("text"), of("text")),
            lambda: both("upper({})", of("text")),
            lambda: both("lower({})", of("text")),
            lambda: both("substr({}, 1, 2)", of("text")),
            lambda: both("trim({})", of("text")),
            lambda: both("replace({}, 'a', 'bb')", of("text")),
            lambda: both("CAST({} AS VARCHAR)", of("int")),
            lambda: both("CAST({} AS VARCHAR)", of("date")),
            lambda: self.case("text", depth),
            lambda: self.coalesce("text", depth),
            lambda: self.nullif("text", depth),
        )

    def date_(self, depth):
        of = lambda kind: self.of(kind, depth)
        return self.choice(
            lambda: both("CAST({} AS DATE)", of("ts")),
            lambda: self.case("date", depth),
            lambda: self.coalesce("date", depth),
        )

    def ts_(self, depth):
        of = lambda kind: self.of(kind, depth)
        sign = self.random.choice("+-")
        return self.choice(
            lambda: both("({} " + sign + " {})", of("ts"), self.interval()),
            lambda: both("({} " + sign + " {})", of("date"), self.interval()),
            lambda: both("CAST({} AS TIMESTAMP)", of("date")),
            lambda: both("({} + {})", of("date"), of("time")),
            lambda: both("date_trunc('" + self.unit() + "', {})", of("ts")),
            lambda: self.case("ts", depth),
            lambda: self.coalesce("ts", depth),
        )

    def unit(self):
        return self.random.choice(["year", "quarter", "month", "week", "day", "hour", "minute"])

    def time_(self, depth):
        return self.choice(
            lambda: both("CAST({} AS TIME)", self.of("ts", depth)),
            lambda: self.case("time", depth),
            lambda: self.coalesce("time", depth),
        )

    def interval(self):
        return Pair(self.random.choice([
            "interval '1 day'", "interval '25 hours'", "interval '1 month'", "interval '30 days'",
            "interval '90 minutes'", "interval '1 year'", "interval '0 days'", "interval '12 months'",
            "interval '-1 day'", "interval '1 second'",
        ]))

    def bool_(self, depth=1):
        of = lambda kind: self.of(kind, depth)
        kind = self.any_kind()
        op = self.random.choice(COMPARISONS)
        logic = lambda: self.bool_(depth + 1) if depth < DEPTH_MAX else self.compare(kind, op, depth)
        return self.choice(
            lambda: self.compare(kind, op, depth),
            lambda: self.compare(kind, op, depth),
            lambda: self.mixed(op, depth),
            lambda: both("({} AND {})", logic(), logic()),
            lambda: both("({} OR {})", logic(), logic()),
            lambda: both("(NOT {})", logic()),
            lambda: both("({} IS NULL)", of(kind)),
            lambda: both("({} IS NOT NULL)", of(kind)),
            lambda: both("(({}) IS TRUE)", logic()),
            lambda: both("({} BETWEEN {} AND {})", of(kind), of(kind), of(kind)),
            lambda: both("({} NOT BETWEEN {} AND {})", of(kind), self.leaf(kind), self.leaf(kind)),
            lambda: both("({} IS DISTINCT FROM {})", of(kind), of(kind)),
            lambda: both("({} IS NOT DISTINCT FROM {})", of(kind), of(kind)),
            lambda: self.in_list(kind, depth),
            lambda: self.like(),
            lambda: both("(({} - {}) " + op + " {})", of("ts"), of("ts"), self.interval()),
            lambda: both("({} " + op + " {})", self.interval(), self.interval()),
        )

    def compare(self, kind, op, depth):
        return both("({} " + op + " {})", self.of(kind, depth), self.of(kind, depth))

    def mixed(self, op, depth):
        one, other = self.random.choice(
            [("int", "dec"), ("int", "dbl"), ("date", "ts"), ("dec", "int"), ("ts", "date")]
        )
        return both("({} " + op + " {})", self.of(one, depth), self.of(other, depth))

    def in_list(self, kind, depth):
        items = [self.leaf(kind) for _ in range(self.random.randint(1, 3))]
        word = self.random.choice(["IN", "NOT IN"])
        holes = ", ".join("{}" for _ in items)
        return both("({} " + word + " (" + holes + "))", self.of(kind, depth), *items)

    def like(self):
        pattern = self.random.choice(["a%", "%b", "_", "%", "", "%a%", "_x", "b\\%"])
        word = self.random.choice(["LIKE", "NOT LIKE", "ILIKE"])
        escape = " ESCAPE '\\'"
        return both("({} " + word + f" '{pattern}'" + "{})", self.leaf("text"), Pair("", escape))
