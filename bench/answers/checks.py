"""Ways of asking Coload the same twice, as SQLancer has them; DuckDB is not asked."""


class Check:
    """Statements of Coload whose answers must be the same."""

    def __init__(self, name, one, other):
        self.name, self.one, self.other = name, one, other


class Checks:
    """TLP, NoREC, and plans that must not matter."""

    @staticmethod
    def thirds(base, condition):
        """A condition is true, false or NULL."""
        return [f"{base} WHERE {test}" for test in (condition, f"NOT ({condition})", f"({condition}) IS NULL")]

    def tlp(self):
        """Rows for which a condition is true, false or NULL are all rows."""
        make, source = self.source()
        items, condition = self.items(make)[0], make.bool_()[0]
        base = f"SELECT {items} FROM {source[0]}"
        return Check("tlp", base, " UNION ALL ".join(self.thirds(base, condition)))

    def tlp_group(self):
        """Groups, distinct rows, least and greatest of all rows are those of the three parts."""
        make, source = self.source()
        condition = make.bool_()[0]
        kind = make.any_kind()
        value, key = make.of(kind, 2)[0], make.of(make.any_kind(), 2)[0]
        all_rows = f"SELECT {key} AS k, {value} AS v FROM {source[0]}"
        parts = self.thirds(all_rows, condition)
        if self.random.random() < 0.5:
            return Check("tlp_group", f"SELECT DISTINCT k, v FROM ({all_rows}) q", " UNION ".join(parts))
        most = lambda query: f"SELECT k, min(v) AS a, max(v) AS b, count(v) AS n FROM ({query}) q GROUP BY k"
        union = " UNION ALL ".join(map(most, parts))
        return Check(
            "tlp_group", most(all_rows),
            f"SELECT k, min(a) AS a, max(b) AS b, CAST(sum(n) AS BIGINT) AS n FROM ({union}) q GROUP BY k",
        )

    def tlp_sum(self):
        """The sum of all rows is the sum of the sums."""
        make, source = self.source()
        value = self.random.choice([make.leaf("int"), make.leaf("dec"), make.leaf("fine")])[0]
        condition = make.bool_()[0]
        base = f"SELECT sum({value}) AS s, count({value}) AS n FROM {source[0]}"
        union = " UNION ALL ".join(self.thirds(base, condition))
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

    def unpushed(self):
        """Filters and aggregates on stored codes, and the same behind a window that neither passes."""
        table = self.table()
        make = self.over((table, "a"))
        behind = f"(SELECT *, row_number() OVER () AS n FROM {table.name}) a"
        condition = make.bool_()[0]
        if self.random.random() < 0.5:
            text = f"SELECT {self.items(make)[0]} FROM {{}} WHERE {condition}"
        else:
            keys = [self.random.choice(make.columns)[0]]
            items = self.listed([self.aggregate(make) for _ in range(2)])[0]
            text = f"SELECT {keys[0]} AS k, {items} FROM {{}} WHERE {condition} GROUP BY {keys[0]}"
        return Check("unpushed", text.replace("{}", f"{table.name} a"), text.replace("{}", behind))

    def join_as_filter(self):
        """A join is a filter of all pairs."""
        left, right = self.table(), self.table()
        make = self.over((left, "a"), (right, "b"))
        on = self.condition(left, right, make, "JOIN")[0]
        items = self.items(make)[0]
        join = f"SELECT {items} FROM {left.name} a JOIN {right.name} b ON {on}"
        pairs = f"SELECT {items} FROM {left.name} a CROSS JOIN {right.name} b WHERE {on}"
        if self.random.random() < 0.5:
            return Check("join_as_filter", join, pairs)
        return Check("join_as_filter", join, f"SELECT {items} FROM {right.name} b JOIN {left.name} a ON {on}")

    def union_of_halves(self):
        """A statement over a table is that over its two halves."""
        table = self.table()
        make = self.over((table, "a"))
        items, condition = self.items(make)[0], make.bool_()[0]
        half = lambda test: f"SELECT * FROM {table.name} WHERE {test}"
        halves = f"({half('id % 2 = 0')} UNION ALL {half('id % 2 <> 0')}) a"
        text = f"SELECT {items} FROM {{}} WHERE {condition}"
        return Check("union_of_halves", text.replace("{}", f"{table.name} a"), text.replace("{}", halves))
