"""The options of a load, for checkers of types and editors; a test compares them with the flags of the command."""

from __future__ import annotations

from typing import Mapping, Sequence, TypedDict, Union

from ._options import PathLike

#: Bytes, or a text such as 1GiB.
Size = Union[int, str]
#: A text, or several.
Texts = Union[str, Sequence[str]]


class LoadOptions(TypedDict, total=False):
    """The keywords of :meth:`Connection.load` besides the table."""

    s3_endpoint: str
    no_sign_request: bool
    silence: int
    retry: int
    placement: str
    wire_compression: str
    connections: int
    again: bool
    patience: int
    worker: str
    load_id: str
    explicit_max: int
    split_min: Size
    query: str
    method: str
    batch_rows: int
    tuning: PathLike
    atomic: bool
    resumable: bool
    rebuild_indexes: bool
    schema: PathLike
    columns: Union[str, Mapping[str, str]]
    primary_key: Texts
    cluster_by: Texts
    map: Mapping[Union[str, int], str]
    by_name: bool
    union_by_name: bool
    where: str
    select: str
    set: Mapping[str, object]
    partitions: bool
    no_partitions: bool
    sheet: Union[int, str]
    range: str
    append: bool
    replace: bool
    create: bool
    format: str
    unknown_keys: str
    unnest: str
    mapping: PathLike
    delimiter: str
    fixed_width: Union[str, Sequence[int]]
    quote: str
    escape: str
    escapes: str
    header: bool
    no_header: bool
    header_rows: int
    null: Texts
    quoted_null: bool
    typed_null: Texts
    decimal_separator: str
    thousands_separator: str
    date_format: str
    timestamp_format: str
    types: Union[str, Mapping[str, str]]
    type_order: Texts
    skip: int
    footer: int
    line_end: str
    encoding: str
    all_text: bool
    ragged: str
    quotes: str
    invalid_bytes: str
    comment: str
    max_rejects: Union[int, str]
    rejects: PathLike
    sample: Size
    dry_run: bool
    threads: int
    memory: Size
    chunk_size: Size
    fragments_per_partition: int
    merge_columns: int
    dictionaries: str
    sort_space: str
    run_space: str
    count_distinct: bool
    on_conflict: str
    delete_where: str
