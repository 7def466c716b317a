"""DuckDB: runs a statement in a process of its own, and prints the answer as CSV."""

import csv
import sys

import duckdb

statement, threads = sys.argv[1:]
connection = duckdb.connect(config={"threads": int(threads)})
answer = connection.execute(statement)
out = csv.writer(sys.stdout)
out.writerow([column[0] for column in answer.description or []])
out.writerows(answer.fetchall())
