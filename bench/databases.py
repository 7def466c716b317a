"""Loads into databases: the grids of seed 004, and lineitem beside other tools.

`bench/run databases grid` sends rows of a counter and a text of 302 random characters, and of a counter alone, by every method
over 1, 2, 4 and 8 connections, and as coload chooses; `bench/run databases lineitem` sends lineitem by coload and by other
tools. Each prints Markdown, appends a JSON line to results/databases-COMMAND.jsonl, and draws pictures. Contenders take
turns, and the tables show medians.
"""

import argparse
import json
import os
import random
import re
import statistics
import string
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import machine
import picture
from database_servers import Mariadb, Postgres, Sampled, need

BENCH = machine.ROOT / "bench"
RESULTS = BENCH / "results"
CONNECTIONS = [1, 2, 4, 8]
ROWS = [1, 100, 500, 1000, 5000, 10_000, 20_000, 50_000, 80_000]
# Letters, digits and symbols, as in the seed; none that delimited text reads otherwise.
CHARACTERS = [c for c in string.ascii_letters + string.digits + string.punctuation if c not in ",\"\\'"]
SHAPES = {"text": "counter BIGINT, text VARCHAR", "counter": "counter BIGINT"}
CHOSEN = "chosen"
# What the choice must reach against the best of the grid: a share, and seconds.
LIMIT, LIMIT_SECONDS = 1.10, 0.005


def main():
    args = parse_arguments()
    RESULTS.mkdir(exist_ok=True)
    load = os.getloadavg()[0]
    if load > 0.7:
        progress(f"the machine is busy (load average {load:.1f}): the times will not be worth quoting")
    (BENCH / "cache").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="databases-", dir="/tmp") as scratch:
        os.chmod(scratch, 0o777)
        args.scratch = Path(scratch)
        args.run(args)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    target = Path(os.environ.get("CARGO_TARGET_DIR", machine.ROOT / "target")) / "release"
    parser.add_argument("--coload", type=Path, default=target / "coload")
    parser.add_argument("--coload-bench", type=Path, default=target / "coload-bench")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    grid = commands.add_parser("grid", help="methods x connections x rows, and what is chosen")
    grid.set_defaults(run=run_grid)
    grid.add_argument("--rows", type=numbers, default=ROWS, help="sizes, comma between")
    grid.add_argument("--connections", type=numbers, default=CONNECTIONS)
    grid.add_argument("--shapes", default=",".join(SHAPES))
    grid.add_argument("--methods", default="", help="only these, comma between")
    grid.add_argument("--slow-max", type=int, default=10_000, help="most rows of methods that send one at a time (default 10000)")
    lineitem = commands.add_parser("lineitem", help="lineitem beside other tools")
    lineitem.set_defaults(run=run_lineitem)
    lineitem.add_argument("--scale", default="1")
    lineitem.add_argument("--file", type=Path, help="a lineitem.tbl that is there, in place of one that is made")
    lineitem.add_argument("--only", default="", help="names of contenders hold one of these words, comma between")
    for command in (grid, lineitem):
        command.add_argument("--rounds", type=int, default=3)
        command.add_argument("--engines", default="postgresql,mariadb")
    return parser.parse_args()


def numbers(text):
    return [int(number) for number in text.split(",")]


def engines(args):
    return [engine for engine in (Postgres, Mariadb) if engine.name in args.engines.split(",")]


# --- grid


def run_grid(args):
    all_runs = []
    for engine in engines(args):
        with engine(args.scratch) as server:
            for shape in args.shapes.split(","):
                files = {rows: make_rows(args, shape, rows) for rows in args.rows}
                for rows, file in files.items():
                    all_runs += measure_size(args, server, shape, (rows, file))
            version = server.version()
            print_grid(args, engine.name, version, [run for run in all_runs if run["engine"] == engine.name])
    draw_grids(args, all_runs)
    save("databases-grid", args, runs=all_runs)


def make_rows(args, shape, rows):
    """A file of rows: a counter, and a text of 302 random characters."""
    path = args.scratch / f"{shape}-{rows}.csv"
    pick = random.Random(4)
    with open(path, "w") as file:
        for row in range(rows):
            text = "," + "".join(pick.choices(CHARACTERS, k=302)) if shape == "text" else ""
            file.write(f"{row + 1}{text}\n")
    return path


def measure_size(args, server, shape, size):
    rows, _ = size
    chosen = args.methods.split(",") if args.methods else server.methods
    ways = [(method, n) for method in server.methods if method in chosen for n in args.connections]
    ways = [(method, n) for method, n in ways if method not in server.slow or rows <= args.slow_max]
    runs = []
    for _ in range(args.rounds):
        for way in [(CHOSEN, None), *ways]:
            runs.append(load_once(args, server, shape, size, way))
    progress(f"{server.name} {shape} {rows}: {len(runs)} loads")
    return runs


def load_once(args, server, shape, size, way):
    rows, file = size
    method, connections = way
    server.sql("DROP TABLE IF EXISTS grid")
    flags = [] if method == CHOSEN else ["--method", method, "--connections", str(connections)]
    command = [args.coload, "load", file, "--into", server.url(), "--table", "grid", "--create", "--no-header", "--delimiter", ","]
    command += ["--quote", "none", "--columns", SHAPES[shape], "--report", "json", *flags]
    # What was measured of another server on that port is none of this one.
    environment = {**os.environ, "XDG_CONFIG_HOME": str(args.scratch)}
    with Sampled(server.child.pid) as of_server:
        output, client = measured(command, environment)
    report = json.loads(output)
    count = int(server.sql("SELECT count(*) FROM grid"))
    if count != rows:
        raise SystemExit(f"{server.name}: {count} rows of {rows} by {way}")
    sent = report["database"]
    run = {"engine": server.name, "shape": shape, "rows": rows, "method": method, "connections": connections}
    taken = {"method": sent["method"], "connections": sent["connections"]}
    return {**run, **client, "load_wall": report["wall_s"], "taken": taken, "server": of_server.figures()}


def measured(command, environment=None):
    """Standard output of a command, and what its whole process took."""
    start = time.perf_counter()
    child = subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment)
    output, errors = child.stdout.read().decode(), child.stderr.read().decode()
    _, status, usage = os.wait4(child.pid, 0)
    wall = time.perf_counter() - start
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        raise SystemExit(f"exit status {child.returncode} of: {' '.join(map(str, command))}\n{output}{errors}")
    cpu = usage.ru_utime + usage.ru_stime
    written = usage.ru_oublock * 512
    return output, {"wall": wall, "cpu": cpu, "peak_bytes": usage.ru_maxrss * 1024, "written_bytes": written}


def median_of(runs, measure="wall", of=None):
    values = [(run[of] if of else run)[measure] for run in runs]
    return statistics.median(values) if values else None


def print_grid(args, engine, version, runs):
    print(f"\n## {version}\n")
    for shape in args.shapes.split(","):
        print(f"Rows of a {shape}, seconds of the whole command, medians of {args.rounds}:\n")
        ways = ordered({(run["method"], run["connections"]) for run in runs if run["shape"] == shape})
        print("| rows | " + " | ".join(way_name(way) for way in ways) + " |")
        print("|---:|" + "---:|" * len(ways))
        for rows in args.rows:
            cells = [median_of(select(runs, shape, rows, way)) for way in ways]
            print(f"| {rows:,} | " + " | ".join("" if cell is None else f"{cell:.3f}" for cell in cells) + " |")
        print_choice(args, engine, shape, runs)
        print_use(args, shape, runs, ways)


def print_choice(args, engine, shape, runs):
    print("\n| rows | chosen | s | best of the grid | s | chosen / best | within the limit |")
    print("|---:|---|---:|---|---:|---:|---|")
    for rows in args.rows:
        ways = {(run["method"], run["connections"]) for run in runs if (run["shape"], run["rows"]) == (shape, rows)}
        times = {way: median_of(select(runs, shape, rows, way)) for way in ways}
        chosen = times.pop((CHOSEN, None))
        if not times:
            continue
        best = min(times, key=times.get)
        taken = select(runs, shape, rows, (CHOSEN, None))[0]["taken"]
        good = chosen <= times[best] * LIMIT or chosen - times[best] <= LIMIT_SECONDS
        names = way_name((taken["method"], taken["connections"])), way_name(best)
        print(f"| {rows:,} | {names[0]} | {chosen:.3f} | {names[1]} | {times[best]:.3f} | {chosen / times[best]:.2f} | {'yes' if good else 'NO'} |")
    print()


def print_use(args, shape, runs, ways):
    rows = max(args.rows)
    print(f"What {rows:,} rows take (CPU s, MB of memory at most, MB written):\n")
    print("| way | s | client CPU | client MB | server CPU | server MB | server MB written |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for way in ways:
        of_way = select(runs, shape, rows, way)
        if of_way:
            client = median_of(of_way, "cpu"), median_of(of_way, "peak_bytes") / 1e6
            server = [median_of(of_way, measure, "server") for measure in ("cpu", "peak_bytes", "written_bytes")]
            figures = f"{median_of(of_way):.3f} | {client[0]:.2f} | {client[1]:.0f} | {server[0]:.2f} | {server[1] / 1e6:.0f} | {server[2] / 1e6:.0f}"
            print(f"| {way_name(way)} | {figures} |")
    print()


def select(runs, shape, rows, way):
    return [run for run in runs if (run["shape"], run["rows"], run["method"], run["connections"]) == (shape, rows, *way)]


def ordered(ways):
    known = [CHOSEN, *Postgres.methods, *Mariadb.methods]
    return sorted(ways, key=lambda way: (known.index(way[0]), way[1] or 0))


def way_name(way):
    return way[0] if way[1] is None else f"{way[0]} x {way[1]}"


def draw_grids(args, runs):
    """The charts of the seed: time over rows for each number of connections, a panel a method."""
    for engine in sorted({run["engine"] for run in runs}):
        for shape in args.shapes.split(","):
            of = [run for run in runs if (run["engine"], run["shape"]) == (engine, shape)]
            panels = []
            for method in [m for m in [*Postgres.methods, *Mariadb.methods] if any(run["method"] == m for run in of)]:
                if panels and panels[-1][0] == method or any(panel[0] == method for panel in panels):
                    continue
                lines = []
                for way in [(method, n) for n in args.connections] + [(CHOSEN, None)]:
                    points = [(rows, median_of(select(of, shape, rows, way))) for rows in args.rows]
                    lines.append((way_name(way), [point for point in points if point[1] is not None]))
                panels.append((method, lines))
            path = RESULTS / f"databases-grid-{engine}-{shape}.png"
            picture.lines(path, f"{engine}: rows of a {shape}", "rows", "s", panels)
            print(f"picture: {path.relative_to(machine.ROOT)}")


# --- lineitem

TYPES = {"BIGINT": "bigint", "INTEGER": "integer"}


def run_lineitem(args):
    file = args.file or lineitem_file(args)
    all_runs = []
    for engine in engines(args):
        with engine(args.scratch) as server:
            words = [word.strip().lower() for word in args.only.split(",") if word.strip()]
            contenders = [one for one in CONTENDERS[engine] if not words or any(word in one[0].lower() for word in words)]
            for round_number in range(args.rounds):
                for name, load in contenders:
                    run = lineitem_once(args, server, file, (name, load))
                    if run:
                        all_runs.append({**run, "round": round_number})
            print_lineitem(server, [run for run in all_runs if run["engine"] == engine.name])
    save("databases-lineitem", args, runs=all_runs)


def lineitem_file(args):
    command = [args.coload_bench, "generate", "lineitem", "--scale", args.scale, "--cache", BENCH / "cache"]
    return Path(subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip())


def lineitem_columns():
    """Names and types of the columns, as the schema has them."""
    body = (BENCH / "schemas/lineitem.sql").read_text()
    return re.findall(r"(l_\w+)\s+([A-Z]+(?:\([\d,\s]+\))?)", body)


def make_lineitem(server):
    server.sql("DROP TABLE IF EXISTS lineitem")
    columns = ", ".join(f"{name} {kind} NOT NULL" for name, kind in lineitem_columns())
    server.sql(f"CREATE TABLE lineitem ({columns})")


def lineitem_once(args, server, file, contender):
    name, load = contender
    server.sql("DROP TABLE IF EXISTS lineitem")
    command = load(args, server, file)
    if command is None:
        return None
    progress(f"{server.name}: {name}")
    with Sampled(server.child.pid) as of_server:
        try:
            output, client = measured(command, {**os.environ, "XDG_CONFIG_HOME": str(args.scratch), "PGSSLMODE": "disable"})
        except SystemExit as error:
            progress(f"{name} is left out: {error}")
            return None
    count = int(server.sql("SELECT count(*) FROM lineitem"))
    run = {"engine": server.name, "name": name, "rows": count, **client, "server": of_server.figures()}
    if name.startswith("coload"):
        run["database"] = json.loads(output)["database"]
    return run


def by_coload(*flags):
    def command(args, server, file):
        schema = BENCH / "schemas/lineitem.sql"
        place = ["--into", server.url(), "--table", "lineitem", "--schema", schema]
        return [args.coload, "load", file, *place, "--delimiter", "|", "--no-header", "--create", "--report", "json", *flags]

    return command


def by_psql(_args, server, file):
    make_lineitem(server)
    # The bar at the end of each line is none of COPY.
    copy = f"\\copy lineitem FROM PROGRAM 'sed s/.$// {file}' WITH (DELIMITER '|')"
    return ["psql", "-X", "-q", server.url(), "-c", copy]


def by_mariadb(_args, server, file):
    make_lineitem(server)
    statement = f"LOAD DATA LOCAL INFILE '{file}' INTO TABLE lineitem FIELDS TERMINATED BY '|' LINES TERMINATED BY '|\\n'"
    return server.client(statement)


def by_pgloader(args, server, file):
    try:
        need(["pgloader"], ["pgloader"])
    except subprocess.CalledProcessError:
        progress("pgloader cannot be installed")
        return None
    make_lineitem(server)
    names = ", ".join(name for name, _ in lineitem_columns())
    script = args.scratch / "pgloader.load"
    target = f"postgresql://postgres@127.0.0.1:{server.port}/postgres"
    script.write_text(
        f"LOAD CSV FROM '{file}' ({names}, bar) INTO {target} TARGET TABLE lineitem ({names})\n"
        "WITH fields terminated by '|', fields not enclosed, workers = 2, concurrency = 2;\n"
    )
    return ["pgloader", "--quiet", script]


def by_python(rival):
    def command(_args, server, file):
        python = BENCH / ".venv-databases/bin/python"
        if not python.exists():
            progress(f"{rival} is left out: bench/run installs it")
            return None
        if rival == "adbc":
            make_lineitem(server)
        return [python, BENCH / "rivals/into_database.py", rival, server.url(), file]

    return command


CONTENDERS = {
    Postgres: [
        ("coload", by_coload()),
        ("coload, 1 connection", by_coload("--connections", "1")),
        ("psql \\copy", by_psql),
        ("pgloader", by_pgloader),
        ("ADBC", by_python("adbc")),
        ("pandas to_sql", by_python("pandas")),
        ("dlt", by_python("dlt")),
    ],
    Mariadb: [
        ("coload", by_coload()),
        ("coload, 1 connection", by_coload("--connections", "1")),
        ("mariadb LOAD DATA LOCAL", by_mariadb),
        ("pandas to_sql", by_python("pandas")),
    ],
}


def print_lineitem(server, runs):
    print(f"\n## lineitem into {server.version()}\n")
    print("| | s | / coload | client CPU | client MB | server CPU | server MB | rows |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|")
    names = list(dict.fromkeys(run["name"] for run in runs))
    own = median_of([run for run in runs if run["name"] == "coload"])
    for name in names:
        of = [run for run in runs if run["name"] == name]
        wall = median_of(of)
        ratio = f"{wall / own:.2f}" if own else ""
        server_cpu, server_bytes = (median_of(of, measure, "server") for measure in ("cpu", "peak_bytes"))
        client = f"{median_of(of, 'cpu'):.2f} | {median_of(of, 'peak_bytes') / 1e6:.0f}"
        print(f"| {name} | {wall:.2f} | {ratio} | {client} | {server_cpu:.2f} | {server_bytes / 1e6:.0f} | {of[0]['rows']:,} |")
    print("\nPython's clocks cover its start and imports. The other tools' tables are made before their clock starts; coload makes its own.")
    path = RESULTS / f"databases-lineitem-{server.name}.png"
    walls = [median_of([run for run in runs if run["name"] == name]) for name in names]
    picture.bars(path, f"lineitem into {server.name}", names, [("s", walls)], "coload")
    print(f"picture: {path.relative_to(machine.ROOT)}")


def save(command, args, **results):
    line = {"command": command, "rounds": args.rounds, **machine.describe()}
    with open(RESULTS / f"{command}.jsonl", "a") as file:
        file.write(json.dumps({**line, **results}) + "\n")


def progress(text):
    print(f"# {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
