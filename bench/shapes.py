"""`bench/run shapes`: a sweep over tables of one kind of column, each the worst case of something.

The tables are those of `coload-bench shapes`, about 100 MB each. Turns are taken shape by shape: all contenders of one shape, then the
next one, so that a disturbance of some seconds is in the figures of one shape.
"""

import math
import statistics

DUCKDB, POLARS, COLOAD = "DuckDB, order not kept", "Polars to Parquet, snappy", "coload"
QUOTES = ["--quotes", "double"]
# Ratios that each shape must reach, and that all reach on average.
LEAST, MEAN = 3.5, 5.0

NOTES = """
Ratios are rival / coload of medians: wall, CPU, bytes on disk. What is unfair:
- As for `load`: coload's clocks cover its whole process, the rivals' neither the start of Python nor imports.
- 100 MB take coload some 0.2 s, of which the start of the process and the last fsync are a part that a longer table has not.
- Polars' Parquet file is no store; texts of 1 MB and quotes are as the other tables, but that quotes are on.
"""


def run(lab, args):
    known = lab.output_of([args.coload_bench, "shapes"]).split()
    words = [word for word in args.shapes.split(",") if word]
    names = [name for name in known if not words or any(word in name for word in words)]
    contenders = lab.selected(args, [one for one in lab.CONTENDERS if one[0] in (COLOAD, DUCKDB, POLARS)])
    runs = {}
    print_head([name for name, *_ in contenders])
    for name in names:
        file = lab.generated(args, ["shape", name] + (["--rows", args.rows] if args.rows else []))
        quotes = QUOTES if name == "quoted" else []
        of = runs[name] = {contender: [] for contender, *_ in contenders}
        for number in range(args.rounds):
            # Memory is touched once for all shapes.
            args.no_touch |= number > 0 or name != names[0]
            lab.prepare(args, file)
            lab.progress(f"{name}, round {number + 1} of {args.rounds}")
            for contender, script, options in contenders:
                options = options + quotes if script else options
                of[contender].append(lab.load_once(args, file, file.with_suffix(".sql"), script, options))
        lab.check_answers({c: [(r["rows"], r["sum"], r["values"]) for r in rs] for c, rs in of.items()})
        of["megabytes"] = file.stat().st_size / 1e6
        print_line(name, of, [name for name, *_ in contenders])
        if not args.keep:
            file.unlink()
    targets = check_targets(runs)
    lab.print_target_lines(targets)
    print(NOTES)
    lab.save(args, "shapes", ",".join(names), runs=runs, targets=targets)


def median(runs, measure):
    return statistics.median(run[measure] for run in runs)


def ratios(of, rival):
    return [median(of[rival], m) / median(of[COLOAD], m) for m in ("wall", "cpu", "disk_bytes")]


def print_head(contenders):
    rivals = [name for name in contenders if name != COLOAD]
    print(f"\n| shape | MB | coload MB/s | CPU s | peak MB | {' | '.join(rivals)} |")
    print("|---|---:|---:|---:|---:|" + "---|" * len(rivals), flush=True)


def print_line(name, of, contenders):
    """Prints a shape as soon as it is measured."""
    if COLOAD not in of:
        return
    ours = [f"{of['megabytes']:.0f}", f"{of['megabytes'] / median(of[COLOAD], 'wall'):.0f}"]
    ours += [f"{median(of[COLOAD], 'cpu'):.2f}", f"{median(of[COLOAD], 'peak_bytes') / 1e6:.0f}"]
    theirs = [", ".join(f"{ratio:.2f}" for ratio in ratios(of, rival)) for rival in contenders if rival != COLOAD]
    print(f"| {name} | {' | '.join(ours + theirs)} |", flush=True)


def check_targets(runs):
    lines = []
    all_of = {name: ratios(of, DUCKDB) for name, of in runs.items() if COLOAD in of and DUCKDB in of}
    if not all_of:
        return lines
    for at, measure in enumerate(["wall", "CPU"]):
        least = min(all_of, key=lambda name: all_of[name][at])
        mean = math.prod(of[at] for of in all_of.values()) ** (1 / len(all_of))
        for text, ratio, limit in (
            (f"{measure}, DuckDB / coload, least ({least})", all_of[least][at], LEAST),
            (f"{measure}, DuckDB / coload, geometric mean", mean, MEAN),
        ):
            lines.append({"target": text, "limit": f">= {limit}", "ratio": ratio, "reached": ratio >= limit})
    least = min(all_of, key=lambda name: all_of[name][2])
    ratio = all_of[least][2]
    text = f"bytes, DuckDB / coload, least ({least})"
    lines.append({"target": text, "limit": ">= 1", "ratio": ratio, "reached": ratio >= 1})
    return lines
