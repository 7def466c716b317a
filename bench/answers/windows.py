"""Statements with windows."""

from pairs import both

BOUNDS = [
    "UNBOUNDED PRECEDING", "3 PRECEDING", "1 PRECEDING", "0 PRECEDING", "CURRENT ROW", "0 FOLLOWING", "1 FOLLOWING",
    "3 FOLLOWING", "UNBOUNDED FOLLOWING",
]
FRAMED_OFFSETS = {"int": ["1", "0", "1000"], "date": ["interval '1 day'", "interval '1 year'"], "ts": ["interval '1 hour'", "interval '1 month'"]}


class Windows:
    """Frames of all kinds, ranks, neighbours."""

    def bounds(self):
        """A start that does not come after the end."""
        start = self.random.randrange(len(BOUNDS) - 1)
        end = self.random.randrange(max(start, 1), len(BOUNDS))
        return BOUNDS[start], BOUNDS[end]

    def frame(self, unit):
        start, end = self.bounds()
        if self.random.random() < 0.15 and "FOLLOWING" not in start:
            return f" {unit} {start}"
        return f" {unit} BETWEEN {start} AND {end}"

    def range_frame(self, make):
        """A frame by distances, and its key."""
        kinds = [(name, kind) for name, _, kind in make.columns if kind in FRAMED_OFFSETS]
        name, kind = self.random.choice(kinds)
        one, other = (self.random.choice(FRAMED_OFFSETS[kind]) for _ in range(2))
        start, end = self.random.choice([
            (f"{one} PRECEDING", f"{other} FOLLOWING"), ("UNBOUNDED PRECEDING", f"{other} FOLLOWING"),
            (f"{one} PRECEDING", "CURRENT ROW"), ("CURRENT ROW", f"{other} FOLLOWING"),
            (f"{one} PRECEDING", "UNBOUNDED FOLLOWING"),
        ])
        order = f"{name} {self.random.choice(['ASC', 'DESC'])} NULLS {self.random.choice(['FIRST', 'LAST'])}"
        return f"ORDER BY {order} RANGE BETWEEN {start} AND {end}"

    def window(self):
        make, source = self.one()
        kind = self.random.choice(["int", "dec", "dbl", "fine", "text", "date", "ts", "bool"])
        value = make.of(kind, 2)
        part = self.random.choice(make.columns)[0]
        order = self.random.choice(make.columns)[0]
        direction = self.random.choice(["ASC", "DESC"]) + " NULLS " + self.random.choice(["FIRST", "LAST"])
        partition = self.random.choice(["", f"PARTITION BY {part} "])
        by_id = f"{partition}ORDER BY a.id {self.random.choice(['ASC', 'DESC'])}"
        peers = f"{partition}ORDER BY {order} {direction}"
        rows = by_id + self.random.choice(["", self.frame("ROWS"), self.frame("ROWS"), self.frame("ROWS")])
        groups = peers + self.frame("GROUPS")
        distances = partition + self.range_frame(make)
        made = self.random.choice([
            lambda: self.summed(make, kind, value, rows), lambda: self.summed(make, kind, value, rows),
            lambda: self.summed(make, kind, value, peers), lambda: self.summed(make, kind, value, groups),
            lambda: self.summed(make, kind, value, distances), lambda: self.summed(make, kind, value, partition),
            lambda: self.neighbour(value, make.constant(kind), by_id), lambda: self.picked(value, rows),
            lambda: self.rank(peers), lambda: self.rank(peers),
            lambda: both("row_number() OVER (" + by_id + ")"),
            lambda: both(f"ntile({self.random.randint(1, 5)}) OVER ({by_id})"),
        ])()
        named = self.random.random() < 0.15
        if named:
            text = "SELECT a.id, count(*) OVER w AS n, {} AS w FROM {}{} WINDOW w AS (" + peers + ")"
        else:
            text = "SELECT a.id, {} AS w FROM {}{}"
        return both(text, made, source, self.where(make))

    def summed(self, make, kind, value, over):
        names = ["count({})", "min({})", "max({})", "count(*)"]
        if kind in ("int", "dec", "dbl", "fine"):
            names += ["sum({})", "avg({})"] * 3
        if kind == "bool":
            names += ["bool_and({})", "bool_or({})"]
        pattern = self.random.choice(names)
        parts = [value] if "{}" in pattern else []
        if self.random.random() < 0.15:
            pattern += " FILTER (WHERE {})"
            parts.append(make.bool_(2))
        return both(pattern + " OVER (" + over + ")", *parts)

    def neighbour(self, value, other, over):
        name = self.random.choice(["lag", "lead"])
        step = self.random.choice(["0", "1", "2", "-1"])
        return self.random.choice([
            both(f"{name}({{}}) OVER ({over})", value),
            both(f"{name}({{}}, {step}) OVER ({over})", value),
            both(f"{name}({{}}, {step}, {{}}) OVER ({over})", value, other),
            both(f"{name}({{}}) IGNORE NULLS OVER ({over})", value, duck=f"{name}({{}} IGNORE NULLS) OVER ({over})"),
        ])

    def picked(self, value, over):
        place = self.random.randint(1, 3)
        name = self.random.choice(["first_value({}", "last_value({}", f"nth_value({{}}, {place}"])
        if self.random.random() < 0.3:
            return both(f"{name}) IGNORE NULLS OVER ({over})", value, duck=f"{name} IGNORE NULLS) OVER ({over})")
        return both(f"{name}) OVER ({over})", value)

    def rank(self, over):
        name = self.random.choice(["rank", "dense_rank", "percent_rank", "cume_dist"])
        return both(f"{name}() OVER ({over})")

    def window_of_groups(self):
        """A window over aggregates, and a filter over a window."""
        make, source = self.one()
        key = self.random.choice(make.columns)[0]
        value = self.aggregate(make)
        ranked = self.random.choice(["rank()", "sum(count(*))", "count(*)", "max(count(*))"])
        over = self.random.choice(["ORDER BY count(*)", "ORDER BY count(*) DESC", ""])
        if ranked == "rank()" and not over:
            over = "ORDER BY count(*)"
        text = f"SELECT {key} AS k, {{}} AS x, {ranked} OVER ({over}) AS w FROM {{}}{{}} GROUP BY {key}"
        inner = both(text, value, source, self.where(make))
        if self.random.random() < 0.5:
            return inner
        return both("SELECT * FROM ({}) q WHERE w " + self.random.choice(["> 1", "= 1", "< 3", "IS NULL"]), inner)
