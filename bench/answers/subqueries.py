"""Statements within statements."""

from pairs import Pair, both

KINDS_WITHIN = ["int", "dec", "text", "date", "ts", "dbl", "big", "time", "bool"]


class Subqueries:
    """IN, EXISTS, ANY and ALL, scalar and lateral subqueries, WITH."""

    def within(self, outer, inner, within):
        """A condition of a subquery: none, its own, or one that names the outer table."""
        over_both = self.over((outer, "a"), (inner, "b"))
        return self.random.choice([
            lambda: Pair(""), lambda: self.where(within),
            lambda: both(" WHERE {}", self.condition(outer, inner, over_both, "LEFT JOIN")),
            lambda: both(" WHERE {}", self.condition(outer, inner, over_both, "FULL JOIN")),
        ])()

    def test(self, outer, make):
        """A condition with a subquery."""
        inner = self.table()
        within = self.over((inner, "b"))
        kind = self.random.choice(KINDS_WITHIN)
        where = self.within(outer, inner, within)
        inner_from = f" FROM {inner.name} b"
        column, value = within.of(kind, 2), make.of(kind, 2)
        op = self.random.choice(["=", "<>", "<", ">="])
        return self.random.choice([
            both("{} IN (SELECT {}" + inner_from + "{})", value, column, where),
            both("{} NOT IN (SELECT {}" + inner_from + "{})", value, column, where),
            both("EXISTS (SELECT 1" + inner_from + "{})", where),
            both("NOT EXISTS (SELECT 1" + inner_from + "{})", where),
            both("{} " + op + " ANY (SELECT {}" + inner_from + "{})", value, column, where),
            both("{} " + op + " ALL (SELECT {}" + inner_from + "{})", value, column, where),
        ])

    def subquery(self):
        outer = self.table()
        make = self.over((outer, "a"))
        test = self.test(outer, make)
        whole = self.random.choice([
            test, test, both("NOT ({})", test), both("({}) IS NULL", test),
            both("({} OR {})", test, make.bool_(2)), both("({} AND {})", test, make.bool_(2)),
            both("NOT ({} OR {})", test, make.bool_(2)), both("(({}) IS NOT TRUE)", test),
            both("(CASE WHEN {} THEN {} ELSE {} END)", test, make.bool_(2), make.bool_(2)),
        ])
        return both("SELECT a.id FROM " + outer.name + " a WHERE {}", whole)

    def select_list(self):
        """A subquery's condition as a value."""
        outer = self.table()
        make = self.over((outer, "a"))
        test = self.test(outer, make)
        if self.random.random() < 0.4:
            return both("SELECT count(*) AS n, ({}) AS x FROM " + outer.name + " a GROUP BY 2", test)
        return both("SELECT a.id, ({}) AS x FROM " + outer.name + " a{}", test, self.where(make))

    def scalar_query(self, outer, kind, function):
        inner = self.table()
        within = self.over((inner, "b"))
        over_both = self.over((outer, "a"), (inner, "b"))
        equal = self.condition(outer, inner, over_both, "FULL JOIN")
        where = self.random.choice([Pair(""), both(" WHERE {}", equal), both(" WHERE {}", equal)])
        return both(f"(SELECT {function}({{}}) FROM {inner.name} b{{}})", within.of(kind, 2), where)

    def scalar(self):
        outer = self.table()
        make = self.over((outer, "a"))
        kind = self.random.choice(["int", "dec", "date", "ts", "text", "dbl"])
        function = self.random.choice(["min", "max", "count"])
        query = self.scalar_query(outer, kind, function)
        if self.random.random() < 0.4:
            return both("SELECT a.id, {} AS s FROM " + outer.name + " a", query)
        value = make.of("int" if function == "count" else kind, 2)
        if self.random.random() < 0.3:
            return both("SELECT a.id, coalesce({}, {}) AS s FROM " + outer.name + " a", query, value)
        op = self.random.choice(["=", "<", ">="])
        return both("SELECT a.id FROM " + outer.name + " a WHERE {} " + op + " {}", value, query)

    def lateral(self):
        outer, inner = self.table(), self.table()
        make, within = self.over((outer, "a")), self.over((inner, "b"))
        over_both = self.over((outer, "a"), (inner, "b"))
        equal = self.condition(outer, inner, over_both, "FULL JOIN")
        inside = self.random.choice([
            both(f"SELECT count(*) AS n, max({{}}) AS m FROM {inner.name} b WHERE {{}}", within.of("int", 2), equal),
            both(f"SELECT b.id AS n, {{}} AS m FROM {inner.name} b WHERE {{}}", within.of("int", 2), equal),
            both("SELECT {} AS n, {} AS m", make.of("int", 2), make.of("text", 2)),
        ])
        word = self.random.choice(["CROSS JOIN LATERAL ({}) q", "JOIN LATERAL ({}) q ON true", "LEFT JOIN LATERAL ({}) q ON true"])
        return both(f"SELECT a.id, q.n, q.m FROM {outer.name} a {word}", inside)

    def with_(self):
        """A common table that is read twice."""
        make, source = self.source()
        kinds = [self.random.choice(KINDS_WITHIN) for _ in range(2)]
        items = self.listed([make.of(kind, 2) for kind in kinds])
        inner = both("SELECT {} FROM {}{}", items, source, self.where(make))
        outer = self.random.choice([
            "SELECT x0, count(*) AS n FROM q GROUP BY x0", "SELECT x0, x1 FROM q WHERE x0 IS NOT NULL",
            "SELECT p.x0, r.x1 FROM q p JOIN q r ON p.x0 = r.x0",
            "SELECT p.x1, count(r.x0) AS n FROM q p LEFT JOIN (SELECT DISTINCT x0 FROM q) r ON p.x0 = r.x0 GROUP BY p.x1",
            "SELECT x1 FROM q WHERE x0 IN (SELECT x0 FROM q WHERE x1 IS NOT NULL)",
            "SELECT x0 FROM q EXCEPT SELECT x0 FROM q WHERE x1 IS NULL",
            "SELECT x0, x1 FROM q WHERE x0 = (SELECT max(x0) FROM q)",
        ])
        return both("WITH q AS ({}) " + outer, inner)

    def recursive(self):
        table = self.table()
        word = self.random.choice(["UNION ALL", "UNION ALL", "UNION"])
        step = self.random.randint(1, 3)
        return Pair(
            f"WITH RECURSIVE r AS (SELECT CAST(min(id) AS BIGINT) AS n, CAST(0 AS BIGINT) AS d FROM {table.name} {word}"
            f" SELECT CAST(b.id AS BIGINT), r.d + 1 FROM r JOIN {table.name} b ON b.id = r.n + {step} WHERE r.d < 6)"
            " SELECT n, d FROM r"
        )
