"""What a load did."""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Mapping


class Report(Mapping[str, Any]):
    """The report of a load: what ``coload load --report json`` prints, as attributes and as a mapping.

    ``docs/loading.md`` lists the fields; ``keys``, which is also what a mapping calls its own, is ``report["keys"]``. ``notes`` are the lines that tell what was found out.

    >>> import coload
    >>> _ = open("people.csv", "w").write("name,born\\nAda,1815-12-10\\nAlan,1912-06-23\\n")
    >>> with coload.connect("reports") as db:
    ...     report = db.load("people.csv")
    >>> report.table, report.rows, report["rejects"]
    ('people', 2, 0)
    >>> [column["name"] for column in report.columns]
    ['name', 'born']
    """

    def __init__(self, fields: Dict[str, Any], notes: List[str]) -> None:
        self._fields = fields
        #: What was found out of the inputs, a line each.
        self.notes = notes

    def __getitem__(self, name: str) -> Any:
        return self._fields[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._fields)

    def __len__(self) -> int:
        return len(self._fields)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return self._fields[name]
        except KeyError:
            raise AttributeError(f"the report has no field {name}") from None

    def __dir__(self) -> List[str]:
        return sorted([*super().__dir__(), *self._fields])

    def to_dict(self) -> Dict[str, Any]:
        """The fields, as a dict."""
        return dict(self._fields)

    def __repr__(self) -> str:
        told = {name: self._fields.get(name) for name in ("table", "rows", "rejects", "wall_s")}
        return f"Report({', '.join(f'{name}={value!r}' for name, value in told.items())})"
