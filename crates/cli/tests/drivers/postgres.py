"""Drivers and tools of PostgreSQL on a server of Coload, unchanged. Usage: postgres.py HOST:PORT USER PASSWORD"""

import asyncio
import datetime as dt
import decimal
import sys

import asyncpg
import psycopg
import sqlalchemy as sa

address, user, password = sys.argv[1:]
host, port = address.rsplit(":", 1)
url = f"postgresql://{user}:{password}@{address}/coload"
checks = 0


def check(found, expected):
    global checks
    assert found == expected, f"{found!r}, expected {expected!r}"
    checks += 1


ROW = (
    1, decimal.Decimal("1.125"), "it's", dt.date(2024, 1, 2), dt.datetime(2024, 1, 2, 3, 4, 5, 6),
    dt.datetime(2024, 1, 2, 3, 4, 5, tzinfo=dt.timezone.utc), b"\x00\xff", True, 0.1, None,
)

with psycopg.connect(url, autocommit=True) as db:
    db.execute(
        "CREATE TABLE p (i INTEGER, n DECIMAL(12,3), t VARCHAR, d DATE, ts TIMESTAMP, tz TIMESTAMP WITH TIME ZONE, "
        "b BINARY, ok BOOLEAN, f DOUBLE, nothing VARCHAR)"
    )
    db.execute(f"INSERT INTO p VALUES ({', '.join(['%s'] * len(ROW))})", ROW)
    check(db.execute("SELECT * FROM p").fetchone(), ROW)
    check(db.cursor(binary=True).execute("SELECT * FROM p").fetchone(), ROW)
    with db.cursor() as cursor:
        cursor.executemany("INSERT INTO p (i, t) VALUES (%s, %s)", [(i, str(i)) for i in range(2, 1002)])
    check(db.execute("SELECT count(*), sum(i) FROM p").fetchone(), (1001, decimal.Decimal(501501)))
    with db.cursor() as cursor, cursor.copy("COPY p (i, t) FROM STDIN") as copy:
        for i in range(10_000):
            copy.write_row((-i, "a\tb\n" if i % 2 else None))
    check(db.execute("SELECT count(*), count(t) FROM p WHERE i <= 0").fetchone(), (10_000, 5_000))
    with db.cursor() as cursor, cursor.copy("COPY (SELECT i, t FROM p WHERE i = -1) TO STDOUT") as copy:
        check(list(copy.rows()), [("-1", "a\tb\n")])
    with db.cursor() as cursor, cursor.copy("COPY p (i, n, d, ts, b, ok) FROM STDIN (FORMAT BINARY)") as copy:
        copy.set_types(["int4", "numeric", "date", "timestamp", "bytea", "bool"])
        copy.write_row((2_000, ROW[1], ROW[3], ROW[4], ROW[6], True))
        copy.write_row((2_001, None, None, None, None, None))
    check(db.execute("SELECT i, n, d, ts, b, ok FROM p WHERE i >= 2000 ORDER BY i").fetchall(), [(2_000, ROW[1], ROW[3], ROW[4], ROW[6], True), (2_001, None, None, None, None, None)])
    with db.cursor() as cursor, cursor.copy("COPY (SELECT i, n, d, ts, b, ok FROM p WHERE i >= 2000 ORDER BY i) TO STDOUT (FORMAT BINARY)") as copy:
        copy.set_types(["int4", "numeric", "date", "timestamp", "bytea", "bool"])
        check(list(copy.rows()), [(2_000, ROW[1], ROW[3], ROW[4], ROW[6], True), (2_001, None, None, None, None, None)])
    db.execute("DELETE FROM p WHERE i >= 2000")
    # What Grafana asks when a source is added, and when a query is built.
    check(db.execute("SELECT current_setting('server_version_num')::int/100 as version").fetchone(), (1500,))
    check(db.execute("SELECT extversion FROM pg_extension WHERE extname = 'timescaledb'").fetchall(), [])
    searched = """quote_ident(table_schema) IN (
      SELECT
        CASE WHEN trim(s[i]) = '"$user"' THEN user ELSE trim(s[i]) END
      FROM
        generate_series(
          array_lower(string_to_array(current_setting('search_path'),','),1),
          array_upper(string_to_array(current_setting('search_path'),','),1)
        ) as i,
        string_to_array(current_setting('search_path'),',') s
      )"""
    listed = f"""select quote_ident(table_name) as "table" from information_schema.tables
      where quote_ident(table_schema) not in ('information_schema', 'pg_catalog', '_timescaledb_cache') and {searched}"""
    check(db.execute(listed).fetchall(), [("p",)])
    columns = f"""select quote_ident(column_name) as "column", data_type as "type" from information_schema.columns
      where {searched} and quote_ident(table_name) = 'p'"""
    check(db.execute(columns).fetchall()[:2], [("i", "INTEGER"), ("n", "DECIMAL(12,3)")])
    buckets = """SELECT floor(extract(epoch from tz)/3600)*3600 AS "time", avg(i) AS v FROM p
      WHERE tz BETWEEN '2024-01-02T00:00:00Z' AND '2024-01-03T00:00:00Z' GROUP BY 1 ORDER BY 1"""
    check(len(db.execute(buckets).fetchall()), 1)
    try:
        db.execute("SELECT * FROM nowhere")
    except psycopg.errors.UndefinedTable as error:
        check("nowhere" in str(error), True)

with psycopg.connect(url) as db:
    with db.cursor("some") as cursor:
        cursor.execute("SELECT i FROM p ORDER BY i")
        check(sum(len(cursor.fetchmany(1_000)) for _ in range(3)), 3_000)
    # A block within a block, as it is made around what may fail.
    with db.transaction(), db.transaction():
        check(db.execute("SELECT 1").fetchone(), (1,))

engine = sa.create_engine(f"postgresql+psycopg://{user}:{password}@{address}/coload")
with engine.connect() as db:
    check(db.execute(sa.text("SELECT count(*) FROM p WHERE i > :x"), {"x": 5}).scalar(), 996)
inspector = sa.inspect(engine)
check(inspector.get_table_names(), ["p"])
check((inspector.has_table("p"), inspector.has_table("q")), (True, False))


async def by_asyncpg():
    async with asyncpg.create_pool(url, min_size=2, max_size=2) as pool:
        check(await pool.fetchval("SELECT t FROM p WHERE i = $1", 7), "7")
        check(await pool.fetchval("SELECT count(*) FROM p"), 11_001)


asyncio.run(by_asyncpg())
print(f"{checks} checks")
