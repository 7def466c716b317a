"""Data frames and streams of Arrow, in and out."""

import datetime
import decimal
import pathlib

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import coload

TABLE = pa.table(
    {
        "b": pa.array([True, None, False]),
        "i": pa.array([1, None, -3], pa.int64()),
        "h": pa.array([1, 2, 3], pa.int16()),
        "u": pa.array([1, 2**64 - 1, None], pa.uint64()),
        "f": pa.array([1.5, None, float("inf")], pa.float64()),
        "d": pa.array([decimal.Decimal("1.25"), None, decimal.Decimal("-3.00")], pa.decimal128(10, 2)),
        "s": pa.array(["a", None, "long enough to stand elsewhere than in its view"]),
        "v": pa.array(["", "long enough to stand elsewhere than in its view", None], pa.string_view()),
        "l": pa.array(["x", "yy", None], pa.large_string()),
        "z": pa.array([b"\x00", None, b"\xff\xfe"]),
        "w": pa.array([b"ab", None, b"cd"], pa.binary(2)),
        "day": pa.array([datetime.date(2026, 1, 2), None, datetime.date(1, 1, 1)]),
        "at": pa.array([datetime.datetime(2026, 1, 2, 3, 4, 5, 6), None, None], pa.timestamp("us")),
        "when": pa.array([datetime.datetime(2026, 1, 2, 3, 4, 5), None, None], pa.timestamp("ms", "Europe/Berlin")),
        "time": pa.array([datetime.time(1, 2, 3), None, None], pa.time64("us")),
        "k": pa.array(["p", "q", "p"]).dictionary_encode(),
        "r": pa.RunEndEncodedArray.from_arrays(pa.array([2, 3], pa.int32()), pa.array(["m", "n"])),
    }
)


def expected(table):
    """The rows as statements answer them."""
    utc = datetime.timezone.utc
    rows = []
    for row in table.to_pylist():
        when = row.get("when")
        if when is not None:
            row["when"] = when.astimezone(utc)
        rows.append(tuple(row.values()))
    return rows


def test_all_types_go_in_and_come_out(db):
    report = db.load(TABLE, "t")
    assert report.rows == 3 and report.files[0]["name"] == "pyarrow.Table"
    # Without ORDER BY rows of a small table come as they were loaded.
    rows = db.sql("SELECT * FROM t").fetchall()
    assert rows == expected(TABLE)
    types = dict(zip(db.sql("SELECT * FROM t").columns, db.sql("SELECT * FROM t").types))
    assert (types["u"], types["d"], types["when"]) == (
        "DECIMAL(20,0)",
        "DECIMAL(10,2)",
        "TIMESTAMP WITH TIME ZONE",
    )
    back = db.sql("SELECT * FROM t").arrow()
    assert back["i"].to_pylist() == TABLE["i"].to_pylist() and back["s"].to_pylist() == TABLE["s"].to_pylist()
    back.validate(full=True)


def test_slices_keep_their_rows(db):
    """Symptom to guard against: an offset of bits, texts, keys or runs that is read as none."""
    big = pa.concat_tables([TABLE] * 7).combine_chunks()
    for offset, length in [(1, 13), (5, 9), (9, 3), (20, 1), (3, 0)]:
        part = big.slice(offset, length)
        db.load(part, "t", replace=True)
        assert db.sql("SELECT * FROM t").fetchall() == expected(part), (offset, length)


def test_what_comes_out_is_sound_where_rows_are_left_out(db):
    db.load(pa.concat_tables([TABLE] * 5), "t")
    table = db.sql("SELECT * FROM t WHERE h <> 2 LIMIT 7").arrow()
    table.validate(full=True)
    assert table.num_rows == 7 and set(table["h"].to_pylist()) == {1, 3}
    nested = db.sql("SELECT array_agg(h) AS a FROM t").arrow()  # a list
    nested.validate(full=True)
    assert sorted(nested["a"][0].as_py()) == [1] * 5 + [2] * 5 + [3] * 5
    assert db.sql("SELECT array_agg(s) FROM (SELECT array_agg(h) AS s FROM t WHERE h = 1)").fetchone() == ([[1] * 5],)


def test_pandas(db):
    frame = pd.DataFrame(
        {
            "n": [1, 2, 3],
            "f": [0.5, np.nan, 2.0],
            "s": ["a", None, "c"],
            "c": pd.Categorical(["x", "y", "x"]),
            "t": pd.to_datetime(["2026-01-01 00:00:00", None, "2026-01-03 04:05:06"]),
        }
    )
    db.load(frame, "t")
    rows = db.sql("SELECT * FROM t ORDER BY n").fetchall()
    assert rows[0] == (1, 0.5, "a", "x", datetime.datetime(2026, 1, 1))
    # What pandas has for a missing value is one.
    assert rows[1][1:] == (None, None, "y", None)
    back = db.sql("SELECT * FROM t ORDER BY n").df()
    assert list(back.columns) == list(frame.columns) and back["s"][2] == "c" and back["n"].tolist() == [1, 2, 3]


def test_an_index_of_pandas_is_not_lost(db):
    frame = pd.DataFrame({"n": [1, 2]}, index=["a", "b"])
    with pytest.raises(coload.UsageError, match="index"):
        db.load(frame, "t")
    db.load(frame.rename_axis("key"), "t")
    assert db.sql("SELECT key, n FROM t ORDER BY n").fetchall() == [("a", 1), ("b", 2)]
    db.load(frame.reset_index(drop=True), "u")
    assert db.sql("SELECT * FROM u").columns == ["n"]


def test_polars(db):
    frame = pl.DataFrame({"n": [1, 2, None], "s": ["a", "b" * 40, None], "d": [datetime.date(2026, 1, 1)] * 3})
    frame = frame.with_columns(pl.col("s").cast(pl.Categorical).alias("c"))
    assert db.load(frame, "t").rows == 3
    back = db.sql("SELECT * FROM t").pl()
    assert back.rows() == frame.rows()


def test_streams_are_taken_as_they_come(db):
    taken = []

    def batches():
        for number in range(50):
            taken.append(number)
            yield pa.record_batch({"n": pa.array(range(number * 1000, (number + 1) * 1000))})

    reader = pa.RecordBatchReader.from_batches(pa.schema({"n": pa.int64()}), batches())
    assert db.load(reader, "t").rows == 50_000
    assert len(taken) == 50
    assert db.sql("SELECT min(n), max(n), count(*) FROM t").fetchone() == (0, 49_999, 50_000)


def test_what_fails_in_a_stream_is_told(db):
    def batches():
        yield pa.record_batch({"n": pa.array([1])})
        raise RuntimeError("the source is dry")

    reader = pa.RecordBatchReader.from_batches(pa.schema({"n": pa.int64()}), batches())
    with pytest.raises(coload.Error, match="the source is dry"):
        db.load(reader, "t")
    assert db.sql("SHOW TABLES").fetchall() == []


def test_rows_that_are_none_are_rejects(db):
    table = pa.table({"n": [1, 2**40, 3], "s": ["a", "b", "c"]})
    with pytest.raises(coload.InputError) as caught:
        db.load(table, "t", columns="n INTEGER, s VARCHAR")
    assert caught.value.file == "pyarrow.Table" and str(2**40) in str(caught.value)
    report = db.load(table, "t", columns="n INTEGER, s VARCHAR", max_rejects=1)
    assert (report.rows, report.rejects) == (2, 1)
    with pytest.raises(coload.UsageError, match="delimiter"):
        db.load(table, "t", delimiter=";")


def test_options_of_loads_hold_for_frames(db):
    table = pa.table({"n": list(range(10)), "s": list("abcdefghij")})
    db.load(table, "t", where="n > 6", select="s, n * 2 AS m", primary_key="m")
    assert db.sql("SELECT * FROM t ORDER BY m").fetchall() == [("h", 14), ("i", 16), ("j", 18)]
    db.load(table, "parts", columns="s VARCHAR, source VARCHAR", by_name=True, set={"source": "@file"})
    assert db.sql("SELECT DISTINCT source FROM parts").fetchall() == [("pyarrow.Table",)]


def test_lists_come_and_go_as_they_are(db):
    rows = [(1, [1, None], ["a"]), (2, [], None), (3, None, ["", None])]
    names = ["n", "l", "s"]
    columns = dict(zip(names, map(list, zip(*rows))))
    table = pa.table({"n": columns["n"], "l": pa.array(columns["l"], pa.list_(pa.int64())), "s": columns["s"]})
    db.load(table, "t")
    found = db.sql("SELECT * FROM t ORDER BY n")
    assert found.fetchall() == rows
    assert db.sql("SELECT * FROM t ORDER BY n").arrow().to_pydict() == columns


def test_what_no_column_holds_is_told(db):
    table = pa.table({"n": [1], "took": pa.array([5], pa.duration("s"))})
    with pytest.raises(coload.UsageError, match="duration"):
        db.load(table, "t")
    db.load(table, "t", columns="n BIGINT", by_name=True)
    assert db.sql("SELECT * FROM t").fetchall() == [(1,)]
    with pytest.raises(coload.UsageError, match="table"):
        db.load(table)


def test_a_result_can_be_loaded(db):
    db.load(db.sql("SELECT value AS n, 'x' AS s FROM range(5)"), "t")
    assert db.sql("SELECT sum(n), count(s) FROM t").fetchone() == (10, 5)
    result = db.sql("SELECT 1")
    pa.table(result)
    with pytest.raises(ValueError, match="taken"):
        result.arrow()


class Named:
    """A stream whose class has the name of a place that could be connected to."""

    def __init__(self, table):
        self.table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)


def test_a_name_of_rows_is_never_opened(db):
    """A stream whose name looks like a URL is read as a stream."""
    Named.__qualname__ = "//127.0.0.1:1/database/t"
    Named.__module__ = "postgres:"
    report = db.load(Named(pa.table({"n": [1]})), "t")
    assert report.files[0]["name"] == "postgres:.//127.0.0.1:1/database/t"
    native = db._native
    for name in ["postgres://127.0.0.1:1/db/t", "mysql://127.0.0.1:1/db/t", "s3://b/k", "-", "no-such-file.csv"]:
        text, _ = native.load(["--table=t", "--", name], (pa.table({"n": [2]}), name), None)
        assert f'"name":"{name}"' in text.replace('": "', '":"')
    assert db.sql("SELECT count(*) FROM t").fetchone() == (6,)


def test_many_rows_take_the_memory_that_they_may(db):
    rows = 300_000
    table = pa.table({"n": np.arange(rows), "s": pa.array([f"text {n % 1000}" for n in range(rows)])})
    pq.write_table(table, "t.parquet")
    db.load("t.parquet", "a")
    report = db.load(table, "b", memory="64MiB", threads=2)
    assert report.rows == rows
    assert db.sql("SELECT count(*) FROM a, b WHERE a.n = b.n AND a.s = b.s").fetchone() == (rows,)
    assert pathlib.Path("store").is_dir()
    back = db.sql("SELECT * FROM b ORDER BY n").arrow()
    assert back["s"].cast(pa.string()).equals(table["s"])
