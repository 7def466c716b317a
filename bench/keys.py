"""`bench/run keys`: a table with a key: loads, look-ups, upserts, deletes, beside others that have keys. See run()."""

import json
import random
import statistics
import subprocess
import time

import machine
import spaces
from rivals.rival import checked_sum

KEY = "l_orderkey,l_linenumber"
COLOAD = "coload"
# Name, engine of rivals/keys.py; `None` is coload itself.
CONTENDERS = [
    (COLOAD, None),
    ("DuckDB PRIMARY KEY", "duckdb"),
    ("SQLite WITHOUT ROWID", "sqlite"),
    ("PostgreSQL, key after COPY", "postgres"),
    ("RocksDB, SST ingested", "rocksdb"),
    ("ClickHouse ReplacingMergeTree", "clickhouse"),
]
MEASURES = {
    "load s": "load_s",
    "load CPU s": "cpu_s",
    "look-up µs": "each_us",
    "rows/s, 1,000 keys at once": "many_per_s",
    "upsert of 1 % s": "upsert_s",
    "DELETE of 1 % s": "delete_s",
}
# (text, measure, rival, at least so many times coload's)
TARGETS = [
    ("load, DuckDB / coload", "load_s", "DuckDB PRIMARY KEY", 8),
    ("load, PostgreSQL / coload", "load_s", "PostgreSQL, key after COPY", 10),
    ("load, RocksDB / coload", "load_s", "RocksDB, SST ingested", 3),
    ("upsert, DuckDB / coload", "upsert_s", "DuckDB PRIMARY KEY", 5),
]

NOTES = """
What is unfair:
- coload's clocks of load, upsert and DELETE cover whole processes; its look-ups are calls of the library without SQL. Those of the others
  are calls from Python: a statement for DuckDB, SQLite and ClickHouse, a line to psql for PostgreSQL (its CPU and memory are the server's and not
  measured), a key for RocksDB.
- RocksDB has no columns, and its file of sorted keys is made by Python, which sorts and reads the lines; the upsert is a batch of writes.
- SQLite's rows are made by Python from the lines. It has no decimals: they are counted in hundredths.
- ClickHouse does not keep keys unique: it drops rows in merges, and reads with FINAL, which merges them.
- coload and DuckDB (CHECKPOINT) have fsynced when their clocks stop, SQLite and PostgreSQL at the end of each transaction.
- A load's lines are shuffled. Rows replaced are 1 % at random, with another quantity; rows deleted are those of 1 % of the orders.
"""


def run(lab, args):
    """Loads shuffled lineitem into each engine, asks it for keys, replaces and deletes 1 %; compares what is left."""
    file, schema, _ = spaces.shuffled_tables(lab, args)["lineitem"]
    keys, upserts = args.scratch / "keys.txt", args.scratch / "upserts.tbl"
    draw(file, keys, upserts)
    contenders = lab.selected(args, CONTENDERS)
    runs = {name: [] for name, _ in contenders}
    for number in range(args.rounds):
        lab.prepare(args, file)
        for name, engine in contenders:
            lab.progress(f"round {number + 1} of {args.rounds}: {name}")
            one = run_coload(lab, args, (file, schema), (keys, upserts)) if engine is None else run_rival(
                lab, args, engine, (file, schema), (keys, upserts)
            )
            if one is not None:
                runs[name].append(one)
    runs = {name: of for name, of in runs.items() if of}
    answers = {name: {(one["rows"], one["sum"]) for one in of} for name, of in runs.items()}
    if len(set().union(*answers.values())) > 1:
        raise SystemExit(f"the engines hold different tables: {answers}")
    medians = {name: {m: statistics.median(one[m] for one in of) for m in MEASURES.values()} for name, of in runs.items()}
    print_table(args, medians)
    targets = [
        {"target": text, "limit": f">= {limit}", "ratio": ratio, "reached": ratio >= limit}
        for text, measure, rival, limit in TARGETS
        if rival in medians and COLOAD in medians
        for ratio in [medians[rival][measure] / medians[COLOAD][measure]]
    ]
    lab.print_target_lines(targets)
    print(NOTES)
    lab.save(args, "keys", f"lineitem-sf{args.scale}", runs=runs, medians=medians, targets=targets)
    panels = [(measure, [of[key] for of in medians.values()]) for measure, key in MEASURES.items()]
    lab.save_picture("keys", f"lineitem SF {args.scale} with a key", list(medians), panels)


def draw(file, keys, upserts):
    """Keys to be found, and 1 % of the rows with another quantity; the same each time."""
    choice = random.Random(18)
    with open(file) as lines, open(keys, "w") as asked, open(upserts, "w") as changed:
        for line in lines:
            drawn = choice.random()
            if drawn < 0.02:
                fields = line.split("|")
                if drawn < 0.01:
                    fields[4] = str((int(float(fields[4])) + 1) % 51)
                    changed.write("|".join(fields))
                else:
                    asked.write(f"{fields[0]}|{fields[3]}\n")


def run_coload(lab, args, table, given):
    (file, schema), (keys, upserts) = table, given
    target = args.scratch / "store"
    form = ["--table", "lineitem", "--delimiter", "|", "--no-header", "--quote", "none", "--threads", str(args.threads)]
    try:
        load = [args.coload, "load", file, "--into", target, "--schema", schema, "--primary-key", KEY, *form]
        _, loaded = machine.run_measured(load)
        asked = lab.output_of([args.coload_bench, "keys", "--store", target, "--table", "lineitem", "--keys", keys])
        asked = json.loads(asked)
        assert asked["found"] == sum(1 for _ in open(keys)), "a key is not there"
        replace = [args.coload, "load", upserts, "--into", target, "--on-conflict", "replace", *form]
        upsert = timed(replace)
        delete = timed([args.coload, "sql", "--store", target, "-c", "DELETE FROM lineitem WHERE l_orderkey % 100 = 7"])
        query = "SELECT count(*), sum(l_extendedprice) FROM lineitem"
        answer = lab.output_of([args.coload, "sql", "--store", target, "-c", query, "--output", "csv"])
        rows, total = answer.splitlines()[-1].replace('"', "").split(",")
        return {
            "load_s": loaded["wall"], "cpu_s": loaded["cpu"], "peak_bytes": loaded["peak_bytes"],
            "each_us": asked["each_us"], "hot_us": asked["hot_us"], "many_per_s": asked["many_per_s"],
            "upsert_s": upsert, "delete_s": delete, "rows": int(rows), "sum": checked_sum(total),
        }
    finally:
        lab.remove(target)


def run_rival(lab, args, engine, table, given):
    target = args.scratch / "target"
    command = [lab.PYTHON, lab.BENCH / "rivals/keys.py", engine, *table, target, "--keys", given[0], "--upserts", given[1]]
    try:
        done = subprocess.run([*command, "--threads", str(args.threads)], capture_output=True, text=True)
        if done.returncode != 0:
            lab.progress(f"{engine} is left out: {done.stderr.strip().splitlines()[-1:]}")
            return None
        return json.loads(done.stdout.splitlines()[-1])
    finally:
        for path in args.scratch.glob("target*"):
            lab.remove(path)


def timed(command):
    start = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    return time.perf_counter() - start


def print_table(args, medians):
    print(f"\nlineitem SF {args.scale}, lines shuffled, {args.threads} threads, median of {args.rounds}\n")
    print(f"| | {' | '.join(MEASURES)} |")
    print(f"|---|{'---:|' * len(MEASURES)}")
    for name, of in medians.items():
        print(f"| {name} | {' | '.join(shown(of[measure]) for measure in MEASURES.values())} |")


def shown(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.2f}"
