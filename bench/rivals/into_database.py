"""Loads lineitem into a database by a library of Python: into_database.py pandas|adbc|dlt URL FILE."""

import sys
import tempfile

COLUMNS = (
    "l_orderkey l_partkey l_suppkey l_linenumber l_quantity l_extendedprice l_discount l_tax l_returnflag l_linestatus "
    "l_shipdate l_commitdate l_receiptdate l_shipinstruct l_shipmode l_comment"
).split()
DATES = ["l_shipdate", "l_commitdate", "l_receiptdate"]
# Rows of a chunk, of tools that have such.
CHUNK = 100_000


def by_pandas(url, file):
    import pandas
    from sqlalchemy import create_engine

    scheme, rest = url.split(":", 1)
    engine = create_engine({"mysql": "mysql+pymysql", "postgresql": "postgresql+psycopg2"}[scheme] + ":" + rest)
    first = True
    names = [*COLUMNS, "bar"]
    for chunk in pandas.read_csv(file, sep="|", header=None, names=names, usecols=COLUMNS, parse_dates=DATES, chunksize=CHUNK):
        chunk.to_sql("lineitem", engine, if_exists="replace" if first else "append", index=False, method="multi", chunksize=1000)
        first = False


def batches(file):
    import pyarrow
    from pyarrow import csv

    names = [*COLUMNS, "bar"]
    money = {name: pyarrow.decimal128(15, 2) for name in COLUMNS[4:8]}
    types = {**{name: pyarrow.int64() for name in COLUMNS[:3]}, "l_linenumber": pyarrow.int32(), **money}
    types.update({name: pyarrow.date32() for name in DATES})
    return csv.open_csv(
        file,
        read_options=csv.ReadOptions(column_names=names),
        parse_options=csv.ParseOptions(delimiter="|"),
        convert_options=csv.ConvertOptions(column_types=types, include_columns=COLUMNS),
    )


def by_adbc(url, file):
    import adbc_driver_postgresql.dbapi as adbc

    with adbc.connect(url) as connection, connection.cursor() as cursor:
        cursor.adbc_ingest("lineitem", batches(file), mode="append")
        connection.commit()


def by_dlt(url, file):
    import dlt

    @dlt.resource(name="lineitem", write_disposition="replace")
    def rows():
        for batch in batches(file):
            yield batch

    # It asks for a password, though the server does not.
    destination = dlt.destinations.postgres(url.replace("postgres@", "postgres:none@", 1))
    with tempfile.TemporaryDirectory() as folder:
        pipeline = dlt.pipeline("lineitem", pipelines_dir=folder, destination=destination, dataset_name="public")
        pipeline.run(rows())


if __name__ == "__main__":
    {"pandas": by_pandas, "adbc": by_adbc, "dlt": by_dlt}[sys.argv[1]](*sys.argv[2:])
