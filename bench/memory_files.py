"""The files of `bench/run memory`. A maker writes one file, or a folder of them, and says how many rows it has."""

import bz2
import gzip
import lzma
import random
import subprocess

MIB = 1 << 20
EXTENSIONS = {"gzip": ".gz", "xz": ".xz", "xz9": ".xz", "zstd": ".zst", "zstd-long": ".zst", "bzip2": ".bz2"}
# Texts are cut from here; the number in front of each makes it distinct.
POOL = "".join(random.Random(1).choices("abcdefghijklmnopqrstuvwxyz      0123456789", k=MIB))


class Output:
    """A file that is compressed as it is written."""

    def __init__(self, folder, compression):
        self.path = folder / ("t.csv" + EXTENSIONS.get(compression, ""))
        self.bytes, self.process = 0, None
        if compression in ("zstd", "zstd-long"):
            level = ["--ultra", "--long=26", "-1"] if compression == "zstd-long" else ["-1"]
            self.process = subprocess.Popen(["zstd", "-q", *level, "-o", self.path], stdin=subprocess.PIPE)
            self.file = self.process.stdin
        elif compression == "gzip":
            self.file = gzip.open(self.path, "wb", compresslevel=1)
        elif compression == "bzip2":
            self.file = bz2.open(self.path, "wb", compresslevel=9)
        elif compression == "xz":
            self.file = lzma.open(self.path, "wb", preset=0)
        elif compression == "xz9":
            # The dictionary of `xz -9` without its time.
            filters = [{"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": 64 * MIB}]
            self.file = lzma.open(self.path, "wb", format=lzma.FORMAT_XZ, filters=filters)
        else:
            self.file = open(self.path, "wb")

    def write(self, text):
        data = text.encode()
        self.bytes += len(data)
        self.file.write(data)

    def close(self):
        self.file.close()
        if self.process and self.process.wait() != 0:
            raise RuntimeError("zstd failed")


def rows_of(row, mb, compression=None):
    """Writes row(0), row(1), ... until there are `mb` million bytes of text, three at least."""

    def make(folder, scale):
        out, count, batch, size = Output(folder, compression), 0, [], 0
        while out.bytes + size < mb * scale * 1e6 or count < 3:
            batch.append(row(count))
            size += len(batch[-1]) + 1
            count += 1
            if size > MIB:
                out.write("\n".join(batch) + "\n")
                batch, size = [], 0
        out.write("".join(line + "\n" for line in batch))
        out.close()
        return out.path, count

    return make


def bytes_of_one(columns):
    """Values of one byte."""
    digits = [",".join(random.Random(n).choices("0123456789", k=columns)) for n in range(97)]
    return lambda row: digits[row % 97]


def ints(columns):
    """Each value of each column is another."""
    return lambda row: ",".join(map(str, range(row * columns * 7919, (row + 1) * columns * 7919, 7919)))


def texts(columns, size):
    """Each value of each column is another, of so many bytes."""

    def row(number):
        start = number * columns
        return ",".join(text(start + column, size) for column in range(columns))

    return row


def text(number, size):
    head = f"{number:x}x"
    if size <= len(head):
        return head[:size]
    left, parts = size - len(head), [head]
    at = number * 7919 % MIB
    while left > 0:
        part = POOL[at : at + left]
        parts.append(part)
        left -= len(part)
        at = 0
    return "".join(parts)


KINDS = [
    ("BOOLEAN", lambda n: "true" if n % 3 else "false"),
    ("SMALLINT", lambda n: str(n % 65536 - 32768)),
    ("INTEGER", lambda n: str(n * 7919 % (1 << 31))),
    ("BIGINT", lambda n: str(n * 104729)),
    ("DECIMAL(15,2)", lambda n: f"{n}.{n % 100:02}"),
    ("DECIMAL(38,4)", lambda n: f"{n * 1000000007000000007}.{n % 10000:04}"),
    ("REAL", lambda n: f"{n % 8388608}.5"),
    ("DOUBLE", lambda n: f"{n}.25e-3"),
    ("DATE", lambda n: f"{1970 + n % 60}-{1 + n % 12:02}-{1 + n % 28:02}"),
    ("TIME", lambda n: f"{n % 24:02}:{n // 24 % 60:02}:{n // 1440 % 60:02}"),
    ("TIMESTAMP", lambda n: f"20{n % 90 + 10}-01-{1 + n % 28:02} {n % 24:02}:{n // 7 % 60:02}:00.{n % 1000000:06}"),
    ("TIMESTAMPTZ", lambda n: f"20{n % 90 + 10}-01-{1 + n % 28:02} {n % 24:02}:{n // 7 % 60:02}:00+01:00"),
    ("CHAR(12)", lambda n: f"c{n:x}"[:12]),
    ("VARCHAR", lambda n: f"text {n:x} of a row"),
    ("BINARY", lambda n: f"\\x{n:016x}"),
    ("UUID", lambda n: f"{n & 0xFFFFFFFF:08x}-0000-4000-8000-{n:012x}"),
]


def types(columns):
    """All types, one beside the other; what can be distinct is."""
    cells = [KINDS[column % len(KINDS)][1] for column in range(columns)]
    return lambda row: ",".join([cell(row * columns + at) for at, cell in enumerate(cells)])


def given(columns):
    """The flag that gives the types of `types(columns)`."""
    return ["--columns", ", ".join(f"c{n} {KINDS[n % len(KINDS)][0]}" for n in range(columns))]


def sparse(columns, dense_rows):
    """Full rows first, which the sample sees, then rows of nothing but separators."""
    full = ints(columns)
    return lambda row: full(row) if row < dense_rows else f"{row}" + "," * (columns - 1)


def widening(columns, narrow_rows):
    """Small numbers first, then numbers of 30 digits in all columns."""
    full = ints(columns)
    wide = lambda row: ",".join([f"{row * columns + at}{'7' * 22}.5" for at in range(columns)])
    return lambda row: full(row) if row < narrow_rows else wide(row)


def rejects(good, bad, share):
    """`share` of a hundred records are bad."""
    return lambda row: bad if row % 100 < share else good.format(row)


def files(count):
    """So many files of one line; the pattern that names them."""

    def make(folder, scale):
        many, rows = folder / "many", int(count * scale)
        many.mkdir()
        for number in range(rows):
            with open(many / f"{number:07}.csv", "wb") as out:
                out.write(b"%d,%d,text %d\n" % (number, number % 97, number))
        return many / "*.csv", rows

    return make
