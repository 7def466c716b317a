"""Tables with values at the edges of their types, in both engines."""

# Values of each kind of column; None is drawn besides.
POOLS = {
    "SMALLINT": ["0", "1", "-1", "2", "7", "32767", "-32768"],
    "INTEGER": ["0", "1", "-1", "3", "10", "2147483647", "-2147483648", "46341"],
    "BIGINT": ["0", "1", "-1", "5", "9223372036854775807", "-9223372036854775808", "4294967296"],
    "DECIMAL(9,2)": ["0", "0.01", "-0.01", "2.5", "-2.5", "9999999.99", "-9999999.99", "0.5", "1"],
    "DECIMAL(18,4)": ["0", "0.0001", "1.5", "-1.5", "99999999999999.9999", "3.3333", "2"],
    "DECIMAL(38,0)": ["0", "1", "-1", "9" * 38, "-" + "9" * 38, "12345678901234567890", "2"],
    "DECIMAL(38,10)": ["0", "0.0000000001", "-1.5", "9" * 28 + "." + "9" * 10, "-" + "9" * 28 + "." + "9" * 10, "3.25"],
    # Halves and integers, of which sums are exact.
    "DOUBLE": ["0.0", "-0.0", "0.5", "-0.5", "1.5", "2.5", "1024", "-3", "nan", "inf", "-inf", "9007199254740993"],
    "REAL": ["0.0", "-0.0", "0.5", "-2.5", "3.0", "nan", "16777216", "0.25", "inf", "-inf"],
    "DATE": ["0001-01-01", "9999-12-31", "1970-01-01", "1969-12-31", "2024-02-29", "2023-12-31"],
    "TIMESTAMP": [
        "0001-01-01 00:00:00", "9999-12-31 23:59:59.999999", "1970-01-01 00:00:00",
        "1969-12-31 23:59:59.5", "2024-02-29 12:30:00", "2024-03-01 00:00:00",
        "2262-04-11 23:47:17", "1677-09-21 00:12:43",
    ],
    "TIME": ["00:00:00", "23:59:59.999999", "12:00:00", "06:30:15.25"],
    "VARCHAR": [
        "", "a", "A", "ab", "b%", "_x", "10", "9", "-5", "é", "É", "zebra", " a", "NULL", "a\\b", "日本", "😀a", "a\nb",
        "2024-02-29", "2024-02-30", "12:30:00", "ab ab",
    ],
    "BOOLEAN": ["true", "false"],
}

KINDS = {
    "SMALLINT": "int", "INTEGER": "int", "BIGINT": "int", "DECIMAL(9,2)": "dec",
    "DECIMAL(18,4)": "dec", "DECIMAL(38,0)": "big", "DECIMAL(38,10)": "fine", "DOUBLE": "dbl", "REAL": "dbl",
    "DATE": "date", "TIMESTAMP": "ts", "TIME": "time", "VARCHAR": "text", "BOOLEAN": "bool",
}

COLUMNS_MAX = 7
ROWS = [0, 1, 3, 8, 8, 20, 20, 20, 60, 60, 120]


class Table:
    """A table: `id` is unique, the other columns are anything."""

    def __init__(self, random, name):
        self.name = name
        count = random.randint(3, COLUMNS_MAX)
        types = [random.choice(list(POOLS)) for _ in range(count)]
        self.columns = [("id", "INTEGER")] + [(f"c{i}", t) for i, t in enumerate(types)]
        rows = random.choice(ROWS)
        # A few values often: keys of joins and groups meet.
        pools = {t: random.sample(POOLS[t], k=min(len(POOLS[t]), random.randint(2, 6))) for t in types}
        self.rows = [
            [str(i)] + [self.draw(random, pools[t]) for t in types] for i in range(rows)
        ]
        self.parts = random.randint(1, 3)

    @staticmethod
    def draw(random, pool):
        return None if random.random() < 0.2 else random.choice(pool)

    def literal(self, value, sql_type):
        return "NULL" if value is None else literal(value, sql_type)

    def statements(self):
        """What makes it, for either engine: several INSERTs are several segments."""
        columns = ", ".join(f"{name} {sql_type}" for name, sql_type in self.columns)
        yield f"CREATE TABLE {self.name} ({columns})"
        size = max(1, -(-len(self.rows) // self.parts))
        types = [sql_type for _, sql_type in self.columns]
        for at in range(0, len(self.rows), size):
            rows = [
                "(" + ", ".join(map(self.literal, row, types)) + ")"
                for row in self.rows[at : at + size]
            ]
            yield f"INSERT INTO {self.name} VALUES {', '.join(rows)}"


def literal(value, sql_type):
    """A value as SQL of its type."""
    if sql_type in ("VARCHAR",):
        return "'" + value.replace("'", "''") + "'"
    if sql_type in ("DATE", "TIME", "TIMESTAMP"):
        return f"{sql_type} '{value}'"
    if sql_type == "BOOLEAN":
        return value
    return f"CAST('{value}' AS {sql_type})"
