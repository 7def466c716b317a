"""More ways of asking Coload the same twice: each construct as others that it stands for."""

from aggregates import GROUPED
from checks import Check
from correlated import Scope
from tables import literal


class Relations:
    """Checks by which DuckDB is not asked."""

    def predicate(self):
        """A table under the name a, and a condition over it that is a subquery or has one within."""
        scope = Scope([(self.table(), "a")])
        test, more = self.tested(scope)[0], self.inside(scope).bool_(2)[0]
        whole = self.random.choice([test, test, f"({test} OR {more})", f"({test} AND {more})", f"(({test}) = ({more}))", f"coalesce({test}, {more})"])
        return scope.own[0][0], whole

    def tlp_subquery(self):
        table, condition = self.predicate()
        base = f"SELECT a.id FROM {table.name} a"
        return Check("tlp_subquery", base, " UNION ALL ".join(self.thirds(base, condition)))

    def norec_subquery(self):
        """A subquery as a filter is a join; as a value, a column."""
        table, condition = self.predicate()
        return Check(
            "norec_subquery", f"SELECT count(*) AS n FROM {table.name} a WHERE {condition}",
            f"SELECT CAST(coalesce(sum(CASE WHEN {condition} THEN 1 ELSE 0 END), 0) AS BIGINT) AS n FROM {table.name} a",
        )

    def tlp_having(self):
        make, source = self.source()
        key, value = self.random.choice(make.columns)[0], self.aggregate(make)[0]
        kind = self.random.choice(["int", "dec", "date", "text"])
        test = f"(max({make.leaf(kind)[0]}) > min({make.leaf(kind)[0]}))"
        base = f"SELECT {key} AS k, {value} AS x FROM {source[0]} GROUP BY {key}"
        parts = [f"{base} HAVING {having}" for having in (test, f"NOT {test}", f"{test} IS NULL")]
        return Check("tlp_having", base, " UNION ALL ".join(parts))

    def tlp_join(self):
        """Rows of an outer join are those of the inner one, and those without a partner."""
        left, right = self.table(), self.table()
        make = self.over((left, "a"), (right, "b"))
        on = self.condition(left, right, make, "LEFT JOIN")[0]
        outer = f"SELECT a.id AS i, b.id AS j FROM {left.name} a LEFT JOIN {right.name} b ON {on}"
        inner = f"SELECT a.id AS i, b.id AS j FROM {left.name} a JOIN {right.name} b ON {on}"
        alone = f"SELECT a.id AS i, CAST(NULL AS INTEGER) AS j FROM {left.name} a WHERE NOT EXISTS (SELECT 1 FROM {right.name} b WHERE {on})"
        return Check("tlp_join", outer, f"{inner} UNION ALL {alone}")

    def sets_as_groups(self):
        make, source = self.one()
        keys = [(name, sql_type) for name, sql_type, kind in make.columns if kind in GROUPED]
        (one, one_type), (other, other_type) = self.random.choice(keys), self.random.choice(keys)
        value = self.aggregate(make)[0]
        where = self.where(make)[0]
        rest = f"FROM {source[0]}{where}"
        sets = f"SELECT {one} AS k, {other} AS l, {value} AS x {rest} GROUP BY GROUPING SETS (({one}, {other}), ({one}), ())"
        if one == other:
            sets = f"SELECT {one} AS k, CAST(NULL AS {one_type}) AS l, {value} AS x {rest} GROUP BY ROLLUP ({one})"
            return Check(
                "sets_as_groups", sets,
                f"SELECT {one} AS k, CAST(NULL AS {one_type}) AS l, {value} AS x {rest} GROUP BY {one} UNION ALL"
                f" SELECT CAST(NULL AS {one_type}), CAST(NULL AS {one_type}), {value} {rest}",
            )
        return Check(
            "sets_as_groups", sets,
            f"SELECT {one} AS k, {other} AS l, {value} AS x {rest} GROUP BY {one}, {other} UNION ALL"
            f" SELECT {one}, CAST(NULL AS {other_type}), {value} {rest} GROUP BY {one} UNION ALL"
            f" SELECT CAST(NULL AS {one_type}), CAST(NULL AS {other_type}), {value} {rest}",
        )

    def filter_as_case(self):
        make, source = self.source()
        kind = make.any_kind()
        value, condition = make.of(kind, 2)[0], make.bool_(2)[0]
        name = self.random.choice(["min", "max", "count"])
        return Check(
            "filter_as_case", f"SELECT {name}({value}) FILTER (WHERE {condition}) AS x FROM {source[0]}",
            f"SELECT {name}(CASE WHEN {condition} THEN {value} END) AS x FROM {source[0]}",
        )

    def pivot(self):
        """A row is the same as its values written down."""
        table = self.table()
        if not table.rows:
            return self.tlp_subquery()
        make = self.over((table, "a"))
        row = self.random.choice(table.rows)
        written = ", ".join(
            (f"CAST(NULL AS {sql_type})" if value is None else f"CAST({literal(value, sql_type)} AS {sql_type})") + f" AS {name}"
            for value, (name, sql_type) in zip(row, table.columns)
        )
        items = self.items(make)[0]
        stored = f"SELECT {items} FROM {table.name} a WHERE a.id = {row[0]}"
        return Check("pivot", stored, f"SELECT {items} FROM (SELECT {written}) a")

    def distinct_as_groups(self):
        make, source = self.source()
        parts = [make.of(make.any_kind(), 2)[0] for _ in range(2)]
        rest = f"FROM {source[0]}{self.where(make)[0]}"
        return Check(
            "distinct_as_groups", f"SELECT DISTINCT {parts[0]} AS x, {parts[1]} AS y {rest}",
            f"SELECT x, y FROM (SELECT {parts[0]} AS x, {parts[1]} AS y {rest}) q GROUP BY x, y",
        )

    def rank_as_count(self):
        """The rank of a row is how many are before it."""
        table = self.table()
        names = [name for name, _, kind in self.columns(table, "a") if kind in GROUPED]
        key = self.random.choice(names).removeprefix("a.")
        return Check(
            "rank_as_count", f"SELECT a.id, CAST(rank() OVER (ORDER BY a.{key} NULLS LAST) AS BIGINT) AS r FROM {table.name} a",
            f"SELECT a.id, 1 + (SELECT count(*) FROM {table.name} b WHERE b.{key} < a.{key} OR (a.{key} IS NULL AND b.{key} IS NOT NULL)) AS r FROM {table.name} a",
        )
