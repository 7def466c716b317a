"""Tables, joins and lists of expressions that statements are put together from."""

from expressions import Expressions
from pairs import Pair, both
from tables import KINDS

JOINS = ["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"]


class Sources:
    """Parts of statements."""

    def table(self):
        return self.random.choice(self.tables)

    def columns(self, table, alias):
        return [(f"{alias}.{n}", t, KINDS[t]) for n, t in table.columns]

    def over(self, *aliased):
        columns = [c for table, alias in aliased for c in self.columns(table, alias)]
        return Expressions(self.random, columns)

    def items(self, make, count=None):
        """A list of expressions with names."""
        parts = [make.of(make.any_kind()) for _ in range(count or self.random.randint(1, 3))]
        return self.listed(parts)

    def items_of(self, make, kinds):
        parts = [make.of(self.random.choice(kinds)) for _ in range(self.random.randint(1, 3))]
        return self.listed(parts)

    def listed(self, parts):
        return both(", ".join(f"{{}} AS x{i}" for i in range(len(parts))), *parts)

    def where(self, make):
        return both(" WHERE {}", make.bool_()) if self.random.random() < 0.7 else Pair("")

    def one(self, alias="a"):
        """A table, as it is or behind what a filter cannot be pushed through."""
        table = self.table()
        make = self.over((table, alias))
        if self.random.random() < 0.85:
            return make, Pair(f"{table.name} {alias}")
        names = ", ".join(name for name, _ in table.columns)
        return make, Pair(self.random.choice([
            f"(SELECT * FROM {table.name}) {alias}",
            f"(SELECT *, row_number() OVER (ORDER BY id) AS n FROM {table.name}) {alias}",
            f"(SELECT {names} FROM {table.name} WHERE id < 5 UNION ALL SELECT {names} FROM {table.name} WHERE id >= 5) {alias}",
            f"(SELECT DISTINCT * FROM {table.name}) {alias}",
        ]))

    def joined(self):
        """Two tables, a join of them and expressions over both."""
        left, right = self.table(), self.table()
        make = self.over((left, "a"), (right, "b"))
        word = self.random.choice(JOINS)
        on = self.condition(left, right, make, word)
        return make, both(f"{left.name} a {word} {right.name} b ON {{}}", on)

    def condition(self, left, right, make, word, aliases="ab"):
        pairs = [
            (l, r)
            for l, _, lk in self.columns(left, aliases[0])
            for r, _, rk in self.columns(right, aliases[1])
            if lk == rk
        ]
        l, r = self.random.choice(pairs)
        equal = Pair(f"{l} = {r}")
        more = self.random.random()
        # Without an equality, an outer join has no plan in one engine or the other.
        if more < 0.5:
            return equal
        if word == "FULL JOIN":
            return both("{} AND {}", equal, Pair(f"{self.random.choice(pairs)[0]} IS NOT NULL")) if more < 0.6 else equal
        if more < 0.8:
            return both("{} AND {}", equal, make.bool_(2))
        if more < 0.87:
            return Pair(f"{l} IS NOT DISTINCT FROM {r}")
        return make.bool_(2) if word == "JOIN" else both("{} AND {}", equal, make.bool_(2))

    def source(self):
        return self.joined() if self.random.random() < 0.3 else self.one()
