"""The attacks of attack.py: each is a line of docs/threats.md.

An attack is a function of the server, of what counts the answers, and of an event that is set when its time is over.
"""

import itertools
import os
import random
import re
import subprocess
import threading
import time

import pyarrow as pa
from pyarrow import flight

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


class Told:
    """How often something was said; safe between threads."""

    def __init__(self):
        self.counts, self.said, self.lock = {}, {}, threading.Lock()

    def add(self, what, said=""):
        with self.lock:
            self.counts[what] = self.counts.get(what, 0) + 1
            self.said.setdefault(what, said)


def attempt(told, work):
    """Runs something that the server may refuse."""
    try:
        work()
        told.add("done")
    except (flight.FlightError, pa.ArrowException, OSError) as error:
        text = str(error)
        flag = re.search(r"--[a-z-]+", text)
        told.add(flag[0] if flag else type(error).__name__, text[:300])


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


def slow_hello(one):
    """The first bytes of a TLS handshake of 16 KiB, again and again."""
    one.setblocking(False)
    try:
        one.send(b"\x16\x03\x01\x3f\xff\x01\x00\x3f\xfb\x03\x03")
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


def never_ended(number):
    """The head of a call, and never its body."""
    return frame(HEADERS, 4, number, BLOCK)


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


def guess_in_calls(server, told, ended):
    numbers = itertools.count()

    def work(client, _):
        header = (b"authorization", f"Bearer ada.guess{next(numbers)}".encode())
        client.options = flight.FlightCallOptions(headers=[header], timeout=server.seconds)
        client.query("SELECT 1")
    at_once(server, told, ended, 50, work, user=None)


def prepared(client, number):
    text = "SELECT '" + "x" * 20_000 + "' FROM t WHERE 1 = 0"
    client.prepare(text if number % 2 else "SELECT count(*) FROM t WHERE id > ?")


def parameters(client, number):
    """Binds long values to prepared statements that are never run."""
    handle = client.prepare("SELECT ? || 'x'")
    handle = handle[1] or handle[2]
    values = pa.table({"1": ["x" * (15 << 20)]})
    writer, reader = client.put(any_of("CommandPreparedStatementQuery", field(1, handle)), values)
    writer.write_table(values)
    writer.done_writing()
    reader.read()
    writer.close()


def plans(client, number):
    """Plans, and never fetches."""
    text = "SELECT '" + "x" * 200_000 + "' FROM t"
    client.flight.get_flight_info(flight.FlightDescriptor.for_command(statement(text)), client.options)


def catalogs(client, number):
    kinds = ["CommandGetTables", "CommandGetCatalogs", "CommandGetSqlInfo", "CommandGetXdbcTypeInfo", "CommandGetDbSchemas"]
    list(client.flight.do_get(flight.Ticket(any_of(kinds[number % len(kinds)], b"")), client.options))


def empty_ingest(client, number):
    table = pa.table({"id": pa.array([], pa.int64())})
    writer, _ = client.put(ingest(f"stage_none_{number}"), table)
    time.sleep(3)
    writer.close()


def large_ingest(client, number):
    table = pa.table({"s": ["x" * 1000 + str(i) for i in range(10_000)]})
    writer, reader = client.put(ingest(f"stage_text_{number % 4}"), table)
    for _ in range(10):
        writer.write_table(table)
    writer.done_writing()
    reader.read()
    writer.close()


def send(client, table, name, batches=1):
    writer, reader = client.put(ingest(name), table)
    for _ in range(batches):
        writer.write_table(table)
    writer.done_writing()
    reader.read()
    writer.close()


def long_values(client, number):
    send(client, pa.table({"s": [chr(97 + number % 26) * (12 << 20)]}), f"stage_long_{number % 4}", 20)


def many_columns(client, number):
    send(client, pa.table({f"c{i}": list(range(100)) for i in range(2_000)}), f"stage_wide_{number % 4}", 20)


TABLES = itertools.count()


def many_tables(client, number):
    send(client, pa.table({"id": [1]}), f"stage_table_{next(TABLES)}")


def long_names(client, number):
    name = "stage_" + "x" * (1 << 20)
    send(client, pa.table({name: [1]}) if number % 2 else pa.table({"id": [1]}), "stage_name" if number % 2 else name)


def half_an_ingest(client, number):
    """An ingest that is cut off in the middle."""
    table = pa.table({"id": list(range(100_000))})
    writer, _ = client.put(ingest(f"stage_half_{number}"), table)
    for _ in range(5):
        writer.write_table(table)
    client.flight.close()
    raise OSError("cut off")


def loads(server, told, ended):
    """Loads of our own client, each into another table, some of them killed."""
    def run(number):
        for again in itertools.count():
            if ended.is_set():
                return
            table = f"stage_load_{number}_{again}"
            command = [server.binary, "load", server.folder / "t.csv", "--into", f"coload://lou@{server.address}/{table}"]
            load = subprocess.Popen(command, env={**os.environ, "COLOAD_PASSWORD": "lou"}, stdout=subprocess.DEVNULL,
                                    stderr=subprocess.DEVNULL)
            try:
                told.add("done" if load.wait(0.3 if again % 3 == 2 else server.seconds) == 0 else "failed")
            except subprocess.TimeoutExpired:
                load.kill()
                told.add("killed")

    threads = [threading.Thread(target=run, args=(number,), daemon=True) for number in range(4)]
    for thread in threads:
        thread.start()
    ended.wait()


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


def sums(count, of="generate_series(1, 1000000)"):
    """A statement with many columns."""
    return "SELECT " + ", ".join(f"value + {i}" for i in range(count)) + f" FROM {of}"


def doubled(times):
    """A text that is as long as two of itself, again and again."""
    steps = ", ".join(f"d{i} AS (SELECT s || s AS s FROM d{i - 1})" for i in range(1, times + 1))
    return f"WITH d0 AS (SELECT name || id AS s FROM t), {steps} SELECT max(length(s)) FROM d{times}"


SELF_JOIN = f"SELECT count(*) FROM {SERIES.format(6_000_000)} a JOIN {SERIES.format(6_000_000)} b ON a.value = b.value"
ENDLESS = "SELECT {} FROM generate_series(1, 1000000000000000000)"
OVER = "SELECT max(s) FROM (SELECT {} OVER ({}) AS s FROM generate_series(1, 20000000))"
ATTACKS = {
    # Without credentials.
    "idle connections": lambda s, t, e: sockets(s, t, e, 400, idle),
    "half a preface": lambda s, t, e: sockets(s, t, e, 200, slow_preface),
    "half a TLS hello": lambda s, t, e: sockets(s, t, e, 200, slow_hello),
    "garbage": lambda s, t, e: sockets(s, t, e, 50, lambda one: one.sendall(random.randbytes(4096))),
    "streams opened and reset": lambda s, t, e: sockets(s, t, e, 4, flood(reset)),
    "streams never ended": lambda s, t, e: sockets(s, t, e, 20, flood(never_ended)),
    "pings": lambda s, t, e: sockets(s, t, e, 4, flood(lambda n: frame(PING, 0, 0, bytes(8)))),
    "settings": lambda s, t, e: sockets(s, t, e, 4, flood(lambda n: frame(SETTINGS, 0, 0))),
    "headers without end": lambda s, t, e: sockets(
        s, t, e, 4, flood(lambda n: frame(HEADERS, 0, 1, b"\x82") if n == 1 else frame(CONTINUATION, 0, 1, b"\0\1x\1x" * 99))),
    "large calls of strangers": stranger_large,
    "page of metrics": lambda s, t, e: sockets(s, t, e, 200, idle, s.metrics),
    # Who may read.
    "rows that nobody reads": lambda s, t, e: at_once(s, t, e, 64, unread),
    "statements without end": sqls(
        32, "SELECT count(*) FROM generate_series(1, 2000000) a, generate_series(1, 2000000) b WHERE (a.value * b.value) % 7 = 3",
        ENDLESS.format("count(*)"), ENDLESS.format("max(value % 7)"),
        "SELECT count(*) FROM t a JOIN t b ON a.id % 5 = b.id % 5", "EXPLAIN ANALYZE " + ENDLESS.format("min(value)")),
    "small statements": sqls(64, "SELECT 1", "SELECT count(*) FROM t", "SELECT max(name) FROM t"),
    "results of functions": sqls(8, "SELECT length(repeat('x', 2000000000))", "SELECT lpad('x', 2000000000)",
                                 "SELECT repeat(cast(value AS VARCHAR), 1000000) FROM generate_series(1, 100000)",
                                 "SELECT replace(repeat('a', 1000000), 'a', repeat('b', 1000000))",
                                 "SELECT regexp_replace(repeat(name, 1000), '.', repeat('b', 1000), 'g') FROM t", doubled(24),
                                 "SELECT max(rpad(upper(repeat(name, 10000)), 100000)) FROM t",
                                 "SELECT concat(s, s, s, s, s, s, s, s) FROM (SELECT repeat(name, 100) AS s FROM t)"),
    "large texts in many rows": sqls(6, f"SELECT '{'x' * 500_000}' FROM generate_series(1, 100000)",
                                     f"SELECT '{'x' * 500_000}' || value FROM generate_series(1, 100000)",
                                     f"SELECT max(upper('{'x' * 500_000}' || value)) FROM generate_series(1, 100000)",
                                     "SELECT max(a.s || b.value) FROM (SELECT repeat(name, 20000) AS s FROM t LIMIT 1) a, generate_series(1, 100000) b",
                                     "SELECT max(s || id) FROM (SELECT string_agg(name, ',') AS s FROM t) a, t",
                                     "SELECT a.s, b.s FROM (SELECT repeat(name, 1000) AS s FROM t LIMIT 1000) a, (SELECT repeat(name, 1000) AS s FROM t LIMIT 1000) b"),
    "many columns": sqls(4, sums(1_000), sums(5_000), f"SELECT * FROM ({sums(400)}) ORDER BY 1 DESC", f"SELECT DISTINCT * FROM ({sums(200)})"),
    "groups and lists": sqls(8, "SELECT array_agg(value) FROM generate_series(1, 100000000)",
                             "SELECT string_agg(cast(value AS VARCHAR), ',') FROM generate_series(1, 100000000)",
                             "SELECT value, count(*) FROM generate_series(1, 20000000) GROUP BY value ORDER BY 1 LIMIT 1",
                             "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r, generate_series(1, 10)) SELECT count(*) FROM r",
                             "SELECT median(value) FROM generate_series(1, 100000000)",
                             "SELECT count(DISTINCT value) FROM generate_series(1, 100000000)",
                             "SELECT value % 1000000, array_agg(value) FROM generate_series(1, 20000000) GROUP BY 1",
                             "SELECT value FROM generate_series(1, 20000000) INTERSECT SELECT value FROM generate_series(1, 20000000)"),
    "sorts and joins": sqls(4, "SELECT max(r) FROM (SELECT row_number() OVER (ORDER BY -value) AS r FROM generate_series(1, 20000000))", SELF_JOIN),
    "windows": sqls(4, OVER.format("sum(value)", "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"),
                    OVER.format("max(value)", "ORDER BY value ROWS BETWEEN 1000000 PRECEDING AND 1000000 FOLLOWING"),
                    OVER.format("lag(value, 1000000)", "ORDER BY value"), OVER.format("count(*)", "PARTITION BY value % 3")),
    "long statements": sqls(8, "SELECT " + "1+" * 20_000 + "1", "SELECT 1 WHERE 1=1" + " AND 1=1" * 20_000,
                            "SELECT " + "(" * 5_000 + "1" + ")" * 5_000, "SELECT 1" + "::INT" * 20_000,
                            "SELECT count(*) FROM t WHERE id IN (" + ",".join(map(str, range(100_000))) + ")",
                            f'SELECT 1 AS "{"n" * (1 << 20)}"', "SELECT * FROM " + ", ".join(f"t t{i}" for i in range(100)) + " LIMIT 1",
                            " UNION ALL ".join(["SELECT id FROM t"] * 1_000)),
    "system tables": sqls(8, "SELECT count(*) FROM information_schema.columns a, information_schema.columns b, information_schema.columns c",
                          "SHOW TABLES", "SELECT * FROM information_schema.tables", "SHOW FUNCTIONS", "DESCRIBE t"),
    "catalogs": lambda s, t, e: at_once(s, t, e, 16, catalogs),
    "prepared statements": lambda s, t, e: at_once(s, t, e, 8, prepared),
    "parameters": lambda s, t, e: at_once(s, t, e, 8, parameters),
    "plans that wait": lambda s, t, e: at_once(s, t, e, 8, plans),
    "tokens": lambda s, t, e: at_once(s, t, e, 4, lambda c, n: c.log_in("eve", "eve")),
    "tickets that nobody gave out": lambda s, t, e: at_once(s, t, e, 8, tickets),
    "files of the server": writes_a_file,
    # Who may load.
    "ingests without rows": lambda s, t, e: at_once(s, t, e, 64, empty_ingest, "lou"),
    "ingests of large texts": lambda s, t, e: at_once(s, t, e, 4, large_ingest, "lou"),
    "ingests of long values": lambda s, t, e: at_once(s, t, e, 4, long_values, "lou"),
    "ingests of many columns": lambda s, t, e: at_once(s, t, e, 4, many_columns, "lou"),
    "many tables": lambda s, t, e: at_once(s, t, e, 4, many_tables, "lou"),
    "long names": lambda s, t, e: at_once(s, t, e, 2, long_names, "lou"),
    "half an ingest": lambda s, t, e: at_once(s, t, e, 4, half_an_ingest, "lou"),
    "loads": loads,
    # The last: a peer that has guessed waits for a minute, and all of these are one peer.
    "guessing passwords": guess,
    "guessing in calls": guess_in_calls,
}
