"""PyArrow: read_csv into memory, texts as dictionaries. Nothing reaches the disk."""

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

import rival

TYPES = {"BIGINT": pa.int64(), "INTEGER": pa.int32(), "DATE": pa.date32(), "TIMESTAMP": pa.timestamp("s")}


def arrow_type(column):
    if column.base == "DECIMAL":
        return pa.decimal128(*column.parameters)
    return TYPES.get(column.base, pa.dictionary(pa.int32(), pa.string()))


def main():
    args = rival.arguments()
    table = args.table
    pa.set_cpu_count(args.threads)
    names = table.names
    clock = rival.Clock()
    loaded = csv.read_csv(
        args.file,
        read_options=csv.ReadOptions(column_names=[*names, "after_last_delimiter"], block_size=10 << 20),
        parse_options=csv.ParseOptions(delimiter="|", quote_char=False),
        convert_options=csv.ConvertOptions(
            column_types={column.name: arrow_type(column) for column in table.columns},
            include_columns=names,
            strings_can_be_null=True,
            null_values=[""],
        ),
    )
    measured = clock.stop()
    summed, counted = table.check_columns
    total = pc.sum(loaded[summed].cast(pa.decimal128(38, 2))).as_py()
    rival.report(measured, (loaded.num_rows, total, pc.count(loaded[counted]).as_py()), 0)


main()
