"""`bench/run spaces`: seed 002, figure 1: sorted loads with the sort buffer and the runs in different spaces. See run()."""

import json
import statistics
import subprocess
from pathlib import Path

import machine
from rivals.rival import read_schema

# The keys of TPC-H's tables.
KEYS = {
    "region": "r_regionkey",
    "nation": "n_nationkey",
    "supplier": "s_suppkey",
    "customer": "c_custkey",
    "part": "p_partkey",
    "partsupp": "ps_partkey,ps_suppkey",
    "orders": "o_orderkey",
    "lineitem": "l_orderkey,l_linenumber",
}
# Columns of lineitem, counted from 1, whose values have one length, and those of variable length behind the key.
PARTS = {
    "fixed-length records": [1, 2, 3, 4, 5, 6, 7, 8, 11, 12, 13],
    "variable-length records": [1, 4, 14, 15, 16],
}
STEPS = {"read and sort": "read_and_sort_s", "merge": "merge_s", "inner nodes": "inner_nodes_s"}

NOTES = """
What is unfair, or other than in the seed:
- `emulated` is DRAM that is charged the latency and bandwidth of six modules of Optane ({optane}: ns, GB/s read, GB/s written) on top of
  what DRAM takes. Bandwidth is shared by the threads, as a socket's is; the seed's machine had four sockets.
- The sort buffer of the seed holds records; here it holds the columns of a block, one after the other, as they are decoded.
- Time is the clock's, of the whole process ("all") and by its own report (steps). "Read and sort" ends when all runs are stored.
- Lines of the tables are shuffled, as TPC-H's are in the order of their keys. Each table is a load of its own; times are their sums.
- "a tenth" has a tenth of the memory that the load of sDiD held at most, and says no spaces: runs are in memory as far as they may, then on disk.
"""


def run(lab, args):
    """Loads shuffled tables with each placement of sort buffer and runs, on 1, 2, .. threads; prints time by step."""
    tables = shuffled_tables(lab, args)
    places = lab.selected(args, placements(args))
    sets = {"all tables": tables, **parts_of_lineitem(lab, args, tables["lineitem"])}
    runs = {}
    for number in range(args.rounds):
        lab.prepare(args, *[file for file, _, _ in tables.values()])
        for threads in thread_counts(args):
            for what, of in sets.items():
                needed = None
                for name, flags in places:
                    if flags is None and needed is None:
                        continue
                    lab.progress(f"round {number + 1} of {args.rounds}: {what}, {threads} threads, {name}")
                    one = load_all(lab, args, of, threads, flags or ["--memory", str(max(needed // 10, 32 << 20))])
                    needed = needed or one["peak_bytes"]
                    runs.setdefault((what, threads, name), []).append(one)
    measures = ["wall", "cpu", "peak_bytes", "runs", *STEPS.values()]
    medians = {key: {m: statistics.median(one[m] for one in of) for m in measures} for key, of in runs.items()}
    print_table(args, medians)
    targets = targets_of(medians)
    lab.print_target_lines(targets)
    print(NOTES.format(optane=args.optane))
    keyed = [{"set": what, "threads": threads, "place": name, **of} for (what, threads, name), of in medians.items()]
    lab.save(args, "spaces", f"tpch-sf{args.scale}", medians=keyed, targets=targets)
    labels = [f"{what}, {threads} threads: {name}" for what, threads, name in medians]
    panels = [(step, [of[measure] for of in medians.values()]) for step, measure in {"all": "wall", **STEPS}.items()]
    lab.save_picture("spaces", f"sorted loads of TPC-H SF {args.scale}", labels, panels)


def placements(args):
    """Name and flags of each placement; `None` for a tenth of the memory of the first."""
    block = f"size={args.block}"
    dram = ("dram", "dram")
    mapped = tuple(f"map:{args.scratch}" for _ in range(2))
    emulated = tuple(f"emulated:{args.optane}" for _ in range(2))

    def flags(sort, runs):
        return ["--memory", args.memory, "--sort-space", f"{sort},{block}", "--run-space", runs]

    return [
        ("sDiD", flags(*dram)),
        ("sPiD (emulated)", flags(emulated[0], "dram")),
        ("sDiP (emulated)", flags("dram", emulated[1])),
        ("sPiP (emulated)", flags(*emulated)),
        ("sPiD (map)", flags(mapped[0], "dram")),
        ("sDiP (map)", flags("dram", mapped[1])),
        ("sPiP (map)", flags(*mapped)),
        ("runs on disk", flags("dram", f"disk:{args.scratch}")),
        ("a tenth of the memory", None),
    ]


def thread_counts(args):
    return [int(count) for count in args.thread_counts.split(",")]


def shuffled_tables(lab, args):
    """(file, schema, key) of each table, its lines in no order, the same each time."""
    source = lab.cache() / f"tpch-sf{args.scale}"
    if not source.is_dir():
        subprocess.run([args.coload_bench, "generate", "tpch", "--scale", args.scale, "--out", source], check=True)
    tables = {}
    for table, key in KEYS.items():
        file = next(path for path in source.iterdir() if path.stem == table and path.suffix != ".sql")
        tables[table] = (shuffled(lab, file), lab.BENCH / f"schemas/{table}.sql", key)
    return tables


def shuffled(lab, file):
    target = file.with_name(f"{file.stem}.shuffled")
    if not target.exists():
        lab.progress(f"shuffling {file.name}")
        half = target.with_suffix(".half")
        # Any bytes will do, as long as they are the same ones.
        with open(half, "w") as out:
            subprocess.run(["shuf", "--random-source", file, file], check=True, stdout=out)
        half.rename(target)
    return target


def parts_of_lineitem(lab, args, lineitem):
    """Tables of some columns of lineitem: those of one length, and texts."""
    file, schema, key = lineitem
    columns = read_schema(schema).columns
    sets = {}
    for name, numbers in PARTS.items():
        target = file.with_name(f"{name.split('-')[0]}.shuffled")
        if not target.exists():
            half = target.with_suffix(".half")
            with open(half, "w") as out:
                subprocess.run(["cut", "-d|", f"-f{','.join(map(str, numbers))}", file], check=True, stdout=out)
            half.rename(target)
        made = target.with_suffix(".sql")
        lines = [f"  {c.name} {c.type}{'' if c.nullable else ' NOT NULL'}" for c in (columns[n - 1] for n in numbers)]
        made.write_text("CREATE TABLE lineitem (\n" + ",\n".join(lines) + "\n);\n")
        sets[name] = {"lineitem": (target, made, key)}
    return sets


def load_all(lab, args, tables, threads, flags):
    """Loads tables one after the other into a fresh store; sums of what each took."""
    target = Path(args.scratch) / "store"
    total = {"wall": 0, "cpu": 0, "peak_bytes": 0, "runs": 0, **dict.fromkeys(STEPS.values(), 0)}
    try:
        for table, (file, schema, key) in tables.items():
            command = [args.coload, "load", file, "--into", target, "--table", table, "--schema", schema]
            command += ["--primary-key", key] if "PRIMARY KEY" not in Path(schema).read_text() else []
            # Shuffled data has no header, and quotes are text.
            command += ["--delimiter", "|", "--no-header", "--quote", "none", "--report", "json", "--threads", str(threads), *flags]
            output, measured = machine.run_measured(command)
            report = json.loads(output)
            sorted_by = report["sorted"]
            total["wall"] += measured["wall"]
            total["cpu"] += measured["cpu"]
            total["peak_bytes"] = max(total["peak_bytes"], measured["peak_bytes"])
            total["runs"] += sorted_by["runs"]
            for measure in STEPS.values():
                total[measure] += sorted_by[measure]
    finally:
        lab.remove(target)
    return total


def print_table(args, medians):
    print(f"\nTPC-H SF {args.scale}, lines shuffled, blocks of {args.block}, median of {args.rounds}\n")
    print("| | threads | | wall s | read and sort | merge | inner nodes | runs | CPU s | peak MB | wall / sDiD |")
    print("|---|---:|---|---:|---:|---:|---:|---:|---:|---:|---:|")
    for (what, threads, name), of in medians.items():
        first = medians.get((what, threads, "sDiD"))
        ratio = f"{of['wall'] / first['wall']:.2f}" if first else ""
        steps = " | ".join(f"{of[measure]:.2f}" for measure in STEPS.values())
        print(
            f"| {what} | {threads} | {name} | {of['wall']:.2f} | {steps} | {of['runs']:.0f} | {of['cpu']:.2f} "
            f"| {of['peak_bytes'] / 1e6:.0f} | {ratio} |"
        )


def targets_of(medians):
    """How the run stands to what must be reached, and to the seed's 2.2 (1 thread) and 1.3 (96)."""
    limits = [
        ("sDiP (map)", 1, 1.2),
        ("sDiP (map)", 2, 1.1),
        ("sPiP (emulated)", 1, 1.6),
        ("sPiP (emulated)", 8, 1.3),
        ("a tenth of the memory", 2, 1.6),
    ]
    targets = []
    for name, threads, limit in limits:
        over, under = (medians.get(("all tables", threads, one)) for one in (name, "sDiD"))
        if over and under:
            ratio = over["wall"] / under["wall"]
            text = f"wall, {name} / sDiD, {threads} threads"
            targets.append({"target": text, "limit": f"<= {limit}", "ratio": ratio, "reached": ratio <= limit})
    return targets
