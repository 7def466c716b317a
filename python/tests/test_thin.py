"""Connections, loads of files, statements, errors."""

import asyncio
import concurrent.futures
import datetime
import decimal
import os
import pathlib
import signal
import subprocess
import sys
import textwrap
import threading
import time
import uuid

import pytest

import coload


def write(name, text):
    pathlib.Path(name).write_text(text)
    return name


def test_a_file_is_loaded_and_asked(db):
    write("people.csv", "name,born\nAda,1815-12-10\nAlan,1912-06-23\n")
    report = db.load("people.csv")
    assert (report.table, report.rows, report["rows"], report.rejects) == ("people", 2, 2, 0)
    assert report.files[0]["name"] == "people.csv"
    assert any("BIGINT" in note or "VARCHAR" in note for note in report.notes), report.notes
    assert dict(report) == report.to_dict() and "wall_s" in dir(report)
    rows = db.sql("SELECT * FROM people ORDER BY born").fetchall()
    assert rows == [("Ada", datetime.date(1815, 12, 10)), ("Alan", datetime.date(1912, 6, 23))]


def test_keywords_are_the_flags(db):
    write("a.csv", "1;2,5;x\n-;3;y\noops;1;z\n")
    report = db.load(
        ["a.csv"],
        "t",
        header=False,
        delimiter=";",
        null=["-"],
        decimal_separator=",",
        columns={"n": "BIGINT", "d": "DECIMAL(5,2)", "s": "VARCHAR"},
        max_rejects=1,
        rejects=pathlib.Path("bad.csv"),
        create=True,
    )
    assert (report.rows, report.rejects) == (2, 1)
    assert "oops" in pathlib.Path("bad.csv").read_text()
    assert db.sql("SELECT sum(d) FROM t").fetchone() == (decimal.Decimal("5.50"),)
    with pytest.raises(coload.UsageError, match="exists"):
        db.load("a.csv", "t", create=True)
    with pytest.raises(TypeError, match="did you mean max_rejects"):
        db.load("a.csv", "t", max_reject=1)
    with pytest.raises(coload.UsageError, match="max-rejects"):
        db.load("a.csv", "t", max_rejects="some")
    with pytest.raises(TypeError, match="True or False"):
        db.load("a.csv", "t", header="yes")


def test_columns_that_are_set(db):
    write("a.csv", "n\n1\n")
    db.load("a.csv", "t", set={"source": "@file", "day": datetime.date(2026, 1, 2), "none": None})
    assert db.sql("SELECT * FROM t").fetchall() == [(1, "a.csv", datetime.date(2026, 1, 2), None)]


def test_nothing_to_load_is_no_error(db):
    write("empty.csv", "")
    report = db.load("empty.csv")
    assert (report.rows, report.table) == (0, None)


def test_a_dry_run_writes_nothing(db):
    write("a.csv", "n\n1\n")
    assert db.load("a.csv", dry_run=True).dry_run
    assert db.sql("SHOW TABLES").fetchall() == []


def test_errors_have_their_kind_and_place(db):
    write("bad.csv", "n,m\n1,2\n3,x\n")
    with pytest.raises(coload.InputError) as caught:
        db.load("bad.csv", columns="n BIGINT, m BIGINT")
    error = caught.value
    assert (error.file, error.line, error.column, error.byte) == ("bad.csv", 3, 2, 8)
    assert isinstance(error, coload.DataError) and isinstance(error, coload.Error)
    with pytest.raises(coload.UsageError, match="not-there.csv"):
        db.load("not-there.csv")
    with pytest.raises(coload.SqlError, match="nothing"):
        db.sql("SELECT * FROM nothing").fetchall()
    for place in ["not-there", "postgres://127.0.0.1:1/db", "parquet:files"]:
        with pytest.raises(coload.UsageError):
            coload.connect(place, create=False)
    assert not os.path.exists("postgres:") and not os.path.exists("parquet:files")
    with pytest.raises(coload.UnavailableError):
        coload.connect("coload://127.0.0.1:1")
    with pytest.raises(ValueError):
        db.load([])


def test_a_damaged_store_is_told(folder):
    write("a.csv", "n\n1\n")
    with coload.connect("store") as db:
        db.load("a.csv")
    for manifest in pathlib.Path("store").glob("**/*"):
        if manifest.is_file() and "manifest" in manifest.name.lower():
            data = bytearray(manifest.read_bytes())
            data[len(data) // 2] ^= 0xFF
            manifest.write_bytes(data)
    with pytest.raises(coload.StoreError):
        with coload.connect("store", create=False) as db:
            db.sql("SELECT * FROM a").fetchall()


def test_values_are_those_of_python(db):
    row = db.sql(
        "SELECT true, 1, 2.50, CAST(1.5 AS DOUBLE), 'x', DATE '2026-02-03', TIME '01:02:03.5', "
        "TIMESTAMP '2026-02-03 04:05:06.000007', CAST('2026-02-03T04:05:06Z' AS TIMESTAMP WITH TIME ZONE), "
        "INTERVAL '1' MONTH, NULL"
    ).fetchone()
    utc = datetime.timezone.utc
    assert row == (
        True,
        1,
        decimal.Decimal("2.50"),
        1.5,
        "x",
        datetime.date(2026, 2, 3),
        datetime.time(1, 2, 3, 500000),
        datetime.datetime(2026, 2, 3, 4, 5, 6, 7),
        datetime.datetime(2026, 2, 3, 4, 5, 6, tzinfo=utc),
        coload.Interval(1, 0, 0),
        None,
    )
    assert db.sql("SELECT TIMESTAMP '0001-01-01 00:00:00', DATE '9999-12-31'").fetchone() == (
        datetime.datetime(1, 1, 1),
        datetime.date(9999, 12, 31),
    )


PARAMETERS = [
    True,
    -5,
    10**30,
    1.5,
    "x'y",
    decimal.Decimal("-12.50"),
    datetime.date(2026, 2, 3),
    datetime.datetime(2026, 2, 3, 4, 5, 6, 7),
    None,
]


@pytest.mark.parametrize("value", PARAMETERS, ids=str)
def test_parameters_come_back(db, value):
    assert db.sql("SELECT ?", [value]).fetchone() == (value,)


def test_parameters_of_other_classes(db):
    db.execute("CREATE TABLE t (b BINARY, u UUID, i TIMESTAMP WITH TIME ZONE, t TIME)")
    zone = datetime.timezone(datetime.timedelta(hours=2))
    moment = datetime.datetime(2026, 2, 3, 4, 5, 6, tzinfo=zone)
    some = uuid.UUID(int=7)
    row = [b"\x00\xff", some, moment, datetime.time(1, 2, 3)]
    assert db.execute("INSERT INTO t VALUES (?, ?, ?, ?)", row) == 1
    assert db.sql("SELECT * FROM t").fetchall() == [(b"\x00\xff", str(some), moment, row[3])]
    day = datetime.timedelta(days=1, microseconds=5)
    assert db.sql("SELECT ?", [day]).fetchone() == (coload.Interval(0, 1, 5000),)
    assert db.sql("SELECT ?", [coload.Interval(1, 2, 3)]).fetchone() == (coload.Interval(1, 2, 3),)
    for wrong in [{"a": 1}, "x", [object()], [decimal.Decimal("NaN")], [10**40]]:
        with pytest.raises((TypeError, ValueError)):
            db.sql("SELECT ?", wrong)
    with pytest.raises(coload.SqlError, match="parameters"):
        db.sql("SELECT ?", [1, 2]).fetchall()


def test_files_are_asked_in_place(db):
    write("a.csv", "n;s\n1;x\n2;y\n")
    assert db.sql("SELECT sum(n) FROM 'a.csv'").fetchone() == (3,)
    assert db.sql("SELECT * FROM read_csv('a.csv', header => false)").columns == ["c1", "c2"]


def test_what_writes_is_done_when_nobody_looks(db):
    db.sql("CREATE TABLE t AS SELECT value AS n FROM range(100000)")
    db.sql("INSERT INTO t VALUES (7)")
    assert db.sql("SELECT count(*) FROM t").fetchone() == (100001,)
    with pytest.raises(coload.SqlError):
        db.sql("INSERT INTO nothing VALUES (7)")


def test_rows_are_taken_in_any_way(db):
    result = db.sql("SELECT value FROM range(10)")
    assert result.columns == ["value"]
    assert result.fetchone() == (0,)
    assert result.fetchmany(3) == [(1,), (2,), (3,)]
    assert next(iter(result)) == (4,)
    assert len(result.fetchall()) == 5
    assert result.fetchone() is None and result.fetchall() == []
    many = db.sql("SELECT value FROM range(100000)")
    assert sum(len(many.fetchmany(7777)) for _ in range(13)) == 100000


def test_memory_does_not_depend_on_the_answer(db):
    before = status("VmRSS")
    count = sum(batch.num_rows for batch in db.sql("SELECT value, value * 2 FROM range(20000000)").reader())
    assert count == 20_000_000
    # All of it would be 320 MB.
    assert status("VmRSS") - before < 150_000


def status(field):
    lines = pathlib.Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field + ":"))


def test_a_statement_is_cancelled_from_another_thread(db):
    result = db.sql("SELECT sum(value) FROM range(1000000000000)")
    threading.Timer(0.3, result.cancel).start()
    began = time.monotonic()
    with pytest.raises(coload.UnavailableError, match="cancelled"):
        result.fetchall()
    assert time.monotonic() - began < 10


def test_a_connection_that_is_closed_says_so(db):
    result = db.sql("SELECT 1")
    db.close()
    assert db.closed and result.fetchall() == [(1,)]
    with pytest.raises(coload.InterfaceError, match="closed"):
        db.sql("SELECT 1")
    with pytest.raises(coload.InterfaceError, match="closed"):
        db.load("x.csv")


def test_threads_share_a_connection(db):
    write("a.csv", "n\n" + "\n".join(map(str, range(1000))) + "\n")

    def work(number):
        db.load("a.csv", f"t{number}")
        return db.sql(f"SELECT sum(n) FROM t{number}").fetchone()[0]

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        assert set(pool.map(work, range(8))) == {499500}


def test_other_threads_run_meanwhile(db):
    ticks = []
    stop = threading.Event()

    def tick():
        while not stop.wait(0.005):
            ticks.append(time.monotonic())

    thread = threading.Thread(target=tick)
    thread.start()
    db.sql("SELECT count(*) FROM range(3000000) WHERE value % 7 = 3").fetchall()
    stop.set()
    thread.join()
    assert len(ticks) > 1


def test_asyncio(db):
    async def ask(n):
        return await asyncio.to_thread(lambda: db.sql("SELECT ?", [n]).fetchone()[0])

    async def all_of_them():
        return await asyncio.gather(*(ask(n) for n in range(5)))

    assert asyncio.run(all_of_them()) == [0, 1, 2, 3, 4]


def test_progress_is_told(db):
    write("a.csv", "n\n" + "\n".join(map(str, range(1000))) + "\n")
    told = []
    db.load("a.csv", progress=told.append)
    assert told[-1].rows == 1000 and told[-1].share == 1.0

    def stop(progress):
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        db.load("a.csv", "u", progress=stop)


def test_a_bar_is_shown_on_a_terminal(db, monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    write("a.csv", "n\n1\n")
    db.load("a.csv")
    err = capsys.readouterr().err
    assert "1 rows" in err and err.endswith("\r\x1b[K")
    db.load("a.csv", progress=False)
    assert capsys.readouterr().err == ""


def run(script):
    """Runs a program that Ctrl-C is sent to when it says `now`."""
    program = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert program.stdout.readline() == "now\n"
    time.sleep(0.5)
    program.send_signal(signal.SIGINT)
    try:
        out, _ = program.communicate(timeout=30)
    finally:
        program.kill()
    return out


LONG = "SELECT sum(value) FROM range(1000000000000)"


@pytest.mark.parametrize("take", ["fetchall()", "arrow()", "columns", "pl()"])
def test_ctrl_c_ends_a_statement(db, take):
    out = run(
        f"""
        import coload
        db = coload.connect("store")
        print("now", flush=True)
        try:
            db.sql("{LONG}").{take}
            print("not interrupted")
        except KeyboardInterrupt:
            print("interrupted", db.sql("SELECT 1").fetchall())
        """
        if take != "columns"
        else f"""
        import coload
        db = coload.connect("store")
        print("now", flush=True)
        try:
            db.execute("CREATE TABLE t AS {LONG}")
            print("not interrupted")
        except KeyboardInterrupt:
            print("interrupted", db.sql("SELECT 1").fetchall())
        """
    )
    assert out == "interrupted [(1,)]\n", out


def test_ctrl_c_ends_a_load(db):
    os.mkfifo("pipe")
    out = run(
        """
        import coload, threading, time
        db = coload.connect("store")
        def feed():
            with open("pipe", "w") as pipe:
                pipe.write("n\\n")
                print("now", flush=True)
                try:
                    while True:
                        pipe.write("1\\n" * 100000)
                        time.sleep(0.01)
                except BrokenPipeError:
                    pass
        threading.Thread(target=feed, daemon=True).start()
        try:
            db.load("pipe", "t", columns="n BIGINT", chunk_size="1MiB")
            print("not interrupted")
        except KeyboardInterrupt:
            print("interrupted", db.sql("SHOW TABLES").fetchall())
        """
    )
    assert "interrupted []" in out and "not interrupted" not in out, out


def test_a_fork_is_told(db):
    db.sql("SELECT 1").fetchall()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            db.sql("SELECT 1")
            text = "no error"
        except coload.InterfaceError as error:
            text = str(error)
        except BaseException as error:
            text = repr(error)
        os.write(writer, text.encode())
        os._exit(0)
    os.close(writer)
    text = os.read(reader, 1000).decode()
    os.waitpid(child, 0)
    assert "fork" in text, text
    assert db.sql("SELECT 1").fetchone() == (1,)


def test_sniffing():
    write("x.csv", "a;b\n1;2\n")
    found = coload.sniff("x.csv")
    assert (found.table, found.format, found.dialect["delimiter"]) == ("x", "text", ";")
    assert [(column["name"], column["type"]) for column in found.columns] == [("a", "BIGINT"), ("b", "BIGINT")]
    assert found.create_table.startswith("CREATE TABLE")
    assert coload.sniff("x.csv", all_text=True).columns[0]["type"] == "VARCHAR"


def test_loads_elsewhere():
    write("x.csv", "a\n1\n")
    assert coload.load("x.csv", "other", table="y").rows == 1
    assert coload.load("x.csv", "parquet:files").rows == 1
    with coload.connect("other") as db:
        assert db.sql("SELECT * FROM y").fetchall() == [(1,)]


def test_checkers_of_types_know_the_options():
    from coload._options import flags

    known = {keyword: flag for keyword, flag in flags("load").items() if keyword != "table"}
    hints = coload.LoadOptions.__annotations__
    assert hints.keys() == known.keys()
    is_switch = {keyword: "bool" in str(hint) for keyword, hint in hints.items()}
    assert is_switch == {keyword: not flag[1] for keyword, flag in known.items()}


def test_keys_that_come_again(db):
    write("a.csv", "n,s\n1,a\n2,b\n")
    db.load("a.csv", "t", primary_key="n")
    write("b.csv", "n,s\n2,c\n3,d\n")
    with pytest.raises(coload.Error):
        db.load("b.csv", "t")
    assert db.load("b.csv", "t", on_conflict="replace")["keys"]["replaced"] == 1
    assert db.sql("SELECT * FROM t ORDER BY n").fetchall() == [(1, "a"), (2, "c"), (3, "d")]


def test_lists_are_values_of_options(db):
    write("a.txt", "1  abc\n22 de \n")
    db.load("a.txt", "t", fixed_width=[3, 3], columns={"n": "BIGINT", "s s": "VARCHAR"}, primary_key=["n", "s s"])
    assert db.sql("SELECT * FROM t").fetchall() == [(1, "abc"), (22, "de")]
    write("b.csv", "x,y\n1,2\n")
    db.load("b.csv", "u", map={"x": "a", "y": "b"}, columns="b BIGINT, a BIGINT", type_order=None)
    assert db.sql("SELECT a, b FROM u").fetchall() == [(1, 2)]
    db.load("b.csv", "v", type_order=["DOUBLE", "VARCHAR"])
    assert db.sql("SELECT * FROM v").types == ["DOUBLE", "DOUBLE"]


def test_options_are_listed():
    options = coload.load_options()
    assert {"max_rejects", "delimiter", "where", "set"} <= options.keys()
    assert not {"into", "help", "report"} & options.keys()
    assert all(options.values())
