"""`bench/run ingest`: an Arrow table in a client's memory into a table of a server, by ADBC's bulk ingest. See run().

Beside it what else brings such rows into a database: DuckDB's INSERT from the same Arrow table in its own process, and
`coload load` of the same rows as text into the same server.
"""

import itertools
import statistics
import subprocess

import machine
from rivals.rival import Clock, checked_sum, read_schema

INGEST, LOAD, DUCKDB = "adbc_ingest into coload", "coload load into coload", "DuckDB, INSERT from Arrow"
# Rows of a message: a message is at most 64 MiB, and drivers send batches as they are.
BATCH_ROWS = 1 << 16

# What an ingest must reach, rows a second, on two cores.
RATE_MIN = 2.5e6

NOTES = """
What is unfair:
- The driver and the server share the threads; DuckDB reads the table in place, in its own process. CPU of coload is that of
  client and server together.
- coload has fsynced when its clock stops, and DuckDB after CHECKPOINT, which is in its time; it keeps no order of the rows.
- The clock of `coload load` covers its process, and it parses text.
"""


def run(lab, args):
    """Each contender takes the first rows of the table, in turns, into a table that is not there."""
    file = lab.make_data(args, args.data)
    table = read_schema(file.with_suffix(".sql"))
    head = first_rows(file, args.scratch / f"{table.name}.tbl", args.rows)
    head.with_suffix(".sql").write_text(schema_of(table))
    rows = arrow_of(head, table)
    contenders = lab.selected(args, [(INGEST, None), (LOAD, None), (DUCKDB, None)])
    runs = {name: [] for name, _ in contenders}
    server = Server(lab, args)
    try:
        for number in range(args.rounds):
            lab.prepare(args, head)
            for name in runs:
                lab.progress(f"round {number + 1} of {args.rounds}: {name}")
                runs[name].append(once(lab, args, name, server, (head, table, rows)))
                lab.os.sync()
    finally:
        server.stop()
    lab.check_answers({name: [run.pop("check") for run in of] for name, of in runs.items()})
    print_table(args, rows, runs)
    rates = {name: [rows.num_rows / run["wall"] for run in of] for name, of in runs.items()}
    targets = [
        {"target": "rows/s of an ingest, best", "limit": f">= {RATE_MIN:g}", "ratio": max(of), "reached": max(of) >= RATE_MIN}
        for name, of in rates.items() if name == INGEST
    ]
    lab.print_target_lines(targets)
    print(NOTES)
    lab.save(args, "ingest", args.data, rows=rows.num_rows, runs=runs, targets=targets)


def first_rows(file, to, rows):
    with open(file, "rb") as source, open(to, "wb") as out:
        out.writelines(itertools.islice(source, rows))
    return to


def arrow_of(file, table):
    """The rows in memory, in the types of the table's schema."""
    import duckdb
    import pyarrow

    types = {column.name: column.type for column in table.columns} | {"after_last_delimiter": "VARCHAR"}
    read = f"SELECT {', '.join(table.names)} FROM read_csv('{file}', columns = {types}, delim = '|', quote = '', header = false, auto_detect = false)"
    whole = duckdb.sql(read).to_arrow_table().combine_chunks()
    return pyarrow.Table.from_batches(whole.to_batches(max_chunksize=BATCH_ROWS))


class Server:
    """A server with an empty store."""

    def __init__(self, lab, args):
        command = [args.coload, "serve", "--store", args.scratch / "store", "--threads", str(args.threads),
                   "--listen", "127.0.0.1:0", "--log-level", "error"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        told = self.process.stdout.readline().strip()
        if "//" not in told:
            lab.sys.exit(f"the server does not listen: {told}")
        self.address = told.rsplit("//", 1)[1]
        self.tables = 0

    def new_table(self):
        self.tables += 1
        return f"t{self.tables}"

    def stop(self):
        self.process.terminate()
        self.process.wait(60)


def once(lab, args, name, server, of):
    head, table, rows = of
    if name == DUCKDB:
        return insert_into_duckdb(lab, args, table, rows)
    import adbc_driver_flightsql.dbapi as flightsql

    target = server.new_table()
    with flightsql.connect(f"grpc://{server.address}", autocommit=True) as connection, connection.cursor() as cursor:
        serving = Clock(server.process.pid)
        if name == LOAD:
            command = [args.coload, "load", head, "--into", f"coload://{server.address}/{target}", "--schema", head.with_suffix(".sql"),
                       "--no-header", "--threads", str(args.threads)]
            measured = machine.run_measured(command)[1]
        else:
            own = Clock()
            cursor.adbc_ingest(target, rows, mode="create")
            measured = own.stop()
        measured["cpu"] += serving.stop()["cpu"]
        cursor.execute(f"SELECT {table.check_select} FROM {target}")
        count, total, values = cursor.fetchone()
        cursor.execute(f"DROP TABLE {target}")
    return {**measured, "check": (count, checked_sum(total), values)}


def insert_into_duckdb(lab, args, table, rows):
    import duckdb

    file = args.scratch / "duckdb"
    connection = duckdb.connect(str(file), config={"threads": args.threads, "preserve_insertion_order": False})
    connection.execute(schema_of(table))
    connection.register("arrow_rows", rows)
    clock = Clock()
    connection.execute(f"INSERT INTO {table.name} SELECT * FROM arrow_rows")
    connection.execute("CHECKPOINT")
    measured = clock.stop()
    count, total, values = connection.execute(f"SELECT {table.check_select} FROM {table.name}").fetchone()
    connection.close()
    lab.remove(file)
    return {**measured, "check": (count, checked_sum(total), values)}


def schema_of(table):
    columns = [f"{column.name} {column.type}{'' if column.nullable else ' NOT NULL'}" for column in table.columns]
    return f"CREATE TABLE {table.name} (\n    {(',' + chr(10) + '    ').join(columns)}\n);\n"


def print_table(args, rows, runs):
    """Rates, and what the medians are of an ingest's."""
    count = rows.num_rows
    middle = {name: statistics.median(run["wall"] for run in of) for name, of in runs.items()}
    print(f"\n{args.data}, {count} rows, {rows.nbytes / 1e6:.0f} MB in Arrow, {args.threads} threads, {args.rounds} rounds\n")
    print("| | M rows/s, best | median | CPU s, median | rate, ingest / this, medians |\n|---|---:|---:|---:|---:|")
    for name, of in runs.items():
        best = min(run["wall"] for run in of)
        cpu = statistics.median(run["cpu"] for run in of)
        ratio = f"{middle[name] / middle[INGEST]:.2f}" if INGEST in middle else ""
        print(f"| {name} | {count / best / 1e6:.2f} | {count / middle[name] / 1e6:.2f} | {cpu:.2f} | {ratio} |")
