"""Expressions that are dates and times."""

from pairs import Pair, both

DAYS = ["year", "month", "day", "quarter", "doy", "dow", "week", "isodow"]
# Texts that Coload reads; braces are doubled for `format`.
CLOCK_FORM = r"\d{{1,2}}:\d\d(:\d\d(\.\d{{1,6}})?)?"
DATE_FORM = r"\d{{4}}-\d{{1,2}}-\d{{1,2}}"
FORMS = {"DATE": f"^{DATE_FORM}$", "TIME": f"^{CLOCK_FORM}$", "TIMESTAMP": f"^{DATE_FORM}( {CLOCK_FORM})?$"}
CLOCK = ["hour", "minute", "second", "millisecond", "microsecond"]
INTERVALS = [
    "1 day", "25 hours", "1 month", "30 days", "90 minutes", "1 year", "0 days", "12 months", "-1 day", "1 second",
    "1 month 1 day", "-13 months", "1 microsecond", "86400 seconds", "1 week", "8000 years", "1 year -1 day",
]


class Times:
    """Dates, timestamps, times of day; intervals only within others."""

    def extracted(self, depth):
        part = self.random.choice(DAYS)
        clock = self.random.choice(CLOCK)
        return self.choice(
            lambda: both(f"CAST(extract({part} FROM {{}}) AS BIGINT)", self.of("ts", depth)),
            lambda: both(f"CAST(extract({part} FROM {{}}) AS BIGINT)", self.of("date", depth)),
            lambda: both(f"CAST(extract({clock} FROM {{}}) AS BIGINT)", self.of("ts", depth)),
            lambda: both(f"CAST(date_part('{clock}', {{}}) AS BIGINT)", self.of("time", depth)),
        )

    def date_(self, depth):
        of = lambda kind: self.of(kind, depth)
        days = self.random.choice(["1", "31", "-366", "0", "100000"])
        return self.choice(
            lambda: both("CAST({} AS DATE)", of("ts")),
            lambda: both("({} + " + days + ")", of("date")),
            lambda: both("({} - " + days + ")", of("date")),
            lambda: both("make_date(2024, 1 + abs({} % 12), 1 + abs({} % 29))", self.leaf("int"), self.leaf("int")),
            lambda: both("CAST(CAST({} AS VARCHAR) AS DATE)", of("date")),
            lambda: self.of_text("DATE", of("text")),
            lambda: self.general("date", depth),
            lambda: self.general("date", depth),
        )

    def ts_(self, depth):
        of = lambda kind: self.of(kind, depth)
        sign = self.random.choice("+-")
        unit = self.unit()
        return self.choice(
            lambda: both("({} " + sign + " {})", of("ts"), self.interval()),
            lambda: both("({} " + sign + " {})", of("date"), self.interval()),
            lambda: both("({} + {})", self.interval(), of("ts")),
            lambda: both("CAST({} AS TIMESTAMP)", of("date")),
            lambda: both("({} + {})", of("date"), of("time")),
            lambda: both(f"date_trunc('{unit}', {{}})", of("ts")),
            lambda: both(f"date_trunc('{unit}', {{}})", of("date")),
            lambda: self.of_text("TIMESTAMP", of("text")),
            lambda: both("(timestamp '2024-01-31 12:00:00' + ({} - {}))", of("ts"), of("ts")),
            lambda: self.binned(of("ts")),
            lambda: self.general("ts", depth),
            lambda: self.general("ts", depth),
        )

    def binned(self, value):
        width = self.random.choice(["15 minutes", "1 day", "7 days", "90 seconds"])
        origin = self.random.choice(["1970-01-01", "2000-01-03", "2024-02-29"])
        return both(
            f"date_bin(interval '{width}', {{}}, timestamp '{origin} 00:00:00')", value,
            duck=f"time_bucket(interval '{width}', {{}}, timestamp '{origin} 00:00:00')",
        )

    def unit(self):
        return self.random.choice(["year", "quarter", "month", "week", "day", "hour", "minute", "second", "millisecond"])

    def time_(self, depth):
        return self.choice(
            lambda: both("CAST({} AS TIME)", self.of("ts", depth)),
            lambda: both("({} + {})", self.of("time", depth), self.interval()),
            lambda: self.of_text("TIME", self.of("text", depth)),
            lambda: self.general("time", depth),
            lambda: self.general("time", depth),
        )

    def of_text(self, sql_type, text):
        """DuckDB takes a date for midnight, the year 9 for a year, and much else for a time."""
        return both(
            "TRY_CAST({} AS " + sql_type + ")", text,
            duck="CASE WHEN regexp_matches({0}, '" + FORMS[sql_type] + "') THEN TRY_CAST({0} AS " + sql_type + ") END",
        )

    def interval(self):
        first = f"interval '{self.random.choice(INTERVALS)}'"
        if self.random.random() < 0.15:
            return Pair(f"({first} + interval '{self.random.choice(INTERVALS)}')")
        return Pair(first)
