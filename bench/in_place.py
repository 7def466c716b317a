"""`bench/run in-place`: statements over files where they are, beside DuckDB. See run()."""

import csv
import io
import statistics

import machine
from rivals.rival import read_schema

COLOAD, DUCKDB = "coload", "DuckDB"

# {table} is the file; Q1 and Q6 of TPC-H are those of the laboratory.
STATEMENTS = {
    "start": "SELECT 1 AS one",
    "count": "SELECT count(*) AS n FROM {table}",
    "q1": None,
    "q6": None,
    "one order": "SELECT * FROM {table} WHERE l_orderkey = 3000001 ORDER BY l_linenumber",
    "suppliers": "SELECT l_suppkey, sum(l_quantity) AS q FROM {table} GROUP BY l_suppkey ORDER BY q DESC, l_suppkey LIMIT 5",
    "orders": "SELECT l_orderkey, count(*) AS n FROM {table} GROUP BY l_orderkey ORDER BY n DESC, l_orderkey LIMIT 5",
}

NOTES = """
What is unfair:
- Both are processes: DuckDB's has the start of Python in it, coload's the look at the file. `start` is what each takes for nothing.
- The file is in the page cache. DuckDB's Parquet has its own row groups, statistics and Bloom filters.
"""


def run(lab, args):
    """Runs each statement over lineitem as Parquet (written by DuckDB, snappy) and as text, with both in turns, and compares the answers."""
    text = lab.make_data(args, args.data)
    schema = read_schema(text.with_suffix(".sql"))
    parquet = args.scratch / "lineitem.parquet"
    duckdb = [lab.PYTHON, lab.BENCH / "rivals/in_place_duckdb.py"]
    columns = ", ".join(f"'{column.name}': '{column.type}'" for column in schema.columns)
    as_text = f"read_csv('{text}', delim='|', header=false, columns={{{columns}}})"
    machine.run_measured([*duckdb, f"COPY (SELECT * FROM {as_text}) TO '{parquet}' (FORMAT parquet, COMPRESSION snappy)", str(args.threads)])
    own = ", ".join(f"{column.name} {column.type}" for column in schema.columns)
    tables = {
        "parquet": {COLOAD: f"'{parquet}'", DUCKDB: f"'{parquet}'"},
        "text": {COLOAD: f"read_csv('{text}', delimiter => '|', header => false, columns => '{own}')", DUCKDB: as_text},
    }
    runs = {}
    for number in range(args.rounds):
        lab.prepare(args, text, parquet)
        for form, names in tables.items():
            for what, statement in STATEMENTS.items():
                if form == "text" and what in ("start", "one order"):
                    continue
                lab.progress(f"round {number + 1} of {args.rounds}: {what}, {form}")
                statement = statement or lab.QUERIES[f"tpch{what[1:]}"].replace("from lineitem", "from {table}")
                answers = {}
                for name, table in names.items():
                    said = statement.format(table=table)
                    ours = [args.coload, "sql", "--threads", str(args.threads), "--output", "csv", "-c", said]
                    answers[name], measured = machine.run_measured(ours if name == COLOAD else [*duckdb, said, str(args.threads)])
                    runs.setdefault((form, what, name), []).append(measured)
                if rows_of(answers[COLOAD]) != rows_of(answers[DUCKDB]):
                    lab.sys.exit(f"the answers to {statement} over {form} differ:\n{answers[COLOAD]}\n{answers[DUCKDB]}")
    medians = {
        key: {measure: statistics.median(one[measure] for one in of) for measure in ["wall", "cpu", "peak_bytes"]}
        for key, of in runs.items()
    }
    print_table(args, medians)
    targets = [
        {"target": f"wall, DuckDB / coload, {what}, {form}", "limit": ">= 1", "ratio": ratio, "reached": ratio >= 1}
        for (form, what, name), of in medians.items() if name == COLOAD and what in ("q1", "q6")
        for ratio in [medians[form, what, DUCKDB]["wall"] / of["wall"]]
    ]
    lab.print_target_lines(targets)
    print(NOTES)
    named = {", ".join(key): of for key, of in medians.items()}
    lab.save(args, "in-place", args.data, runs={", ".join(key): of for key, of in runs.items()}, medians=named, targets=targets)


def rows_of(answer):
    """Rows in any order, numbers as numbers: averages have more digits here."""
    def value(text):
        try:
            return round(float(text), 4)
        except ValueError:
            return text

    return sorted([[value(text) for text in row] for row in list(csv.reader(io.StringIO(answer)))[1:]], key=str)


def print_table(args, medians):
    print(f"\n{args.data}, {args.threads} threads, median of {args.rounds}\n")
    print("| | | coload: wall s | CPU s | peak MB | DuckDB: wall s | CPU s | peak MB | wall, DuckDB / coload |")
    print("|---|---|---:|---:|---:|---:|---:|---:|---:|")
    for (form, what, name), ours in medians.items():
        if name == COLOAD:
            theirs = medians[form, what, DUCKDB]
            cells = [f"{of['wall']:.2f} | {of['cpu']:.2f} | {of['peak_bytes'] / 1e6:.0f}" for of in (ours, theirs)]
            print(f"| {what} | {form} | {' | '.join(cells)} | {theirs['wall'] / ours['wall']:.2f} |")
