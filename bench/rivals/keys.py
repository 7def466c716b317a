"""Engines with keys: a load of lineitem with its PRIMARY KEY, look-ups, upserts of 1 % of the rows, a DELETE of 1 %.

Run as `keys.py ENGINE FILE SCHEMA TARGET --keys KEYS --upserts FILE --threads N`. KEYS has a key a line (`order|line`), the file of upserts rows as
FILE has them. Prints one line of JSON: {"load_s", "cpu_s", "peak_bytes", "each_us", "many_per_s", "upsert_s", "delete_s", "rows", "sum"}.
"""

import argparse
import json
import sqlite3
import statistics
import struct
import time
from decimal import Decimal

import rival

KEY = ["l_orderkey", "l_linenumber"]
# 1 % of the orders.
DELETED = "l_orderkey % 100 = 7"
SUM = "l_extendedprice"
BATCH_KEYS = 1000
TRAILING = "after_last_delimiter"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("engine", choices=ENGINES)
    parser.add_argument("file")
    parser.add_argument("schema")
    parser.add_argument("target")
    parser.add_argument("--keys", required=True)
    parser.add_argument("--upserts", required=True)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    args.table = rival.read_schema(args.schema)
    with open(args.keys) as file:
        keys = [tuple(map(int, line.split("|"))) for line in file]
    engine = ENGINES[args.engine](args)
    clock = rival.Clock()
    engine.load(args.file)
    loaded = clock.stop()
    # Caches are warm, as those of the others are.
    for key in keys[:100]:
        engine.get(key)
    each = [timed(lambda key=key: engine.get(key)) for key in keys]
    batches = [keys[first : first + BATCH_KEYS] for first in range(0, len(keys), BATCH_KEYS)]
    many = sum(timed(lambda batch=batch: engine.get_many(batch)) for batch in batches)
    upsert = timed(lambda: engine.upsert(args.upserts))
    delete = timed(engine.delete)
    rows, total = engine.check()
    print(json.dumps({
        "load_s": loaded["wall"], "cpu_s": loaded["cpu"], "peak_bytes": loaded["peak_bytes"],
        "each_us": statistics.median(each) * 1e6, "many_per_s": len(keys) / many,
        "upsert_s": upsert, "delete_s": delete, "rows": int(rows), "sum": rival.checked_sum(total),
    }))


def timed(work):
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def columns_sql(table, of=lambda column: column.type):
    return ", ".join(f"{column.name} {of(column)} NOT NULL" for column in table.columns)


class DuckDB:
    def __init__(self, args):
        import duckdb

        self.args, self.table = args, args.table
        self.connection = duckdb.connect(args.target, config={"threads": args.threads, "preserve_insertion_order": False})
        self.connection.execute(f"CREATE TABLE lineitem ({columns_sql(self.table)}, PRIMARY KEY ({', '.join(KEY)}))")

    def _rows(self, file):
        types = {column.name: column.type for column in self.table.columns} | {TRAILING: "VARCHAR"}
        return (
            f"SELECT {', '.join(self.table.names)} FROM read_csv('{file}', columns = {types}, delim = '|', quote = '', "
            f"escape = '', header = false, auto_detect = false)"
        )

    def load(self, file):
        self.connection.execute(f"INSERT INTO lineitem {self._rows(file)}")
        self.connection.execute("CHECKPOINT")

    def get(self, key):
        return self.connection.execute("SELECT * FROM lineitem WHERE l_orderkey = ? AND l_linenumber = ?", key).fetchone()

    def get_many(self, keys):
        values = ", ".join(f"({order}, {line})" for order, line in keys)
        query = f"SELECT l.* FROM lineitem l JOIN (VALUES {values}) k(o, n) ON l.l_orderkey = k.o AND l.l_linenumber = k.n"
        return self.connection.execute(query).fetchall()

    def upsert(self, file):
        self.connection.execute(f"INSERT OR REPLACE INTO lineitem {self._rows(file)}")
        self.connection.execute("CHECKPOINT")

    def delete(self):
        self.connection.execute(f"DELETE FROM lineitem WHERE {DELETED}")
        self.connection.execute("CHECKPOINT")

    def check(self):
        return self.connection.execute(f"SELECT count(*), sum({SUM}) FROM lineitem").fetchone()


class SQLite:
    def __init__(self, args):
        self.table = args.table
        self.connection = sqlite3.connect(args.target, isolation_level=None)
        self.connection.execute("PRAGMA journal_mode = WAL")
        # Decimals are counted in hundredths, as SQLite has none.
        of = lambda column: "INTEGER" if column.base in ("BIGINT", "INTEGER", "DECIMAL") else "TEXT"
        self.connection.execute(f"CREATE TABLE lineitem ({columns_sql(self.table, of)}, PRIMARY KEY ({', '.join(KEY)})) WITHOUT ROWID")

    def _insert(self, file, how):
        holders = ", ".join("?" * len(self.table.columns))
        kinds = [column.base for column in self.table.columns]
        with open(file) as lines:
            rows = ([cents(v) if k == "DECIMAL" else v for k, v in zip(kinds, line.split("|"))] for line in lines)
            self.connection.execute("BEGIN")
            self.connection.executemany(f"INSERT {how} INTO lineitem VALUES ({holders})", rows)
            self.connection.execute("COMMIT")

    def load(self, file):
        self._insert(file, "")

    def get(self, key):
        return self.connection.execute("SELECT * FROM lineitem WHERE l_orderkey = ? AND l_linenumber = ?", key).fetchone()

    def get_many(self, keys):
        return [self.get(key) for key in keys]

    def upsert(self, file):
        self._insert(file, "OR REPLACE")

    def delete(self):
        self.connection.execute(f"DELETE FROM lineitem WHERE {DELETED}")

    def check(self):
        rows, total = self.connection.execute(f"SELECT count(*), sum({SUM}) FROM lineitem").fetchone()
        return rows, Decimal(total) / 100


def cents(text):
    return int(Decimal(text) * 100)


class RocksDB:
    """Keys are big-endian, so that they are ordered as numbers; values are the lines. A load makes an SST file and ingests it."""

    def __init__(self, args):
        import rocksdict

        self.rocksdict, self.target = rocksdict, args.target
        self.options = rocksdict.Options(raw_mode=True)
        self.options.increase_parallelism(args.threads)
        self.database = rocksdict.Rdict(args.target, self.options)
        self.price = args.table.names.index(SUM)

    @staticmethod
    def _key(order, line):
        return struct.pack(">QI", order, line)

    def _lines(self, file):
        with open(file, "rb") as lines:
            for line in lines:
                fields = line.split(b"|", 4)
                yield self._key(int(fields[0]), int(fields[3])), line

    def load(self, file):
        path = f"{self.target}.sst"
        writer = self.rocksdict.SstFileWriter(self.options)
        writer.open(path)
        for key, line in sorted(self._lines(file)):
            writer[key] = line
        writer.finish()
        self.database.ingest_external_file([path])

    def get(self, key):
        return self.database[self._key(*key)].split(b"|")

    def get_many(self, keys):
        return [value.split(b"|") for value in self.database[[self._key(*key) for key in keys]]]

    def upsert(self, file):
        batch = self.rocksdict.WriteBatch(raw_mode=True)
        for key, line in self._lines(file):
            batch[key] = line
        self.database.write(batch)
        self.database.flush_wal(True)

    def delete(self):
        batch = self.rocksdict.WriteBatch(raw_mode=True)
        for key in self.database.keys():
            if struct.unpack(">QI", key)[0] % 100 == 7:
                batch.delete(key)
        self.database.write(batch)
        self.database.flush_wal(True)

    def check(self):
        rows, total = 0, Decimal(0)
        for value in self.database.values():
            rows, total = rows + 1, total + Decimal(value.split(b"|")[self.price].decode())
        return rows, total


class ClickHouse:
    """ReplacingMergeTree: of rows with one key the last stays, once parts are merged; reads say FINAL."""

    def __init__(self, args):
        from chdb.session import Session

        import load_chdb_types

        self.args, self.table = args, args.table
        self.columns = ", ".join(f"{c.name} {load_chdb_types.plain(c)}" for c in self.table.columns)
        self.session = Session(args.target)
        self.session.query("CREATE DATABASE lab ENGINE = Atomic")
        self.session.query(f"CREATE TABLE lab.lineitem ({self.columns}) ENGINE = ReplacingMergeTree ORDER BY ({', '.join(KEY)})")

    def load(self, file):
        self.session.query(
            f"INSERT INTO lab.lineitem SELECT {', '.join(self.table.names)} FROM file('{file}', CSV, '{self.columns}, "
            f"{TRAILING} String') SETTINGS format_csv_delimiter = '|', format_csv_allow_single_quotes = 0, "
            f"format_csv_allow_double_quotes = 0, max_threads = {self.args.threads}, max_insert_threads = {self.args.threads}"
        )

    def get(self, key):
        query = f"SELECT * FROM lab.lineitem FINAL WHERE l_orderkey = {key[0]} AND l_linenumber = {key[1]}"
        return str(self.session.query(query, "TSV"))

    def get_many(self, keys):
        values = ", ".join(f"({order}, {line})" for order, line in keys)
        return str(self.session.query(f"SELECT * FROM lab.lineitem FINAL WHERE (l_orderkey, l_linenumber) IN ({values})", "TSV"))

    def upsert(self, file):
        self.load(file)

    def delete(self):
        self.session.query(f"DELETE FROM lab.lineitem WHERE {DELETED}")

    def check(self):
        return str(self.session.query(f"SELECT count(*), sum({SUM}) FROM lab.lineitem FINAL", "TSV")).split()


class PostgreSQL:
    """A cluster of its own; COPY, then the key is added. Look-ups go through one connection of psql, prepared."""

    def __init__(self, args):
        import postgres

        self.table = args.table
        self.server = postgres.Server(args.target)
        self.server.run(f"CREATE TABLE lineitem ({columns_sql(self.table)}, {TRAILING} TEXT)")

    def load(self, file):
        self.server.run(f"\\copy lineitem from '{file}' with (delimiter '|')")
        self.server.run(f"ALTER TABLE lineitem ADD PRIMARY KEY ({', '.join(KEY)})")
        self.server.run("PREPARE get(bigint, int) AS SELECT * FROM lineitem WHERE l_orderkey = $1 AND l_linenumber = $2")

    def get(self, key):
        return self.server.run(f"EXECUTE get({key[0]}, {key[1]})")

    def get_many(self, keys):
        values = ", ".join(f"({order}, {line})" for order, line in keys)
        return self.server.run(f"SELECT l.* FROM lineitem l JOIN (VALUES {values}) k(o, n) ON l.l_orderkey = k.o AND l.l_linenumber = k.n")

    def upsert(self, file):
        self.server.run("CREATE TEMP TABLE new (LIKE lineitem)")
        self.server.run(f"\\copy new from '{file}' with (delimiter '|')")
        others = ", ".join(f"{name} = excluded.{name}" for name in self.table.names if name not in KEY)
        self.server.run(f"INSERT INTO lineitem SELECT * FROM new ON CONFLICT ({', '.join(KEY)}) DO UPDATE SET {others}")

    def delete(self):
        self.server.run(f"DELETE FROM lineitem WHERE {DELETED}")

    def check(self):
        answer = self.server.run(f"SELECT count(*), sum({SUM}) FROM lineitem")
        self.server.stop()
        return answer.strip().split("|")


ENGINES = {"duckdb": DuckDB, "sqlite": SQLite, "rocksdb": RocksDB, "clickhouse": ClickHouse, "postgres": PostgreSQL}

if __name__ == "__main__":
    main()
