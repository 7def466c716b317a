"""Memory: what loads hold at most, under a small --memory. `bench/run memory`; see README.md.

Each case is a file and flags. The peak is that of the process as the system tells it (VmHWM): with the program, the
allocator and what libraries take. A case holds if that is at most --bound, and the table has the rows that it should.
"""

import argparse
import gzip
import json
import lzma
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import machine

MIB = 1 << 20
BENCH = Path(__file__).resolve().parent


def main():
    parser = argparse.ArgumentParser(description="Measures what loads hold at most.")
    parser.add_argument("--coload", default=BENCH.parent / "target/release/coload", help="the binary")
    parser.add_argument("--memory", default="256MiB", help="what --memory and --load-memory are given")
    parser.add_argument("--bound", type=int, default=320, help="MiB that a process may have held")
    parser.add_argument("--scale", type=float, default=1.0, help="of the files; 1 is 100 to 400 MB each")
    parser.add_argument("--only", default="", help="cases whose name holds this")
    parser.add_argument("--threads", default="2", help="numbers of threads, with commas between them")
    parser.add_argument("--out", type=Path, help="appends the results as a line of JSON")
    args = parser.parse_args()
    args.coload = str(Path(args.coload).resolve())
    results = []
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as folder:
        for name, make, flags in CASES:
            for where in places(name):
                for threads in args.threads.split(","):
                    full = f"{name} {where} t{threads}"
                    if args.only in full:
                        results.append(run(args, Path(folder), full, make, flags, where, threads))
                        show(results[-1])
    over = [r["case"] for r in results if not r["holds"]]
    line = {"bench": "memory", "memory": args.memory, "bound_mib": args.bound, "machine": machine.describe(), "cases": results}
    if args.out:
        with args.out.open("a") as out:
            out.write(json.dumps(line) + "\n")
    print(json.dumps({"cases": len(results), "over": over}))
    sys.exit(1 if over else 0)


def show(result):
    peaks = " ".join(f"{p:7.0f}" for p in result["peak_mib"])
    print(f"{'ok  ' if result['holds'] else 'OVER'} {peaks} MiB {result['seconds']:6.1f} s  {result['case']}{result['note']}", flush=True)


def places(name):
    """Where the rows go: every case into a store, some into a server by each placement."""
    if any(word in name for word in ("ints 1500", "texts 1MB", "lines", "rejects", "mixed gzip")):
        return ["store"] + ["pipe", "seq", "all", "none", "adaptive"]
    return ["store"]


# ---------------------------------------------------------------- files


def writer(path, compression):
    if compression == "gzip":
        return gzip.open(path, "wb", compresslevel=1)
    if compression == "xz":
        return lzma.open(path, "wb", preset=0, filters=None)
    if compression == "zstd":
        process = subprocess.Popen(["zstd", "-q", "--long=27", "-1", "-o", path], stdin=subprocess.PIPE)
        process.stdin.wait = process.wait
        return process.stdin
    return open(path, "wb")


def table(columns, rows, kind, compression=None, seed=1):
    """A table of so many columns; `kind` says what stands in them."""

    def make(folder, scale):
        rng = random.Random(seed)
        path = folder / ("t.csv" + {"gzip": ".gz", "xz": ".xz", "zstd": ".zst"}.get(compression, ""))
        count = max(1, int(rows * scale))
        with writer(path, compression) as out:
            pool = [",".join(field(kind, rng, c) for c in range(columns)) for _ in range(min(count, max(4, 4096 // columns + 2)))]
            batch = []
            for row in range(count):
                if kind in ("ints", "wides", "mixed"):
                    # A new row of numbers costs much in Python: the digits of another are moved.
                    text = pool[row % len(pool)]
                    shift = rng.randrange(len(text) // 2 + 1)
                    cut = text.find(",", shift) + 1
                    text = (text[cut:] + "," + text[: cut - 1]) if kind != "mixed" and cut > 0 else text
                    text = f"{row},{text}"
                elif kind == "sparse":
                    dense = row < count // 20
                    text = f"{row},{pool[row % len(pool)]}" if dense else f"{row}," + "," * (columns - 1)
                else:
                    text = f"{row},{pool[row % len(pool)]}"
                batch.append(text)
                if len(batch) * len(text) > MIB:
                    out.write(("\n".join(batch) + "\n").encode())
                    batch = []
            out.write(("\n".join(batch) + "\n").encode() if batch else b"")
        if compression == "zstd":
            out.wait()
        return path, count, columns + 1

    return make


def field(kind, rng, column):
    if kind == "mixed":
        kind = ["ints", "wides", "words", "dates", "texts", "floats", "bools"][column % 7]
    return {
        "ints": lambda: str(rng.randrange(1 << 30)),
        "sparse": lambda: str(rng.randrange(1 << 30)),
        "wides": lambda: f"{rng.randrange(1 << 62)}{rng.randrange(1 << 40)}.25",
        "words": lambda: rng.choice(["red", "green", "blue", "a b c"]),
        "texts": lambda: f"text {rng.randrange(1 << 40):x} {column}",
        "dates": lambda: f"20{rng.randrange(10, 30)}-0{rng.randrange(1, 10)}-1{rng.randrange(10)}",
        "floats": lambda: f"{rng.random() * 1e9:.6e}",
        "bools": lambda: rng.choice(["true", "false"]),
    }[kind]()


def long_values(count, size, quoted=False, compression=None):
    def make(folder, scale):
        path = folder / ("t.csv" + {"gzip": ".gz", "xz": ".xz", "zstd": ".zst"}.get(compression, ""))
        n = max(2, int(count * scale))
        rng = random.Random(2)
        words = [f"{rng.randrange(1 << 60):x} " for _ in range(5000)]
        with writer(path, compression) as out:
            for row in range(n):
                out.write(f"{row},".encode() + (b'"' if quoted else b""))
                left = size
                while left > 0:
                    piece = "".join(rng.choices(words, k=4000))[:left].encode()
                    if quoted:
                        piece = piece[:-1] + b"\n"
                    out.write(piece)
                    left -= len(piece)
                out.write((b'"' if quoted else b"") + b",end\n")
        if compression == "zstd":
            out.wait()
        return path, n, 3

    return make


def lines(rows, text, bad=None):
    """Short lines; each tenth is `bad`, if that is given."""

    def make(folder, scale):
        path, n = folder / "t.csv", int(rows * scale)
        with open(path, "wb") as out:
            for start in range(0, n, 10000):
                part = []
                for row in range(start, min(n, start + 10000)):
                    part.append(bad if bad and row % 10 == 9 else text.format(row=row, mod=row % 97))
                out.write(("\n".join(part) + "\n").encode())
        return path, n - (n // 10 if bad else 0), text.count(",") + 1

    return make


CASES = [
    ("lines 1 column", lines(40_000_000, "{mod}"), []),
    ("lines 1 column distinct", lines(20_000_000, "{row}"), []),
    ("lines 3 columns", lines(12_000_000, "{row},{mod},abc {mod}"), []),
    ("ints 16", table(16, 1_000_000, "ints"), []),
    ("ints 300", table(300, 80_000, "ints"), []),
    ("ints 1500", table(1500, 28_000, "ints"), []),
    ("ints 4095", table(4095, 8_000, "ints"), []),
    ("wides 300", table(300, 30_000, "wides"), []),
    ("words 1500", table(1500, 30_000, "words"), []),
    ("words 4095", table(4095, 10_000, "words"), []),
    ("texts 300", table(300, 40_000, "texts"), []),
    ("texts 4095", table(4095, 4_000, "texts"), []),
    ("mixed 20", table(20, 1_000_000, "mixed"), []),
    ("mixed 700", table(700, 40_000, "mixed"), []),
    ("mixed 4095", table(4095, 8_000, "mixed"), []),
    ("mixed 4095 all text", table(4095, 8_000, "mixed"), ["--all-text"]),
    ("sparse 1500", table(1500, 60_000, "sparse"), []),
    ("texts 1MB", long_values(300, MIB), []),
    ("texts 1MB quoted", long_values(300, MIB, quoted=True), []),
    ("texts 16MB", long_values(20, 16 * MIB), []),
    ("texts 64MB", long_values(5, 64 * MIB), []),
    ("mixed gzip 20", table(20, 800_000, "mixed", "gzip"), []),
    ("mixed gzip 1500", table(1500, 15_000, "mixed", "gzip"), []),
    ("mixed xz 20", table(20, 400_000, "mixed", "xz"), []),
    ("mixed zstd 20", table(20, 800_000, "mixed", "zstd"), []),
    ("texts 1MB gzip", long_values(200, MIB, compression="gzip"), []),
    ("texts 40MB gzip", long_values(5, 40 * MIB, compression="gzip"), []),
    ("rejects", lines(4_000_000, "{row},{mod},abc {mod}", "bad,x"), ["--max-rejects", "50%", "--rejects", "rejects.csv"]),
    ("where", lines(8_000_000, "{row},{mod},abc {mod}"), ["--where", "c1 % 2 = 0"]),
    ("select", lines(8_000_000, "{row},{mod},abc {mod}"), ["--select", "c1 * 2 as a, c3 || 'x' as b"]),
]


# ---------------------------------------------------------------- runs


def run(args, folder, name, make, flags, where, threads):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    path, rows, _ = make(folder, args.scale)
    store, server = folder / "store", None
    load = [args.coload, "load", str(path), "--table", "t", "--memory", args.memory, "--threads", threads, "--no-header"]
    load += ["--report", "json", *flags]
    if where == "store":
        load += ["--into", str(store)]
    else:
        server = Served(args, store, threads)
        load += ["--into", f"coload://{server.address}/t", "--placement", where]
    started = time.monotonic()
    status, out, err, peak = run_and_measure(load, folder)
    seconds, peaks, note = time.monotonic() - started, [peak], ""
    if server:
        peaks.append(server.stop())
    got = json.loads(out)["rows"] if status == 0 else None
    wanted = None if "--where" in flags else rows
    if status != 0:
        note = ": " + err.strip().splitlines()[-1][:200]
    elif wanted is not None and got != wanted:
        note = f": {got} rows instead of {wanted}"
    holds = status == 0 and not note and max(peaks) <= args.bound
    return {"case": name, "bytes": path.stat().st_size, "peak_mib": peaks, "seconds": seconds, "holds": holds, "note": note}


def run_and_measure(command, folder):
    """Status, output, errors and the most MiB that the process held."""
    with open(folder / "out", "wb") as out, open(folder / "err", "wb") as err:
        process = subprocess.Popen(command, stdout=out, stderr=err, cwd=folder)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    read = lambda name: (folder / name).read_text(errors="replace")
    return process.returncode, read("out"), read("err"), usage.ru_maxrss / 1024


class Served:
    def __init__(self, args, store, threads):
        command = [args.coload, "serve", "--store", str(store), "--listen", "127.0.0.1:0", "--threads", threads]
        command += ["--load-memory", args.memory, "--memory", args.memory]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        line = self.process.stdout.readline().decode()
        self.address = line.strip().split("://")[1]

    def stop(self):
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        self.process.terminate()
        self.process.wait()
        return int(re.search(r"VmHWM:\s+(\d+)", status)[1]) / 1024


if __name__ == "__main__":
    main()
