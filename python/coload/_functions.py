"""Functions that need no connection."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, NamedTuple, Optional

from . import _native
from ._connection import _load
from ._load_options import LoadOptions
from ._options import PathLike, flags, paths, words
from ._progress import ProgressOption
from ._report import Report

if TYPE_CHECKING:
    from typing_extensions import Unpack


class Sniffed(NamedTuple):
    """What was found out of an input."""

    #: Name of a table that is made of it.
    table: str
    #: text, json, arrow, parquet, or rows.
    format: str
    #: How the text is written: keywords of :meth:`Connection.load`. Empty where the input is no text.
    dialect: Mapping[str, Any]
    #: Name, type and definition of each column.
    columns: List[Dict[str, str]]
    #: The statement that makes the table.
    create_table: str
    #: Why it is thought to be so, a line each.
    evidence: List[str]


def sniff(input: PathLike, **options: Any) -> Sniffed:  # noqa: A002 - it is one
    """Finds out how an input is written and what its columns are; ``options`` are the flags of ``coload sniff``.

    >>> import coload
    >>> _ = open("cities.csv", "w").write("city;founded\\nRome;-\\nBerlin;1237\\n")
    >>> found = coload.sniff("cities.csv")
    >>> found.dialect["delimiter"], [column["name"] for column in found.columns]
    (';', ['city', 'founded'])
    """
    found = json.loads(_native.sniff([*words("sniff", options), "--output=json", "--", *paths(input)]))
    return Sniffed(
        found["table"],
        found["format"],
        found["dialect"] or {},
        found["columns"],
        found["create_table"],
        found["evidence"],
    )


def load(
    inputs: Any,
    into: PathLike,
    table: Optional[str] = None,
    *,
    progress: ProgressOption = None,
    **options: "Unpack[LoadOptions]",
) -> Report:
    """Loads where ``coload load --into`` can: into a store, a server, ``postgres://`` and ``mysql://``, or Parquet files with
    ``parquet:FOLDER``. The rest is as :meth:`Connection.load` has it.

    >>> import coload, pathlib
    >>> _ = open("few.csv", "w").write("n\\n1\\n2\\n")
    >>> coload.load("few.csv", "parquet:few").rows
    2
    >>> [path.suffix for path in pathlib.Path("few").glob("*.parquet")]
    ['.parquet']
    """
    [target] = paths(into)

    def native(said: List[str], frame: Any, callback: Any) -> Any:
        return _native.load([f"--into={target}", *said], frame, callback)

    return _load(native, inputs, {"table": table, **options}, progress)


def load_options() -> Dict[str, str]:
    """The options of a load, and what each is for.

    >>> import coload
    >>> coload.load_options()["max_rejects"]
    'Records that may be set aside: a count, or a share such as 0.1%; 0 is strict'
    """
    return {keyword: flag[3] for keyword, flag in flags("load").items() if keyword != "table"}
