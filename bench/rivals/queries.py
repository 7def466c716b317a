"""Runs queries many times in one process and prints {"times": {name: median ms}, "answers": {name: rows}}.

`queries.py duckdb|hyper DATABASE --query NAME=SQL ... --repeat N --threads N`. The rows' cells are texts.
"""

import argparse
import json
import statistics
import time
from contextlib import contextmanager

# Calls before the clock counts.
WARM_UP = 5


@contextmanager
def open_duckdb(database, threads):
    import duckdb

    with duckdb.connect(database, read_only=True, config={"threads": threads}) as connection:
        yield lambda sql: connection.execute(sql).fetchall()


@contextmanager
def open_hyper(database, threads):
    from tableauhyperapi import Connection, HyperProcess, Telemetry

    parameters = {"log_config": "", "hard_concurrent_query_thread_limit": str(threads)}
    with (
        HyperProcess(Telemetry.DO_NOT_SEND_USAGE_DATA_TO_TABLEAU, parameters=parameters) as hyper,
        Connection(hyper.endpoint, database) as connection,
    ):
        yield connection.execute_list_query


def median_ms(run, sql, repeat):
    times = []
    for call in range(WARM_UP + repeat):
        start = time.perf_counter()
        run(sql)
        if call >= WARM_UP:
            times.append((time.perf_counter() - start) * 1000)
    return statistics.median(times)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("engine", choices=["duckdb", "hyper"])
    parser.add_argument("database")
    parser.add_argument("--query", action="append", default=[])
    parser.add_argument("--repeat", type=int, default=50)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    open_engine = {"duckdb": open_duckdb, "hyper": open_hyper}[args.engine]
    queries = dict(query.split("=", 1) for query in args.query)
    with open_engine(args.database, args.threads) as run:
        answers = {name: [[str(cell) for cell in row] for row in run(sql)] for name, sql in queries.items()}
        times = {name: median_ms(run, sql, args.repeat) for name, sql in queries.items()}
    print(json.dumps({"times": times, "answers": answers}))


main()
