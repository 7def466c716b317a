"""Expressions that are texts."""

from pairs import both

PATTERNS = ["^a", "b$", "[a-z]+", ".", "a|b", "(a)(b)", "\\d+", "é", "^$", "[^a]", "a*"]


class Words:
    """Texts."""

    def text_(self, depth):
        of = lambda kind: self.of(kind, depth)
        text = of("text")
        start, count = self.random.randint(1, 4), self.random.randint(0, 3)
        return self.choice(
            lambda: both("({} || {})", text, of("text")),
            lambda: both("concat({}, {})", text, of("text")),
            lambda: both("concat_ws('-', {}, {}, {})", text, of("text"), of("text")),
            lambda: both("upper({})", text),
            lambda: both("lower({})", text),
            lambda: both(f"substr({{}}, {start}, {count})", text),
            lambda: both(f"substring({{}} FROM {start})", text),
            lambda: both(f"left({{}}, {count - 2})", text),
            lambda: both(f"right({{}}, {count - 2})", text),
            lambda: both("trim({})", text),
            lambda: both("ltrim({}, 'a ')", text),
            lambda: both("rtrim({}, 'b%')", text),
            lambda: both(f"lpad({{}}, {count + start}, 'xy')", text),
            lambda: both(f"rpad({{}}, {count + start}, 'é')", text),
            lambda: both("replace({}, 'a', 'bb')", text),
            lambda: both("translate({}, 'ab', 'b')", text),
            lambda: both("reverse({})", text),
            lambda: both(f"repeat({{}}, {count - 1})", text),
            lambda: both(f"split_part({{}}, 'a', {start})", text),
            lambda: self.replaced(text),
            lambda: both("CAST({} AS VARCHAR)", of(self.random.choice(["int", "date", "dec", "big", "bool", "ts", "time", "fine"]))),
            lambda: both("lower(to_hex(CAST({} AS BIGINT)))", self.leaf("int")),
            lambda: self.general("text", depth),
            lambda: self.general("text", depth),
        )

    def replaced(self, text):
        pattern = self.random.choice(PATTERNS)
        flags = self.random.choice(["", ", 'g'"])
        new = "\\2\\1" if pattern == "(a)(b)" else self.random.choice(["", "x", "é"])
        return both(f"regexp_replace({{}}, '{pattern}', '{new}'{flags})", text)
