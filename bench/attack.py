#!/usr/bin/env python3
"""Attacks on `coload serve` with its defaults and --memory 256MiB, beside a client that behaves well.

Each attack is a line of docs/threats.md. It runs for some seconds; meanwhile a user with a connection of his own asks for
`SELECT count(*)` again and again. Printed and kept as a JSON line: his p50 and p99, the most memory that the server had, and
whether it is alive. Exit status 1 when one of these is over its bound. All connections are on loopback.
"""

import argparse
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pyarrow as pa
from pyarrow import flight

from attack_lines import ATTACKS, Client, Told
from machine import describe

ROWS = 200_000
P99_MAX = 1.0
PEAK_SHARE_MAX = 1.5
THREATS = Path(__file__).parent.parent / "docs" / "threats.md"


class Server:
    """A server with users `ada`, who may do everything, `eve`, who may read, and `lou`, who may load."""

    def __init__(self, binary, folder, memory, seconds):
        self.binary, self.folder, self.seconds = binary, Path(folder), seconds
        table = self.folder / "t.csv"
        table.write_text("id,name\n" + "".join(f"{i},name {i % 1000}\n" for i in range(ROWS)))
        subprocess.run([binary, "load", table, "--into", self.folder / "store", "--table", "t"], check=True, stdout=subprocess.DEVNULL)
        lines = []
        for user, rights in [("ada", "admin:*"), ("eve", "read:*"), ("lou", "load:stage_*")]:
            hashed = subprocess.run([binary, "hash-password"], input=user, capture_output=True, text=True, check=True)
            lines.append(f"{user} {hashed.stdout.strip()} {rights}\n")
        users = self.folder / "users"
        users.write_text("".join(lines))
        self.log = open(self.folder / "log", "wb")
        self.process = subprocess.Popen(
            [binary, "serve", "--store", self.folder / "store", "--users", users, "--memory", memory, "--listen",
             "127.0.0.1:0", "--metrics", "127.0.0.1:0", "--log-level", "error"],
            stdout=subprocess.PIPE, stderr=self.log, text=True)
        self.address = self.process.stdout.readline().strip().rsplit("//", 1)[1]
        self.metrics = re.search(r"//([^/]*)/", self.process.stdout.readline())[1]

    def connect(self, address=None):
        host, port = (address or self.address).rsplit(":", 1)
        return socket.create_connection((host, int(port)), timeout=5)

    def is_alive(self):
        return self.process.poll() is None

    def forget_peak(self):
        Path(f"/proc/{self.process.pid}/clear_refs").write_text("5")

    def peak_bytes(self):
        if not self.is_alive():
            return 0
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmHWM:\s*(\d+)", status)[1]) << 10

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(40)
        except subprocess.TimeoutExpired:
            self.process.kill()


def behave(client, ended, times, failures):
    """Asks for the count again and again."""
    while not ended.is_set():
        began = time.monotonic()
        try:
            count = client.query("SELECT count(*) FROM t").column(0)[0].as_py()
            if count != ROWS:
                failures.append(f"{count} rows")
        except (flight.FlightError, pa.ArrowException) as error:
            failures.append(str(error)[:200])
        times.append(time.monotonic() - began)
        time.sleep(0.005)


def run_attack(server, name, seconds, client):
    ended, told, times, failures = threading.Event(), Told(), [], []
    server.forget_peak()
    threads = [threading.Thread(target=behave, args=(client, ended, times, failures), daemon=True),
               threading.Thread(target=ATTACKS[name], args=(server, told, ended), daemon=True)]
    for thread in threads:
        thread.start()
    time.sleep(seconds)
    peak = server.peak_bytes()
    ended.set()
    threads[0].join(30)
    threads[1].join(30)
    time.sleep(seconds)
    times.sort()
    at = lambda share: times[min(len(times) - 1, int(len(times) * share))] if times else float("inf")
    return {"attack": name, "p50_ms": round(at(0.5) * 1e3, 1), "p99_ms": round(at(0.99) * 1e3, 1), "calls": len(times),
            "failed": len(failures), "first_failure": failures[0] if failures else None,
            "peak_bytes": max(peak, server.peak_bytes()), "alive": server.is_alive(), "told": told.counts, "said": told.said}


def check_page():
    """Refuses to run when the page names an attack that is not there, or misses one."""
    lists = re.findall(r"attack ((?:`[^`]+`(?:, )?)+)", THREATS.read_text())
    named = {name for names in lists for name in re.findall(r"`([^`]+)`", names)}
    if named != set(ATTACKS):
        sys.exit(f"docs/threats.md and the attacks differ: {sorted(named ^ set(ATTACKS))}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--coload", required=True, help="the binary")
    parser.add_argument("--seconds", type=float, default=10, help="of each attack")
    parser.add_argument("--memory", default="256MiB")
    parser.add_argument("--only", default="", help="words that the names of attacks hold, with commas between them")
    parser.add_argument("--verbose", action="store_true", help="show what attackers were told first")
    arguments = parser.parse_args()
    check_page()
    budget = int(re.match(r"\d+", arguments.memory)[0]) << (30 if "GiB" in arguments.memory else 20)
    words = [word for word in arguments.only.split(",") if word]
    names = [name for name in ATTACKS if not words or any(word in name for word in words)]
    results = []
    with tempfile.TemporaryDirectory() as folder:
        server = Server(arguments.coload, folder, arguments.memory, arguments.seconds)
        try:
            client = Client(server, "ada")
            print("| attack | p50 ms | p99 ms | calls | failed | peak MiB | alive | what attackers were told |\n|---|---|---|---|---|---|---|---|")
            for name in names:
                result = run_attack(server, name, arguments.seconds, client)
                results.append(result)
                print(f"| {name} | {result['p50_ms']} | {result['p99_ms']} | {result['calls']} | {result['failed']} | "
                      f"{result['peak_bytes'] >> 20} | {result['alive']} | {result['told']} |", flush=True)
                if arguments.verbose:
                    print("".join(f"  {key}: {text}\n" for key, text in result["said"].items() if text), end="", flush=True)
                if result["first_failure"]:
                    print(f"  {result['first_failure']}", file=sys.stderr)
                if not server.is_alive():
                    break
        finally:
            server.stop()
            log = (Path(folder) / "log").read_text(errors="replace")
            if log:
                print(log[-2000:], file=sys.stderr)
    bad = [r["attack"] for r in results if not r["alive"] or r["failed"] or r["p99_ms"] > P99_MAX * 1e3
           or r["peak_bytes"] > PEAK_SHARE_MAX * budget]
    line = {**describe(), "memory_bytes": budget, "seconds": arguments.seconds, "attacks": results, "over_their_bounds": bad}
    target = Path(__file__).parent / "results" / "attack.jsonl"
    target.parent.mkdir(exist_ok=True)
    with open(target, "a") as out:
        out.write(json.dumps(line) + "\n")
    print(f"\n{len(results) - len(bad)} of {len(names)} within their bounds" + (f"; not: {', '.join(bad)}" if bad else ""))
    # Threads that still wait for an answer do not hold the end up.
    sys.stdout.flush()
    os._exit(1 if bad or len(results) < len(names) else 0)


main()
