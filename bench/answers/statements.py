"""Statements at random over the tables of a round."""

from aggregates import Aggregates
from checks import Checks
from correlated import Correlated
from pairs import Ordered, Pair, both
from relations import Relations
from sources import JOINS, Sources
from subqueries import Subqueries
from windows import Windows

ORDERED = ("int", "dec", "big", "fine", "dbl", "date", "ts", "text", "time", "bool")


class Statements(Aggregates, Windows, Subqueries, Correlated, Relations, Checks, Sources):
    """Makes statements, in both dialects, or checks."""

    def __init__(self, random, tables, only=None):
        self.random, self.tables = random, tables
        self.makers = [
            self.plain, self.plain, self.join, self.join, self.nested_join, self.using, self.group, self.group,
            self.group, self.having, self.grouping_sets, self.statistics, self.window, self.window,
            self.window_of_groups, self.set_operation, self.set_operation, self.subquery, self.subquery,
            self.select_list, self.scalar, self.lateral, self.with_, self.recursive, self.top, self.paged,
            self.distinct, self.values, self.tlp, self.tlp_group, self.tlp_sum, self.norec, self.unpushed,
            self.join_as_filter, self.union_of_halves, *[self.correlated] * 3, *[self.correlated_item] * 2,
            self.correlated_having, self.correlated_join, self.correlated_lateral,
            self.tlp_subquery, self.norec_subquery, self.tlp_having, self.tlp_join, self.sets_as_groups, self.filter_as_case,
            self.pivot, self.pivot, self.distinct_as_groups, self.rank_as_count,
        ]
        if only:
            self.makers = [getattr(self, name) for name in only.split(",")]

    def next(self):
        """A name, and a Pair or a Check."""
        maker = self.random.choice(self.makers)
        return maker.__name__, maker()

    def plain(self):
        make, source = self.one()
        return both("SELECT {} FROM {}{}", self.items(make), source, self.where(make))

    def distinct(self):
        make, source = self.source()
        return both("SELECT DISTINCT {} FROM {}{}", self.items(make), source, self.where(make))

    def order(self, count):
        """All columns are keys, so that there is one order."""
        return ", ".join(
            f"{i + 1} {self.random.choice(['ASC', 'DESC'])} NULLS {self.random.choice(['FIRST', 'LAST'])}"
            for i in range(count)
        )

    def top(self):
        make, source = self.source()
        count = self.random.randint(1, 3)
        tail = f" ORDER BY {self.order(count)}"
        if self.random.random() < 0.7:
            tail += f" LIMIT {self.random.randint(0, 9)}"
        if self.random.random() < 0.3:
            tail += f" OFFSET {self.random.randint(0, 5)}"
        return Ordered(*both("SELECT {} FROM {}{}" + tail, self.items(make, count), source, self.where(make)))

    def paged(self):
        """A limit within, and what is computed of its rows."""
        make, source = self.one()
        items = self.items(make, 2)
        limit = f" ORDER BY {self.order(2)} LIMIT {self.random.randint(1, 9)} OFFSET {self.random.randint(0, 3)}"
        inner = both("SELECT {} FROM {}{}" + limit, items, source, self.where(make))
        outer = self.random.choice(["count(*) AS n, count(x0) AS m", "min(x1) AS a, max(x0) AS b", "count(DISTINCT x0) AS n"])
        return both(f"SELECT {outer} FROM ({{}}) q", inner)

    def join(self):
        make, source = self.joined()
        return both("SELECT {} FROM {}{}", self.items(make), source, self.where(make))

    def nested_join(self):
        """Three tables."""
        tables = [self.table() for _ in range(3)]
        make = self.over(*zip(tables, "abc"))
        words = [self.random.choice(JOINS), self.random.choice(JOINS)]
        one = self.condition(tables[0], tables[1], self.over(*zip(tables[:2], "ab")), words[0])
        two = self.condition(tables[1], tables[2], make, words[1], "bc")
        text = (
            f"{tables[0].name} a {words[0]} {tables[1].name} b ON {{}} {words[1]} {tables[2].name} c ON {{}}"
        )
        source = both(text, one, two)
        where = self.where(make)
        if self.random.random() < 0.5:
            return both("SELECT count(*) AS n, min(a.id) AS a, sum(b.id) AS b, count(c.id) AS c FROM {}{}", source, where)
        return both("SELECT {} FROM {}{}", self.items(make), source, where)

    def using(self):
        """USING and NATURAL, semi and anti joins, cross joins."""
        left, right = self.table(), self.table()
        make = self.over((left, "a"), (right, "b"))
        if self.random.random() < 0.4:
            word = self.random.choice(["LEFT SEMI JOIN", "LEFT ANTI JOIN"])
            on = self.condition(left, right, make, "LEFT JOIN")
            source = both(
                f"{left.name} a {word} {right.name} b ON {{}}", on,
                duck=f"{left.name} a {word.removeprefix('LEFT ')} {right.name} b ON {{}}",
            )
            return both("SELECT {} FROM {}", self.items(self.over((left, "a"))), source)
        if self.random.random() < 0.5:
            source = Pair(f"{left.name} a CROSS JOIN {right.name} b")
            return both("SELECT {} FROM {} WHERE {}", self.items(make), source, make.bool_())
        word = self.random.choice(["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"])
        apart = Pair(f"{left.name} a {word} {right.name} b USING (id)")
        return both("SELECT id, {} FROM {}", self.items(make, 2), apart)

    def set_operation(self):
        kinds = [self.random.choice(ORDERED) for _ in range(self.random.randint(1, 2))]
        word = lambda: self.random.choice(["UNION", "EXCEPT", "INTERSECT"]) + self.random.choice(["", " ALL"])
        sides = []
        for _ in range(self.random.choice([2, 2, 3])):
            make, source = self.one()
            items = self.listed([make.of(k, 2) for k in kinds])
            sides.append(both("SELECT {} FROM {}{}", items, source, self.where(make)))
        whole = both("{} " + word() + " {}", sides[0], sides[1])
        if len(sides) == 3:
            whole = both("({}) " + word() + " {}", whole, sides[2])
        if self.random.random() < 0.3:
            return Ordered(*both("{} ORDER BY " + self.order(len(kinds)), whole))
        return whole

    def values(self):
        """Constants only: what the planner computes."""
        make = self.over()
        if self.random.random() < 0.5:
            return both("SELECT {}", self.items_of(make, ORDERED))
        kind = self.random.choice(ORDERED)
        rows = [make.constant(kind) for _ in range(self.random.randint(1, 4))]
        holes = ", ".join("({})" for _ in rows)
        return both("SELECT x, count(*) AS n FROM (VALUES " + holes + ") v (x) GROUP BY x", *rows)
