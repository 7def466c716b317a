"""Runs a statement on a server of TDS by python-tds, and prints its rows, with bars between cells.

Usage: sqlserver.py URL SQL
"""

import datetime
import sys
import urllib.parse

import pytds


def connect(url, **more):
    """A connection to the server of a URL."""
    parts = urllib.parse.urlsplit(url)
    return pytds.connect(
        dsn=parts.hostname,
        port=parts.port or 1433,
        database=urllib.parse.unquote(parts.path.strip("/")),
        user=urllib.parse.unquote(parts.username),
        password=urllib.parse.unquote(parts.password or ""),
        **{"autocommit": True, "login_timeout": 30, **more},
    )


def shown(cell):
    """A cell as text."""
    if cell is None:
        return "N"
    if isinstance(cell, bool):
        return str(int(cell))
    if isinstance(cell, (bytes, bytearray)):
        return cell.hex()
    if isinstance(cell, datetime.datetime) and cell.tzinfo is not None:
        return str(cell.astimezone(datetime.timezone.utc))
    return str(cell).replace("\t", "_").replace("\n", "_").replace("\0", "^")


if __name__ == "__main__":
    with connect(sys.argv[1]) as connection, connection.cursor() as cursor:
        cursor.execute(sys.argv[2])
        if cursor.description:
            for row in cursor.fetchall():
                print("|".join(map(shown, row)))
