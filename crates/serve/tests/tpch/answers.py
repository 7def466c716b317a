"""Makes q01.csv .. q22.csv, DuckDB's answers to q01.sql .. q22.sql at scale factor 0.1.

    pip install duckdb==2.0.0
    python answers.py FOLDER    # FOLDER holds region.tbl .. lineitem.tbl, as crate tpchgen 4.0.0 prints them

The .tbl files are those that the test itself makes. An answer starts with a comment line that has the version.
"""
import csv
import pathlib
import sys

import duckdb

here = pathlib.Path(__file__).parent
data = pathlib.Path(sys.argv[1])
db = duckdb.connect()
db.execute((here / "schema.sql").read_text())
for (table,) in db.execute("select table_name from duckdb_tables()").fetchall():
    columns = [c for (c,) in db.execute(
        "select column_name from duckdb_columns() where table_name = ? order by column_index", [table]).fetchall()]
    # A line ends with a delimiter: one more column, dropped again.
    types = {c: "VARCHAR" for c in columns} | {"line_end": "VARCHAR"}
    db.execute(
        f"insert into {table} select * exclude (line_end) from read_csv(?, delim='|', header=false, quote='', "
        "columns=" + repr(types) + ")", [str(data / f"{table}.tbl")])
for query in sorted(here.glob("q*.sql")):
    cursor = db.execute(query.read_text())
    with open(query.with_suffix(".csv"), "w", newline="") as out:
        out.write(f"# duckdb {duckdb.__version__}\n")
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow([d[0] for d in cursor.description])
        writer.writerows(cursor.fetchall())
    print(query.name)
