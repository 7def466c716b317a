"""Expressions at random, in both dialects.

An expression is a pair of texts: of Coload and of DuckDB. Where the dialects differ by design, so do the texts: `/` of
integers is `//` in DuckDB, and a division by zero, an error in one and NULL in the other, is NULL in both.
"""

from conditions import Conditions
from numeric import Numeric
from pairs import Pair, both
from tables import KINDS, POOLS, literal
from times import Times
from words import Words

DEPTH_MAX = 3
TYPES_OF = {}
for _type, _kind in KINDS.items():
    TYPES_OF.setdefault(_kind, []).append(_type)


class Expressions(Numeric, Words, Times, Conditions):
    """Makes expressions over `columns`, triples of name, type and kind."""

    depth_max = DEPTH_MAX

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
        return self.constant(kind)

    def constant(self, kind):
        sql_type = self.random.choice(TYPES_OF[kind])
        if self.random.random() < 0.08:
            return Pair(f"CAST(NULL AS {sql_type})")
        return Pair(literal(self.random.choice(POOLS[sql_type]), sql_type))

    def any_kind(self):
        kinds = sorted({kind for _, _, kind in self.columns}) or sorted(TYPES_OF)
        return self.random.choice(kinds)

    def choice(self, *makers):
        return self.random.choice(makers)()

    def general(self, kind, depth):
        """What there is of any kind."""
        return self.choice(
            lambda: self.case(kind, depth),
            lambda: self.case(kind, depth),
            lambda: self.simple_case(kind, depth),
            lambda: self.coalesce(kind, depth),
            lambda: both("nullif({}, {})", self.of(kind, depth), self.of(kind, depth)),
            lambda: self.extreme(kind, depth),
        )

    def case(self, kind, depth):
        parts = [self.bool_(depth), self.of(kind, depth)]
        if self.random.random() < 0.3:
            more = [self.bool_(depth), self.of(kind, depth)]
            return both("CASE WHEN {} THEN {} WHEN {} THEN {} END", *parts, *more)
        return both("CASE WHEN {} THEN {} ELSE {} END", *parts, self.of(kind, depth))

    def simple_case(self, kind, depth):
        tested = self.any_kind()
        parts = [self.of(tested, depth), self.leaf(tested), self.of(kind, depth), self.leaf(tested)]
        return both("CASE {} WHEN {} THEN {} WHEN {} THEN {} ELSE {} END", *parts, self.leaf(kind), self.of(kind, depth))

    def coalesce(self, kind, depth):
        parts = [self.of(kind, depth) for _ in range(self.random.randint(2, 3))]
        return both("coalesce(" + ", ".join("{}" for _ in parts) + ")", *parts)

    def extreme(self, kind, depth):
        name = self.random.choice(["greatest", "least"])
        parts = [self.of(kind, depth) for _ in range(self.random.randint(2, 3))]
        return both(name + "(" + ", ".join("{}" for _ in parts) + ")", *parts)
