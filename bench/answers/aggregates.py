"""Statements that aggregate."""

from pairs import Pair, both

NUMBERS = ("int", "dec", "big", "fine")
GROUPED = ("int", "dec", "date", "ts", "text", "bool", "time", "big")


class Aggregates:
    """Groups, grouping sets, statistics."""

    def aggregate(self, make):
        kind = make.any_kind()
        value = make.of(kind, 2)
        distinct = self.random.choice(["", "", "DISTINCT "])
        simple = [both("count(*)"), both("count(" + distinct + "{})", value)]
        simple += [both("min({})", value), both("max({})", value)]
        if kind == "bool":
            simple += [both("bool_and({})", value), both("bool_or({})", value)] * 2
        if kind in NUMBERS:
            simple += [both("sum(" + distinct + "{})", value), both("avg(" + distinct + "{})", value)] * 2
        if kind == "int":
            simple += [both(f"bit_{name}({{}})", value) for name in ("and", "or", "xor")]
        if kind == "dbl":
            simple += [both("sum({})", value), both("avg({})", value)]
        # In a join, a.id is not unique, and there is no one order.
        if not any(name.startswith("b.") for name, _, _ in make.columns):
            simple += [both("first_value({} ORDER BY a.id)", value, duck="first({} ORDER BY a.id)")]
            if kind == "text":
                simple += [both("string_agg({}, ',' ORDER BY a.id)", value)] * 2
        chosen = self.random.choice(simple)
        if self.random.random() < 0.2:
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
        make, source = self.one()
        key = Pair(self.random.choice(make.columns)[0])
        items = self.listed([key, self.aggregate(make)])
        having = self.random.choice([
            "count(*) > 1", "count(*) % 2 = 1", "max(a.id) > 3", "min(a.id) IS NULL", "sum(a.id) > 10", "avg(a.id) < 8",
        ])
        if self.random.random() < 0.3:
            return both(
                "SELECT {} FROM {}{} GROUP BY {} HAVING {} > {}", items, source, self.where(make), key,
                *[both("max({})", make.leaf("int")) for _ in range(2)],
            )
        return both("SELECT {} FROM {}{} GROUP BY {} HAVING " + having, items, source, self.where(make), key)

    def grouping_sets(self):
        make, source = self.one()
        names = [(name, kind) for name, _, kind in make.columns if kind in GROUPED]
        keys = [name for name, _ in self.random.sample(names, k=min(len(names), self.random.randint(1, 3)))]
        listed = ", ".join(keys)
        forms = [f"ROLLUP ({listed})", f"CUBE ({listed})", f"GROUPING SETS (({listed}), ({keys[0]}), ())"]
        if len(keys) > 1:
            forms += [f"GROUPING SETS (({keys[0]}), ({keys[1]}))", f"{keys[0]}, ROLLUP ({keys[1]})"]
        parts = [Pair(key) for key in keys] + [self.aggregate(make)]
        if self.random.random() < 0.5:
            parts.append(Pair(f"grouping({self.random.choice(keys)})"))
        by = self.random.choice(forms)
        return both("SELECT {} FROM {}{} GROUP BY " + by, self.listed(parts), source, self.where(make))

    def statistics(self):
        make, source = self.one()
        # Of a single NaN or infinity, DuckDB says that it does not vary.
        kind = self.random.choice(["int", "dec"])
        one, other = make.leaf(kind), make.leaf(self.random.choice(["int", "dec"]))
        small = lambda value: both("(CAST({} AS DOUBLE) % 1000)", value)
        one, other = small(one), small(other)
        parts = [
            self.random.choice([
                both("stddev_samp({})", one), both("stddev_pop({})", one), both("var_samp({})", one),
                both("var_pop({})", one), both("covar_pop({}, {})", one, other), both("covar_samp({}, {})", one, other),
                both("regr_count({}, {})", one, other), both("regr_avgx({}, {})", one, other),
                both("median(CAST({} AS DOUBLE))", make.leaf("dec")),
                both("percentile_cont(0.25) WITHIN GROUP (ORDER BY CAST({} AS DOUBLE))", make.leaf("dec")),
            ])
            for _ in range(2)
        ]
        key = self.random.choice([name for name, _, kind in make.columns if kind in GROUPED])
        if self.random.random() < 0.5:
            return both("SELECT {} FROM {}", self.listed(parts), source)
        return both(f"SELECT {key} AS k, {{}} FROM {{}} GROUP BY {key}", self.listed(parts), source)
