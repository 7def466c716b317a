"""Expressions that are numbers."""

from pairs import both

INTEGERS = ["TINYINT", "SMALLINT", "INTEGER", "BIGINT"]


class Numeric:
    """Integers, decimals and floats."""

    def int_(self, depth):
        of = lambda kind: self.of(kind, depth)
        small = self.random.choice(["1", "2", "3", "-2"])
        to = self.random.choice(INTEGERS)
        return self.choice(
            lambda: both("({} + {})", of("int"), of("int")),
            lambda: both("({} - {})", of("int"), of("int")),
            lambda: both("({} * {})", of("int"), of("int")),
            lambda: both("({} * " + small + ")", of("int")),
            lambda: both("({} / nullif({}, 0))", of("int"), of("int"), duck="({} // nullif({}, 0))"),
            lambda: both("({} % nullif({}, 0))", of("int"), of("int")),
            lambda: both("(-{})", of("int")),
            lambda: both("abs({})", of("int")),
            lambda: both("({} & {})", of("int"), of("int")),
            lambda: both("({} | {})", of("int"), of("int")),
            lambda: both("gcd(CAST({} AS BIGINT), CAST({} AS BIGINT))", self.leaf("int"), self.leaf("int")),
            lambda: both("lcm(CAST({} AS BIGINT), CAST({} AS BIGINT))", self.leaf("int"), self.leaf("int")),
            lambda: both("CAST(signum({}) AS INTEGER)", of("dbl"), duck="CAST(sign({}) AS INTEGER)"),
            lambda: both("CAST({} AS " + to + ")", of("int")),
            lambda: both("CAST({} AS " + to + ")", of("dec")),
            lambda: both("CAST({} AS " + to + ")", of("dbl")),
            lambda: both("TRY_CAST({} AS " + to + ")", of(self.random.choice(["int", "dec", "dbl", "text", "big", "fine"]))),
            lambda: both("CAST({} AS BIGINT)", of("bool")),
            lambda: self.length(depth),
            lambda: self.length(depth),
            lambda: both("({} - {})", of("date"), of("date")),
            lambda: self.extracted(depth),
            lambda: self.extracted(depth),
            lambda: self.general("int", depth),
            lambda: self.general("int", depth),
        )

    def length(self, depth):
        text = self.of("text", depth)
        return self.choice(
            lambda: both("length({})", text),
            lambda: both("char_length({})", text, duck="length({})"),
            lambda: both("octet_length({})", text, duck="strlen({})"),
            lambda: both("bit_length({})", text),
            lambda: both("ascii({})", text),
            lambda: both("strpos({}, {})", text, self.leaf("text")),
            lambda: both("position({} IN {})", self.leaf("text"), text),
        )

    def dec_(self, depth):
        of = lambda kind: self.of(kind, depth)
        places = self.random.choice(["0", "1", "2", "-1"])
        return self.choice(
            lambda: both("({} + {})", of("dec"), of("dec")),
            lambda: both("({} - {})", of("dec"), of("dec")),
            lambda: both("({} + 1.25)", of("dec")),
            lambda: both("({} * 2.5)", of("dec")),
            lambda: both("({} * {})", self.leaf("dec"), self.leaf("dec")),
            lambda: both("({} + {})", of("dec"), of("int")),
            lambda: both("({} - {})", of("int"), of("dec")),
            lambda: both("({} % nullif({}, 0))", of("dec"), of("dec")),
            lambda: both("(-{})", of("dec")),
            lambda: both("abs({})", of("dec")),
            lambda: both("round({}, " + places + ")", of("dec")),
            lambda: both("CAST({} AS DECIMAL(20,1))", of("dec")),
            lambda: both("CAST({} AS DECIMAL(9,4))", of("dec")),
            lambda: both("TRY_CAST({} AS DECIMAL(5,1))", of("dec")),
            lambda: both("CAST({} AS DECIMAL(24,3))", of("int")),
            lambda: both("CAST({} AS DECIMAL(12,3))", self.leaf("dbl")),
            lambda: both("CAST(CAST({} AS VARCHAR) AS DECIMAL(20,2))", of("dec")),
            lambda: self.general("dec", depth),
            lambda: self.general("dec", depth),
        )

    def big_(self, depth):
        """DECIMAL of all 38 digits, beside no other: DuckDB takes digits after the point away then."""
        of = lambda kind: self.of(kind, depth)
        return self.choice(
            lambda: both("({} + {})", of("big"), of("big")),
            lambda: both("({} - {})", of("big"), of("big")),
            lambda: both("({} % nullif({}, 0))", of("big"), of("big")),
            lambda: both("(-{})", of("big")),
            lambda: both("abs({})", of("big")),
            lambda: both("CAST({} AS DECIMAL(38,0))", of("int")),
            lambda: both("CAST({} AS DECIMAL(38,0))", of("dec")),
            lambda: both("CAST(CAST({} AS VARCHAR) AS DECIMAL(38,0))", of("big")),
            lambda: self.general("big", depth),
            lambda: self.general("big", depth),
        )

    def fine_(self, depth):
        """DECIMAL of 38 digits, ten of them after the point, beside its like and integers."""
        of = lambda kind: self.of(kind, depth)
        places = self.random.choice(["0", "3", "10", "-2"])
        # DuckDB would give all values of a UNION the fewer digits.
        return self.choice(
            lambda: both("({} + {})", of("fine"), of("fine")),
            lambda: both("({} - {})", of("fine"), of("fine")),
            lambda: both("(-{})", of("fine")),
            lambda: both("abs({})", of("fine")),
            lambda: both("CAST(round({}, " + places + ") AS DECIMAL(38,10))", of("fine")),
            lambda: both("CAST({} AS DECIMAL(38,10))", of("int")),
            lambda: both("CAST({} AS DECIMAL(38,10))", of("dec")),
            lambda: both("CAST(CAST({} AS VARCHAR) AS DECIMAL(38,10))", of("fine")),
            lambda: self.general("fine", depth),
            lambda: self.general("fine", depth),
        )

    def dbl_(self, depth):
        of = lambda kind: self.of(kind, depth)
        exact = self.random.choice(["floor", "ceil", "round", "trunc", "abs", "-"])
        return self.choice(
            lambda: both("({} + {})", of("dbl"), of("dbl")),
            lambda: both("({} - {})", of("dbl"), of("dbl")),
            lambda: both("({} * {})", of("dbl"), of("dbl")),
            lambda: both("({} / nullif({}, 0))", of("dbl"), of("dbl")),
            lambda: both("({} / nullif({}, 0))", of("dec"), of("dec")),
            lambda: both("({} / nullif({}, 0.0))", of("int"), of("dec")),
            lambda: both("({} * {})", of("dbl"), of("int")),
            lambda: both("({} + {})", of("dec"), of("dbl")),
            lambda: both("(" + exact + "({}))", of("dbl")),
            lambda: both("(" + exact + "({}))", of("dbl")),
            lambda: self.root(depth),
            lambda: both("CAST({} AS DOUBLE)", of("int")),
            lambda: both("CAST({} AS DOUBLE)", of("dec")),
            lambda: both("CAST({} AS DOUBLE)", of("big")),
            lambda: both("CAST({} AS REAL)", self.leaf("dbl")),
            lambda: both("CAST(extract(epoch FROM {}) AS DOUBLE)", of("ts")),
            lambda: self.general("dbl", depth),
            lambda: self.general("dbl", depth),
        )

    def root(self, depth):
        """Functions of a DOUBLE; those of a REAL are a REAL in Coload."""
        value = both("CAST({} AS DOUBLE)", self.of("dbl", depth))
        return self.choice(
            lambda: both("sqrt(abs({}))", value),
            lambda: both("cbrt({})", value),
            lambda: both("atan({})", value),
            lambda: both("power({}, 2)", value),
            lambda: both("degrees({})", value),
            lambda: both("radians({})", value),
            lambda: both("ln(abs({}) + 1)", value),
            lambda: both("log2(abs({}) + 1)", value),
            lambda: both("atan2({}, 2.5e0)", value),
        )
