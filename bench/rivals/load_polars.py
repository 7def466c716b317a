"""Polars: scan_csv to sink_parquet, streaming."""

import os
import sys

import rival

# Polars reads the number of threads when it is imported.
os.environ["POLARS_MAX_THREADS"] = sys.argv[sys.argv.index("--threads") + 1] if "--threads" in sys.argv else "2"

import polars as pl  # noqa: E402

TYPES = {"BIGINT": pl.Int64, "INTEGER": pl.Int32, "DOUBLE": pl.Float64, "DATE": pl.Date, "TIMESTAMP": pl.Datetime("us")}


def polars_type(column):
    if column.base == "DECIMAL":
        return pl.Decimal(*column.parameters)
    return TYPES.get(column.base, pl.String)


def main():
    args = rival.arguments(compression=["snappy", "zstd"])
    table = args.table
    schema = {column.name: polars_type(column) for column in table.columns} | {"after_last_delimiter": pl.String}
    clock = rival.Clock()
    quote = '"' if args.quotes == "double" else None
    rows = pl.scan_csv(args.file, separator="|", has_header=False, quote_char=quote, schema=schema)
    rows.select(table.names).sink_parquet(args.target, compression=args.compression)
    measured = clock.stop()
    summed, counted = table.check_columns
    # A sum of 32 bits has as many.
    is_integer = any(column.name == summed and column.base == "INTEGER" for column in table.columns)
    values = pl.col(summed).cast(pl.Int64) if is_integer else pl.col(summed) if summed else pl.lit(0)
    check = pl.scan_parquet(args.target).select(
        pl.len(), values.sum().alias("sum"), pl.col(counted).count().alias("values")
    )
    rival.report(measured, check.collect().row(0), rival.disk_bytes(args.target))


main()
