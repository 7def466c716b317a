"""DB-API 2.0."""

import datetime

import pytest

import coload
from coload import dbapi


@pytest.fixture
def connection(folder):
    with dbapi.connect("store") as connection:
        yield connection


def test_the_module_says_what_it_is():
    assert (dbapi.apilevel, dbapi.threadsafety, dbapi.paramstyle) == ("2.0", 2, "qmark")
    for name in ["Warning", "Error", "InterfaceError", "DatabaseError", "DataError", "OperationalError"]:
        assert issubclass(getattr(dbapi, name), Exception)
        assert getattr(dbapi.Connection, name) is getattr(dbapi, name)
    assert issubclass(dbapi.ProgrammingError, dbapi.DatabaseError)
    assert issubclass(dbapi.DatabaseError, dbapi.Error) and not issubclass(dbapi.Warning, dbapi.Error)
    assert issubclass(coload.SqlError, dbapi.ProgrammingError)


def test_cursors(connection):
    cursor = connection.cursor()
    cursor.execute("CREATE TABLE t (a BIGINT NOT NULL, b DECIMAL(9,2), c VARCHAR, d DATE)")
    assert cursor.description is None and cursor.rowcount == -1
    cursor.execute("INSERT INTO t VALUES (?, ?, ?, ?)", (1, None, "x", datetime.date(2026, 1, 1)))
    assert cursor.rowcount == 1 and cursor.description is None
    cursor.executemany("INSERT INTO t (a) VALUES (?)", [(2,), (3,), (4,)])
    assert cursor.rowcount == 3
    cursor.execute("UPDATE t SET c = ? WHERE a > ?", ("y", 2))
    assert cursor.rowcount == 2
    cursor.execute("/* note */ DELETE FROM t WHERE a = 4")
    assert cursor.rowcount == 1
    cursor.execute("SELECT * FROM t ORDER BY a")
    assert cursor.rowcount == -1
    assert cursor.description == [
        ("a", "BIGINT", None, None, None, None, False),
        ("b", "DECIMAL(9,2)", None, None, 9, 2, True),
        ("c", "VARCHAR", None, None, None, None, True),
        ("d", "DATE", None, None, None, None, True),
    ]
    kinds = [dbapi.NUMBER, dbapi.NUMBER, dbapi.STRING, dbapi.DATETIME]
    assert [column[1] == kind for column, kind in zip(cursor.description, kinds)] == [True] * 4
    assert cursor.fetchone()[0] == 1
    cursor.arraysize = 2
    assert [row[0] for row in cursor.fetchmany()] == [2, 3]
    assert cursor.fetchall() == [] and cursor.fetchone() is None
    assert [row[0] for row in cursor.execute("SELECT a FROM t ORDER BY a")] == [1, 2, 3]
    cursor.execute("SELECT count(*) AS count FROM t")
    assert cursor.fetchall() == [(3,)]


def test_what_is_wrong_is_told(connection):
    cursor = connection.cursor()
    with pytest.raises(dbapi.ProgrammingError):
        cursor.fetchone()
    with pytest.raises(dbapi.ProgrammingError):
        cursor.execute("SELEC 1")
    connection.commit()
    with pytest.raises(dbapi.NotSupportedError):
        connection.rollback()
    cursor.close()
    with pytest.raises(dbapi.InterfaceError):
        cursor.execute("SELECT 1")
    connection.close()
    with pytest.raises(dbapi.InterfaceError):
        connection.cursor()


def test_executemany_is_whole_or_nothing(connection):
    cursor = connection.cursor()
    cursor.execute("CREATE TABLE t (a BIGINT PRIMARY KEY)")
    with pytest.raises(dbapi.Error):
        cursor.executemany("INSERT INTO t VALUES (?)", [(1,), (2,), (1,)])
    assert cursor.execute("SELECT count(*) FROM t").fetchone() == (0,)
    assert connection.native.executemany("INSERT INTO t VALUES (?)", []) == 0
    with pytest.raises(ValueError, match="row 1"):
        cursor.executemany("INSERT INTO t VALUES (?)", [(1,), (1, 2)])


def test_pandas_reads_by_it(connection):
    import pandas as pd

    connection.cursor().execute("CREATE TABLE t AS SELECT value AS n FROM range(3)")
    frame = pd.read_sql("SELECT n FROM t ORDER BY n", connection)
    assert frame["n"].tolist() == [0, 1, 2]
