"""`bench/run decompress`: decompression alone, one file in several formats.

The text is the first 734 MB of a data set. The turns of a round are in random order: what a process finds in caches and
free memory depends on who ran before it. In the first tenths of a second two threads pay for memory that is new and for a core
that slept, so a process of ours decompresses the file four times, and the first is left out. gzip in one
member is compared with the fastest libraries on one thread; members of 4 MB of text, in all formats that have them, on one thread and on two.
"""

import bz2
import gzip
import json
import lzma
import random
import statistics
import subprocess
from pathlib import Path

import zstandard

TEXT_BYTES = 700 << 20
# bzip2 and xz are slow to write.
SHORT_TEXT_BYTES = 64 << 20
MEMBER_BYTES = 4 << 20
# In one process; the first is not counted.
REPEATS = 4
ZSTD = zstandard.ZstdCompressor(level=3)

# Ending, bytes of text, bytes of a member, compression.
FORMATS = {
    "gz": (TEXT_BYTES, TEXT_BYTES, lambda text: gzip.compress(text, 6, mtime=0)),
    "members.gz": (TEXT_BYTES, MEMBER_BYTES, lambda text: gzip.compress(text, 6, mtime=0)),
    "zst": (TEXT_BYTES, TEXT_BYTES, ZSTD.compress),
    "frames.zst": (TEXT_BYTES, MEMBER_BYTES, ZSTD.compress),
    "members.bz2": (SHORT_TEXT_BYTES, MEMBER_BYTES, bz2.compress),
    "members.xz": (SHORT_TEXT_BYTES, MEMBER_BYTES, lambda text: lzma.compress(text, preset=1)),
}
RIVALS = [
    ("libdeflate", "coload-bench", "libdeflate"),
    ("zlib-rs", "coload-bench", "zlib-rs"),
    ("ISA-L", "python", "isal"),
    ("zlib-ng", "python", "zlib-ng"),
]
OURS = "coload"
# Two processes of a thread each, which share nothing but the machine.
PAIR = "two processes"
ORDER = random.Random(1)

NOTES = """
What is unfair:
- libdeflate is given memory for all of the text, which it needs, and which is touched before.
- ISA-L and zlib-ng are called from Python, in pieces of the size at which they are fastest.
- coload reads the file; the others have it in memory. All check the checksum.
- One thread and two: the first run of a process is left out, in which two threads are slower. Two processes tell what the
  machine gives to work that shares nothing.
"""


def compressed(data, ending):
    """Path of the compressed text, made unless it is in the cache."""
    text_bytes, member_bytes, compress = FORMATS[ending]
    path = data.with_name(f"{data.stem}-{text_bytes >> 20}.{ending}")
    if not path.exists():
        with open(data, "rb") as file:
            text = file.read(text_bytes)
        parts = (text[at : at + member_bytes] for at in range(0, len(text), member_bytes))
        part = path.with_name(path.name + ".part")
        part.write_bytes(b"".join(map(compress, parts)))
        part.rename(path)
    return path


def run(lab, args):
    data = lab.make_data(args, args.data)
    files = {ending: compressed(data, ending) for ending in FORMATS}
    contenders = [(f"{OURS} {ending}, {threads}", ending, OURS, threads) for ending in FORMATS for threads in (1, 2, PAIR)]
    contenders += [(f"{name} gz, 1", "gz", name, 1) for name, _, _ in RIVALS]
    runs = {name: [] for name, *_ in contenders}
    for number in range(args.rounds):
        lab.prepare(args, *files.values())
        for name, ending, engine, threads in ORDER.sample(contenders, len(contenders)):
            lab.progress(f"round {number + 1} of {args.rounds}: {name}")
            runs[name] += once(lab, args, files[ending], engine, threads)
    check(runs, contenders)
    best = {name: min(of, key=lambda run: run["cpu"]) for name, of in runs.items()}
    print_single(best)
    print_threads(runs)
    print(NOTES)
    lab.print_target_lines(targets(runs, best))
    lab.save(args, "decompress", args.data, runs=runs, targets=targets(runs, best))


def once(lab, args, file, engine, threads):
    """The runs of one process, or of two at once."""
    script, option = next(((s, o) for name, s, o in RIVALS if name == engine), ("coload-bench", OURS))
    if script == "python":
        command = [lab.PYTHON, lab.BENCH / "rivals/inflate.py", option, file]
    else:
        command = [args.coload_bench, "decompress", file, "--engine", option, "--repeat", str(REPEATS)]
        command += ["--threads", "1" if threads == PAIR else str(threads)]
    count = 2 if threads == PAIR else 1
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(count)]
    runs = []
    for process in processes:
        output = process.communicate()[0]
        if process.returncode != 0:
            raise SystemExit(f"{engine} failed on {file}")
        lines = [json.loads(line) for line in output.splitlines()]
        runs += lines[1:] or lines
    # Of two processes each has half of the time.
    return [run | {"wall": run["wall"] / count} for run in runs]


def check(runs, contenders):
    for name, ending, *_ in contenders:
        if any(run["bytes"] != FORMATS[ending][0] for run in runs[name]):
            raise SystemExit(f"{name}: not all of the text came out")


def rate(run):
    return run["bytes"] / 1e6 / run["cpu"]


def print_single(best):
    print("\ngzip, one member, one thread: MB of text a CPU second, best run\n")
    print("| | MB/s | coload / it |\n|---|---:|---:|")
    ours = rate(best[f"{OURS} gz, 1"])
    for name in [OURS, *(name for name, *_ in RIVALS)]:
        its = rate(best[f"{name} gz, 1"])
        print(f"| {name} | {its:.0f} | {ours / its:.2f} |")


def print_threads(runs):
    print("\nOne thread, two threads, and two processes of one thread each at once: MB of text a second, medians of wall time\n")
    print("| | 1 thread | 2 threads | ratio | 2 processes | ratio |\n|---|---:|---:|---:|---:|---:|")
    for ending in FORMATS:
        one, two, pair = (median_rate(runs, ending, threads) for threads in (1, 2, PAIR))
        print(f"| {ending} | {one:.0f} | {two:.0f} | {two / one:.2f} | {pair:.0f} | {pair / one:.2f} |")


def median_rate(runs, ending, threads):
    of = runs[f"{OURS} {ending}, {threads}"]
    return of[0]["bytes"] / 1e6 / statistics.median(run["wall"] for run in of)


def targets(runs, best):
    fastest = max(rate(best[f"{name} gz, 1"]) for name, *_ in RIVALS)
    ratio = rate(best[f"{OURS} gz, 1"]) / fastest
    lines = [{"target": "gzip, coload / the fastest", "limit": ">= 0.9", "ratio": ratio, "reached": ratio >= 0.9}]
    for ending in ("members.gz", "frames.zst"):
        ratio = median_rate(runs, ending, 2) / median_rate(runs, ending, 1)
        target = f"{ending}, 2 threads / 1"
        lines.append({"target": target, "limit": ">= 1.8", "ratio": ratio, "reached": ratio >= 1.8})
    return lines
