"""Keywords as flags of the command line, which has the one list of options."""

from __future__ import annotations

import difflib
import functools
import os
from typing import Any, Dict, List, Mapping, Sequence, Tuple, Union

from . import _native

PathLike = Union[str, "os.PathLike[str]"]

#: Flags that have no keyword: what they say is said otherwise, or is only printed.
NO_KEYWORDS = frozenset({"into", "report", "explain", "help", "output", "version"})

#: Flags that define columns: a text, or a mapping of names to types.
_DEFINITIONS = frozenset({"columns", "types"})


@functools.lru_cache(maxsize=None)
def flags(command: str) -> Dict[str, Tuple[str, bool, bool, str]]:
    """The flags of a command, by the keyword of each."""
    known = {}
    for flag in _native.flags(command):
        if flag[0] not in NO_KEYWORDS:
            known[flag[0].replace("-", "_")] = flag
    return known


def _texts(keyword: str, value: Any) -> List[str]:
    """The texts of a value: one, or several of a flag that repeats."""
    if isinstance(value, Mapping):
        pairs = value.items()
        if keyword in _DEFINITIONS:
            return [", ".join(f"{_quoted(name)} {kind}" for name, kind in pairs)]
        return [f"{name}={_text(keyword, _set_value(part))}" for name, part in pairs]
    if isinstance(value, (list, tuple)):
        return [_text(keyword, part) for part in value]
    return [_text(keyword, value)]


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _set_value(value: Any) -> Any:
    """A value of ``set``: None is NULL, and a text that begins with @ is one of the forms of the flag."""
    return "@null" if value is None else value


def _text(keyword: str, value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (str, int, float)):
        return str(value)
    if isinstance(value, os.PathLike):
        return str(os.fspath(value))
    if hasattr(value, "isoformat"):
        return str(value.isoformat())
    raise TypeError(f"{keyword}: a {type(value).__name__} is no value of it")


def words(command: str, options: Mapping[str, Any]) -> List[str]:
    """The flags that keywords stand for.

    >>> words("load", {"delimiter": ";", "null": ["", "NA"], "header": True, "skip": None, "set": {"day": 7}})
    ['--delimiter=;', '--null=', '--null=NA', '--header', '--set=day=7']
    >>> words("load", {"header": False, "by_name": False})
    ['--no-header']
    >>> words("load", {"types": {"zip": "VARCHAR"}})
    ['--types="zip" VARCHAR']
    """
    known = flags(command)
    said: List[str] = []
    for keyword, value in options.items():
        if keyword not in known:
            near = difflib.get_close_matches(keyword, known, 1)
            hint = f" (did you mean {near[0]}?)" if near else ""
            raise TypeError(f"{command} has no option {keyword}{hint}")
        if value is None:
            continue
        name, takes_value, repeats, _ = known[keyword]
        if not takes_value:
            if not isinstance(value, bool):
                raise TypeError(f"{keyword} is True or False, not {value!r}")
            if value:
                said.append(f"--{name}")
            elif keyword == "header":
                said.append("--no-header")
            continue
        texts = _texts(keyword, value)
        if not repeats and len(texts) != 1:
            # Lists of names, columns or widths are one text.
            texts = [", ".join(texts)]
        said += [f"--{name}={text}" for text in texts]
    return said


def paths(inputs: Union[PathLike, Sequence[PathLike]]) -> List[str]:
    """Inputs as the command takes them."""
    if isinstance(inputs, (str, os.PathLike)):
        inputs = [inputs]
    named = [os.fspath(name) for name in inputs]
    for name in named:
        if not isinstance(name, str):
            raise TypeError("the name of an input is a str or a path")
    if not named:
        raise ValueError("no input: name a file, a glob, or -")
    return named
