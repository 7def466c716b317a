"""Queries beside a load, by Flight SQL: batches of ten at once, Q1 and Q2 in turn (seed 000, section 5.1).

`query_load.py ADDRESS TABLE`: runs until its standard input is closed, then prints one line of JSON:

    {"q1": [[start, seconds], ...], "q2": ...}     start by the clock CLOCK_MONOTONIC

The clock of a query runs from asking for it until its last row is there.
"""

import json
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from pyarrow import flight

AT_ONCE = 10
QUERIES = {
    "q1": "select sum(l_extendedprice) from {table}",
    "q2": "select count(*) from {table} where l_shipdate between date '1994-01-01' and date '1995-01-01'",
}
TYPE = b"type.googleapis.com/arrow.flight.protocol.sql.CommandStatementQuery"


def field(number, content):
    """A field of bytes of a protocol buffer."""
    length, size = b"", len(content)
    while size > 127:
        length, size = length + bytes([size & 127 | 128]), size >> 7
    return bytes([number << 3 | 2]) + length + bytes([size]) + content


def command(sql):
    """Flight SQL's CommandStatementQuery within an Any."""
    return field(1, TYPE) + field(2, field(1, sql.encode()))


def run(client, sql):
    start = time.monotonic()
    info = client.get_flight_info(flight.FlightDescriptor.for_command(command(sql)))
    rows = sum(client.do_get(endpoint.ticket).read_all().num_rows for endpoint in info.endpoints)
    if rows != 1:
        sys.exit(f"{sql}: {rows} rows")
    return start, time.monotonic() - start


def main():
    address, table = sys.argv[1:]
    clients = [flight.connect(f"grpc://{address}") for _ in range(AT_ONCE)]
    done = {name: [] for name in QUERIES}
    ended = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for name, sql in QUERIES.items():
            list(pool.map(lambda client: run(client, sql.format(table=table)), clients))
        print("ready", flush=True)
        while not ended.is_set():
            for name, sql in QUERIES.items():
                done[name] += pool.map(lambda client: run(client, sql.format(table=table)), clients)
    print(json.dumps(done))


main()
