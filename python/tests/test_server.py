"""The same on a server, which the test of Rust starts."""

import datetime
import decimal
import os
import pathlib
import threading

import pyarrow as pa
import pytest

import coload
from coload import dbapi

SERVER = os.environ["COLOAD_TEST_SERVER"]


@pytest.fixture
def db():
    with coload.connect(SERVER, user="ada", password="secret") as db:
        yield db


def test_passwords(monkeypatch):
    with pytest.raises(coload.RefusedError):
        coload.connect(SERVER, user="ada", password="wrong")
    with pytest.raises(coload.Error, match="password"):
        coload.connect(SERVER, user="ada")
    monkeypatch.setenv("COLOAD_PASSWORD", "secret")
    address = SERVER.replace("://", "://ada@")
    assert coload.connect(address).sql("SELECT 1").fetchone() == (1,)
    with pytest.raises(coload.UsageError, match="user"):
        coload.connect(address, user="ada")
    with pytest.raises(coload.UsageError, match="directory"):
        coload.connect("store", user="ada")


def test_files_and_frames_are_loaded(db):
    pathlib.Path("a.csv").write_text("n,s\n1,x\n2,y\n")
    assert db.load("a.csv", "a", replace=True).rows == 2
    assert db.load(pa.table({"n": [3], "s": ["z"]}), "a").rows == 1
    assert db.sql("SELECT * FROM a ORDER BY n").fetchall() == [(1, "x"), (2, "y"), (3, "z")]
    pathlib.Path("bad.csv").write_text("n,s\nq,x\n")
    with pytest.raises(coload.InputError) as caught:
        db.load("bad.csv", "a")
    assert caught.value.line == 2


def test_parameters(db):
    row = (1, "x", None, decimal.Decimal("1.50"), datetime.date(2026, 1, 1), 2.5, True)
    assert db.sql("SELECT ?, ?, ?, ?, ?, ?, ?", row).fetchone() == row
    db.execute("DROP TABLE IF EXISTS p")
    db.execute("CREATE TABLE p (n BIGINT, s VARCHAR)")
    assert db.execute("INSERT INTO p VALUES (?, ?)", [1, None]) == 1
    assert db.executemany("INSERT INTO p VALUES (?, ?)", [(2, "b"), (3, "c")]) == 2
    assert db.sql("SELECT * FROM p WHERE n >= ? ORDER BY n", [2]).fetchall() == [(2, "b"), (3, "c")]


def test_answers_stream(db):
    assert sum(batch.num_rows for batch in db.sql("SELECT * FROM range(1000000)").reader()) == 1_000_000
    assert db.sql("SELECT 1 AS a").df()["a"].tolist() == [1]
    result = db.sql("SELECT sum(value) FROM range(1000000000000)")
    threading.Timer(0.3, result.cancel).start()
    with pytest.raises(coload.UnavailableError, match="cancelled"):
        result.fetchall()
    with pytest.raises(coload.SqlError):
        db.sql("SELECT nothing").fetchall()


def test_dbapi():
    with dbapi.connect(SERVER, user="ada", password="secret") as connection:
        cursor = connection.cursor().execute("SELECT 1 AS a")
        assert cursor.description[0][:2] == ("a", "BIGINT") and cursor.fetchall() == [(1,)]
