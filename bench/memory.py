"""Memory: what loads hold at most, under a small --memory. `bench/run memory`; see README.md.

Each case is a file, flags and places. The peak is that of the process as the system tells it, with the program, the
allocator and what libraries take. A case holds if that is at most --bound, and the table has the rows that it should.
"""

import argparse
import json
import multiprocessing
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import machine
from memory_files import (
    MIB, bytes_of_one, files, given, ints, rejects, rows_of, sparse, text, texts, types, widening,
)

BENCH = Path(__file__).resolve().parent
STORE = ["store"]
SERVED = ["store", "all", "none", "adaptive", "pipe", "seq"]
SOME_SERVED = ["store", "all", "none", "pipe"]
ALL_REJECTS = ["--max-rejects", "100%", "--rejects", "rejects.csv"]


def value(size):
    """A number, a text of so many bytes, a word. The first record is short: types are told by whole records."""
    return lambda row: f"{row},{text(row, size if row else 9)},end"


def quoted(size):
    """The same with newlines within quotes."""
    half = lambda row: text(row, size // 2 if row else 9)
    return lambda row: f'{row},"{half(row)}\n{half(row)}",end'


def quotes(size):
    """The same with quotes in the value."""
    half = lambda row: text(row, size // 2 if row else 9)
    return lambda row: f'{row},"{half(row)}""{half(row)}",end'


def late(size, short):
    """The same in capitals after many short values: enough that a column is read as one of many values like these."""
    return lambda row: f"{row},{text(row, size).upper() if row >= 20_000 else short(row)},end"


def long_texts(columns, size):
    """Distinct texts; those of the first record are short."""
    short, long = texts(columns, 9), texts(columns, size)
    return lambda row: long(row) if row else short(row)


# Name, maker, flags, places. The rows that a load brings are those of the file, unless its maker has rejects.
CASES = [
    ("1 column, 1 byte", rows_of(bytes_of_one(1), 60), [], SOME_SERVED),
    ("1 column, distinct ints", rows_of(ints(1), 200), [], SOME_SERVED),
    ("1 column, distinct texts", rows_of(texts(1, 20), 250), [], STORE),
    ("16 columns, 1 byte", rows_of(bytes_of_one(16), 200), [], STORE),
    ("16 columns, distinct ints", rows_of(ints(16), 300), [], STORE),
    ("16 columns, 1 KiB", rows_of(texts(16, 1024), 300), [], STORE),
    ("16 columns, 1 MiB", rows_of(long_texts(16, MIB), 300), [], STORE),
    ("16 columns, 4 MiB", rows_of(long_texts(16, 4 * MIB), 300), [], STORE),
    ("16 columns, all types, inferred", rows_of(types(16), 200), [], SERVED),
    ("16 columns, all types, given", rows_of(types(16), 200), given(16), SERVED),
    ("155 columns, 1 byte", rows_of(bytes_of_one(155), 200), [], STORE),
    ("155 columns, distinct ints", rows_of(ints(155), 300), [], SOME_SERVED),
    ("155 columns, distinct texts", rows_of(texts(155, 20), 300), [], SOME_SERVED),
    ("155 columns, 1 KiB", rows_of(texts(155, 1024), 300), [], STORE),
    ("155 columns, 256 KiB", rows_of(long_texts(155, 256 << 10), 300), [], STORE),
    ("155 columns, all types, inferred", rows_of(types(155), 200), [], STORE),
    ("155 columns, all types, given", rows_of(types(155), 200), given(155), STORE),
    ("1024 columns, 1 byte", rows_of(bytes_of_one(1024), 200), [], STORE),
    ("1024 columns, distinct ints", rows_of(ints(1024), 400), [], SERVED),
    ("1024 columns, distinct texts", rows_of(texts(1024, 20), 300), [], SOME_SERVED),
    ("1024 columns, 1 KiB", rows_of(long_texts(1024, 1024), 300), [], STORE),
    ("1024 columns, all types, inferred", rows_of(types(1024), 200), [], STORE),
    ("1024 columns, all types, given", rows_of(types(1024), 200), given(1024), SOME_SERVED),
    ("1024 columns, dense then empty", rows_of(sparse(1024, 2000), 300), [], STORE),
    ("1024 columns, narrow then wide", rows_of(widening(1024, 8000), 300), [], STORE),
    ("4096 columns, 1 byte", rows_of(bytes_of_one(4096), 200), [], SOME_SERVED),
    ("4096 columns, distinct ints", rows_of(ints(4096), 400), [], SOME_SERVED),
    ("4096 columns, distinct texts", rows_of(texts(4096, 20), 300), [], STORE),
    ("4096 columns, 1 KiB", rows_of(long_texts(4096, 1024), 300), [], STORE),
    ("4096 columns, 16 KiB", rows_of(long_texts(4096, 16 << 10), 300), [], STORE),
    ("4096 columns, all types, inferred", rows_of(types(4096), 200), [], STORE),
    ("4096 columns, all types, given", rows_of(types(4096), 200), given(4096), STORE),
    ("4096 columns, all types, as text", rows_of(types(4096), 200), ["--all-text"], STORE),
    ("values of 1 KiB", rows_of(value(1024), 300), [], STORE),
    ("values of 1 MiB", rows_of(value(MIB), 300), [], SERVED),
    ("values of 1 MiB, quoted", rows_of(quoted(MIB), 300), [], STORE),
    ("values of 16 MiB", rows_of(value(16 * MIB), 320), [], SERVED),
    ("values of 64 MiB", rows_of(value(64 * MIB), 330), [], SERVED),
    ("values of 64 MiB, quoted", rows_of(quoted(64 * MIB), 330), [], STORE),
    ("values of 64 MiB after short ones", rows_of(late(64 * MIB, lambda row: f"{row * 7919}-{row}"), 330), [], SERVED),
    ("values of 64 MiB after numbers", rows_of(late(64 * MIB, lambda row: row * 7919), 330), [], ["store", "stdin", "adaptive"]),
    ("gzip, 16 columns, all types", rows_of(types(16), 200, "gzip"), [], SERVED),
    ("gzip, 1024 columns", rows_of(ints(1024), 200, "gzip"), [], STORE),
    ("gzip, values of 1 MiB", rows_of(value(MIB), 200, "gzip"), [], STORE),
    ("gzip, values of 64 MiB", rows_of(value(64 * MIB), 200, "gzip"), [], STORE),
    ("zstd, 16 columns, all types", rows_of(types(16), 200, "zstd"), [], SOME_SERVED),
    ("zstd --long=26, 155 columns", rows_of(ints(155), 300, "zstd-long"), [], SOME_SERVED),
    ("zstd, values of 64 MiB", rows_of(value(64 * MIB), 200, "zstd"), [], STORE),
    ("xz, 155 columns", rows_of(ints(155), 150, "xz"), [], STORE),
    ("xz -9, 155 columns", rows_of(ints(155), 200, "xz9"), [], SOME_SERVED),
    ("bzip2, 155 columns", rows_of(ints(155), 100, "bzip2"), [], STORE),
    ("values of 64 MiB rejected", rows_of(value(64 * MIB), 330), ["--columns", "a BIGINT, b BIGINT, c VARCHAR", *ALL_REJECTS], SERVED),
    ("values of 64 MiB with quotes rejected", rows_of(quotes(64 * MIB), 330), ["--columns", "a BIGINT, b BIGINT, c VARCHAR", *ALL_REJECTS], SERVED),
    ("values of 64 MiB rejected into a table", rows_of(value(64 * MIB), 330), ["--columns", "a BIGINT, b BIGINT, c VARCHAR", "--max-rejects", "100%", "--rejects", "table:r"], STORE),
    ("values of 64 MiB that break a CHECK", rows_of(value(64 * MIB), 330), ["--columns", "a BIGINT, b VARCHAR CHECK (length(b) < 10), c VARCHAR", *ALL_REJECTS], SERVED),
    ("values of 64 MiB, where", rows_of(value(64 * MIB), 330), ["--where", "length(c2) > 5"], STORE),
    ("a tenth rejected", rows_of(rejects("{0},{0}", "bad,x", 10), 100), ["--columns", "a BIGINT, b BIGINT", *ALL_REJECTS], SERVED),
    ("half rejected", rows_of(rejects("{0},{0}", "x", 50), 60), ["--columns", "a BIGINT, b BIGINT", *ALL_REJECTS], SERVED),
    ("all rejected", rows_of(rejects("", "x", 100), 40), ["--columns", "a BIGINT, b BIGINT", *ALL_REJECTS], SERVED),
    ("all rejected, 155 columns", rows_of(rejects("", "," * 150, 100), 150), [*given(155), *ALL_REJECTS], SOME_SERVED),
    ("where", rows_of(ints(3), 200), ["--where", "c1 % 2 = 0"], STORE),
    ("select", rows_of(ints(3), 200), ["--select", "c1 * 2 as a, c3 || 'x' as b"], STORE),
    ("a million files", files(1_000_000), [], ["store", "all", "adaptive", "pipe"]),
]


def main():
    parser = argparse.ArgumentParser(description="Measures what loads hold at most.")
    parser.add_argument("--coload", default=BENCH.parent / "target/release/coload", help="the binary")
    parser.add_argument("--memory", default="256MiB", help="what --memory and --load-memory are given")
    parser.add_argument("--bound", type=int, default=320, help="MiB that a process may have held")
    parser.add_argument("--scale", type=float, default=1.0, help="of the files; 1 is 40 to 400 MB each")
    parser.add_argument("--only", default="", help="cases whose name and place hold this")
    parser.add_argument("--threads", default="2", help="numbers of threads, with commas between them")
    parser.add_argument("--out", type=Path, help="appends the results as a line of JSON")
    args = parser.parse_args()
    args.coload = str(Path(args.coload).resolve())
    results = []
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as folder:
        for case in CASES:
            results += run_case(args, Path(folder), *case)
    over = [r["case"] for r in results if not r["holds"]]
    line = {"bench": "memory", "memory": args.memory, "bound_mib": args.bound, "machine": machine.describe(), "cases": results}
    if args.out:
        with args.out.open("a") as out:
            out.write(json.dumps(line) + "\n")
    print(json.dumps({"cases": len(results), "over": over}))
    sys.exit(1 if over else 0)


def run_case(args, folder, name, make, flags, places):
    """Makes the file, and loads it into each place with each number of threads."""
    runs = [(f"{name}; {where} t{threads}", where, threads) for where in places for threads in args.threads.split(",")]
    runs = [run for run in runs if args.only in run[0]]
    results = []
    if runs:
        path, rows = apart(make, folder, args.scale)
        for full, where, threads in runs:
            work = folder / "work"
            work.mkdir()
            results.append(run(args, work, full, path, rows, flags, where, threads))
            show(results[-1])
            shutil.rmtree(work)
        for entry in folder.iterdir():
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
    return results


def apart(work, *given):
    """Works in a process of its own: what this one held at most, the system would count for those that it starts."""
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    process = context.Process(target=lambda: results.put(work(*given)))
    process.start()
    made = results.get(timeout=3600)
    process.join()
    return made


def show(result):
    peaks = " ".join(f"{p:7.0f}" for p in result["peak_mib"])
    print(f"{'ok  ' if result['holds'] else 'OVER'} {peaks:15} MiB {result['seconds']:6.1f} s  {result['case']}{result['note']}", flush=True)


def run(args, folder, name, path, rows, flags, where, threads):
    store, server = folder / "store", None
    load = [args.coload, "load", str(path), "--table", "t", "--memory", args.memory, "--threads", threads, "--no-header"]
    load += ["--report", "json", *flags]
    if where in ("store", "stdin"):
        load += ["--into", str(store)]
    else:
        server = Served(args, store, threads)
        load += ["--into", f"coload://{server.address}/t", "--placement", where]
    started = time.monotonic()
    if where == "stdin":
        load[2] = "-"
    status, err, peak = run_and_measure(load, folder, path if where == "stdin" else os.devnull)
    seconds, peaks, note = time.monotonic() - started, [peak], ""
    if server:
        peaks.append(server.stop())
    if status != 0:
        note = f": status {status}, " + (err.strip().splitlines() or ["nothing said"])[-1][:300]
    else:
        got = apart(records_of, folder / "out")
        if got != rows:
            note = f": {got} records instead of {rows}"
    holds = status == 0 and not note and max(peaks) <= args.bound
    return {"case": name, "records": rows, "peak_mib": peaks, "seconds": seconds, "holds": holds, "note": note}


def records_of(path):
    """Records that a report has. That of a million files has a line for each."""
    report = json.loads(path.read_text())
    return report["rows"] + report["rejects"] + report["filtered"]


def run_and_measure(command, folder, stdin):
    """Status, errors and the most MiB that the process held; its output is in the folder."""
    with open(folder / "out", "wb") as out, open(folder / "err", "wb") as err, open(stdin, "rb") as given:
        process = subprocess.Popen(command, stdin=given, stdout=out, stderr=err, cwd=folder)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, (folder / "err").read_text(errors="replace"), usage.ru_maxrss / 1024


class Served:
    """A server of its own for each load."""

    def __init__(self, args, store, threads):
        command = [args.coload, "serve", "--store", str(store), "--listen", "127.0.0.1:0", "--threads", threads]
        command += ["--load-memory", args.memory, "--memory", args.memory]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        line = self.process.stdout.readline().decode()
        self.address = line.strip().split("://")[1]

    def stop(self):
        """Ends it, and tells the most MiB that it held; none if it was gone."""
        try:
            status = Path(f"/proc/{self.process.pid}/status").read_text()
        except FileNotFoundError:
            status = ""
        self.process.terminate()
        self.process.wait()
        peak = re.search(r"VmHWM:\s+(\d+)", status)
        return int(peak[1]) / 1024 if peak else float("inf")


if __name__ == "__main__":
    main()
