"""Pollock: how much of a polluted CSV file a loader gets right. `bench/run pollock --archive FILE`; see README.md.

Each file is loaded by the real command and written out again by `coload export`; what comes out is compared with the
clean twin. A file scores 10 at most: success, and precision, recall and F1 over header cells, records and cells, as
multisets.

Source: Vitagliano et al., "Pollock: A Data Loading Benchmark", PVLDB 16(8), 2023.
"""

import argparse
import collections
import csv
import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

BENCH = Path(__file__).resolve().parent
csv.field_size_limit(1 << 30)

# The same for every file: the benchmark compares text, and asks for as much of it as can be had.
POLICIES = ["--all-text", "--ragged", "truncate", "--quotes", "lenient"]
MEASURES = ["success"] + [f"{what}_{m}" for what in ("header", "record", "cell") for m in ("p", "r", "f1")]


def main():
    parser = argparse.ArgumentParser(description="Scores coload on the Pollock files.")
    parser.add_argument("--archive", default=os.environ.get("POLLOCK"), help="polluted_files.tar.xz; or set POLLOCK")
    parser.add_argument("--coload", default=BENCH.parent / "target/release/coload", help="the binary")
    parser.add_argument("--mode", choices=["given", "auto", "both"], default="both", help="dialect given, or nothing")
    parser.add_argument("--only", default="", help="files whose name holds this")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--worst", type=int, default=15, help="how many of the worst files to list")
    parser.add_argument("--out", type=Path, help="scores of each file, as JSON")
    args = parser.parse_args()
    folder = unpack(args.archive)
    weights = json.loads((folder / "pollock_weights.json").read_text())
    names = sorted(p.name for p in (folder / "polluted_files/csv").iterdir())
    names = [n for n in names if n.endswith(".csv") and args.only in n]
    scores = {}
    for mode in ["given", "auto"] if args.mode == "both" else [args.mode]:
        with ProcessPoolExecutor(args.processes) as pool:
            jobs = [pool.submit(score_file, folder / "polluted_files", n, mode, str(args.coload)) for n in names]
            scores[mode] = {n: job.result() for n, job in zip(names, jobs)}
        show(mode, scores[mode], weights, args.worst)
    if args.out:
        args.out.write_text(json.dumps(scores, indent=1))


def unpack(archive):
    """The folder with the files; unpacked once."""
    folder = BENCH / "cache/pollock"
    if not (folder / "pollock_weights.json").exists():
        if not archive:
            sys.exit("pollock: give --archive polluted_files.tar.xz, or set POLLOCK")
        folder.mkdir(parents=True, exist_ok=True)
        with tarfile.open(archive) as tar:
            tar.extractall(folder, filter="data")
    return folder


def show(mode, scores, weights, worst):
    """The two means, sums by kind of measure, and the worst files."""
    total = sum(weights[n] for n in scores)
    simple = sum(s["score"] for s in scores.values()) / len(scores)
    weighted = sum(s["score"] * weights[n] for n, s in scores.items()) / total
    means = {m: sum(s["measures"][m] for s in scores.values()) / len(scores) for m in MEASURES}
    title = {"given": "dialect given", "auto": "nothing given"}[mode]
    print(f"\n{title}: simple {simple:.3f}, weighted {weighted:.3f}, of 10; {len(scores)} files\n")
    print("| " + " | ".join(MEASURES) + " |\n|" + "---|" * len(MEASURES))
    print("| " + " | ".join(f"{means[m]:.4f}" for m in MEASURES) + " |\n")
    lost = sorted(scores, key=lambda n: (scores[n]["score"] - 10) * weights[n])[:worst]
    print("| most lost by weight | score | share of the weight | message |\n|---|---|---|---|")
    for name in lost:
        s = scores[name]
        print(f"| {name} | {s['score']:.2f} | {weights[name] / total:.4f} | {s['message'][:90]} |")
    groups = collections.defaultdict(list)
    for name, s in scores.items():
        groups["_".join(name.split("_")[:3])[:15].rstrip("0123456789_")].append(s["score"])
    print("\n| group | files | mean | least |\n|---|---|---|---|")
    for group, values in sorted(groups.items()):
        print(f"| {group} | {len(values)} | {sum(values) / len(values):.3f} | {min(values):.3f} |")


def score_file(folder, name, mode, coload):
    """Loads one file and compares what was loaded with its clean twin."""
    parameters = json.loads((folder / "parameters" / f"{name}_parameters.json").read_text())
    flags = POLICIES + given_flags(parameters) if mode == "given" else ["--all-text"]
    loaded, message = load(coload, folder / "csv" / name, flags)
    if loaded is None:
        return {"score": 0.0, "measures": dict.fromkeys(MEASURES, 0.0), "message": message}
    clean = list(csv.reader(io.StringIO((folder / "clean" / name).read_text(), newline="")))
    has_header = parameters["header_lines"] > 0
    expected = (clean[0] if has_header and clean else [], clean[1:] if has_header else clean)
    measures = {"success": 1.0}
    pairs = {
        "header": (expected[0], loaded[0]),
        "record": ([tuple(r) for r in expected[1]], [tuple(r) for r in loaded[1]]),
        "cell": ([c for r in expected[1] for c in r], [c for r in loaded[1] for c in r]),
    }
    for what, (want, have) in pairs.items():
        for measure, value in zip(("p", "r", "f1"), compare(want, have)):
            measures[f"{what}_{measure}"] = value
    return {"score": sum(measures.values()), "measures": measures, "message": message}


def given_flags(parameters):
    """The flags that say what the parameters say."""
    flags = ["--header-rows", str(parameters["header_lines"]), "--skip", str(parameters["preamble_lines"])]
    flags += ["--footer", str(parameters["footnote_lines"])]
    quote, escape = parameters["quotechar"], parameters["escapechar"]
    if parameters["delimiter"]:
        flags += [f"--delimiter={parameters['delimiter']}"]
        flags += [f"--quote={quote or 'none'}", f"--escape={'none' if escape in ('', quote) else escape}"]
    if parameters["row_delimiter"] == "\r":
        flags += ["--line-end", "cr"]
    return flags


def load(coload, path, flags):
    """Names and rows after a load and an export, or None; and what the command said."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as scratch:
        store = f"{scratch}/store"
        command = [coload, "load", str(path), "--into", store, "--table", "t", "--report", "json", "--threads", "1"]
        done = subprocess.run(command + flags, capture_output=True, text=True, errors="replace")
        if done.returncode:
            return None, done.stderr.strip().splitlines()[-1] if done.stderr else f"status {done.returncode}"
        report = json.loads(done.stdout)
        message = f"{report['rows']} rows, {report['rejects']} rejects"
        if not report["columns"]:
            return ([], []), message
        out = subprocess.run([coload, "export", store, "t"], capture_output=True, text=True, errors="replace")
        if out.returncode:
            return None, out.stderr.strip()
        rows = list(csv.reader(io.StringIO(out.stdout, newline="")))
        # Names that the loader made up are not the file's.
        return (rows[0] if report["dialect"]["header_rows"] else [], rows[1:]), message


def compare(want, have):
    """Precision, recall and F1 of two multisets."""
    if not want and not have:
        return 1.0, 1.0, 1.0
    common = (collections.Counter(want) & collections.Counter(have)).total()
    precision = common / len(have) if have else 0.0
    recall = common / len(want) if want else 0.0
    return precision, recall, 2 * precision * recall / (precision + recall) if common else 0.0


if __name__ == "__main__":
    main()
