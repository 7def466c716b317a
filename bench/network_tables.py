"""Tables, targets, JSON lines and pictures of `network.py`."""

import json
import statistics
import sys
from collections import Counter

import machine
import picture

RESULTS = machine.ROOT / "bench/results"
# What tells runs of one cell from those of another.
KEYS = ["rate", "server", "client", "load_priority", "setting"]
WARNINGS = {
    "figure1": "One thread on one core.",
    "instead": "PostgreSQL and DuckDB keep what they load on the server's disk, as Coload does; PostgreSQL's is not compressed. "
               "The copy is not encrypted.",
    "wire": "Placement none: parsed values go over the wire as they are. The server verifies and drops them.",
    "loopback": "All on the same two cores, two threads each.",
}


def earlier(args):
    """Runs of the same experiment and data in the last lines of the results, so that long ones can be made in pieces."""
    if args.after == 0:
        return []
    with open(RESULTS / "network.jsonl") as lines:
        found = [line for line in map(json.loads, lines) if (line["command"], line["data"]) == (args.experiment, args.data)]
    if len(found) < args.after:
        sys.exit(f"--after {args.after}: the results have {len(found)} lines of {args.experiment} {args.data}")
    # Lines of before there were priorities.
    old = {"load_priority": "low"}
    return [{**(old if "queries" in run else {}), **run} for line in found[-args.after:] for run in line["runs"]]


def report(args, before, new, size):
    """Prints the table and the targets, appends the JSON line, draws the picture."""
    runs = before + new
    rows = {run["rows"] for run in runs if "rows" in run}
    if len(rows) > 1:
        sys.exit(f"loads of the same file have different rows: {rows}")
    cells = medians(runs)
    print(f"## {args.experiment}: {args.data}\n")
    print(WARNINGS.get(args.experiment, "One core each; wire bytes as the interface counts them."), f"Medians of {rounds_of(runs)}.\n")
    if args.experiment == "wire":
        size = cells[0]["message_bytes"]
    columns = [column for column in table_columns(args, size) if any(column[1](c) is not None for c in cells)]
    keys = [key for key in KEYS if len({c.get(key) for c in cells} - {None}) > 1] or ["setting"]
    names = {"rate": "network", "load_priority": "priority of loads", "setting": "wire compression" if args.experiment == "wire" else "placement"}
    print("| " + " | ".join([*(names.get(key, key) for key in keys), *(name for name, _ in columns)]) + " |")
    print("|---" * len(keys) + "|---:" * len(columns) + "|")
    for cell in cells:
        print("| " + " | ".join([*(str(cell[key]) for key in keys), *(show(value(cell)) for _, value in columns)]) + " |")
    if args.experiment == "figure1":
        step_table(cells[0])
    print()
    for text, ratio, limit, good in targets(args, cells, size):
        print(f"- {text}: {ratio:.2f}, wanted {limit}: {'reached' if good else 'NOT reached'}")
    if new:
        keep(args, new)
    draw(args, cells, columns, keys)


def medians(runs):
    """One entry for each cell, in order, with the median of each number."""
    groups = {}
    for run in runs:
        groups.setdefault(tuple(run.get(key) for key in KEYS), []).append(run)
    return [{**dict(zip(KEYS, key)), **median_of(group), "stopped": any(r.get("stopped") for r in group)}
            for key, group in groups.items()]


def rounds_of(runs):
    """Runs of each cell: one number, or the fewest and the most."""
    counts = Counter(tuple(run.get(key) for key in KEYS) for run in runs).values()
    return str(min(counts)) if min(counts) == max(counts) else f"{min(counts)} to {max(counts)}"


def median_of(values):
    """The median of numbers; of dictionaries, that of each entry that all of them have."""
    if all(isinstance(v, dict) for v in values):
        shared = [key for key in values[0] if all(key in v for v in values)]
        found = {key: median_of([v[key] for v in values]) for key in shared}
        return {key: value for key, value in found.items() if value is not None}
    if all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in values):
        return statistics.median(values)
    return None


def table_columns(args, size):
    """Names of columns, and what shows them of a cell."""
    def share(key, of):
        return lambda c: f"{100 * c[key] / of:.1f} %" if c.get(key) else None

    def frames(c):
        return f"{100 * c['frames_compressed'] / max(c['frames'], 1):.0f} %" if "frames" in c else None

    def latency(query, part, percentile):
        return lambda c: c.get("queries", {}).get(query, {}).get(part, {}).get(percentile)

    def rate(c):
        if "wall_s" not in c:
            return None
        return f"under {size / 1e6 / c['wall_s']:.0f}" if c["stopped"] else round(size / 1e6 / c["wall_s"])

    columns = [("MB/s", rate), ("wall s", lambda c: c.get("wall_s"))]
    columns += [("client CPU s", lambda c: c.get("client_cpu_s")), ("server CPU s", lambda c: c.get("server_cpu_s"))]
    columns += [("CPU s", lambda c: c.get("cpu_s"))]
    columns += [("wire, of input" if args.experiment != "wire" else "wire, of values", share("wire_bytes", size))]
    columns += [("frames compressed", frames)] if args.experiment in ("wire", "slow") else []
    columns += [("columns on client", lambda c: f"{c['columns_client']:.0f} of {c['columns']:.0f}" if c.get("columns") else None)]
    columns += [(f"{q.upper()} {p} ms", latency(q, "all", p)) for q in ("q1", "q2") for p in ("p50", "p95", "p99")]
    return columns


def show(value):
    if value is None:
        return ""
    return f"{value:.2f}" if isinstance(value, float) else str(value)


def step_table(cell):
    total = sum(cell["steps"].values())
    print("\n| step | CPU s | share |\n|---|---:|---:|")
    for step, seconds in cell["steps"].items():
        print(f"| {step} | {seconds:.2f} | {100 * seconds / total:.0f} % |")


# --- what must be reached


def targets(args, cells, size):
    """Lines of text, ratio, limit, and whether it is reached."""
    lines = []
    table = args.data.split("-")[0]

    def get(rate, setting, **where):
        return next((c for c in cells if c["rate"] == rate and c["setting"] == setting
                     and all(c[k] == v for k, v in where.items())), None)

    def most(text, ratio, limit):
        lines.append((text, ratio, f"<= {limit}", ratio <= limit))

    def least(text, ratio, limit):
        lines.append((text, ratio, f">= {limit}", ratio >= limit))

    rates = list(dict.fromkeys(c["rate"] for c in cells))
    if args.experiment == "cells":
        for cell in (c for c in cells if c["setting"] == "adaptive"):
            where = {key: cell[key] for key in ("server", "client")}
            best = min((c for c in cells if c["setting"] != "adaptive" and c["rate"] == cell["rate"]
                        and all(c[k] == v for k, v in where.items())), key=lambda c: c["wall_s"])
            most(f"{cell['rate']}, {where['server']} server, {where['client']} core: wall of adaptive / {best['setting']}",
                 cell["wall_s"] / best["wall_s"], 1.1)
    elif args.experiment == "wire":
        wire_targets(rates, get, least, most)
    elif args.experiment == "loopback":
        embedded = get("loopback", "embedded")["client_cpu_s"]
        for cell in cells[1:]:
            most(f"CPU of {cell['setting']} / embedded", (cell["client_cpu_s"] + cell["server_cpu_s"]) / embedded, 1.25)
    elif args.experiment != "figure1":
        for rate in rates:
            placement_targets(rate, get, least, most, table, size, any("queries" in c for c in cells))
    return lines


# Of each table: throughput of adaptive / pipe at 1 Gbit/s, bytes on the wire of `size` / input.
PLACEMENT_LIMITS = {"lineitem": (4, 0.21), "warehouse": (4.5, 0.12), "fact": (3.5, 0.18)}


def placement_targets(rate, get, least, most, table, size, queries):
    wide = table != "lineitem"
    speed_up, wire_share = PLACEMENT_LIMITS[table]
    pipe, every, adaptive, by_size = (get(rate, s) for s in ("pipe", "all", "adaptive", "size"))
    if by_size and not queries:
        most(f"{rate}, wire bytes of size / input", by_size["wire_bytes"] / size, wire_share)
    if rate == "1gbit" and adaptive and pipe and not queries:
        least("1gbit, throughput of adaptive / pipe", pipe["wall_s"] / adaptive["wall_s"], speed_up)
    if every and pipe and not queries:
        most(f"{rate}, server CPU of all / pipe", every["server_cpu_s"] / pipe["server_cpu_s"], 0.2 if wide else 0.25)
    if rate == "10gbit" and every and pipe and queries:
        least("10gbit with queries, throughput of all / pipe", pipe["wall_s"] / every["wall_s"], 1.5 if wide else 1.9)
        alone = get(rate, "no load")
        for query, limit in (("q1", 0.5 if wide else 0.6), ("q2", 0.4 if wide else 0.45)):
            with_pipe = pipe["queries"][query]["all"]["p99"]
            least_possible = f" (without a load / pipe: {alone['queries'][query]['all']['p99'] / with_pipe:.2f})" if alone else ""
            most(f"10gbit, p99 of {query.upper()}, all / pipe{least_possible}", every["queries"][query]["all"]["p99"] / with_pipe, limit)


def wire_targets(rates, get, least, most):
    for rate in rates:
        none, adaptive = get(rate, "none"), get(rate, "adaptive")
        speed_up = none["wall_s"] / adaptive["wall_s"]
        compressed = adaptive["frames_compressed"] / max(adaptive["frames"], 1)
        # Bound by the network: the link gave what it could while nothing was compressed.
        if none["wire_bytes"] * 8 / none["wall_s"] > 0.8 * {"100mbit": 1e8, "1gbit": 1e9}.get(rate, 1e12):
            ratio = none["wire_bytes"] / adaptive["wire_bytes"]
            least(f"{rate}, network-bound: speed-up {speed_up:.2f} / compression ratio {ratio:.2f}", speed_up / ratio, 0.9)
        else:
            most(f"{rate}, not network-bound: wall of adaptive / none", 1 / speed_up, 1.02)
            most(f"{rate}, frames compressed", compressed, 0.05)


# --- files


def keep(args, runs):
    RESULTS.mkdir(exist_ok=True)
    line = {"command": args.experiment, "data": args.data, "rounds": args.rounds, **machine.describe(), "runs": runs}
    with open(RESULTS / "network.jsonl", "a") as out:
        out.write(json.dumps(line) + "\n")


def draw(args, cells, columns, keys):
    """A panel of bars for each column of numbers."""
    labels = [" ".join(str(c[key]) for key in keys) for c in cells]
    panels = [(name, [value(c) for c in cells]) for name, value in columns]
    panels = [p for p in panels if all(isinstance(v, (int, float)) or v is None for v in p[1])]
    if args.experiment == "figure1":
        steps = cells[0]["steps"]
        labels, panels = list(steps), [("CPU s", list(steps.values()))]
    path = RESULTS / f"{args.experiment}-{args.data}.png"
    try:
        picture.bars(path, f"{args.experiment}: {args.data}", labels, panels, "adaptive")
        print(f"\npicture: {path.relative_to(machine.ROOT)}")
    except ImportError:
        print("\nno picture: matplotlib is not installed")
