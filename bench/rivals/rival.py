"""What the rivals' scripts share: arguments, schema, clocks, the JSON line.

Each script is run as `SCRIPT FILE SCHEMA TARGET --threads N`, loads FILE (`|` after every field, no header, empty
is NULL) into TARGET on disk, and prints one line of JSON:

    {"wall": s, "cpu": s, "peak_bytes": n, "disk_bytes": n, "rows": n, "sum": "decimal", "values": n}

The clocks run from the first statement of the load to the moment when the engine calls it done and durable. They
leave out the interpreter's start, imports, opening an empty database, and the check. CPU is user and system time.
"""

import argparse
import json
import os
import re
import resource
import sys
import time
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

# A load is checked by the sum of a decimal column and the number of values that are not NULL of another.
CHECK_COLUMNS = {
    "lineitem": ("l_extendedprice", "l_comment"),
    "warehouse": ("net_amount", "comment"),
    "fact": ("amount_01", "comment_01"),
}


@dataclass(frozen=True)
class Column:
    name: str
    type: str  # upper case, for example DECIMAL(15,2)
    nullable: bool

    @property
    def base(self):
        return self.type.split("(")[0]

    @property
    def parameters(self):
        return [int(number) for number in re.findall(r"\d+", self.type)]


@dataclass(frozen=True)
class Table:
    name: str
    columns: list

    @property
    def names(self):
        return [column.name for column in self.columns]

    @property
    def check_columns(self):
        if self.name in CHECK_COLUMNS:
            return CHECK_COLUMNS[self.name]
        # Sums of other numbers do not fit, or depend on the order.
        summed = [column.name for column in self.columns if column.base in ("INTEGER", "DECIMAL")]
        return (summed[0] if summed else None), self.columns[-1].name

    @property
    def check_select(self):
        """What the check selects, in SQL that all engines understand."""
        summed, counted = self.check_columns
        return f"count(*), {f'sum({summed})' if summed else 0}, count({counted})"


def read_schema(path):
    """The table of a schema file, which has one column a line, as coload-bench writes it."""
    text = Path(path).read_text()
    table = re.search(r"CREATE TABLE (\w+)", text)
    columns = re.findall(r"^\s+(\w+) ([A-Z]+(?:\([\d,]+\))?)( NOT NULL)?,?$", text, re.MULTILINE)
    if not table or not columns:
        sys.exit(f"{path}: no CREATE TABLE with one column a line")
    return Table(table[1], [Column(name, type_, not not_null) for name, type_, not_null in columns])


def arguments(**extra):
    """Parses the command line; `extra` adds options: name = list of choices."""
    parser = argparse.ArgumentParser()
    parser.add_argument("file", type=lambda path: str(Path(path).resolve()))
    parser.add_argument("schema")
    parser.add_argument("target", type=lambda path: str(Path(path).resolve()))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--quotes", choices=["none", "double"], default="none")
    for name, choices in extra.items():
        parser.add_argument(f"--{name}", choices=choices, default=choices[0])
    parsed = parser.parse_args()
    parsed.table = read_schema(parsed.schema)
    return parsed


class Clock:
    """Wall, CPU and peak memory from its making to `stop`; of process `pid` when the engine is not this one."""

    def __init__(self, pid=None):
        self.pid = pid
        self.cpu_before = self._cpu()
        self.wall_before = time.perf_counter()

    def stop(self):
        wall = time.perf_counter() - self.wall_before
        return {"wall": wall, "cpu": self._cpu() - self.cpu_before, "peak_bytes": self._peak()}

    def _cpu(self):
        if self.pid is None:
            usage = resource.getrusage(resource.RUSAGE_SELF)
            return usage.ru_utime + usage.ru_stime
        fields = Path(f"/proc/{self.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def _peak(self):
        if self.pid is None:
            return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        status = Path(f"/proc/{self.pid}/status").read_text()
        return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) * 1024


def disk_bytes(target):
    """Bytes of a file or of all files below a directory."""
    target = Path(target)
    files = [target] if target.is_file() else [path for path in target.rglob("*") if path.is_file()]
    return sum(path.stat().st_size for path in files)


def checked_sum(total):
    """A sum as text, whatever the number of its decimal places."""
    return str(Decimal(str(total)).quantize(Decimal("0.01")))


def report(measured, check, disk):
    rows, total, values = check
    total = checked_sum(total)
    print(json.dumps({**measured, "disk_bytes": disk, "rows": int(rows), "sum": total, "values": int(values)}))
