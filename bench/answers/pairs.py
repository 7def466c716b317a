"""A text in two dialects."""


class Pair(tuple):
    """Texts for Coload and DuckDB."""

    def __new__(cls, coload, duck=None):
        return tuple.__new__(cls, (coload, coload if duck is None else duck))


class Ordered(Pair):
    """A statement whose rows come in one order."""


def both(pattern, *parts, duck=None):
    """Patterns with the parts in the place of {}."""
    duck = pattern if duck is None else duck
    return Pair(pattern.format(*(p[0] for p in parts)), duck.format(*(p[1] for p in parts)))
