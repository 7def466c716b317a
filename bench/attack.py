#!/usr/bin/env python3
"""Attacks on `coload serve` with its defaults and --memory 256MiB, beside a client that behaves well.

Each attack is a line of docs/threats.md. It runs for some seconds; meanwhile a user with a connection of his own asks for
`SELECT count(*)` again and again. Printed and kept as a JSON line: his p50 and p99, the most memory that the server had, and
whether it is alive. Exit status 1 when one of these is over its bound. All connections are on loopback.
"""

import argparse
import itertools
import json
import os
import random
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

from machine import describe

ROWS = 200_000
P99_MAX = 1.0
PEAK_SHARE_MAX = 1.5
PROTOCOL = "type.googleapis.com/arrow.flight.protocol.sql."
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
HEADERS, RESET, SETTINGS, PING, CONTINUATION = 1, 3, 4, 6, 9
SERIES = "generate_series(1, {})"


def varint(number):
    out = b""
    while number > 127:
        out, number = out + bytes([number & 127 | 128]), number >> 7
    return out + bytes([number])


def field(number, content):
    """A field of protobuf with bytes."""
    return bytes([number << 3 | 2]) + varint(len(content)) + content


def any_of(name, content):
    """A message of Flight SQL within an Any."""
    return field(1, (PROTOCOL + name).encode()) + field(2, content)


def statement(sql):
    return any_of("CommandStatementQuery", field(1, sql.encode()))


class Client:
    """A user of the server; every call says who it is."""

    def __init__(self, server, user, timeout=60):
        self.timeout = timeout
        self.flight = flight.connect(f"grpc://{server.address}", generic_options=[("grpc.max_receive_message_length", -1)])
        self.options = flight.FlightCallOptions(timeout=timeout)
        if user:
            self.log_in(user, user)

    def log_in(self, user, password):
        token = self.flight.authenticate_basic_token(user, password)
        self.options = flight.FlightCallOptions(headers=[token], timeout=self.timeout)

    def begin(self, sql):
        info = self.flight.get_flight_info(flight.FlightDescriptor.for_command(statement(sql)), self.options)
        return self.flight.do_get(info.endpoints[0].ticket, self.options)

    def query(self, sql):
        return self.begin(sql).read_all()

    def action(self, name, body):
        return [bytes(result.body) for result in self.flight.do_action(flight.Action(name, body), self.options)]

    def prepare(self, sql):
        body = any_of("ActionCreatePreparedStatementRequest", field(1, sql.encode()))
        answer = self.action("CreatePreparedStatement", body)[0]
        # Any { 1: type, 2: result { 1: handle } }
        return re.search(rb"Result\x12.\n\x10(.{16})|\n\x10(.{16})", answer, re.S)

    def put(self, command, table):
        descriptor = flight.FlightDescriptor.for_command(command)
        writer, reader = self.flight.do_put(descriptor, table.schema, self.options)
        return writer, reader


def ingest(table):
    # CommandStatementIngest { options { if_not_exist: create, if_exists: append }, table }
    return any_of("CommandStatementIngest", field(1, b"\x08\x01\x10\x02") + field(2, table.encode()))


class Server:
    """A server with users `ada`, who may do everything, `eve`, who may read, and `lou`, who may load."""

    def __init__(self, binary, folder, memory, seconds):
        self.folder, self.seconds = Path(folder), seconds
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


class Told:
    """How often something was said; safe between threads."""

    def __init__(self):
        self.counts, self.lock = {}, threading.Lock()

    def add(self, what):
        with self.lock:
            self.counts[what] = self.counts.get(what, 0) + 1


def attempt(told, work):
    """Runs something that the server may refuse."""
    try:
        work()
        told.add("done")
    except (flight.FlightError, pa.ArrowException, OSError) as error:
        text = str(error)
        flag = re.search(r"--[a-z-]+", text)
        told.add(flag[0] if flag else type(error).__name__)


def at_once(server, told, ended, count, work, user="eve"):
    """Has several clients do something until the time is over."""
    def run(number):
        try:
            # What still runs when the attack is over must not count for the next one.
            client = Client(server, user, timeout=server.seconds)
        except (flight.FlightError, pa.ArrowException) as error:
            told.add(f"no login: {type(error).__name__}")
            return
        while not ended.is_set():
            attempt(told, lambda: work(client, number))

    threads = [threading.Thread(target=run, args=(number,), daemon=True) for number in range(count)]
    for thread in threads:
        thread.start()
    ended.wait()
    for thread in threads:
        thread.join(0.2)


def sockets(server, told, ended, count, talk, address=None):
    """Opens sockets, as many as the server takes, and talks on each."""
    held = []
    while not ended.is_set():
        if len(held) < count:
            try:
                held.append(server.connect(address))
                told.add("opened")
            except OSError:
                told.add("not opened")
        else:
            ended.wait(0.05)
        for one in list(held[-20:] if talk is idle else held):
            try:
                talk(one)
            except OSError:
                told.add("closed by the server")
                held.remove(one)
    for one in held:
        one.close()


def idle(_):
    pass


def slow_preface(one):
    one.setblocking(False)
    try:
        one.send(b"P")
    except BlockingIOError:
        pass


def frame(kind, flags, stream, payload=b""):
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


def flood(make):
    """A connection on which frames are sent without end."""
    def talk(one):
        if not hasattr(flood, "begun"):
            flood.begun = {}
        if one.fileno() not in flood.begun:
            flood.begun[one.fileno()] = 1
            one.sendall(PREFACE + frame(SETTINGS, 0, 0))
            one.settimeout(0.2)
        number = flood.begun[one.fileno()]
        one.sendall(b"".join(make(number + 2 * i) for i in range(500)))
        flood.begun[one.fileno()] = number + 1000
    return talk


# :method POST, :scheme http, :path and :authority literal.
BLOCK = b"\x83\x86\x04\x2c/arrow.flight.protocol.FlightService/DoAction\x01\x01x"


def reset(number):
    return frame(HEADERS, 4, number, BLOCK) + frame(RESET, 0, number, bytes(4))


def unread(client, number):
    stream = client.begin("SELECT a.value FROM generate_series(1, 2000000) a, generate_series(1, 2000000) b")
    stream.read_chunk()
    time.sleep(3)
    stream.cancel()


def stranger_large(server, told, ended):
    def work():
        other = Client(server, None)
        other.query("x" * (8 << 20))
    while not ended.is_set():
        attempt(told, work)


def guess(server, told, ended):
    numbers = itertools.count()

    def work(client, _):
        client.log_in("ada", f"guess {next(numbers)}")
    at_once(server, told, ended, 50, work, user=None)


def prepared(client, number):
    client.prepare("SELECT " + "x" * 20_000 + " FROM t WHERE 1 = 0" if number % 2 else "SELECT count(*) FROM t WHERE id > ?")


def empty_ingest(client, number):
    table = pa.table({"id": pa.array([], pa.int64())})
    writer, _ = client.put(ingest(f"stage_{number}"), table)
    time.sleep(3)
    writer.close()


def large_ingest(client, number):
    table = pa.table({"s": ["x" * 1000 + str(i) for i in range(10_000)]})
    writer, reader = client.put(ingest(f"stage_{number % 4}"), table)
    for _ in range(10):
        writer.write_table(table)
    writer.done_writing()
    reader.read()
    writer.close()


def tickets(client, number):
    noise = random.randbytes(random.randrange(64))
    kinds = ["TicketStatementQuery", "CommandPreparedStatementQuery", "CommandGetTables", "CommandStatementUpdate"]
    body = any_of(random.choice(kinds), random.choice([noise, field(1, noise), field(1, b"\0" + noise + b"SELECT 1")]))
    list(client.flight.do_get(flight.Ticket(body), client.options))


def sqls(count, *texts):
    """Several readers who run statements."""
    def run(server, told, ended):
        at_once(server, told, ended, count, lambda client, number: client.query(texts[number % len(texts)]))
    return run


def writes_a_file(server, told, ended):
    target = server.folder / "written"

    def work(client, number):
        forms = ["COPY (SELECT 1) TO '{}' STORED AS CSV", "EXPLAIN ANALYZE COPY (SELECT 1) TO '{}' STORED AS CSV",
                 "CREATE EXTERNAL TABLE x (a INT) STORED AS CSV LOCATION '{}'", "COPY t TO '{}' (FORMAT csv)"]
        client.query(forms[number % len(forms)].format(target))
    at_once(server, told, ended, 4, work)
    if target.exists():
        told.add("WROTE A FILE")


SELF_JOIN = f"SELECT count(*) FROM {SERIES.format(6_000_000)} a JOIN {SERIES.format(6_000_000)} b ON a.value = b.value"
ATTACKS = {
    # Without credentials.
    "idle connections": lambda s, t, e: sockets(s, t, e, 400, idle),
    "half a preface, byte by byte": lambda s, t, e: sockets(s, t, e, 200, slow_preface),
    "garbage": lambda s, t, e: sockets(s, t, e, 50, lambda one: one.sendall(random.randbytes(4096))),
    "streams opened and reset": lambda s, t, e: sockets(s, t, e, 4, flood(reset)),
    "pings": lambda s, t, e: sockets(s, t, e, 4, flood(lambda n: frame(PING, 0, 0, bytes(8)))),
    "settings": lambda s, t, e: sockets(s, t, e, 4, flood(lambda n: frame(SETTINGS, 0, 0))),
    "headers without end": lambda s, t, e: sockets(
        s, t, e, 4, flood(lambda n: frame(HEADERS, 0, 1, b"\x82") if n == 1 else frame(CONTINUATION, 0, 1, b"\0\1x\1x" * 99))),
    "large calls of strangers": stranger_large,
    "guessing passwords": guess,
    "page of metrics": lambda s, t, e: sockets(s, t, e, 200, idle, s.metrics),
    # Who may read.
    "rows that nobody reads": lambda s, t, e: at_once(s, t, e, 64, unread),
    "statements without end": sqls(32, "SELECT count(*) FROM generate_series(1, 2000000) a, generate_series(1, 2000000) b WHERE (a.value * b.value) % 7 = 3"),
    "results of functions": sqls(8, "SELECT length(repeat('x', 2000000000))", "SELECT lpad('x', 2000000000)",
                                 "SELECT repeat(cast(value AS VARCHAR), 1000000) FROM generate_series(1, 100000)",
                                 "SELECT replace(repeat('a', 1000000), 'a', repeat('b', 1000000))"),
    "large texts in many rows": sqls(4, f"SELECT '{'x' * 500_000}' FROM generate_series(1, 100000)",
                                     f"SELECT '{'x' * 500_000}' || value FROM generate_series(1, 100000)"),
    "groups and lists": sqls(4, "SELECT array_agg(value) FROM generate_series(1, 100000000)",
                             "SELECT string_agg(cast(value AS VARCHAR), ',') FROM generate_series(1, 100000000)",
                             "SELECT value, count(*) FROM generate_series(1, 20000000) GROUP BY value ORDER BY 1 LIMIT 1",
                             "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r, generate_series(1, 10)) SELECT count(*) FROM r"),
    "sorts and joins": sqls(4, "SELECT max(r) FROM (SELECT row_number() OVER (ORDER BY -value) AS r FROM generate_series(1, 20000000))", SELF_JOIN),
    "long statements": sqls(4, "SELECT " + "1+" * 20_000 + "1", "SELECT 1 WHERE 1=1" + " AND 1=1" * 20_000,
                            "SELECT " + "(" * 5_000 + "1" + ")" * 5_000, "SELECT 1" + "::INT" * 20_000),
    "prepared statements": lambda s, t, e: at_once(s, t, e, 8, prepared),
    "tokens": lambda s, t, e: at_once(s, t, e, 4, lambda c, n: c.log_in("eve", "eve")),
    "tickets that nobody gave out": lambda s, t, e: at_once(s, t, e, 8, tickets),
    "files of the server": writes_a_file,
    # Who may load.
    "ingests without rows": lambda s, t, e: at_once(s, t, e, 64, empty_ingest, "lou"),
    "ingests of large texts": lambda s, t, e: at_once(s, t, e, 4, large_ingest, "lou"),
}


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
            "peak_bytes": max(peak, server.peak_bytes()), "alive": server.is_alive(), "told": told.counts}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--coload", required=True, help="the binary")
    parser.add_argument("--seconds", type=float, default=10, help="of each attack")
    parser.add_argument("--memory", default="256MiB")
    parser.add_argument("--only", default="", help="words that the names of attacks hold, with commas between them")
    arguments = parser.parse_args()
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
