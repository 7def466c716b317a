"""What a user of the ADBC driver does, against a server: adbc.py URI. Prints the count of what it has checked."""

import datetime
import decimal
import sys
import threading

import adbc_driver_flightsql.dbapi as flightsql
import adbc_driver_manager
import pyarrow as pa

URI = sys.argv[1]


def connect():
    return flightsql.connect(URI, autocommit=True)


def rows(connection, query, parameters=None):
    with connection.cursor() as cursor:
        cursor.execute(query, parameters)
        return cursor.fetchall()


def fails(action, *parts):
    try:
        action()
    except adbc_driver_manager.Error as error:
        for part in parts:
            assert part in str(error), f"{part!r} is not in {error}"
    else:
        raise AssertionError(f"nothing failed, expected {parts}")


def a_query_gives_rows(db):
    assert rows(db, "SELECT 1 AS one, 'x' AS letter") == [(1, "x")]
    assert rows(db, "SELECT 1 WHERE false") == []


def an_answer_of_many_rows_is_whole(db):
    with db.cursor() as cursor:
        cursor.execute("SELECT value AS n, 'text ' || value AS t FROM generate_series(1, 300000) ORDER BY n")
        table = cursor.fetch_arrow_table()
    assert table.num_rows == 300_000
    assert pa.compute.sum(table["n"]).as_py() == 300_000 * 300_001 // 2
    assert table["t"][299_999].as_py() == "text 300000"


def every_type_comes_and_goes(db):
    table = pa.table(
        {
            "b": pa.array([True, None]),
            "i": pa.array([-5, None], pa.int16()),
            "n": pa.array([2**62, None], pa.int64()),
            "d": pa.array([decimal.Decimal("12345.67"), None], pa.decimal128(15, 2)),
            "w": pa.array([decimal.Decimal("9" * 38), None], pa.decimal128(38, 0)),
            "f": pa.array([0.1, None], pa.float64()),
            "day": pa.array([datetime.date(2024, 2, 29), None]),
            "t": pa.array([datetime.time(23, 59, 59, 999999), None], pa.time64("us")),
            "at": pa.array([datetime.datetime(1999, 12, 31, 23, 59), None], pa.timestamp("us")),
            "zoned": pa.array([datetime.datetime(2020, 1, 1, 12), None], pa.timestamp("us", "+00:00")),
            "s": pa.array(["ä 'quoted'", None]),
            "bytes": pa.array([b"\x00\xff", None]),
            "coded": pa.array(["red", None]).dictionary_encode(),
        }
    )
    with db.cursor() as cursor:
        assert cursor.adbc_ingest("types", table, mode="create") == 2
        cursor.execute("SELECT * FROM types")
        back = cursor.fetch_arrow_table()
    wanted = table.set_column(12, "coded", table["coded"].cast(pa.string()))
    assert back.to_pylist() == wanted.to_pylist(), back.to_pylist()
    assert [f.type for f in back.schema] == [f.type for f in wanted.schema], back.schema


def statements_change_tables(db):
    with db.cursor() as cursor:
        cursor.execute("CREATE TABLE people (name VARCHAR NOT NULL, born DATE, n BIGINT DEFAULT 7)")
        cursor.execute("INSERT INTO people (name, born) VALUES ('Ada', DATE '1815-12-10')")
        assert cursor.fetchall() == [(1,)]
        assert cursor.adbc_statement.set_sql_query("INSERT INTO people (name) SELECT 'Alan'") is None
        assert cursor.adbc_statement.execute_update() == 1
        cursor.execute("SELECT name, n FROM people ORDER BY name")
        assert cursor.fetchall() == [("Ada", 7), ("Alan", 7)]
        cursor.execute("CREATE TABLE copy AS SELECT name FROM people")
        cursor.execute("TRUNCATE TABLE people")
        assert rows(db, "SELECT count(*) FROM people") == [(0,)]
        cursor.execute("DROP TABLE people")
        assert rows(db, "SELECT count(*) FROM copy") == [(2,)]
        cursor.execute("DROP TABLE copy")
    fails(lambda: rows(db, "SELECT * FROM people"), "people")


def rows_are_deleted_and_changed(db):
    with db.cursor() as cursor:
        cursor.execute("CREATE TABLE c (id BIGINT NOT NULL, name VARCHAR)")
        cursor.executemany("INSERT INTO c VALUES (?, ?)", [(i, f"n{i}") for i in range(10)])
        cursor.execute("UPDATE c SET name = 'even', id = id + 100 WHERE id % 2 = 0")
        assert cursor.fetchall() == [(5,)]
        cursor.execute("DELETE FROM c WHERE id = ?", (3,))
        assert cursor.fetchall() == [(1,)]
        assert cursor.adbc_statement.set_sql_query("DELETE FROM c WHERE id >= 106") is None
        assert cursor.adbc_statement.execute_update() == 2
        cursor.execute("UPDATE c SET name = ? WHERE id = ?", ("nine", 9))
        assert rows(db, "SELECT id, name FROM c ORDER BY id") == [
            (1, "n1"), (5, "n5"), (7, "n7"), (9, "nine"), (100, "even"), (102, "even"), (104, "even"),
        ]
        fails(lambda: rows(db, "UPDATE c SET id = NULL"), "id")
        cursor.execute("DELETE FROM c")
        assert cursor.fetchall() == [(7,)]
        cursor.execute("DROP TABLE c")


def parameters_stand_for_values(db):
    with db.cursor() as cursor:
        cursor.execute("CREATE TABLE p (id BIGINT, name VARCHAR, price DECIMAL(10,2), day DATE)")
        cursor.executemany(
            "INSERT INTO p VALUES (?, ?, ?, ?)",
            [
                (1, "one", decimal.Decimal("1.10"), datetime.date(2024, 1, 1)),
                (2, None, decimal.Decimal("2.20"), datetime.date(2024, 1, 2)),
                (3, "three", None, None),
            ],
        )
        assert cursor.rowcount == 3, cursor.rowcount
    assert rows(db, "SELECT name FROM p WHERE id = ?", (1,)) == [("one",)]
    assert rows(db, "SELECT id FROM p WHERE price > $1 AND day < $2",
                (decimal.Decimal("1.05"), datetime.date(2024, 1, 2))) == [(1,)]
    assert rows(db, "SELECT ?", ("text",)) == [("text",)]
    assert rows(db, "SELECT count(*) FROM p WHERE name IN (?, ?)", ("one", "three")) == [(2,)]
    with db.cursor() as cursor:
        # Other forms than one tuple of values run for each row, and are published as one.
        cursor.executemany("INSERT INTO p (id, name) SELECT id + 10, ? FROM p WHERE id = ?",
                           [("a", 1), ("b", 2)])
        cursor.executemany("INSERT INTO p VALUES (? * 2, upper(?), 0, NULL)", [(50, "x")])
    assert rows(db, "SELECT id, name, price FROM p WHERE id > 10 ORDER BY id") == [
        (11, "a", None), (12, "b", None), (100, "X", decimal.Decimal("0.00"))]
    fails(lambda: rows(db, "SELECT ?, ?", (1,)), "2 parameters")
    fails(lambda: rows(db, "SELECT ?"), "1 parameters")
    fails(lambda: rows(db, "SELECT $1, $3", (1, 2)), "without a gap")


def a_statement_is_prepared_once_and_run_often(db):
    with db.cursor() as cursor:
        schema = cursor.adbc_prepare("SELECT id, name FROM p WHERE id = ?")
        assert [f.type for f in schema] == [pa.int64()], schema
        for id, name in [(1, "one"), (3, "three"), (1, "one")]:
            cursor.execute("SELECT id, name FROM p WHERE id = ?", (id,))
            assert cursor.fetchall() == [(id, name)]


def a_schema_is_told_without_running_the_query(db):
    with db.cursor() as cursor:
        schema = cursor.adbc_execute_schema("SELECT id, price FROM p")
        assert schema == pa.schema({"id": pa.int64(), "price": pa.decimal128(10, 2)}), schema
        cursor.adbc_execute_schema("INSERT INTO p (id) VALUES (999)")
    assert rows(db, "SELECT count(*) FROM p WHERE id = 999") == [(0,)]


def a_query_that_runs_can_be_cancelled(db):
    endless = "SELECT count(*) FROM generate_series(1, 2000000) a, generate_series(1, 2000000) b WHERE (a.value * b.value) % 7 = 3"
    ended = threading.Event()
    with db.cursor() as cursor:

        def cancel():
            while not ended.wait(0.2):
                cursor.adbc_cancel()

        canceller = threading.Thread(target=cancel)
        canceller.start()
        fails(lambda: (cursor.execute(endless), cursor.fetchall()), "cancel")
        ended.set()
        canceller.join()
    assert rows(db, "SELECT 2") == [(2,)]


def an_ingest_creates_appends_and_replaces(db):
    def ingest(table, mode, name="ingested"):
        with db.cursor() as cursor:
            return cursor.adbc_ingest(name, table, mode=mode)

    one = pa.table({"id": [1, 2], "name": ["a", "b"]})
    fails(lambda: ingest(one, "append"), "ingested", "does not exist")
    assert ingest(one, "create") == 2
    fails(lambda: ingest(one, "create"), "exists already")
    # By name, in any order and case; what is not sent is NULL.
    assert ingest(pa.table({"NAME": ["c"], "id": [3]}), "append") == 1
    assert ingest(pa.table({"id": pa.array([4], pa.int32())}), "create_append") == 1
    assert rows(db, "SELECT * FROM ingested ORDER BY id") == [(1, "a"), (2, "b"), (3, "c"), (4, None)]
    fails(lambda: ingest(pa.table({"id": [5], "x": [1]}), "append"), "column x")
    fails(lambda: ingest(pa.table({"id": ["five"]}), "append"), "column id", "five")
    assert rows(db, "SELECT count(*) FROM ingested") == [(4,)]
    assert ingest(pa.table({"other": [1.5]}), "replace") == 1
    assert rows(db, "SELECT * FROM ingested") == [(1.5,)]
    assert ingest(one, "replace", "new") == 2
    # The driver sends nothing at all then, not even the table's name.
    fails(lambda: ingest(one.slice(0, 0), "append", "new"), "without rows")
    assert ingest(one, "create_append", "newer") == 2


def a_large_ingest_arrives_whole(db):
    count = 400_000
    def batches():
        for start in range(0, count, 50_000):
            ids = pa.array(range(start, start + 50_000))
            yield pa.record_batch({"id": ids, "text": pa.array([f"row {i % 1000}" for i in range(50_000)])})
    first = next(batches())
    with db.cursor() as cursor:
        reader = pa.RecordBatchReader.from_batches(first.schema, batches())
        assert cursor.adbc_ingest("large", reader, mode="create") == count
    assert rows(db, "SELECT count(*), sum(id), count(DISTINCT text) FROM large") == [
        (count, count * (count - 1) // 2, 1000)]


def a_reader_that_fails_leaves_nothing(db):
    def batches():
        yield pa.record_batch({"id": [1]})
        raise ValueError("the source is gone")
    schema = pa.schema({"id": pa.int64()})
    try:
        with db.cursor() as cursor:
            cursor.adbc_ingest("half", pa.RecordBatchReader.from_batches(schema, batches()), mode="create")
    except Exception:
        pass
    else:
        raise AssertionError("the ingest of half a reader succeeded")
    fails(lambda: rows(db, "SELECT * FROM half"), "half")


def the_catalog_is_listed(db):
    objects = db.adbc_get_objects(depth="columns", table_name_filter="p").read_all().to_pylist()
    assert [o["catalog_name"] for o in objects] == ["coload"], objects
    [schema] = objects[0]["catalog_db_schemas"]
    assert schema["db_schema_name"] == "public"
    [table] = schema["db_schema_tables"]
    assert table["table_name"] == "p" and table["table_type"] == "TABLE"
    assert [c["column_name"] for c in table["table_columns"]] == ["id", "name", "price", "day"]
    assert db.adbc_get_table_types() == ["TABLE"]
    assert db.adbc_get_info()["vendor_name"] == "Coload"
    assert db.adbc_get_table_schema("p").field("price").type == pa.decimal128(10, 2)


def what_is_wrong_is_said(db):
    fails(lambda: rows(db, "SELEC 1"), "SELEC")
    fails(lambda: rows(db, "SELECT nothing FROM p"), "nothing")
    fails(lambda: rows(db, "UPDATE p SET id = 'x'"), "x")
    fails(lambda: rows(db, "DELETE FROM p RETURNING id"), "RETURNING", "not supported")
    fails(lambda: rows(db, "INSERT INTO p VALUES ('x', 'y', 1, NULL)"), "x")
    fails(lambda: rows(db, "SELECT 1 / (id - id) FROM p"), "zero")
    assert rows(db, "SELECT 2") == [(2,)]


CHECKS = [
    a_query_gives_rows,
    an_answer_of_many_rows_is_whole,
    every_type_comes_and_goes,
    statements_change_tables,
    rows_are_deleted_and_changed,
    parameters_stand_for_values,
    a_statement_is_prepared_once_and_run_often,
    a_schema_is_told_without_running_the_query,
    a_query_that_runs_can_be_cancelled,
    an_ingest_creates_appends_and_replaces,
    a_large_ingest_arrives_whole,
    a_reader_that_fails_leaves_nothing,
    the_catalog_is_listed,
    what_is_wrong_is_said,
]

with connect() as db:
    for check in CHECKS:
        print(check.__name__, flush=True)
        check(db)
print(f"{len(CHECKS)} checks")
