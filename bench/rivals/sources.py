"""Rivals of `bench/run sources`: ENGINE FORMAT PATTERN TARGET [--threads N] [--endpoint URL].

Loads the files of PATTERN into TARGET on disk and prints one line of JSON as `rival.py` has it, with the rows only. With
an endpoint PATTERN is an address `s3://bucket/folder/*.parquet` of a server there.
"""

import argparse
import json
import os
import sys

import rival

KEY, SECRET, REGION = "test", "test", "us-east-1"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("engine", choices=["duckdb", "chdb", "polars"])
    parser.add_argument("format", choices=["parquet", "json"])
    parser.add_argument("pattern")
    parser.add_argument("target")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--endpoint", default="")
    args = parser.parse_args()
    measured, rows = {"duckdb": duckdb_loads, "chdb": chdb_loads, "polars": polars_loads}[args.engine](args)
    print(json.dumps({**measured, "disk_bytes": rival.disk_bytes(args.target), "rows": rows}))


def duckdb_loads(args):
    import duckdb

    config = {"threads": args.threads, "preserve_insertion_order": False}
    connection = duckdb.connect(args.target, config=config)
    if args.endpoint:
        # It is an extension, which only its own server has.
        connection.execute("LOAD httpfs")
        host = args.endpoint.split("://", 1)[1]
        connection.execute(
            f"CREATE SECRET (TYPE s3, KEY_ID '{KEY}', SECRET '{SECRET}', REGION '{REGION}', ENDPOINT '{host}', "
            "URL_STYLE 'path', USE_SSL false)"
        )
    read = "read_parquet" if args.format == "parquet" else "read_json"
    clock = rival.Clock()
    connection.execute(f"CREATE TABLE t AS SELECT * FROM {read}('{args.pattern}')")
    connection.execute("CHECKPOINT")
    measured = clock.stop()
    rows = connection.execute("SELECT count(*) FROM t").fetchone()[0]
    connection.close()
    return measured, rows


def chdb_loads(args):
    from chdb.session import Session

    session = Session(args.target)
    session.query("CREATE DATABASE lab ENGINE = Atomic")
    form = "Parquet" if args.format == "parquet" else "JSONEachRow"
    if args.endpoint:
        address = args.pattern.replace("s3://", f"{args.endpoint}/")
        source = f"s3('{address}', '{KEY}', '{SECRET}', '{form}')"
    else:
        source = f"file('{args.pattern}', '{form}')"
    settings = f"SETTINGS max_threads = {args.threads}, max_insert_threads = {args.threads}"
    clock = rival.Clock()
    session.query(f"CREATE TABLE lab.t ENGINE = MergeTree ORDER BY tuple() AS SELECT * FROM {source} {settings}")
    measured = clock.stop()
    rows = int(str(session.query("SELECT count() FROM lab.t", "TSV")).split()[0])
    session.close()
    return measured, rows


def polars_loads(args):
    # Polars reads the number of threads when it is imported.
    os.environ["POLARS_MAX_THREADS"] = str(args.threads)
    import polars

    options = None
    if args.endpoint:
        options = {
            "aws_access_key_id": KEY, "aws_secret_access_key": SECRET, "aws_region": REGION,
            "aws_endpoint_url": args.endpoint, "aws_allow_http": "true",
        }
    scan = polars.scan_parquet if args.format == "parquet" else polars.scan_ndjson
    clock = rival.Clock()
    scan(args.pattern, storage_options=options).sink_parquet(args.target, compression="snappy")
    measured = clock.stop()
    return measured, polars.scan_parquet(args.target).select(polars.len()).collect().item()


sys.exit(main())
