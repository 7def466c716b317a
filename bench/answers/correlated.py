"""Subqueries that name columns from outside, one and two levels deep, wherever an expression can stand."""

from pairs import Ordered, Pair, both

KINDS = ["int", "int", "dec", "text", "date", "ts", "big", "time", "bool"]
OPERATORS = ["=", "=", "<>", "<", "<=", ">", ">="]
LEVELS_MAX = 2
ALIASES = ["ab", "cd", "ef"]
AGGREGATES = ["min", "max", "count"]
HAVINGS = ["count(*) > 1", "count(*) = 0", "count(*) < 3", "count(*) % 2 = 0", "count({}) > 0", "max({}) IS NULL", "min({}) IS NOT NULL"]


class Scope:
    """The tables of a query within others: `own` are pairs of a table and its alias, `outer` the scope around it."""

    def __init__(self, own, outer=None):
        self.own, self.outer = own, outer
        self.level = outer.level + 1 if outer else 0

    def beyond(self):
        """Tables that the query sees and does not read."""
        scope, tables = self.outer, []
        while scope:
            tables += scope.own
            scope = scope.outer
        return tables


class Correlated:
    """Conditions and values that are subqueries."""

    def deeper(self, scope, joined=False):
        aliases = ALIASES[scope.level + 1]
        return Scope([(self.table(), alias) for alias in (aliases if joined else aliases[:1])], scope)

    def inside(self, scope):
        """Expressions over what a query reads."""
        return self.over(*scope.own)

    def everything(self, scope):
        """Expressions over what it reads and what it sees."""
        return self.over(*scope.own, *scope.beyond())

    def beside(self, scope):
        """A column of the query beside one from outside, of the nearest query most often."""
        outside = scope.outer.own if self.random.random() < 0.7 else scope.beyond()
        pairs = [
            (own, outer)
            for own, _, kind in self.over(*scope.own).columns
            for outer, _, other in self.over(*outside).columns
            if kind == other
        ]
        own, outer = self.random.choice(pairs)
        sides = [own, outer] if self.random.random() < 0.7 else [outer, own]
        op = self.random.choice(OPERATORS + ["IS NOT DISTINCT FROM", "IS DISTINCT FROM"])
        return Pair(f"({sides[0]} {op} {sides[1]})")

    def linked(self, scope):
        """A condition within a subquery, that names columns from outside most often."""
        inside, everything = self.inside(scope), self.everything(scope)
        return self.random.choice([
            lambda: self.beside(scope), lambda: self.beside(scope), lambda: self.beside(scope),
            lambda: both("({} AND {})", self.beside(scope), inside.bool_(2)),
            lambda: both("({} AND {})", self.beside(scope), self.beside(scope)),
            lambda: both("({} OR {})", self.beside(scope), inside.bool_(2)),
            lambda: both("(NOT {})", self.beside(scope)),
            lambda: everything.bool_(2), lambda: inside.bool_(2),
            lambda: self.over(*scope.beyond()).bool_(2),
            lambda: self.nested(scope),
            lambda: both("({} AND {})", self.beside(scope), self.nested(scope)),
        ])()

    def nested(self, scope):
        return self.tested(scope) if scope.level < LEVELS_MAX else self.beside(scope)

    def clause(self, scope, share=0.85):
        return both(" WHERE {}", self.linked(scope)) if self.random.random() < share else Pair("")

    def reads(self, scope):
        """FROM and WHERE of a subquery."""
        if len(scope.own) == 1:
            [(table, alias)] = scope.own
            if self.random.random() < 0.85:
                return both(f" FROM {table.name} {alias}{{}}", self.clause(scope))
            condition = self.linked(scope)
            return both(f" FROM (SELECT * FROM {table.name} {alias} WHERE {{}}) {alias}{{}}", condition, self.clause(scope, 0.4))
        (left, a), (right, b) = scope.own
        word = self.random.choice(["JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "CROSS JOIN"])
        if word == "CROSS JOIN":
            return both(f" FROM {left.name} {a} CROSS JOIN {right.name} {b}{{}}", self.clause(scope))
        on = self.condition(left, right, self.inside(scope), word, a + b)
        if self.random.random() < 0.15:
            on = both("{} AND {}", on, self.beside(scope))
        return both(f" FROM {left.name} {a} {word} {right.name} {b} ON {{}}{{}}", on, self.clause(scope))

    def rows(self, scope, kind):
        """A subquery of one column."""
        inner = self.deeper(scope, self.random.random() < 0.25)
        inside = self.inside(inner)
        value = (self.everything(inner) if self.random.random() < 0.15 else inside).of(kind, 2)
        reads = self.reads(inner)
        order = f" ORDER BY 1 {self.random.choice(['ASC', 'DESC'])} NULLS {self.random.choice(['FIRST', 'LAST'])}"
        limit = f" LIMIT {self.random.choice([0, 1, 1, 2, 5])}"
        offset = f" OFFSET {self.random.randint(0, 2)}"
        key = self.random.choice(inside.columns)[0]
        # No two rows are the same in these.
        ids = ", ".join(f"{name} NULLS LAST" for name, *_ in inside.columns if name.endswith(".id"))
        return self.random.choice([
            lambda: both("SELECT {}{}", value, reads), lambda: both("SELECT {}{}", value, reads),
            lambda: both("SELECT {}{}", value, reads), lambda: both("SELECT DISTINCT {}{}", value, reads),
            lambda: both("SELECT {}{}" + order, value, reads),
            lambda: both("SELECT {}{}" + order + limit, value, reads),
            lambda: both("SELECT {}{}" + order + self.random.choice([limit, ""]) + offset, value, reads),
            lambda: both("SELECT {}{} GROUP BY 1", value, reads),
            lambda: both("SELECT {}{} GROUP BY 1 HAVING {}", value, reads, self.having_within(inner)),
            lambda: both(f"SELECT max({{}}){{}} GROUP BY {key}", value, reads),
            lambda: both("SELECT min({}){}", value, reads), lambda: both("SELECT max({}){}", value, reads),
            lambda: both("SELECT max({}){} HAVING {}", value, reads, self.having_within(inner)),
            lambda: self.united(scope, kind, both("SELECT {}{}", value, reads)),
            lambda: self.united(scope, kind, both("SELECT {}{}", value, reads)),
            lambda: both("SELECT {}{} UNION ALL SELECT {}", value, reads, self.over(*scope.own).of(kind, 2)),
            lambda: both("SELECT q.x FROM (SELECT {} AS x{}) q", value, reads),
            lambda: both(f"SELECT q.x FROM (SELECT {{}} AS x{{}}{order}{limit}) q", value, reads),
            lambda: both(f"SELECT first_value({{}}) OVER (ORDER BY {ids}){{}}", value, reads),
            lambda: both("SELECT {}", self.over(*scope.own).of(kind, 2)),
        ])()

    def united(self, scope, kind, one):
        word = self.random.choice(["UNION", "UNION ALL", "EXCEPT", "INTERSECT"])
        other = self.deeper(scope)
        return both("{} " + word + " SELECT {}{}", one, self.inside(other).of(kind, 2), self.reads(other))

    def having_within(self, scope):
        pattern = self.random.choice(HAVINGS)
        parts = [self.inside(scope).leaf("int")] if "{}" in pattern else []
        condition = both(pattern, *parts)
        if self.random.random() < 0.2:
            outside = self.over(*scope.beyond()).leaf("int")
            return both("(max({}) > {})", self.inside(scope).leaf("int"), outside)
        return condition

    def tested(self, scope):
        """A condition with a subquery, over a scope."""
        kind = self.random.choice(KINDS)
        value = self.over(*scope.own).of(kind, 2)
        rows = self.rows(scope, kind)
        op = self.random.choice(["=", "<>", "<", "<=", ">", ">="])
        return self.random.choice([
            lambda: both("EXISTS ({})", rows), lambda: both("EXISTS ({})", rows),
            lambda: both("NOT EXISTS ({})", rows), lambda: both("NOT EXISTS ({})", rows),
            lambda: both("EXISTS ({})", self.starred(scope)),
            lambda: both("{} IN ({})", value, rows), lambda: both("{} NOT IN ({})", value, rows),
            lambda: both("{} " + op + " ANY ({})", value, rows), lambda: both("{} " + op + " ALL ({})", value, rows),
            lambda: both("({} " + op + " {})", value, self.one_value(scope, kind)),
            lambda: both("({} " + op + " {})", self.one_value(scope, kind), self.one_value(scope, kind)),
            lambda: both("({} IS NULL)", self.one_value(scope, kind)),
            lambda: both("{} " + op + " {}", self.counted(scope), Pair(str(self.random.randint(0, 2)))),
        ])()

    def starred(self, scope):
        return both("SELECT *{}", self.reads(self.deeper(scope, self.random.random() < 0.3)))

    def counted(self, scope):
        inner = self.deeper(scope, self.random.random() < 0.25)
        what = self.random.choice([Pair("*"), Pair("*"), self.inside(inner).leaf("int"), both("DISTINCT {}", self.inside(inner).leaf("text"))])
        return both("(SELECT count({}){})", what, self.reads(inner))

    def one_value(self, scope, kind):
        """A subquery with one row, or none."""
        inner = self.deeper(scope, self.random.random() < 0.25)
        inside = self.inside(inner)
        value, reads = inside.of(kind, 2), self.reads(inner)
        name = self.random.choice(["min", "max"])
        order = f" ORDER BY 1 {self.random.choice(['ASC', 'DESC'])} NULLS {self.random.choice(['FIRST', 'LAST'])}"
        alias = inner.own[0][1]
        return self.random.choice([
            lambda: both(f"(SELECT {name}({{}}){{}})", value, reads), lambda: both(f"(SELECT {name}({{}}){{}})", value, reads),
            lambda: both(f"(SELECT coalesce({name}({{}}), {{}}){{}})", value, inside.constant(kind), reads),
            lambda: both(f"(SELECT coalesce({name}({{}}), {{}}){{}})", value, self.over(*scope.own).leaf(kind), reads),
            lambda: both(f"(SELECT CASE WHEN count(*) > 1 THEN {name}({{}}) ELSE {{}} END{{}})", value, inside.constant(kind), reads),
            lambda: both(f"(SELECT {name}({{}}){{}} HAVING {{}})", value, reads, self.having_within(inner)),
            lambda: both("(SELECT {}{}" + order + " LIMIT 1)", value, reads),
            lambda: both("(SELECT DISTINCT {}{}" + order + " LIMIT 1 OFFSET 1)", value, reads),
            lambda: both(f"(SELECT {{}} FROM {inner.own[0][0].name} {alias} WHERE {alias}.id = {{}})", value if len(inner.own) == 1 else inside.constant(kind), self.over(*scope.own).leaf("int")),
            lambda: both(f"(SELECT {name}(x) FROM (SELECT {{}} AS x{{}}{order} LIMIT 2) q)", value, reads),
            lambda: both(f"(SELECT {name}(x) FROM ({{}}) q (x))", self.united(scope, kind, both("SELECT {}{}", value, reads))),
            lambda: both(f"(SELECT {name}(x) FROM (SELECT {alias}.id AS k, max({{}}) AS x{{}} GROUP BY {alias}.id) q)", value, reads),
            lambda: both("(SELECT {})", self.over(*scope.own).of(kind, 2)),
        ])()

    def correlated(self):
        """A condition in WHERE, in all manners of being joined to others."""
        scope = Scope([(self.table(), "a")])
        make, test = self.inside(scope), self.tested(scope)
        whole = self.random.choice([
            lambda: test, lambda: test, lambda: test, lambda: both("NOT ({})", test), lambda: both("({}) IS NULL", test),
            lambda: both("({} OR {})", test, make.bool_(2)), lambda: both("({} AND {})", test, self.tested(scope)),
            lambda: both("({} OR {})", test, self.tested(scope)), lambda: both("NOT ({} AND {})", test, self.tested(scope)),
            lambda: both("(({}) IS NOT TRUE)", test), lambda: both("(({}) = {})", test, make.bool_(2)),
            lambda: both("(({}) = ({}))", test, self.tested(scope)),
            lambda: both("(CASE WHEN {} THEN {} ELSE {} END)", test, make.bool_(2), self.tested(scope)),
            lambda: both("coalesce({}, {})", test, make.bool_(2)),
        ])()
        return both(f"SELECT a.id FROM {scope.own[0][0].name} a WHERE {{}}", whole)

    def correlated_item(self):
        """The same as values of a SELECT list, of CASE, of a group, of an aggregate, of ORDER BY."""
        scope = Scope([(self.table(), "a")])
        make, name = self.inside(scope), scope.own[0][0].name
        kind = self.random.choice(KINDS)
        test = lambda: self.tested(scope)
        value = lambda: self.random.choice([self.one_value, self.one_value, lambda s, _: self.counted(s)])(scope, kind)
        return self.random.choice([
            lambda: both(f"SELECT a.id, ({{}}) AS x FROM {name} a", test()),
            lambda: both(f"SELECT a.id, {{}} AS x FROM {name} a", value()),
            lambda: both(f"SELECT a.id, {{}} AS x, {{}} AS y FROM {name} a{{}}", value(), value(), self.where(make)),
            lambda: both(f"SELECT a.id, CASE WHEN {{}} THEN {{}} ELSE {{}} END AS x FROM {name} a", test(), make.of(kind, 2), self.one_value(scope, kind)),
            lambda: both(f"SELECT a.id, coalesce({{}}, {{}}) AS x FROM {name} a", self.one_value(scope, kind), make.of(kind, 2)),
            lambda: both(f"SELECT count(*) AS n, ({{}}) AS x FROM {name} a GROUP BY 2", test()),
            lambda: both(f"SELECT count(*) AS n, {{}} AS x FROM {name} a GROUP BY 2", value()),
            lambda: both(f"SELECT max({{}}) AS m, count(*) FILTER (WHERE {{}}) AS n FROM {name} a", value(), test()),
            lambda: both(f"SELECT count({{}}) AS m, sum(CASE WHEN {{}} THEN 1 ELSE 0 END) AS n FROM {name} a", value(), test()),
            lambda: Ordered(*both(f"SELECT a.id, {{}} AS x FROM {name} a ORDER BY 2 NULLS FIRST, 1", value())),
            lambda: Ordered(*both(f"SELECT a.id FROM {name} a ORDER BY ({{}}) NULLS LAST, 1", test())),
            lambda: both(f"SELECT a.id, rank() OVER (ORDER BY {{}} NULLS FIRST) AS r FROM {name} a", value()),
        ])()

    def correlated_having(self):
        """Beside groups: the subquery sees the keys only."""
        scope = Scope([(self.table(), "a")])
        make, name = self.inside(scope), scope.own[0][0].name
        key, _, kind = self.random.choice(make.columns)
        inner = self.table()
        equals = [column for column, _, other in self.over((inner, "c")).columns if other == kind]
        if not equals:
            return self.correlated()
        within, column = self.over((inner, "c")), self.random.choice(equals)
        reads = both(f" FROM {inner.name} c WHERE {column} {self.random.choice(OPERATORS)} {key}{{}}",
                     self.random.choice([Pair(""), both(" AND {}", within.bool_(2))]))
        test = self.random.choice([
            both("EXISTS (SELECT 1{})", reads), both("NOT EXISTS (SELECT 1{})", reads),
            both("max(a.id) IN (SELECT c.id{})", reads), both("max(a.id) NOT IN (SELECT c.id{})", reads),
            both("count(*) > (SELECT count(*){})", reads), both("min(a.id) <= (SELECT max(c.id){})", reads),
            both("min(a.id) < ANY (SELECT c.id{})", reads), both("min(a.id) >= ALL (SELECT c.id{})", reads),
        ])
        if self.random.random() < 0.4:
            return both(f"SELECT {key} AS k, count(*) AS n, ({{}}) AS x FROM {name} a GROUP BY {key}", test)
        return both(f"SELECT {key} AS k, count(*) AS n FROM {name} a GROUP BY {key} HAVING {{}}", test)

    def correlated_join(self):
        """In WHERE or the SELECT list above a join, and in its ON."""
        scope = Scope([(self.table(), "a"), (self.table(), "b")])
        (left, _), (right, _) = scope.own
        make = self.inside(scope)
        word = self.random.choice(["JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"])
        on = self.condition(left, right, make, word)
        reads = f" FROM {left.name} a {word} {right.name} b ON {{}}"
        return self.random.choice([
            lambda: both("SELECT a.id AS i, b.id AS j" + reads + " WHERE {}", on, self.tested(scope)),
            lambda: both("SELECT a.id AS i, b.id AS j" + reads + " WHERE {}", on, self.tested(scope)),
            lambda: both("SELECT a.id AS i, b.id AS j, ({}) AS x" + reads, self.tested(scope), on),
            lambda: both("SELECT a.id AS i, b.id AS j, {} AS x" + reads, self.one_value(scope, "int"), on),
            lambda: both("SELECT a.id AS i, b.id AS j" + reads + " AND {}", on, self.tested(scope)),
        ])()

    def correlated_lateral(self):
        """A table that is a subquery over the tables before it."""
        scope = Scope([(self.table(), "a")])
        kind = self.random.choice(KINDS)
        inner = self.random.choice([
            lambda: both("SELECT q.x AS x FROM ({}) q (x)", self.rows(scope, kind)),
            lambda: both("{}", self.rows(scope, kind)),
            lambda: both("SELECT {} AS x", self.one_value(scope, kind)),
            lambda: both("SELECT ({}) AS x", self.tested(scope)),
        ])()
        word = self.random.choice(["CROSS JOIN LATERAL ({}) l (x)", "JOIN LATERAL ({}) l (x) ON true", "LEFT JOIN LATERAL ({}) l (x) ON true", ", LATERAL ({}) l (x)"])
        if self.random.random() < 0.2:
            word = "LEFT JOIN LATERAL ({}) l (x) ON l.x IS NOT NULL"
        tail = self.random.choice(["", "", " WHERE l.x IS NULL"])
        return both(f"SELECT a.id, l.x FROM {scope.own[0][0].name} a {word}{tail}", inner)
