"""`bench/run sources`: the seven cases of seed 003 and lineitem, from a disk and from a server of S3, beside DuckDB, chDB and Polars.

Each load runs five times; the first two are dropped, and the mean of the other three is told, as in the seed. Contenders
take turns. The plan of workers is measured in three ways, as in the seed's chart: by hashes of names (run 1), by a list of
who reads what without cutting files (run 2), and with files cut (run 3).

Results: results/sources.jsonl gets a line of JSON for the run, results/sources.md the tables, and the table `sources` of
the Coload store results/store a row for each case, place and contender, loaded by coload. `bench/run dashboard` draws it.
"""

import argparse
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path

import machine
import sources_aims
from machine import ROOT
from sources_fixtures import CASES, fixture

BENCH = ROOT / "bench"
RESULTS = BENCH / "results"
PYTHON = BENCH / ".venv/bin/python"
BUSY_LOAD = 0.7

COLOAD = "coload"
PLANS = {
    "coload workers, hashed": ["--explicit-max", "0"],
    "coload workers, listed": ["--split-min", "1TiB"],
    "coload workers, split": [],
}
LITTLE_MEMORY = "coload, 512 MiB"
RIVALS = {"DuckDB": "duckdb", "ClickHouse (chDB)": "chdb", "Polars": "polars"}
CONTENDERS = [COLOAD, LITTLE_MEMORY, *PLANS, *RIVALS]

# Name, whether objects are read, bits a second and milliseconds of the line.
PLACES = {"disk": (False, None), "s3": (True, None), "s3-1gbit-20ms": (True, (1e9, 20))}

COLUMNS = (
    "time TIMESTAMP NOT NULL, commit VARCHAR NOT NULL, scale DOUBLE NOT NULL, case_name VARCHAR NOT NULL, place VARCHAR NOT NULL, "
    "contender VARCHAR NOT NULL, wall DOUBLE NOT NULL, cpu DOUBLE NOT NULL, peak_bytes BIGINT NOT NULL, "
    "disk_bytes BIGINT NOT NULL, input_bytes BIGINT NOT NULL, row_count BIGINT NOT NULL, load_average DOUBLE NOT NULL"
)

NOTES = """
What is unfair:
- coload's clocks cover its whole processes, of workers all of them, starts included. The rivals' leave out the start of
  Python, imports, and opening an empty database.
- coload and DuckDB have fsynced when their clock stops; Polars and ClickHouse leave that to the kernel. Polars writes a file.
- Documents of JSON: coload makes a column of each key of an object, the rivals a structure.
- The server of S3, which is the slow line too, runs on the same cores.
"""


def main():
    args = parse_arguments()
    RESULTS.mkdir(exist_ok=True)
    busy = os.getloadavg()[0]
    if busy > BUSY_LOAD:
        say(f"the machine is busy (load average {busy:.1f}): the times will not be worth quoting")
    results = []
    for case in args.cases:
        say(f"{case}: making the files, unless they are there")
        data = fixture(args.cache, case, args.scale, args.coload_bench)
        for place in args.places:
            with server_of(args, place, data) as where, tempfile.TemporaryDirectory(prefix="scratch-", dir=args.cache) as scratch:
                results += measure(args, case, place, {**data, **where}, Path(scratch))
    text = tables(args, results) + sources_aims.table(results, balance(args))
    print(text)
    (RESULTS / "sources.md").write_text(text)
    save(args, results)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    release = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release"
    parser.add_argument("--coload", type=Path, default=release / "coload", help="binary to measure")
    parser.add_argument("--coload-bench", type=Path, default=release / "coload-bench", help="generator of lineitem")
    parser.add_argument("--object-server", type=Path, default=release / "object-server", help="server of S3")
    parser.add_argument("--scale", type=float, default=1.0, help="share of the rows, 1 being those of the seed (default 1)")
    parser.add_argument("--rounds", type=int, default=5, help="runs of each, of which the first two are dropped (default 5)")
    parser.add_argument("--threads", type=int, default=2, help="threads, and workers of one thread (default 2)")
    parser.add_argument("--only", default="", help="names of contenders hold one of these words, comma between")
    parser.add_argument("--places", default=",".join(PLACES), help=f"comma between (default {','.join(PLACES)})")
    parser.add_argument("--cache", type=Path, default=BENCH / "cache", help="where the files are kept")
    parser.add_argument("cases", nargs="*", default=list(CASES), metavar="CASE", help=f"of {', '.join(CASES)} (default all)")
    args = parser.parse_args()
    args.places = [place for place in args.places.split(",") if place]
    for chosen, of, what in ((args.cases, CASES, "case"), (args.places, PLACES, "place")):
        if wrong := [one for one in chosen if one not in of]:
            parser.error(f"no {what} {wrong[0]} (there are {', '.join(of)})")
    words = [word.strip().lower() for word in args.only.split(",") if word.strip()]
    args.contenders = [one for one in CONTENDERS if not words or any(word in one.lower() for word in words)]
    args.cache.mkdir(parents=True, exist_ok=True)
    return args


# --- places


@contextlib.contextmanager
def server_of(args, place, data):
    """Where the files are, for as long as the block runs: their pattern, and the endpoint of a server."""
    is_far, line = PLACES[place]
    ending = f"*.{data['format']}"
    if not is_far:
        yield {"pattern": f"{data['folder']}/{ending}", "endpoint": ""}
        return
    # Its folders are buckets: nothing is uploaded.
    with contextlib.ExitStack() as stack:
        port = free_port()
        command = [args.object_server, f"127.0.0.1:{port}", args.cache / "sources"]
        if line:
            bits, milliseconds = line
            command += [milliseconds, bits]
        stack.callback(stop, subprocess.Popen(list(map(str, command))))
        wait_for(port)
        yield {"pattern": f"s3://{data['folder'].name}/{ending}", "endpoint": f"http://127.0.0.1:{port}"}


def free_port():
    import socket

    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def wait_for(port):
    import socket

    for _ in range(200):
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return
        except OSError:
            time.sleep(0.05)
    sys.exit(f"nothing listens on port {port}")


def stop(process):
    process.kill()
    process.wait()


# --- loads


def measure(args, case, place, data, scratch):
    runs = {name: [] for name in args.contenders}
    failed = {}
    names = list(runs)
    for number in range(args.rounds):
        # Memory that lay free is slow to get on a virtual machine, and who comes first gets it.
        machine.touch_memory()
        for file in sorted(data["folder"].iterdir()):
            machine.warm_page_cache(file)
        os.sync()
        first = number % len(names)
        for name in names[first:] + names[:first]:
            if name in failed:
                continue
            say(f"{case}, {place}, round {number + 1} of {args.rounds}: {name}")
            target = scratch / "target"
            try:
                runs[name].append(load(args, name, data, target))
            except Failed as failure:
                if name not in RIVALS:
                    sys.exit(f"{name}: {failure}")
                # A rival may lack what reads this, such as an extension that is only on its own server.
                say(f"{name} does not load {case} from {place}: {failure}")
                failed[name] = str(failure)
            finally:
                remove(target)
    kept = slice(2, None) if args.rounds > 2 else slice(None)
    for name, of in runs.items():
        if wrong := [run["rows"] for run in of if run["rows"] != data["rows"]]:
            sys.exit(f"{name} has {wrong[0]} rows of {case}, and there are {data['rows']}")
    means = [
        {"case_name": case, "place": place, "contender": name, "input_bytes": data["bytes"], "row_count": data["rows"],
         **{key: sum(run[key] for run in of[kept]) / len(of[kept]) for key in ("wall", "cpu", "peak_bytes", "disk_bytes")},
         "runs": of}
        for name, of in runs.items() if of and name not in failed
    ]
    return means + [{"case_name": case, "place": place, "contender": name, "failed": why} for name, why in failed.items()]


class Failed(Exception):
    """A load that failed; the last line of what it said."""


def load(args, name, data, target):
    if name in RIVALS:
        command = [PYTHON, BENCH / "rivals/sources.py", RIVALS[name], data["format"], data["pattern"], target,
                   "--threads", args.threads, "--endpoint", data["endpoint"]]
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
        if done.returncode != 0:
            raise Failed((done.stderr.strip().splitlines() or ["it said nothing"])[-1][:300])
        return json.loads(done.stdout.splitlines()[-1])
    if name in (COLOAD, LITTLE_MEMORY):
        memory = ["--memory", "512MiB"] if name == LITTLE_MEMORY else []
        commands = [["--threads", args.threads, *memory]]
    else:
        share = ["--load-id", uuid.uuid4(), "--threads", 1, *PLANS[name]]
        commands = [["--worker", f"{number + 1}/{args.threads}", *share] for number in range(args.threads)]
    return {**coload(args, commands, data, target), "disk_bytes": disk_bytes(target), "rows": rows_of(args, target)}


def coload(args, commands, data, target):
    """Runs loads at once; wall time of all, CPU of all together, the most memory of one."""
    base = [args.coload, "load", data["pattern"], "--into", target, "--table", "t", "--report", "json"]
    environment = dict(os.environ)
    if data["endpoint"]:
        base += ["--s3-endpoint", data["endpoint"]]
        environment |= {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_REGION": "us-east-1"}
    started = time.perf_counter()
    children = []
    for flags in commands:
        errors = tempfile.TemporaryFile(mode="w+")
        command = list(map(str, base + flags))
        children.append((subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=errors), errors))
    cpu = peak = 0
    for child, errors in children:
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode != 0:
            errors.seek(0)
            raise Failed(errors.read().strip()[-600:])
        cpu += usage.ru_utime + usage.ru_stime
        peak = max(peak, usage.ru_maxrss * 1024)
    return {"wall": time.perf_counter() - started, "cpu": cpu, "peak_bytes": peak}


def balance(args):
    """By case, what the plan of a load by workers says of its imbalance: listed, and hashed where there are 10,000 names."""
    told = {}
    for case in args.cases:
        data = fixture(args.cache, case, args.scale, args.coload_bench)
        pattern = f"{data['folder']}/*.{data['format']}"

        def imbalance(*flags):
            command = [args.coload, "plan", pattern, "--workers", args.threads, "--output", "json", *flags]
            done = subprocess.run(list(map(str, command)), check=True, capture_output=True, text=True)
            return json.loads(done.stdout)["imbalance_percent"]

        many = data["files"] >= 10_000
        told[case] = (imbalance("--explicit-max", data["files"]), imbalance("--explicit-max", 0) if many else None)
    return told


def rows_of(args, store):
    """Rows that the store says its table has."""
    told = subprocess.run([str(args.coload), "sql", "--store", str(store), "-c", "SELECT count(*) FROM t", "--output", "csv"],
                          capture_output=True, text=True)
    if told.returncode != 0:
        raise Failed(told.stderr.strip()[-300:])
    return int(told.stdout.split()[-1])


def disk_bytes(target):
    return sum(path.stat().st_size for path in Path(target).rglob("*") if path.is_file())


def remove(target):
    if target.is_dir():
        shutil.rmtree(target)
    else:
        target.unlink(missing_ok=True)


# --- results


def tables(args, results):
    text = f"# Sources, at {args.scale:g} of the seed's rows, {args.threads} threads or workers\n"
    text += f"\nMean of {max(1, args.rounds - 2) if args.rounds > 2 else args.rounds} runs. Commit {machine.commit()}.\n"
    for case, place in dict.fromkeys((one["case_name"], one["place"]) for one in results):
        of = [one for one in results if (one["case_name"], one["place"]) == (case, place)]
        ours = next((one for one in of if one["contender"] == COLOAD), None)
        done = [one for one in of if "wall" in one]
        size = f"{done[0]['input_bytes'] / 1e6:.0f} MB, {done[0]['row_count']} rows" if done else ""
        text += f"\n## {case}, {place}\n\n{size}\n\n"
        text += "| | wall s | MB/s | CPU s | peak MB | MB on disk | wall / coload |\n|---|---:|---:|---:|---:|---:|---:|\n"
        for one in of:
            if "failed" in one:
                text += f"| {one['contender']} | none: {one['failed'].replace('|', '/')} | | | | | |\n"
                continue
            ratio = f"{one['wall'] / ours['wall']:.2f}" if ours and "wall" in ours else ""
            text += (
                f"| {one['contender']} | {one['wall']:.2f} | {one['input_bytes'] / 1e6 / one['wall']:.0f} | {one['cpu']:.2f} "
                f"| {one['peak_bytes'] / 1e6:.0f} | {one['disk_bytes'] / 1e6:.0f} | {ratio} |\n"
            )
    return text + NOTES


def save(args, results):
    """A line for the run, and a row for each result in the table of a store, loaded by coload itself."""
    described = machine.describe()
    line = {"command": "sources", "scale": args.scale, "threads": args.threads, "results": results, **described}
    with open(RESULTS / "sources.jsonl", "a") as file:
        file.write(json.dumps(line) + "\n")
    names = [part.split()[0] for part in COLUMNS.split(", ")]
    rows = [
        {**one, "time": described["time"].replace("T", " ").rstrip("Z"), "commit": described["commit"], "scale": args.scale,
         "load_average": described["machine"]["load_average"],
         "peak_bytes": round(one["peak_bytes"]), "disk_bytes": round(one["disk_bytes"])}
        for one in results if "wall" in one
    ]
    if not rows:
        return
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl", dir=RESULTS) as file:
        file.writelines(json.dumps({name: row[name] for name in names}) + "\n" for row in rows)
        file.flush()
        loaded = [args.coload, "load", file.name, "--into", RESULTS / "store", "--table", "sources", "--columns", COLUMNS]
        subprocess.run(list(map(str, loaded)), check=True, stdout=subprocess.DEVNULL)
    say(f"{len(rows)} rows are in table sources of {RESULTS / 'store'}")


def say(text):
    print(f"# {time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
