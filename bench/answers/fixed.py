"""Queries that do not come from a generator: TPC-H, and the manner of ClickBench, on the data of `coload-bench`."""

import pathlib
import re
import subprocess

from engines import Failure
from pairs import Ordered

ROOT = pathlib.Path(__file__).resolve().parents[2]
TPCH = ROOT / "crates/serve/tests/tpch"
TABLES = ["region", "nation", "supplier", "customer", "part", "partsupp", "orders", "lineitem"]

# ClickBench's own table of 100 columns is no data that we can make; these ask the same of lineitem: counts, sums and
# averages without and with groups of few and many values, distinct counts, tops, text, times.
CLICKS = [
    "SELECT count(*) AS n FROM lineitem",
    "SELECT count(*) AS n FROM lineitem WHERE l_linenumber <> 1",
    "SELECT sum(l_quantity) AS a, count(*) AS b, avg(l_extendedprice) AS c FROM lineitem",
    "SELECT avg(l_orderkey) AS a FROM lineitem",
    "SELECT count(DISTINCT l_orderkey) AS a FROM lineitem",
    "SELECT count(DISTINCT l_comment) AS a FROM lineitem",
    "SELECT min(l_shipdate) AS a, max(l_shipdate) AS b FROM lineitem",
    "SELECT l_suppkey, count(*) AS n FROM lineitem WHERE l_suppkey <> 7 GROUP BY l_suppkey ORDER BY n DESC, l_suppkey LIMIT 10",
    "SELECT l_suppkey, count(DISTINCT l_partkey) AS u FROM lineitem GROUP BY l_suppkey ORDER BY u DESC, l_suppkey LIMIT 10",
    "SELECT l_suppkey, sum(l_quantity) AS s, count(*) AS c, avg(l_tax) AS a, count(DISTINCT l_partkey) AS d FROM lineitem GROUP BY l_suppkey ORDER BY c DESC, l_suppkey LIMIT 10",
    "SELECT l_comment, count(*) AS c FROM lineitem WHERE l_comment <> '' GROUP BY l_comment ORDER BY c DESC, l_comment LIMIT 10",
    "SELECT l_shipmode, l_comment, count(*) AS c FROM lineitem GROUP BY l_shipmode, l_comment ORDER BY c DESC, l_shipmode, l_comment LIMIT 10",
    "SELECT l_orderkey, extract(month FROM l_shipdate) AS m, l_shipmode, count(*) AS c FROM lineitem GROUP BY l_orderkey, m, l_shipmode ORDER BY c DESC, l_orderkey, m, l_shipmode LIMIT 10",
    "SELECT l_orderkey FROM lineitem WHERE l_orderkey = 435",
    "SELECT count(*) AS n FROM lineitem WHERE l_comment LIKE '%fox%'",
    "SELECT l_shipmode, min(l_comment) AS m, count(*) AS c FROM lineitem WHERE l_comment LIKE '%fox%' AND l_shipmode <> '' GROUP BY l_shipmode ORDER BY c DESC, l_shipmode LIMIT 10",
    "SELECT l_comment FROM lineitem WHERE l_comment <> '' ORDER BY l_shipdate, l_comment LIMIT 10",
    "SELECT l_suppkey, avg(length(l_comment)) AS l, count(*) AS c FROM lineitem GROUP BY l_suppkey HAVING count(*) > 100 ORDER BY l DESC, l_suppkey LIMIT 25",
    "SELECT " + ", ".join(f"sum(l_linenumber + {i}) AS s{i}" for i in range(30)) + " FROM lineitem",
    "SELECT l_suppkey, l_linenumber, count(*) AS c, sum(l_quantity) AS s, avg(l_discount) AS a FROM lineitem WHERE l_comment <> '' GROUP BY l_suppkey, l_linenumber ORDER BY c DESC, l_suppkey, l_linenumber LIMIT 10",
    "SELECT 1 AS one, l_shipmode, count(*) AS c FROM lineitem GROUP BY 1, l_shipmode ORDER BY c DESC, 2 LIMIT 10",
    "SELECT l_suppkey, l_suppkey - 1 AS a, l_suppkey - 2 AS b, count(*) AS c FROM lineitem GROUP BY l_suppkey, l_suppkey - 1, l_suppkey - 2 ORDER BY c DESC, 1 LIMIT 10",
    "SELECT l_shipmode, count(*) AS v FROM lineitem WHERE l_suppkey = 62 AND l_shipdate >= date '1995-07-01' AND l_shipdate <= date '1996-07-31' GROUP BY l_shipmode ORDER BY v DESC, 1 LIMIT 10 OFFSET 2",
    "SELECT date_trunc('month', CAST(l_shipdate AS TIMESTAMP)) AS m, count(*) AS v FROM lineitem GROUP BY 1 ORDER BY 1 LIMIT 10",
]


def queries(arguments, folder, coload, duck):
    """Makes the data, loads it into both engines, and gives each query its name."""
    data = folder / "tpch"
    program = f"{arguments.bin}/coload-bench"
    subprocess.run(
        [program, "generate", "tpch", "--scale", str(arguments.scale), "--out", str(data)],
        check=True, stdout=subprocess.DEVNULL,
    )
    for table in TABLES:
        schema = subprocess.run(
            [program, "schema", table], check=True, capture_output=True, text=True
        ).stdout.strip().rstrip(";")
        copy = f"COPY {table} FROM '{data / table}.tbl' (DELIMITER '|', HEADER false, AUTO_DETECT false)"
        # Types of Coload that DuckDB has under the same names.
        for answer in (duck.ask(schema), duck.ask(copy)):
            if isinstance(answer, Failure):
                raise SystemExit(f"{table}: {answer}")
        subprocess.run(
            [f"{arguments.bin}/coload", "load", str(data / f"{table}.tbl"), "--into",
             str(folder / "store"), "--table", table, "--schema", str(data / f"{table}.sql")],
            check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )
    for path in sorted(TPCH.glob("q*.sql")):
        yield f"tpch {path.stem}", Ordered(path.read_text().strip().rstrip(";"))
    for number, query in enumerate(CLICKS):
        yield f"clicks {number}", Ordered(query)
