"""`bench/run export`: a table, or a part of it, as CSV and Parquet. See run()."""

import statistics
import subprocess

import machine
from rivals.rival import read_schema

COLOAD, DUCKDB = "coload", "DuckDB"

# What is written; {all} are the table's columns, {first} the first of them, which is a number.
QUERIES = {
    "table": "SELECT * FROM {table}",
    "half of the rows": "SELECT * FROM {table} WHERE {first} % 2 = 0",
    "computed": "SELECT {first} + 1 AS next, upper({last}) AS loud, {all} FROM {table}",
    "first million": "SELECT * FROM {table} LIMIT 1000000",
}

NOTES = """
What is unfair:
- coload's clocks cover its whole process, from start to exit, and the file and its folder are on the disk (fsync) when they stop.
  DuckDB's cover COPY alone, without the start of Python and opening the database, and leave the file to the kernel.
- coload writes texts in quotes, so that the file loads again as the same table; DuckDB only where they must be.
- DuckDB keeps the order of the rows, as by default.
"""


def run(lab, args):
    """Writes each query in both formats with both engines in turns, and compares what the files hold, row by row, in order."""
    file = lab.make_data(args, args.data)
    schema = file.with_suffix(".sql")
    table = read_schema(schema)
    stores = {COLOAD: args.scratch / "store", DUCKDB: args.scratch / "duckdb"}
    threads = ["--threads", str(args.threads)]
    load = ["load", file, "--into", stores[COLOAD], "--table", table.name, "--schema", schema]
    lab.progress("loading into both")
    machine.run_measured([args.coload, *load, *threads])
    machine.run_measured([lab.PYTHON, lab.BENCH / "rivals/load_duckdb.py", file, schema, stores[DUCKDB], *threads, "--order", "kept"])
    runs = {}
    for number in range(args.rounds):
        lab.prepare(args)
        for what, query in QUERIES.items():
            first, last = table.names[0], texts_of(table)[-1]
            names = {"table": table.name, "first": first, "last": last, "all": ", ".join(table.names)}
            for form in ["csv", "parquet"]:
                lab.progress(f"round {number + 1} of {args.rounds}: {what}, {form}")
                one = write_both(lab, args, (stores, table), query.format(**names), (what, form))
                for name, measured in one.items():
                    runs.setdefault((what, form, name), []).append(measured)
    medians = {
        key: {measure: statistics.median(one[measure] for one in of) for measure in ["wall", "cpu", "bytes"]}
        for key, of in runs.items()
    }
    print_table(args, medians)
    targets = [
        {"target": f"wall, DuckDB / coload, {what}, {form}", "limit": ">= 1", "ratio": ratio, "reached": ratio >= 1}
        for (what, form, name), of in medians.items() if name == COLOAD
        for ratio in [medians[what, form, DUCKDB]["wall"] / of["wall"]]
    ]
    lab.print_target_lines(targets)
    print(NOTES)
    named = {", ".join(key): of for key, of in medians.items()}
    lab.save(args, "export", args.data, runs={", ".join(key): of for key, of in runs.items()}, medians=named, targets=targets)


def texts_of(table):
    return [column.name for column in table.columns if "CHAR" in column.type] or [table.names[-1]]


def write_both(lab, args, of, query, what):
    """One file of each engine; stops when they differ."""
    (stores, table), (kind, form) = of, what
    files = {name: args.scratch / f"{name}.{form}" for name in stores}
    threads = ["--threads", str(args.threads)]
    command = [args.coload, "sql", "--store", stores[COLOAD], *threads, "-c", f"COPY ({query}) TO '{files[COLOAD]}'"]
    if (kind, form) == ("table", "csv"):
        command = [args.coload, "export", stores[COLOAD], table.name, *threads, "--output", files[COLOAD]]
    script = [lab.PYTHON, lab.BENCH / "rivals/export_duckdb.py"]
    runs = {COLOAD: machine.run_measured(command)[1]}
    lab.os.sync()
    output, _ = machine.run_measured([*script, "write", stores[DUCKDB], query, files[DUCKDB], str(args.threads)])
    runs[DUCKDB] = lab.json.loads(output.splitlines()[-1])
    for name, file in files.items():
        runs[name]["bytes"] = file.stat().st_size
    compared = subprocess.run([*map(str, script), "compare", stores[DUCKDB], query, *map(str, files.values())])
    if compared.returncode != 0:
        lab.sys.exit(f"the files of {query} differ")
    for file in files.values():
        file.unlink()
    lab.os.sync()
    return runs


def print_table(args, medians):
    print(f"\n{args.data}, {args.threads} threads, median of {args.rounds}\n")
    print("| | | coload: wall s | CPU s | MB | DuckDB: wall s | CPU s | MB | wall, DuckDB / coload |")
    print("|---|---|---:|---:|---:|---:|---:|---:|---:|")
    for (what, form, name), ours in medians.items():
        if name == COLOAD:
            theirs = medians[what, form, DUCKDB]
            cells = [f"{of['wall']:.2f} | {of['cpu']:.2f} | {of['bytes'] / 1e6:.0f}" for of in (ours, theirs)]
            print(f"| {what} | {form} | {' | '.join(cells)} | {theirs['wall'] / ours['wall']:.2f} |")
