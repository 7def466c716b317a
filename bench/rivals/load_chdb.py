"""ClickHouse in the process (chDB): a MergeTree without order, INSERT from file()."""

from chdb.session import Session

import load_chdb_types
import rival


def clickhouse_type(column, texts):
    plain = load_chdb_types.plain(column)
    if column.nullable:
        plain = f"Nullable({plain})"
    return f"LowCardinality({plain})" if texts == "low" and "String" in plain else plain


def main():
    args = rival.arguments(texts=["plain", "low"])
    table = args.table
    columns = ", ".join(f"{column.name} {clickhouse_type(column, args.texts)}" for column in table.columns)
    session = Session(args.target)
    session.query("CREATE DATABASE lab ENGINE = Atomic")
    session.query(f"CREATE TABLE lab.{table.name} ({columns}) ENGINE = MergeTree ORDER BY tuple()")
    clock = rival.Clock()
    session.query(
        f"INSERT INTO lab.{table.name} SELECT {', '.join(table.names)} "
        f"FROM file('{args.file}', CSV, '{columns.replace(chr(39), chr(92) + chr(39))}, after_last_delimiter String') "
        f"SETTINGS format_csv_delimiter = '|', format_csv_allow_single_quotes = 0, "
        f"format_csv_allow_double_quotes = 0, input_format_csv_empty_as_default = 1, "
        f"allow_suspicious_low_cardinality_types = 1, "
        f"max_threads = {args.threads}, max_insert_threads = {args.threads}"
    )
    measured = clock.stop()
    check = str(session.query(f"SELECT {table.check_select} FROM lab.{table.name}", "TSV")).split()
    session.close()
    rival.report(measured, check, rival.disk_bytes(args.target))


main()
