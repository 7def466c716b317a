"""Loads over an emulated network: `bench/run network EXPERIMENT DATA`; see README.md.

| experiment | what it repeats |
|---|---|
| figure1 | seed 000, figure 1: CPU of an embedded load by step |
| figure3, figure4 | loading alone at 10 and 1 Gbit/s; `slow` is the case that the paper lacks, 100 Mbit/s |
| figure5, figure6 | the same beside queries: Q1 and Q2 on a second lineitem, ten at once |
| cells | `adaptive` against each fixed placement: networks x idle or busy server x whole or half a core at the client |
| wire | seed 001: compression on the wire, network-bound, not network-bound, server-bound; the server discards |
| loopback | CPU of client and server on two cores of one machine, against the embedded load |
| instead | what else a user would do: `psql \\copy`, or copying the file and loading it with DuckDB there |

Each prints a table and what must be reached, appends a JSON line to `results/`, and draws a picture.
"""

import argparse
import contextlib
import json
import random
import statistics
import subprocess
import sys
import time
from pathlib import Path

import instead
import machine
import netlab
import network_tables as tables
from netlab import CLIENT, QUERIED, Programs, Server, inside, say

PLACEMENTS = ["seq", "pipe", "none", "size", "all", "adaptive"]
# Of the paper's configurations these send plain bytes; compressing them is what `wire` measures.
PLAIN = ["none", "pipe", "seq"]
COMPRESSIONS = ["none", "adaptive", "lz4", "zstd"]
RATES = ["100mbit", "1gbit", "10gbit"]
# In `cells` a fixed placement is stopped when it takes so many times longer than `adaptive` did, and cannot be the best.
HOPELESS = 1.5
# Memory touched before each load: more than client and server take together.
TOUCH_BYTES = 3 << 30
# Bytes of text that `wire` loads: the plain values of a whole table take minutes at 100 Mbit/s.
WIRE_BYTES = 200_000_000


def main():
    args = arguments()
    say(f"{args.experiment} {args.data}, {args.rounds} rounds")
    experiment = {
        "figure1": lambda: steps(args),
        "figure3": lambda: isolated(args, ["10gbit"]),
        "figure4": lambda: isolated(args, ["1gbit"]),
        "slow": lambda: isolated(args, ["100mbit"]),
        "figure5": lambda: beside_queries(args, ["10gbit"]),
        "figure6": lambda: beside_queries(args, ["1gbit"]),
        "cells": lambda: cells(args),
        "wire": lambda: wire(args),
        "loopback": lambda: loopback(args),
        "instead": lambda: others(args),
    }[args.experiment]
    with netlab.network() if args.experiment != "figure1" else contextlib.nullcontext():
        runs = experiment()
    tables.report(args, tables.earlier(args), runs, args.programs.data(args.data)[0].stat().st_size)


def arguments():
    bench = machine.ROOT / "bench"
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    experiments = ["figure1", "figure3", "figure4", "slow", "figure5", "figure6", "cells", "wire", "loopback", "instead"]
    parser.add_argument("experiment", choices=experiments)
    parser.add_argument("data", help="name of a data set, such as lineitem-sf1")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--after", type=int, default=0, help="take in the runs of so many lines before, of the same experiment and data")
    parser.add_argument("--placements", type=words, default=PLACEMENTS)
    parser.add_argument("--rates", type=words, default=RATES, help="networks of `cells` and `wire`")
    parser.add_argument("--servers", type=words, default=["idle", "busy"], help="of `cells`")
    parser.add_argument("--clients", type=words, default=["whole", "half"], help="of `cells`")
    parser.add_argument("--queried", default="lineitem-sf1", help="data set of the second lineitem")
    parser.add_argument("--load-priority", choices=["low", "normal"], default="low", help="of loads beside queries; the paper's server has none")
    parser.add_argument("--queries-seconds", type=float, default=15, help="how long queries go on after their load, at most")
    parser.add_argument("--bin", type=Path, default=machine.ROOT / "target/release", help="folder of coload and coload-receive")
    parser.add_argument("--serve", type=Path, help="a coload with `serve`; that of --bin if not said")
    parser.add_argument("--cache", type=Path, default=bench / "cache", help="folder of the data sets")
    args = parser.parse_args()
    args.programs = Programs(args.bin / "coload", args.bin / "coload-receive", args.serve or args.bin / "coload",
                             args.cache.resolve())
    return args


def words(text):
    return text.split(",")


# --- experiments


def steps(args):
    file, schema = args.programs.data(args.data)
    runs = []
    for number in range(args.rounds):
        warm_up(file)
        with netlab.scratch(args.programs) as folder:
            done = subprocess.run([*inside(None, netlab.CLIENT_CORE), args.programs.client, "load", file, "--schema", schema,
                                   "--no-header", "--table", "t", "--into", folder / "store", "--threads", "1",
                                   "--report", "json"], capture_output=True, text=True, check=True)
        told = json.loads(done.stdout)
        runs.append({"setting": "embedded", "round": number, "rate": "none", "wall_s": told["wall_s"], "rows": told["rows"],
                     "cpu_s": told["cpu_s"], "steps": told["cpu_by_step_s"]})
    return runs


def isolated(args, rates):
    runs = []
    for rate in rates:
        netlab.shape(rate)
        for number in range(args.rounds):
            for setting in args.placements:
                runs.append({"rate": rate, "round": number, **measure(args, setting)})
    return runs


def beside_queries(args, rates):
    """As in the paper, the queries go on as long as the slowest load of the round took; so slow ones come first.

    The last row has the queries alone: no placement can do better by them.
    """
    runs = []
    for rate in rates:
        netlab.shape(rate)
        for number in range(args.rounds):
            longest = 0
            for setting in args.placements:
                run = measure(args, setting, queries_s=longest)
                longest = min(max(longest, run["wall_s"]), args.queries_seconds)
                runs.append({"rate": rate, "round": number, **run})
            runs.append({"rate": rate, "round": number, "setting": "no load", "load_priority": args.load_priority, "queries": queries_alone(args, longest)})
    return runs


def queries_alone(args, seconds):
    with netlab.scratch(args.programs) as folder:
        netlab.queried_store(args.programs, args.queried, folder / "store")
        server = Server(args.programs, folder / "store", queries=True)
        try:
            workload, began = Workload(server), time.monotonic()
            time.sleep(seconds)
            return workload.stop(began, time.monotonic())
        finally:
            server.stop()


def cells(args):
    runs = []
    # Adaptive first: it tells when a fixed one has lost. Then in random order: a load pays for memory that the one before left.
    order = random.Random(1)
    fixed = [p for p in args.placements if p not in ("adaptive", "seq")]
    for rate in args.rates:
        netlab.shape(rate)
        for busy in args.servers:
            for core in args.clients:
                cell = {"rate": rate, "server": busy, "client": core}
                limit = None
                for number in range(args.rounds):
                    turns = ["adaptive", *fixed]
                    if number > 0:
                        order.shuffle(turns)
                    for setting in turns:
                        run = measure(args, setting, queries_s=0 if busy == "busy" else None, half=core == "half",
                                      seconds_max=None if setting == "adaptive" else limit)
                        if setting == "adaptive":
                            limit = max(limit or 0, run["wall_s"] * HOPELESS + 1)
                        runs.append({**cell, "round": number, **run})
    return runs


def wire(args):
    """Plain values, so that there is something to compress; the last network has a server that may use a fiftieth of a core."""
    runs = []
    with netlab.scratch(args.programs) as folder:
        data = head(args, folder)
        for rate, flags in [*((rate, []) for rate in args.rates), ("10gbit", ["--load-cpu", "0.02"])]:
            netlab.shape(rate)
            for number in range(args.rounds):
                for setting in COMPRESSIONS:
                    run = measure(args, "none", compression=setting, data=data, server_flags=["--discard", *flags])
                    name = f"{rate}, server-bound" if flags else rate
                    runs.append({"round": number, **run, "rate": name, "setting": setting})
    return runs


def head(args, folder):
    """The first records of a data set, and its CREATE TABLE."""
    file, schema = args.programs.data(args.data)
    with open(file, "rb") as source:
        text = source.read(WIRE_BYTES)
    part = folder / "head.tbl"
    part.write_bytes(text[: text.rindex(b"\n") + 1])
    return part, schema


def loopback(args):
    file, schema = args.programs.data(args.data)
    both = f"{netlab.CLIENT_CORE},{netlab.SERVER_CORE}"
    runs = []
    for number in range(args.rounds):
        warm_up(file)
        with netlab.scratch(args.programs) as folder:
            done = subprocess.run([*inside(None, both), args.programs.client, "load", file, "--schema", schema, "--no-header",
                                   "--table", "t", "--into", folder / "store", "--threads", "2", "--report", "json"],
                                  capture_output=True, text=True, check=True)
            told = json.loads(done.stdout)
            runs.append({"rate": "loopback", "round": number, "setting": "embedded", "wall_s": told["wall_s"],
                         "rows": told["rows"], "client_cpu_s": told["cpu_s"], "server_cpu_s": 0})
        for setting in ("all", "adaptive"):
            run = measure(args, setting, namespace=None, core=both, threads=2)
            runs.append({"rate": "loopback", "round": number, **run})
    return runs


def others(args):
    runs = []
    for rate in args.rates:
        netlab.shape(rate)
        for number in range(args.rounds):
            for setting in ("adaptive", "pipe"):
                runs.append({"rate": rate, "round": number, **measure(args, setting)})
            for name, run in (("psql \\copy", instead.postgres), ("copy, DuckDB", instead.copy_and_duckdb)):
                with netlab.scratch(args.programs) as folder:
                    runs.append({"rate": rate, "round": number, "setting": name, **run(args.programs, args.data, folder)})
                say(f"{rate} {name}: {runs[-1]['wall_s']:.2f} s")
    return runs


# --- one load


def warm_up(file):
    machine.touch_memory(TOUCH_BYTES)
    machine.warm_page_cache(file)


def measure(args, setting, queries_s=None, half=False, seconds_max=None, compression=None, data=None, server_flags=(),
            namespace=CLIENT, core=netlab.CLIENT_CORE, threads=1):
    """Loads once into a new server. With `queries_s`, beside queries, which go on for so long at least."""
    programs = args.programs
    warm_up(data[0] if data else programs.data(args.data)[0])
    compression = compression or ("none" if setting in PLAIN else None)
    flags = ["--placement", setting, *(["--wire-compression", compression] if compression else [])]
    with netlab.scratch(programs) as folder, netlab.half_core() if half else contextlib.nullcontext() as limit:
        store, queries = folder / "store", queries_s is not None
        if queries:
            netlab.queried_store(programs, args.queried, store)
        if queries:
            server_flags = [*server_flags, *(["--load-priority", args.load_priority] if args.load_priority != "low" else [])]
        # Loads get one core of the server's, as there is one.
        server = Server(programs, store, queries, [*(() if "--load-cpu" in server_flags else ("--load-cpu", str(threads))), *server_flags],
                        namespace and netlab.SERVER, netlab.SERVER_CORE if namespace else core)
        try:
            workload = Workload(server) if queries else None
            sent, cpu = (netlab.sent_bytes() if namespace else 0), server.cpu_seconds()
            began = time.monotonic()
            told = netlab.load(programs, server, data or args.data, flags, seconds_max, limit, namespace, core, threads)
            ended = time.monotonic()
            run = {"setting": setting, "wall_s": told["wall_s"] if told else ended - began, "stopped": told is None}
            if told:
                run |= measures(told, server.cpu_seconds() - cpu, (netlab.sent_bytes() if namespace else 0) - sent)
            if workload:
                time.sleep(max(0, queries_s - (ended - began)) if told else 0)
                run |= {"queries": workload.stop(began, ended), "load_priority": args.load_priority}
        finally:
            server.stop()
    say(f"{setting}{' beside queries' if queries else ''}{' half core' if half else ''}: "
        f"{'over ' if run['stopped'] else ''}{run['wall_s']:.2f} s")
    return run


def measures(told, server_cpu_s, wire_bytes):
    return {
        "client_cpu_s": told["cpu_s"],
        "server_cpu_s": server_cpu_s,
        "wire_bytes": wire_bytes,
        "rows": told["rows"],
        "frames": told["frames"],
        "frames_compressed": told["frames_compressed"],
        "message_bytes": told["message_bytes"],
        "frame_bytes": told["wire_bytes"],
        "client_peak_bytes": told["peak_memory_bytes"],
        "server_peak_bytes": told["server_peak_memory_bytes"],
        "columns_client": sum(c["placed"] == "client" for c in told["columns"]),
        "columns": len(told["columns"]),
        "changes": told["changes"],
        "attempts": told["attempts"],
        "client_cpu_by_step_s": told["cpu_by_step_s"],
    }


class Workload:
    """Q1 and Q2 in batches of ten; their client runs on the core of the loading client."""

    def __init__(self, server):
        address = server.url.removeprefix("coload://")
        command = [*inside(CLIENT, netlab.CLIENT_CORE), sys.executable, machine.ROOT / "bench/query_load.py", address, QUERIED]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        if self.process.stdout.readline() != "ready\n":
            sys.exit("the queries do not start")

    def stop(self, began, ended):
        """Latencies in milliseconds of those that began after the load did; `while` of those before its end."""
        out, _ = self.process.communicate()
        latencies = {}
        for name, done in json.loads(out).items():
            after = [(start, seconds * 1e3) for start, seconds in done if start >= began]
            latencies[name] = {"all": [s for _, s in after], "while": [s for start, s in after if start < ended]}
        return {name: {part: percentiles(values) for part, values in parts.items()} for name, parts in latencies.items()}


def percentiles(values):
    if len(values) < 2:
        return {"count": len(values)}
    cuts = statistics.quantiles(values, n=100, method="inclusive")
    return {"count": len(values), "p50": cuts[49], "p95": cuts[94], "p99": cuts[98]}


if __name__ == "__main__":
    main()
