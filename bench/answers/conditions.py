"""Expressions that are true, false or NULL."""

from pairs import Pair, both
from words import PATTERNS

COMPARISONS = ["=", "<>", "<", "<=", ">", ">="]
MIXED = [("int", "dec"), ("int", "dbl"), ("date", "ts"), ("dec", "int"), ("ts", "date"), ("dec", "dbl"), ("big", "int")]
LIKES = ["a%", "%b", "_", "%", "", "%a%", "_x", "b\\%", "é", "%é", "__", "\\_%", "%\\\\%", "日%"]


class Conditions:
    """Conditions."""

    def bool_(self, depth=1):
        of = lambda kind: self.of(kind, depth)
        kind = self.any_kind()
        op = self.random.choice(COMPARISONS)
        logic = lambda: self.bool_(depth + 1) if depth < self.depth_max else self.compare(kind, op, depth)
        truth = self.random.choice(["TRUE", "FALSE", "NOT TRUE", "NOT FALSE", "UNKNOWN", "NOT UNKNOWN"])
        duck_truth = truth.replace("UNKNOWN", "NULL")
        return self.choice(
            lambda: self.compare(kind, op, depth),
            lambda: self.compare(kind, op, depth),
            lambda: self.beside_constant(op),
            lambda: self.beside_constant(op),
            lambda: self.mixed(op, depth),
            lambda: both("({} AND {})", logic(), logic()),
            lambda: both("({} OR {})", logic(), logic()),
            lambda: both("(NOT {})", logic()),
            lambda: both("({} IS NULL)", of(kind)),
            lambda: both("({} IS NOT NULL)", of(kind)),
            lambda: both("(({}) IS " + truth + ")", logic(), duck="(({}) IS " + duck_truth + ")"),
            lambda: both("({} " + op + " {})", logic(), logic()),
            lambda: both("({} BETWEEN {} AND {})", of(kind), of(kind), of(kind)),
            lambda: both("({} NOT BETWEEN {} AND {})", of(kind), self.leaf(kind), self.leaf(kind)),
            lambda: both("({} IS DISTINCT FROM {})", of(kind), of(kind)),
            lambda: both("({} IS NOT DISTINCT FROM {})", of(kind), of(kind)),
            lambda: self.in_list(kind, depth),
            lambda: self.in_list(kind, depth),
            lambda: self.like(),
            lambda: self.matches(),
            lambda: both("(({} - {}) " + op + " {})", of("ts"), of("ts"), self.interval()),
            lambda: both("({} " + op + " {})", self.interval(), self.interval()),
            lambda: self.case("bool", depth),
            lambda: self.coalesce("bool", depth),
        )

    def compare(self, kind, op, depth):
        return both("({} " + op + " {})", self.of(kind, depth), self.of(kind, depth))

    def beside_constant(self, op):
        """What a scan tests by itself."""
        if not self.columns:
            return self.compare("int", op, self.depth_max)
        name, _, kind = self.random.choice(self.columns)
        sides = [Pair(name), self.constant(kind)]
        self.random.shuffle(sides)
        return both("({} " + op + " {})", *sides)

    def mixed(self, op, depth):
        one, other = self.random.choice(MIXED)
        return both("({} " + op + " {})", self.of(one, depth), self.of(other, depth))

    def in_list(self, kind, depth):
        constants = self.random.random() < 0.5
        count = self.random.choice([1, 2, 3, 5])
        items = [self.constant(kind) if constants else self.leaf(kind) for _ in range(count)]
        word = self.random.choice(["IN", "NOT IN"])
        holes = ", ".join("{}" for _ in items)
        return both("({} " + word + " (" + holes + "))", self.of(kind, depth), *items)

    def like(self):
        pattern = self.random.choice(LIKES)
        word = self.random.choice(["LIKE", "NOT LIKE", "ILIKE", "NOT ILIKE"])
        escape = " ESCAPE '\\'"
        return both("({} " + word + f" '{pattern}'" + "{})", self.of("text", 2), Pair("", escape))

    def matches(self):
        pattern = self.random.choice(PATTERNS)
        text = self.of("text", 2)
        return self.choice(
            lambda: both(f"({{}} ~ '{pattern}')", text, duck=f"regexp_matches({{}}, '{pattern}')"),
            lambda: both(f"({{}} !~ '{pattern}')", text, duck=f"(NOT regexp_matches({{}}, '{pattern}'))"),
            lambda: both(f"({{}} ~* '{pattern}')", text, duck=f"regexp_matches({{}}, '{pattern}', 'i')"),
            lambda: both(f"regexp_like({{}}, '{pattern}')", text, duck=f"regexp_matches({{}}, '{pattern}')"),
            lambda: both("starts_with({}, {})", text, self.leaf("text")),
            lambda: both("ends_with({}, {})", text, self.leaf("text")),
            lambda: both("contains({}, {})", text, self.leaf("text")),
        )
