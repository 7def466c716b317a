#!/usr/bin/env python3
"""A cluster of processes of this machine beside one server: CPU a row, the client's cost by shards, imbalance, look-ups.

All processes share the machine's cores, so that wall time says nothing of scaling: CPU seconds do (/proc, 10 ms a tick, of
the nodes; rusage of the client). Contenders take turns. Each load goes into a table of its own.
"""

import argparse
import json
import os
import random
import re
import resource
import signal
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from machine import ROOT, describe

COLUMNS = "k BIGINT, g INTEGER, name VARCHAR, price DECIMAL(12,2), day DATE, note VARCHAR"
QUERIES = [
    "SELECT sum(price) FROM {}",
    "SELECT count(*) FROM {} WHERE day BETWEEN DATE '2024-03-01' AND DATE '2024-04-30'",
    "SELECT g, count(*), sum(price), avg(price) FROM {} GROUP BY g ORDER BY g",
    "SELECT name, count(*) AS n FROM {} GROUP BY name ORDER BY n DESC, name LIMIT 10",
]
TICK = os.sysconf("SC_CLK_TCK")


class Node:
    """A server, of a cluster or not."""

    def __init__(self, args, folder, name, place=None):
        self.args, self.port, self.postgres = args, free_port(), free_port()
        command = [args.coload, "serve", "--store", folder / name, "--listen", f"127.0.0.1:{self.port}", "--postgres",
                   f"127.0.0.1:{self.postgres}", "--memory", "2GiB", "--log-level", "error", "--grace", "1"]
        if place:
            command += ["--cluster", place]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=open(folder / f"{name}.log", "wb"))
        until = time.monotonic() + 30
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.postgres), timeout=1).close()
                return
            except OSError:
                if time.monotonic() > until or self.process.poll() is not None:
                    sys.exit(f"{name} does not serve: " + (folder / f"{name}.log").read_text())
                time.sleep(0.05)

    @property
    def address(self):
        return f"coload://127.0.0.1:{self.port}"

    def cpu_s(self):
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / TICK

    def sql(self, text):
        return subprocess.run([self.args.coload, "sql", "--store", self.address, "--output", "csv", "-c", text], check=True,
                              capture_output=True, text=True).stdout

    def stop(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


class Postgres:
    """A connection that stays, so that no start of a process is measured."""

    def __init__(self, node):
        self.socket = socket.create_connection(("127.0.0.1", node.postgres))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        words = b"user\0bench\0database\0coload\0\0"
        self.socket.sendall(struct.pack(">II", 8 + len(words), 196608) + words)
        self.file = self.socket.makefile("rb")
        self.answer()

    def query(self, text):
        body = text.encode() + b"\0"
        self.socket.sendall(b"Q" + struct.pack(">I", 4 + len(body)) + body)
        return self.answer()

    def answer(self):
        """Rows of text up to the server's word that it is ready."""
        rows = []
        while True:
            kind, length = self.file.read(1), struct.unpack(">I", self.file.read(4))[0]
            body = self.file.read(length - 4)
            if kind == b"E":
                sys.exit(body.decode(errors="replace"))
            if kind == b"D":
                rows.append(body)
            if kind == b"Z":
                return rows


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def make_rows(path, rows):
    chance = random.Random(1)
    with open(path, "w") as file:
        for k in range(rows):
            file.write(f"{k},{k % 97},name {chance.randrange(5000)},{chance.randrange(10**6) / 100:.2f},"
                       f"2024-{k % 12 + 1:02}-{k % 28 + 1:02},note {chance.randrange(10**9)} of row {k}\n")


def load(args, nodes, into, table, flags=()):
    """Loads once: CPU seconds of the client and of all nodes, and wall seconds."""
    before, own = [node.cpu_s() for node in nodes], resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.monotonic()
    command = [args.coload, "load", args.file, "--into", f"{into.address}/{table}", "--no-header", "--columns", COLUMNS, *flags]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wall = time.monotonic() - began
    # Merges after it belong to the load.
    time.sleep(0.3)
    after, ended = [node.cpu_s() for node in nodes], resource.getrusage(resource.RUSAGE_CHILDREN)
    client = ended.ru_utime + ended.ru_stime - own.ru_utime - own.ru_stime
    return {"client_s": client, "nodes_s": sum(after) - sum(before), "wall_s": wall}


def median(runs, of):
    return statistics.median(of(run) for run in runs)


def ns(seconds, args):
    return seconds / args.rows * 1e9


class Bench:
    def __init__(self, args, folder):
        self.args, self.number = args, 0
        self.plain = Node(args, folder, "plain")
        self.one = Node(args, folder, "one", folder / "place1")
        self.four = [Node(args, folder, f"leaf{n}", folder / "place4") for n in range(4)]

    def stop(self):
        for node in [self.plain, self.one, *self.four]:
            node.stop()

    def table(self, node, shard=""):
        self.number += 1
        name = f"t{self.number}"
        node.sql(f"CREATE TABLE {name} ({COLUMNS}) {shard}")
        return name

    def loads(self):
        """Each contender's load, in turns: whose CPU, and of what."""
        args, shard = self.args, "SHARD BY (k) SHARDS 64"
        contenders = {
            "one server, the client parses": ([self.plain], "", ()),
            "one server, which parses (`pipe`)": ([self.plain], "", ("--placement", "pipe")),
            "cluster of one, the client parses": ([self.one], shard, ()),
            "4 leaves, the client routes": (self.four, shard, ()),
            "4 leaves, an aggregator routes (`pipe`)": (self.four, shard, ("--placement", "pipe")),
        }
        runs = {name: [] for name in contenders}
        for _ in range(args.rounds):
            for name, (nodes, by, flags) in contenders.items():
                table = self.table(nodes[0], by)
                runs[name].append(load(args, nodes, nodes[0], table, flags))
                nodes[0].sql(f"DROP TABLE {table}")
        return runs

    def shards(self):
        runs = {count: [] for count in (1, 4, 16, 64)}
        for _ in range(self.args.rounds):
            for count in runs:
                table = self.table(self.four[0], f"SHARD BY (k) SHARDS {count}")
                runs[count].append(load(self.args, self.four, self.four[0], table))
                self.four[0].sql(f"DROP TABLE {table}")
        return runs

    def imbalance(self, table):
        """Rows of each leaf, as it lists its share of the load."""
        rows = []
        for node in self.four:
            listed = subprocess.run([self.args.coload, "loads", "--server", node.address], check=True, capture_output=True, text=True)
            line = next(line for line in listed.stdout.splitlines() if re.search(rf"\b{table}\b", line))
            rows.append(max(int(number.replace(",", "")) for number in re.findall(r"(?<![\w-])\d[\d,]*(?![\w-])", line)))
        if sum(rows) != self.args.rows:
            sys.exit(f"leaves list {rows} rows of {self.args.rows}")
        return rows

    def look_ups(self, node, table):
        client, chance, times = Postgres(node), random.Random(2), []
        for number in range(self.args.look_ups + 50):
            key = chance.randrange(self.args.rows)
            began = time.perf_counter()
            rows = client.query(f"SELECT * FROM {table} WHERE k = {key}")
            times.append((time.perf_counter() - began) * 1e3)
            assert len(rows) == 1, f"{len(rows)} rows of key {key}"
        times = sorted(times[50:])
        return {"p50_ms": times[len(times) // 2], "p99_ms": times[len(times) * 99 // 100]}

    def queries(self, tables):
        """Each query at each server in turns: medians in milliseconds. Answers must be the same."""
        clients = {name: (Postgres(node), table) for name, (node, table) in tables.items()}
        times, answers = {name: [[] for _ in QUERIES] for name in clients}, {}
        for turn in range(self.args.rounds * 4 + 1):
            for number, query in enumerate(QUERIES):
                for name, (client, table) in clients.items():
                    began = time.perf_counter()
                    rows = client.query(query.format(table))
                    if turn:
                        times[name][number].append((time.perf_counter() - began) * 1e3)
                    assert answers.setdefault(number, rows) == rows, f"{name} answers {query} otherwise"
        return {name: [statistics.median(of) for of in each] for name, each in times.items()}

    def inserts(self, node, table):
        client, times = Postgres(node), []
        for number in range(self.args.rounds * 10):
            began = time.perf_counter()
            client.query(f"INSERT INTO {table} VALUES ({-number - 1}, 1, 'n', 1.5, DATE '2024-01-01', 'x')")
            times.append((time.perf_counter() - began) * 1e3)
        return statistics.median(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--coload", required=True, help="the binary, with SQL")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--look-ups", type=int, default=500)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=os.environ.get("COLOAD_BENCH_DIR")) as folder:
        folder = Path(folder)
        args.file = folder / "rows.csv"
        make_rows(args.file, args.rows)
        bench = Bench(args, folder)
        try:
            results = measure(bench)
        finally:
            bench.stop()
    show(args, results)
    line = {"command": "cluster", **describe(), "rows": args.rows, "rounds": args.rounds, **results}
    path = ROOT / "bench" / "results" / "cluster.jsonl"
    path.parent.mkdir(exist_ok=True)
    with open(path, "a") as file:
        file.write(json.dumps(line) + "\n")


def measure(bench):
    results = {"loads": bench.loads(), "shards": bench.shards()}
    shard = "SHARD BY (k) SHARDS 64"
    tables = {
        "one server": (bench.plain, bench.table(bench.plain)),
        "cluster of one": (bench.one, bench.table(bench.one, shard)),
        "4 leaves": (bench.four[0], bench.table(bench.four[0], shard)),
    }
    for node, table in tables.values():
        load(bench.args, [], node, table)
    four = tables["4 leaves"][1]
    results["rows_of_leaves"] = bench.imbalance(four)
    looked = {name: bench.look_ups(node, table) for name, (node, table) in tables.items()}
    looked["4 leaves, another node"] = bench.look_ups(bench.four[3], four)
    results["look_ups"], results["queries"] = looked, bench.queries(tables)
    results["insert_ms"] = {name: bench.inserts(node, table) for name, (node, table) in tables.items()}
    return results


def show(args, results):
    print(f"{args.rows:,} rows, medians of {args.rounds}\n")
    print("| load | nodes' CPU ns a row | client's CPU ns a row | all | wall s |\n|---|---:|---:|---:|---:|")
    for name, runs in results["loads"].items():
        nodes, client = median(runs, lambda r: r["nodes_s"]), median(runs, lambda r: r["client_s"])
        both = median(runs, lambda r: r["nodes_s"] + r["client_s"])
        print(f"| {name} | {ns(nodes, args):.0f} | {ns(client, args):.0f} | {ns(both, args):.0f} | {median(runs, lambda r: r['wall_s']):.2f} |")
    print("\n| shards on 4 leaves | client's CPU ns a row | nodes' CPU ns a row |\n|---:|---:|---:|")
    for count, runs in results["shards"].items():
        print(f"| {count} | {ns(median(runs, lambda r: r['client_s']), args):.0f} | {ns(median(runs, lambda r: r['nodes_s']), args):.0f} |")
    rows = results["rows_of_leaves"]
    print(f"\nRows of 4 leaves, 64 shards of a unique key: {rows}, the most {max(rows) / (args.rows / 4) - 1:+.1%} of the mean.")
    print("\n| | look-up p50 ms | p99 ms | " + " | ".join(f"query {n + 1} ms" for n in range(len(QUERIES))) + " | INSERT of a row ms |")
    print("|---|---:|---:|" + "---:|" * (len(QUERIES) + 1))
    for name, times in results["look_ups"].items():
        queries = results["queries"].get(name, [])
        cells = [f"{ms:.1f}" for ms in queries] or [""] * len(QUERIES)
        insert = results["insert_ms"].get(name)
        print(f"| {name} | {times['p50_ms']:.2f} | {times['p99_ms']:.2f} | " + " | ".join(cells) + f" | {'' if insert is None else f'{insert:.1f}'} |")


if __name__ == "__main__":
    main()
