"""Hyper: a .hyper file; CREATE TABLE AS from external(), which uses two cores where INSERT uses one.

The engine is a process of its own, and its clocks are read.
"""

from pathlib import Path

from tableauhyperapi import Connection, CreateMode, HyperProcess, Telemetry

import rival


def hyper_type(column):
    # Hyper has no UUID.
    return "TEXT" if column.base == "UUID" else column.type


def child():
    """Process id of the engine."""
    for task in Path("/proc/self/task").iterdir():
        for pid in (task / "children").read_text().split():
            if "hyperd" in Path(f"/proc/{pid}/cmdline").read_text():
                return int(pid)
    raise SystemExit("no process hyperd below this one")


def main():
    args = rival.arguments()
    table = args.table
    fields = ", ".join(f'"{column.name}" {hyper_type(column)}' for column in table.columns)
    parameters = {"log_config": "", "hard_concurrent_query_thread_limit": str(args.threads)}
    with (
        HyperProcess(Telemetry.DO_NOT_SEND_USAGE_DATA_TO_TABLEAU, parameters=parameters) as hyper,
        Connection(hyper.endpoint, args.target, CreateMode.CREATE_AND_REPLACE) as connection,
    ):
        clock = rival.Clock(child())
        connection.execute_command(
            f"CREATE TABLE {table.name} AS SELECT {', '.join(table.names)} FROM external('{args.file}', "
            f"COLUMNS => DESCRIPTOR({fields}, after_last_delimiter TEXT), "
            f"FORMAT => 'csv', DELIMITER => '|', HEADER => false)"
        )
        measured = clock.stop()
        check = connection.execute_list_query(f"SELECT {table.check_select} FROM {table.name}")[0]
    rival.report(measured, check, rival.disk_bytes(args.target))


main()
