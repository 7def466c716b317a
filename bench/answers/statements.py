"""Statements at random over the tables of a round."""

from expressions import Expressions, Pair, both
from tables import KINDS

JOINS = ["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"]
ORDERED = ("int", "dec", "big", "dbl", "date", "ts", "text", "time")


class Check:
    """Statements of Coload whose answers must be the same: the ways of SQLancer (TLP, NoREC)."""

    def __init__(self, name, one, other):
        self.name, self.one, self.other = name, one, other


class Statements:
    """Makes statements, in both dialects, or checks."""

    def __init__(self, random, tables):
        self.random, self.tables = random, tables

    def next(self):
        """A name, and a Pair or a Check."""
        maker = self.random.choice([
            self.plain, self.plain, self.join, self.join, self.group, self.group, self.having,
            self.window, self.set_operation, self.subquery, self.subquery, self.scalar, self.top,
            self.tlp, self.norec, self.distinct, self.tlp_sum,
        ])
        return maker.__name__, maker()

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

    def listed(self, parts):
        return both(", ".join(f"{{}} AS x{i}" for i in range(len(parts))), *parts)

    def where(self, make):
        return both(" WHERE {}", make.bool_()) if self.random.random() < 0.7 else Pair("")

    def plain(self):
        table = self.table()
        make = self.over((table, "a"))
        return both("SELECT {} FROM " + table.name + " a{}", self.items(make), self.where(make))

    def distinct(self):
        table = self.table()
        make = self.over((table, "a"))
        return both("SELECT DISTINCT {} FROM " + table.name + " a{}", self.items(make), self.where(make))

    def top(self):
        table = self.table()
        make = self.over((table, "a"))
        count = self.random.randint(1, 3)
        order = ", ".join(
            f"{i + 1} {self.random.choice(['ASC', 'DESC'])} NULLS {self.random.choice(['FIRST', 'LAST'])}"
            for i in range(count)
        )
        tail = f" ORDER BY {order} LIMIT {self.random.randint(0, 9)}"
        return both("SELECT {} FROM " + table.name + " a{}" + tail, self.items(make, count), self.where(make))

    def joined(self):
        """Two tables, a join of them and expressions over both."""
        left, right = self.table(), self.table()
        make = self.over((left, "a"), (right, "b"))
        word = self.random.choice(JOINS)
        on = self.condition(left, right, make, word)
        return make, both(f"{left.name} a {word} {right.name} b ON {{}}", on)

    def condition(self, left, right, make, word):
        pairs = [
            (l, r)
            for l, _, lk in self.columns(left, "a")
            for r, _, rk in self.columns(right, "b")
            if lk == rk
        ]
        l, r = self.random.choice(pairs)
        equal = Pair(f"{l} = {r}")
        more = self.random.random()
        # Without an equality, an outer join has no plan in one engine or the other.
        if more < 0.5:
            return equal
        if more < 0.8 or word == "FULL JOIN":
            return equal if word == "FULL JOIN" else both("{} AND {}", equal, make.bool_(2))
        return make.bool_(2) if word == "JOIN" else both("{} AND {}", equal, make.bool_(2))

    def join(self):
        make, source = self.joined()
        return both("SELECT {} FROM {}{}", self.items(make), source, self.where(make))

    def source(self):
        if self.random.random() < 0.3:
            return self.joined()
        table = self.table()
        return self.over((table, "a")), Pair(f"{table.name} a")

    def aggregate(self, make):
        kind = make.any_kind()
        value = make.of(kind, 2)
        distinct = self.random.choice(["", "", "DISTINCT "])
        simple = [both("count(*)"), both("count(" + distinct + "{})", value)]
        if kind != "bool":
            simple += [both("min({})", value), both("max({})", value)]
        if kind in ("int", "dec", "big"):
            simple += [both("sum(" + distinct + "{})", value), both("avg({})", value)] * 2
        if kind == "dbl":
            simple += [both("sum({})", value), both("avg({})", value)]
        chosen = self.random.choice(simple)
        if self.random.random() < 0.15:
            return both("{} FILTER (WHERE {})", chosen, make.bool_(2))
        return chosen

    def group(self):
        make, source = self.source()
        aggregates = [self.aggregate(make) for _ in range(self.random.randint(1, 3))]
        if self.random.random() < 0.4:
            return both("SELECT {} FROM {}{}", self.listed(aggregates), source, self.where(make))
        keys = [make.of(make.any_kind(), 2) for _ in range(self.random.randint(1, 2))]
        by = ", ".join(str(i + 1) for i in range(len(keys)))
        items = self.listed(keys + aggregates)
        return both("SELECT {} FROM {}{} GROUP BY " + by, items, source, self.where(make))

    def having(self):
        table = self.table()
        make = self.over((table, "a"))
        key = Pair(self.random.choice(make.columns)[0])
        items = self.listed([key, self.aggregate(make)])
        having = self.random.choice(["count(*) > 1", "count(*) % 2 = 1", "max(a.id) > 3", "min(a.id) IS NULL"])
        return both(
            "SELECT {} FROM " + table.name + " a{} GROUP BY {} HAVING " + having,
            items, self.where(make), key,
        )

    def window(self):
        table = self.table()
        make = self.over((table, "a"))
        kind = self.random.choice(["int", "dec", "dbl"])
        value = make.of(kind, 2)
        part = self.random.choice(make.columns)[0]
        order = self.random.choice(make.columns)[0]
        frame = self.random.choice([
            "", "", " ROWS BETWEEN 1 PRECEDING AND CURRENT ROW", " ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING",
            " ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
            " ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
        ])
        partition = self.random.choice(["", f"PARTITION BY {part} "])
        by_id = f"({partition}ORDER BY a.id{frame})"
        peers = f"({partition}ORDER BY {order} NULLS LAST)"
        made = self.random.choice([
            both("sum({}) OVER " + by_id, value), both("avg({}) OVER " + by_id, value),
            both("min({}) OVER " + by_id, value), both("max({}) OVER " + by_id, value),
            both("count({}) OVER " + by_id, value), both("sum({}) OVER " + peers, value),
            both("lag({}) OVER " + f"({partition}ORDER BY a.id)", value),
            both("lead({}, 2) OVER " + f"({partition}ORDER BY a.id)", value),
            both("first_value({}) OVER " + by_id, value), both("last_value({}) OVER " + by_id, value),
            both("rank() OVER " + peers), both("dense_rank() OVER " + peers),
            both("count(*) OVER " + peers), both("row_number() OVER " + f"({partition}ORDER BY a.id)"),
            both("sum({}) OVER (PARTITION BY " + part + ")", value),
        ])
        return both("SELECT a.id, {} AS w FROM " + table.name + " a{}", made, self.where(make))

    def set_operation(self):
        one, other = self.table(), self.table()
        kinds = [self.random.choice(ORDERED) for _ in range(self.random.randint(1, 2))]
        word = self.random.choice(["UNION", "EXCEPT", "INTERSECT"]) + self.random.choice(["", " ALL"])
        sides = []
        for table in (one, other):
            make = self.over((table, "a"))
            items = self.listed([make.of(k, 2) for k in kinds])
            sides.append(both("SELECT {} FROM " + table.name + " a{}", items, self.where(make)))
        return both("{} " + word + " {}", *sides)

    def subquery(self):
        outer, inner = self.table(), self.table()
        make, within = self.over((outer, "a")), self.over((inner, "b"))
        kind = self.random.choice(["int", "dec", "text", "date", "ts", "dbl"])
        # Correlated half of the time, by an equality or any condition.
        over_both = self.over((outer, "a"), (inner, "b"))
        where = self.random.choice([
            lambda: Pair(""), lambda: self.where(within),
            lambda: both(" WHERE {}", self.condition(outer, inner, over_both, "LEFT JOIN")),
        ])()
        inner_from = f" FROM {inner.name} b"
        column = within.of(kind, 2)
        value = make.of(kind, 2)
        op = self.random.choice(["=", "<>", "<", ">="])
        test = self.random.choice([
            both("{} IN (SELECT {}" + inner_from + "{})", value, column, where),
            both("{} NOT IN (SELECT {}" + inner_from + "{})", value, column, where),
            both("EXISTS (SELECT 1" + inner_from + "{})", where),
            both("NOT EXISTS (SELECT 1" + inner_from + "{})", where),
            both("{} " + op + " ANY (SELECT {}" + inner_from + "{})", value, column, where),
            both("{} " + op + " ALL (SELECT {}" + inner_from + "{})", value, column, where),
        ])
        whole = self.random.choice([
            test, test, both("NOT ({})", test), both("({}) IS NULL", test),
            both("({} OR {})", test, make.bool_(2)), both("({} AND {})", test, make.bool_(2)),
            both("NOT ({} OR {})", test, make.bool_(2)),
        ])
        return both("SELECT a.id FROM " + outer.name + " a WHERE {}", whole)

    def scalar(self):
        outer, inner = self.table(), self.table()
        make, within = self.over((outer, "a")), self.over((inner, "b"))
        kind = self.random.choice(["int", "dec", "date", "ts"])
        function = self.random.choice(["min", "max", "count"])
        over_both = self.over((outer, "a"), (inner, "b"))
        equal = self.condition(outer, inner, over_both, "FULL JOIN")
        where = self.random.choice([Pair(""), both(" WHERE {}", equal)])
        query = both(f"(SELECT {function}({{}}) FROM {inner.name} b{{}})", within.of(kind, 2), where)
        if self.random.random() < 0.5:
            return both("SELECT a.id, {} AS s FROM " + outer.name + " a", query)
        value = make.of("int" if function == "count" else kind, 2)
        op = self.random.choice(["=", "<", ">="])
        return both("SELECT a.id FROM " + outer.name + " a WHERE {} " + op + " {}", value, query)

    def tlp(self):
        """Rows for which a condition is true, false or NULL are all rows."""
        make, source = self.source()
        items, condition = self.items(make)[0], make.bool_()[0]
        base = f"SELECT {items} FROM {source[0]}"
        parts = [f"{base} WHERE {test}" for test in (
            condition, f"NOT ({condition})", f"({condition}) IS NULL"
        )]
        return Check("tlp", base, " UNION ALL ".join(parts))

    def tlp_sum(self):
        """The sum of all rows is the sum of the sums."""
        make, source = self.source()
        value = self.random.choice([make.leaf("int"), make.leaf("dec")])[0]
        condition = make.bool_()[0]
        base = f"SELECT sum({value}) AS s, count({value}) AS n FROM {source[0]}"
        parts = [f"{base} WHERE {test}" for test in (
            condition, f"NOT ({condition})", f"({condition}) IS NULL"
        )]
        union = " UNION ALL ".join(parts)
        return Check(
            "tlp_sum",
            f"SELECT CAST(s AS VARCHAR) AS s, n FROM ({base}) q",
            f"SELECT CAST(sum(s) AS VARCHAR) AS s, CAST(sum(n) AS BIGINT) AS n FROM ({union}) q",
        )

    def norec(self):
        """The rows that a filter lets through are those for which its condition is true."""
        make, source = self.source()
        condition = make.bool_()[0]
        return Check(
            "norec",
            f"SELECT count(*) AS n FROM {source[0]} WHERE {condition}",
            f"SELECT CAST(coalesce(sum(CASE WHEN {condition} THEN 1 ELSE 0 END), 0) AS BIGINT) AS n"
            f" FROM {source[0]}",
        )
