"""The laboratory: one command per table. `bench/run load lineitem-sf1` installs and builds first; see README.md.

Each command prints a Markdown table, appends one JSON line to results/COMMAND.jsonl and writes a picture beside it.
Contenders take turns (A B C A B C), and the tables show medians over the rounds.
"""

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import machine
import picture
from machine import ROOT
from rivals.rival import checked_sum, disk_bytes, read_schema

BENCH = ROOT / "bench"
RESULTS = BENCH / "results"
PYTHON = BENCH / ".venv/bin/python"

# Load average from which other processes disturb the measurement.
BUSY_LOAD = 0.7

DUCKDB, POLARS, COLOAD = "DuckDB, order not kept", "Polars to Parquet, snappy", "coload"

# Name, script, its options; `None` is coload itself. One thread of coload is for the scaling from one to two.
CONTENDERS = [
    (COLOAD, None, []),
    (DUCKDB, "load_duckdb.py", ["--order", "free"]),
    (f"{COLOAD}, 1 thread", None, ["--threads", "1"]),
    (POLARS, "load_polars.py", ["--compression", "snappy"]),
    ("DuckDB, order kept", "load_duckdb.py", ["--order", "kept"]),
    ("ClickHouse MergeTree", "load_chdb.py", ["--texts", "plain"]),
    ("ClickHouse LowCardinality", "load_chdb.py", ["--texts", "low"]),
    ("Hyper", "load_hyper.py", []),
    ("Polars to Parquet, zstd", "load_polars.py", ["--compression", "zstd"]),
    ("PyArrow, in memory", "load_pyarrow.py", []),
]

# What a load must reach; each line is a ratio of medians in one run: (text, over, under, measure, limit per table).
TARGETS = [
    ("wall, DuckDB / coload", DUCKDB, COLOAD, "wall", ">=", {"lineitem": 6, "warehouse": 7.5, "fact": 5.5}),
    ("CPU, DuckDB / coload", DUCKDB, COLOAD, "cpu", ">=", {"lineitem": 6, "warehouse": 7.5, "fact": 5.5}),
    ("wall, Polars / coload", POLARS, COLOAD, "wall", ">=", {"lineitem": 3.5, "warehouse": 5, "fact": 4.5}),
    ("bytes, coload / DuckDB", COLOAD, DUCKDB, "disk_bytes", "<=", {"lineitem": 0.8, "warehouse": 0.65, "fact": 0.72}),
    ("wall, 1 thread / 2 threads", f"{COLOAD}, 1 thread", COLOAD, "wall", ">=", dict.fromkeys(["lineitem", "warehouse", "fact"], 1.85)),
]

LOAD_NOTES = """
What is unfair:
- coload's clocks cover its whole process. The rivals' leave out the start of Python, imports, opening an empty
  database and closing it.
- coload and DuckDB (CHECKPOINT) have fsynced when their clock stops. Polars and ClickHouse's MergeTree leave that to
  the kernel; Hyper does not say. PyArrow writes nothing at all.
- coload, Hyper and Polars keep the order of the rows; DuckDB only where the name says so.
- Parquet is a file, not a store: no catalog, no versions, no second load into it.
- Hyper and Polars have no UUID and keep texts. coload and DuckDB check NOT NULL, ClickHouse by its types.
- Peak memory is resident memory; for engines in Python it includes the interpreter (30 to 80 MB), and mapped input
  counts for whoever maps it.
"""

QUERIES = {
    "q1": "select sum(l_extendedprice) from lineitem",
    "q2": "select count(*) from lineitem where l_shipdate between date '1994-01-01' and date '1995-01-01'",
    "tpch1": """select l_returnflag, l_linestatus, sum(l_quantity), sum(l_extendedprice),
        sum(l_extendedprice * (1 - l_discount)), sum(l_extendedprice * (1 - l_discount) * (1 + l_tax)),
        avg(l_quantity), avg(l_extendedprice), avg(l_discount), count(*)
        from lineitem where l_shipdate <= date '1998-09-02'
        group by l_returnflag, l_linestatus order by l_returnflag, l_linestatus""",
    "tpch6": """select sum(l_extendedprice * l_discount) from lineitem
        where l_shipdate >= date '1994-01-01' and l_shipdate < date '1995-01-01'
        and l_discount between 0.05 and 0.07 and l_quantity < 24""",
}

QUERY_NOTES = """
What is unfair:
- All times are of one call in the process that holds the engine, parsing and fetching the rows included, but
  Hyper's engine is a process of its own, so that its times hold a round trip (about 0.2 ms).
- DuckDB's calls go through its Python API (some 0.05 ms).
"""


def main():
    args = parse_arguments()
    RESULTS.mkdir(exist_ok=True)
    if os.getloadavg()[0] > BUSY_LOAD:
        progress(f"the machine is busy (load average {os.getloadavg()[0]:.1f}): the times will not be worth quoting")
    with tempfile.TemporaryDirectory(prefix="scratch-", dir=cache()) as scratch:
        args.scratch = Path(scratch)
        args.run(args)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--coload", type=Path, default=built("coload"), help="binary to measure")
    parser.add_argument("--coload-bench", type=Path, default=built("coload-bench"), help="binary of the generators")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(name, run, rounds, help):
        sub = commands.add_parser(name, help=help)
        sub.set_defaults(run=run)
        sub.add_argument("--rounds", type=int, default=rounds, help=f"turns of each contender (default {rounds})")
        sub.add_argument("--threads", type=int, default=2)
        sub.add_argument("--only", default="", help="names of contenders hold one of these words, comma between")
        sub.add_argument("--no-touch", action="store_true", help="do not touch 8 GiB of memory before each round")
        return sub

    load = command("load", run_load, 3, "load one table with every contender")
    load.add_argument("data", help="lineitem-sf1, lineitem-sf10, warehouse-1000000, fact-1000000, or another size")
    scale = command("scale", run_scale, 3, "CPU per row and memory of a load as the table grows")
    scale.add_argument("--memory", default="1GiB")
    scale.add_argument("data", nargs="*", default=["lineitem-sf1", "lineitem-sf10", "warehouse-1000000", "fact-1000000"])
    queries = command("queries", run_queries, 3, "four queries, hot, in process")
    queries.add_argument("--repeat", type=int, default=50, help="calls of each query in a round")
    queries.add_argument("data", nargs="?", default="lineitem-sf1")
    decompression = command("decompress", run_decompress, 5, "decompression alone, of several formats")
    decompression.add_argument("data", nargs="?", default="lineitem-sf1")
    export = command("export", run_export, 3, "a table and parts of it as CSV and Parquet, against DuckDB")
    export.add_argument("data", nargs="?", default="lineitem-sf1")
    in_place = command("in-place", run_in_place, 5, "statements over files where they are, against DuckDB")
    in_place.add_argument("data", nargs="?", default="lineitem-sf1")
    ingest = command("ingest", run_ingest, 7, "an Arrow table into a server by ADBC, beside DuckDB and coload load")
    ingest.add_argument("data", nargs="?", default="lineitem-sf1")
    ingest.add_argument("--rows", type=int, default=1_000_000, help="first rows of the table that are taken (default 1000000)")
    shapes = command("shapes", run_shapes, 3, "tables of one kind of column, against DuckDB and Polars")
    shapes.add_argument("--shapes", default="", help="names of shapes hold one of these words, comma between")
    shapes.add_argument("--rows", help="rows of each, in place of about 100 MB")
    shapes.add_argument("--keep", action="store_true", help="leave the files in the cache")
    spaces = command("spaces", run_spaces, 3, "sorted loads with sort buffer and runs in different spaces (seed 002, figure 1)")
    spaces.add_argument("--scale", default="1", help="scale factor of TPC-H (default 1)")
    spaces.add_argument("--thread-counts", default="1,2", help="comma between (default 1,2)")
    spaces.add_argument("--block", default="256MiB", help="bytes of the sort buffer (default 256MiB)")
    spaces.add_argument("--memory", default="8GiB", help="--memory of the loads, but for a tenth (default 8GiB)")
    spaces.add_argument("--optane", default="305,39.4,13.9", help="what emulated memory is charged (default 305,39.4,13.9)")
    keys = command("keys", run_keys, 3, "a table with a key: loads, look-ups, upserts, deletes, beside others")
    keys.add_argument("--scale", default="1", help="scale factor of lineitem (default 1)")
    data = commands.add_parser("data", help="make data sets and print their paths")
    data.set_defaults(run=lambda args: [print(make_data(args, name)) for name in args.data])
    data.add_argument("data", nargs="+")
    return parser.parse_args()


def built(name):
    return Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release" / name


def cache():
    directory = BENCH / "cache"
    directory.mkdir(exist_ok=True)
    return directory


def make_data(args, name):
    """Path of a data set, generated unless it is in the cache."""
    parts = re.fullmatch(r"lineitem-sf([\d.]+)|(warehouse|fact)-(\d+)", name)
    if not parts:
        sys.exit(f'no data set "{name}"; try lineitem-sf1, warehouse-1000000 or fact-1000000')
    return generated(args, ["lineitem", "--scale", parts[1]] if parts[1] else [parts[2], "--rows", parts[3]])


def generated(args, what):
    """Path of what `coload-bench generate` makes."""
    return Path(output_of([args.coload_bench, "generate", *what, "--cache", cache()]).strip())


def output_of(command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def prepare(args, *files):
    """Before each round: memory touched, input in the page cache, nothing left to write back."""
    if not args.no_touch:
        machine.touch_memory()
    for file in files:
        machine.warm_page_cache(file)
    os.sync()


def selected(args, contenders):
    words = [word.strip().lower() for word in args.only.split(",") if word.strip()]
    chosen = [one for one in contenders if not words or any(word in one[0].lower() for word in words)]
    return chosen or sys.exit(f"--only {args.only}: no contender of that name")


# --- load


def run_load(args):
    file = make_data(args, args.data)
    schema = file.with_suffix(".sql")
    contenders = selected(args, CONTENDERS)
    runs = {name: [] for name, _, _ in contenders}
    for number in range(args.rounds):
        prepare(args, file)
        for name, script, options in contenders:
            progress(f"round {number + 1} of {args.rounds}: {name}")
            runs[name].append(load_once(args, file, schema, script, options))
            os.sync()
    check_answers({name: [(run["rows"], run["sum"], run["values"]) for run in of] for name, of in runs.items()})
    medians = {name: medians_of(of) for name, of in runs.items()}
    print_loads(args, file, medians)
    targets = print_targets(read_schema(schema).name, medians)
    print(LOAD_NOTES)
    save(args, "load", args.data, runs=runs, medians=medians, targets=targets, input_bytes=file.stat().st_size)
    names = list(medians)
    panels = [
        ("wall s", [medians[name]["wall"] for name in names]),
        ("CPU s", [medians[name]["cpu"] for name in names]),
        ("MB on disk", [medians[name]["disk_bytes"] / 1e6 for name in names]),
    ]
    save_picture(f"load-{args.data}", f"{args.data}: load, {args.threads} threads", names, panels)


def load_once(args, file, schema, script, options):
    """One load by one contender into a fresh target, which is removed again."""
    target = args.scratch / "target"
    try:
        if script is None:
            return load_coload(args, file, schema, target, options)
        command = [PYTHON, BENCH / "rivals" / script, file, schema, target, "--threads", str(args.threads), *options]
        output, whole = machine.run_measured(command)
        return {**json.loads(output.splitlines()[-1]), "process_wall": whole["wall"]}
    finally:
        remove(target)


def load_coload(args, file, schema, target, options):
    table = read_schema(schema)
    threads = [] if "--threads" in options else ["--threads", str(args.threads)]
    output, measured = machine.run_measured(
        [args.coload, "load", file, "--into", target, "--table", table.name, "--schema", schema]
        + ["--report", "json", *threads, *options]
    )
    query = f"SELECT {table.check_select} FROM {table.name}"
    answer = subprocess.run(
        [args.coload, "sql", "--store", target, "-c", query, "--output", "csv"],
        check=True, capture_output=True, text=True,
    )
    rows, total, values = answer.stdout.split()[-1].split(",")
    checked = {"rows": int(rows), "sum": checked_sum(total), "values": int(values)}
    return {**measured, **checked, "disk_bytes": disk_bytes(target), "report": report_of(output)}


def report_of(output):
    """The JSON of `--report json`; it is kept in the results, not read."""
    start = output.find("{")
    return json.loads(output[start:]) if start >= 0 else None


def medians_of(runs):
    return {
        measure: statistics.median(run[measure] for run in runs)
        for measure in ["wall", "cpu", "peak_bytes", "disk_bytes"]
    }


def check_answers(answers):
    """Stops when two contenders hold different tables."""
    distinct = {answer for of in answers.values() for answer in of}
    if len(distinct) > 1:
        sys.exit(f"the loads disagree (rows, sum, values): {json.dumps(answers, indent=1)}")


def print_loads(args, file, medians):
    megabytes = file.stat().st_size / 1e6
    ours = medians.get(COLOAD)
    print(f"\n{args.data}, {megabytes:.0f} MB, {args.threads} threads, median of {args.rounds}\n")
    print("| | wall s | MB/s | CPU s | peak MB | MB on disk | wall / coload | CPU / coload |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|")
    for name, of in medians.items():
        ratios = [f"{of[m] / ours[m]:.2f}" if ours else "" for m in ["wall", "cpu"]]
        disk = f"{of['disk_bytes'] / 1e6:.0f}" if of["disk_bytes"] else "none"
        print(
            f"| {name} | {of['wall']:.2f} | {megabytes / of['wall']:.0f} | {of['cpu']:.2f} "
            f"| {of['peak_bytes'] / 1e6:.0f} | {disk} | {ratios[0]} | {ratios[1]} |"
        )


def print_targets(table, medians):
    """Prints how the run stands to what must be reached; returns it for the JSON line."""
    lines = []
    for text, over, under, measure, sign, limits in TARGETS:
        if over in medians and under in medians:
            ratio = medians[over][measure] / medians[under][measure]
            reached = ratio >= limits[table] if sign == ">=" else ratio <= limits[table]
            lines.append({"target": text, "limit": f"{sign} {limits[table]:g}", "ratio": ratio, "reached": reached})
    print_target_lines(lines)
    return lines


def print_target_lines(lines):
    if lines:
        print("\n| target | must be | is | reached |\n|---|---:|---:|---|")
    for line in lines:
        print(f"| {line['target']} | {line['limit']} | {line['ratio']:.3g} | {'yes' if line['reached'] else 'no'} |")


# --- scale


def run_scale(args):
    files = {name: make_data(args, name) for name in args.data}
    runs = {name: [] for name in files}
    for number in range(args.rounds):
        for name, file in files.items():
            prepare(args, file)
            progress(f"round {number + 1} of {args.rounds}: {name}")
            options = ["--memory", args.memory]
            runs[name].append(load_once(args, file, file.with_suffix(".sql"), None, options))
    medians = {name: {**medians_of(of), "rows": of[0]["rows"]} for name, of in runs.items()}
    print(f"\ncoload load --memory {args.memory}, {args.threads} threads, median of {args.rounds}\n")
    print("| | rows | wall s | MB/s | CPU s | CPU ns a row | peak MiB |\n|---|---:|---:|---:|---:|---:|---:|")
    for name, of in medians.items():
        of["cpu_ns_per_row"] = of["cpu"] / of["rows"] * 1e9
        rate = files[name].stat().st_size / 1e6 / of["wall"]
        print(
            f"| {name} | {of['rows']} | {of['wall']:.2f} | {rate:.0f} | {of['cpu']:.2f} "
            f"| {of['cpu_ns_per_row']:.0f} | {of['peak_bytes'] / 2**20:.0f} |"
        )
    targets = scale_targets(medians)
    print_target_lines(targets)
    print("\nPeak memory is the resident memory of the process, mapped files included.")
    save(args, "scale", "-".join(args.data), memory=args.memory, runs=runs, medians=medians, targets=targets)
    panels = [
        ("CPU ns a row", [of["cpu_ns_per_row"] for of in medians.values()]),
        ("peak MiB", [of["peak_bytes"] / 2**20 for of in medians.values()]),
    ]
    save_picture("scale", f"coload load --memory {args.memory}, {args.threads} threads", list(medians), panels)


def scale_targets(medians):
    lines = []
    if {"lineitem-sf1", "lineitem-sf10"} <= medians.keys():
        ratio = medians["lineitem-sf10"]["cpu_ns_per_row"] / medians["lineitem-sf1"]["cpu_ns_per_row"]
        lines.append({"target": "CPU a row, SF10 / SF1", "limit": "<= 1.1", "ratio": ratio, "reached": ratio <= 1.1})
    for name, of in medians.items():
        peak = of["peak_bytes"] / 2**30
        lines.append({"target": f"peak GiB, {name}", "limit": "<= 1.2", "ratio": peak, "reached": peak <= 1.2})
    return lines


# --- queries


def run_queries(args):
    file = make_data(args, args.data)
    schema = file.with_suffix(".sql")
    engines = selected(args, [("coload", None), ("DuckDB", "duckdb"), ("Hyper", "hyper")])
    stores = {name: load_for_queries(args, file, schema, engine) for name, engine in engines}
    runs = {name: [] for name, _ in engines}
    for number in range(args.rounds):
        prepare(args)
        for name, engine in engines:
            progress(f"round {number + 1} of {args.rounds}: {name}")
            runs[name].append(query_once(args, engine, stores[name]))
    check_query_answers(runs)
    medians = {
        name: {query: statistics.median(run["times"][query] for run in of) for query in QUERIES}
        for name, of in runs.items()
    }
    print(f"\n{args.data}, {args.threads} threads, hot, ms, median of {args.rounds} x {args.repeat} calls\n")
    print(f"| | {' | '.join(QUERIES)} |\n|---|{'---:|' * len(QUERIES)}")
    for name, of in medians.items():
        print(f"| {name} | {' | '.join(f'{of[query]:.2f}' for query in QUERIES)} |")
    targets = query_targets(medians)
    print_target_lines(targets)
    print(QUERY_NOTES)
    save(args, "queries", args.data, repeat=args.repeat, runs=runs, medians=medians, targets=targets)
    panels = [(f"{query}, ms", [of[query] for of in medians.values()]) for query in QUERIES]
    save_picture(f"queries-{args.data}", f"{args.data}: queries, hot, {args.threads} threads", list(medians), panels)


def load_for_queries(args, file, schema, engine):
    """Loads the table once into a store that lives as long as the run."""
    progress(f"loading into {engine or 'coload'}")
    store = args.scratch / f"queries-{engine or 'coload'}"
    threads = ["--threads", str(args.threads)]
    if engine is None:
        command = [args.coload, "load", file, "--into", store, "--table", "lineitem", "--schema", schema, *threads]
    else:
        command = [PYTHON, BENCH / "rivals" / f"load_{engine}.py", file, schema, store, *threads]
    machine.run_measured(command)
    return store


def query_once(args, engine, store):
    """Median ms and answer of each query, in one process."""
    options = ["--repeat", str(args.repeat), "--threads", str(args.threads)]
    options += [part for query, sql in QUERIES.items() for part in ("--query", f"{query}={sql}")]
    if engine is None:
        command = [args.coload_bench, "queries", "--store", store, *options]
    else:
        command = [PYTHON, BENCH / "rivals" / "queries.py", engine, store, *options]
    output, _ = machine.run_measured(command)
    return json.loads(output.splitlines()[-1])


def check_query_answers(runs):
    """Stops when two engines differ by more than a rounding."""
    answered = {name: of[0]["answers"] for name, of in runs.items()}
    reference_name, reference = next(iter(answered.items()))
    for query in QUERIES:
        for name, answers in answered.items():
            if not same_rows(answers[query], reference[query]):
                sys.exit(f"{query}: {name} answers {answers[query]}, {reference_name} {reference[query]}")


def same_rows(left, right):
    """Rows of texts and numbers (as texts); averages are rounded differently by each engine."""
    def same(a, b):
        try:
            return abs(float(a) - float(b)) <= 1e-4 * max(1.0, abs(float(a)))
        except ValueError:
            return a == b

    return len(left) == len(right) and all(
        len(a) == len(b) and all(map(same, a, b)) for a, b in zip(left, right)
    )


def query_targets(medians):
    ours = medians.get("coload")
    rivals = [of for name, of in medians.items() if name != "coload"]
    lines = []
    for query in QUERIES if ours and rivals else []:
        ratio = ours[query] / min(of[query] for of in rivals)
        text = f"{query}, coload / the faster rival"
        lines.append({"target": text, "limit": "<= 1", "ratio": ratio, "reached": ratio <= 1})
    return lines


# --- decompress


def run_decompress(args):
    import decompress  # its libraries come with the rivals

    decompress.run(sys.modules[__name__], args)


# --- export


def run_export(args):
    import export

    export.run(sys.modules[__name__], args)


# --- statements over files


def run_in_place(args):
    import in_place

    in_place.run(sys.modules[__name__], args)


# --- ingest


def run_ingest(args):
    import ingest  # the driver comes with the rivals

    ingest.run(sys.modules[__name__], args)


# --- sorted loads


def run_spaces(args):
    import spaces

    spaces.run(sys.modules[__name__], args)


def run_keys(args):
    import keys

    keys.run(sys.modules[__name__], args)


# --- shapes


def run_shapes(args):
    import shapes

    shapes.run(sys.modules[__name__], args)


# --- output


def save(args, command, data, **results):
    line = {"command": command, "data": data, "rounds": args.rounds, "threads": args.threads, **machine.describe()}
    with open(RESULTS / f"{command}.jsonl", "a") as file:
        file.write(json.dumps({**line, **results}) + "\n")


def save_picture(name, title, labels, panels):
    path = RESULTS / f"{name}.png"
    picture.bars(path, title, labels, panels, COLOAD)
    print(f"picture: {path.relative_to(ROOT)}")


def progress(text):
    print(f"# {text}", file=sys.stderr, flush=True)


def remove(path):
    if path.is_dir():
        shutil.rmtree(path)
    elif path.exists():
        path.unlink()


if __name__ == "__main__":
    main()
