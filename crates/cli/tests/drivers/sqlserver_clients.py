"""Clients of others on a server of TDS: python-tds, and pymssql by FreeTDS.

Usage: sqlserver_clients.py URL
"""

import datetime
import decimal
import sys
import urllib.parse
import uuid

import pymssql
import pytds
from sqlserver import connect

CHECKS = 0


def check(found, expected):
    """Ends where something else was found."""
    global CHECKS
    CHECKS += 1
    assert found == expected, f"{found!r} is not {expected!r}"


def fails(number, run):
    """An error of this number is told."""
    global CHECKS
    CHECKS += 1
    try:
        run()
    except pytds.Error as error:
        assert error.number == number, (error.number, str(error))
    except pymssql.Error as error:
        assert error.args[0] == number, error.args
    else:
        raise AssertionError(f"no error {number}")


TYPES = (
    "CREATE TABLE every (i int, l bigint, s smallint, y tinyint, b bit, d decimal(15,2), w decimal(38,10), r real, f float, "
    "da date, ti time(6), ts datetime2(6), tz datetimeoffset(6), v nvarchar(9), t nvarchar(max), x varbinary(max), "
    "u uniqueidentifier)"
)
ROW = (
    -2147483648,
    -9223372036854775808,
    -32768,
    255,
    True,
    decimal.Decimal("-9999999999999.99"),
    decimal.Decimal("9999999999999999999999999999.9999999999"),
    -0.5,
    1.5e-300,
    datetime.date(1, 1, 1),
    datetime.time(23, 59, 59, 999999),
    datetime.datetime(9999, 12, 31, 23, 59, 59, 999999),
    datetime.datetime(2000, 1, 1, tzinfo=datetime.timezone.utc),
    "héllo 😀",
    "long " * 5000,
    b"\x00\xff" * 5000,
    uuid.UUID("12345678-9abc-def0-1234-56789abcdef0"),
)


def python_tds(url):
    """Batches, calls, transactions, errors and bulk loads by python-tds."""
    with connect(url) as connection, connection.cursor() as cursor:
        cursor.execute(TYPES)
        marks = ", ".join(["%s"] * (len(ROW) - 2))
        # Two columns are left to their types, which Python's values do not tell.
        names = "i, l, s, y, b, d, w, r, f, da, ti, ts, tz, v, t"
        cursor.execute(f"INSERT INTO every ({names}) VALUES ({marks})", ROW[:-2])
        cursor.execute("SELECT * FROM every")
        check(cursor.fetchall(), [ROW[:-2] + (None, None)])
        check([column[0] for column in cursor.description][:3], ["i", "l", "s"])
        columns = [
            pytds.Column(name, type=kind)
            for name, kind in [
                ("i", pytds.tds_types.IntType()),
                ("l", pytds.tds_types.BigIntType()),
                ("d", pytds.tds_types.DecimalType(scale=2, precision=15)),
                ("v", pytds.tds_types.NVarCharType(size=9)),
                ("t", pytds.tds_types.NVarCharMaxType()),
                ("x", pytds.tds_types.VarBinaryMaxType()),
            ]
        ]
        rows = [(n, n * 10**10, decimal.Decimal(n) / 4, f"v{n} 😀", None, b"b" * n) for n in range(2000)]
        cursor.copy_to(data=rows, table_or_view="every", columns=columns, schema="dbo")
        cursor.execute("SELECT i, l, d, v, t, x FROM every WHERE v <> 'héllo 😀' ORDER BY i")
        check([tuple(row) for row in cursor.fetchall()], rows)
        fails(208, lambda: cursor.execute("SELECT * FROM nothing"))
        fails(207, lambda: cursor.execute("SELECT nothing FROM every"))
        fails(102, lambda: cursor.execute("SELEKT 1"))
        cursor.execute("CREATE TABLE keyed (id int PRIMARY KEY, v int CHECK (v < 100))")
        cursor.execute("INSERT INTO keyed VALUES (1, 1)")
        fails(2627, lambda: cursor.execute("INSERT INTO keyed VALUES (2, 1), (1, 2)"))
        fails(547, lambda: cursor.execute("INSERT INTO keyed VALUES (2, 100)"))
        cursor.execute("SELECT COUNT(*) FROM keyed")
        check(cursor.fetchall(), [(1,)])
    with connect(url, autocommit=False) as connection, connection.cursor() as cursor:
        cursor.execute("INSERT INTO keyed VALUES (2, 2)")
        connection.rollback()
        cursor.execute("INSERT INTO keyed VALUES (3, 3)")
        connection.commit()
        cursor.execute("INSERT INTO keyed VALUES (4, 4)")
        connection.rollback()
        cursor.execute("SELECT id FROM keyed ORDER BY id")
        check(cursor.fetchall(), [(1,), (3,)])
    try:
        connect(url.replace("loader:", "nobody:"))
    except pytds.Error as error:
        check(error.number, 18456)
    else:
        raise AssertionError("anybody is let in")


def free_tds(url):
    """The same by FreeTDS."""
    parts = urllib.parse.urlsplit(url)
    with pymssql.connect(
        server=parts.hostname,
        port=str(parts.port),
        user=parts.username,
        password=urllib.parse.unquote(parts.password),
        database=parts.path.strip("/"),
        autocommit=False,
        tds_version="7.4",
        encryption="off",
    ) as connection:
        cursor = connection.cursor()
        cursor.execute("SELECT i, v, d FROM every WHERE i = %s", (7,))
        check(cursor.fetchall(), [(7, "v7 😀", decimal.Decimal("1.75"))])
        cursor.execute("CREATE TABLE free (id int, v nvarchar(20))")
        connection.commit()
        connection.bulk_copy("free", [(n, f"text {n}") for n in range(1000)])
        connection.commit()
        cursor.execute("SELECT COUNT(*), MIN(id), MAX(id) FROM free")
        check(cursor.fetchall(), [(1000, 0, 999)])
        cursor.execute("INSERT INTO free VALUES (%d, %s)", (-1, "it's"))
        connection.rollback()
        cursor.execute("SELECT v FROM free WHERE id < 1")
        check(cursor.fetchall(), [("text 0",)])
        fails(2627, lambda: cursor.execute("INSERT INTO keyed VALUES (1, 1)"))


if __name__ == "__main__":
    python_tds(sys.argv[1])
    free_tds(sys.argv[1])
    print(f"{CHECKS} checks")
