"""DuckDB: a database file; INSERT from read_csv, then CHECKPOINT."""

import duckdb
import rival

# Columns of read_csv keep the schema's names; the empty field after the last delimiter is a column of its own.
TRAILING = "after_last_delimiter"


def main():
    args = rival.arguments(order=["free", "kept"])
    table = args.table
    types = {column.name: column.type for column in table.columns} | {TRAILING: "VARCHAR"}
    connection = duckdb.connect(
        args.target,
        config={"threads": args.threads, "preserve_insertion_order": args.order == "kept"},
    )
    connection.execute(open(args.schema).read())
    quote = '"' if args.quotes == "double" else ""
    clock = rival.Clock()
    connection.execute(
        f"INSERT INTO {table.name} SELECT {', '.join(table.names)} FROM read_csv("
        f"'{args.file}', columns = {types}, delim = '|', quote = '{quote}', escape = '{quote}', header = false, auto_detect = false)"
    )
    connection.execute("CHECKPOINT")
    measured = clock.stop()
    check = connection.execute(f"SELECT {table.check_select} FROM {table.name}").fetchone()
    connection.close()
    rival.report(measured, check, rival.disk_bytes(args.target))


main()
