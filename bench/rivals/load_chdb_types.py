"""Types of ClickHouse."""

TYPES = {"BIGINT": "Int64", "INTEGER": "Int32", "DATE": "Date32", "TIMESTAMP": "DateTime64(0, 'UTC')", "UUID": "UUID"}


def plain(column):
    """The type of a column without what may be NULL."""
    return column.type.replace("DECIMAL", "Decimal") if column.base == "DECIMAL" else TYPES.get(column.base, "String")
