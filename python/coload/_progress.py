"""How far a load is, on a terminal and in a notebook."""

from __future__ import annotations

import html
import sys
import time
from typing import Any, Callable, NamedTuple, Optional, Union

#: Columns of the bar.
_WIDTH = 24


class Progress(NamedTuple):
    """How far a load is."""

    #: Bytes of the inputs that were read.
    bytes: int
    #: Bytes of the inputs in all; 0 where that is not known.
    bytes_total: int
    #: Rows that were read.
    rows: int
    #: Records that were set aside.
    rejects: int

    @property
    def share(self) -> Optional[float]:
        """The part that is done, from 0 to 1; None where it is not known."""
        return min(self.bytes / self.bytes_total, 1.0) if self.bytes_total else None


#: What ``progress`` of a load may be: a function that is called every tenth of a second, or whether a bar is shown.
ProgressOption = Union[Callable[[Progress], object], bool, None]


def _line(progress: Progress, seconds: float) -> str:
    rate = progress.bytes / max(seconds, 1e-9) / 1e6
    text = f"{progress.rows:,} rows  {progress.bytes / 1e6:,.1f} MB  {rate:,.0f} MB/s"
    if progress.rejects:
        text += f"  {progress.rejects:,} rejects"
    if progress.share is None:
        return text
    done = int(progress.share * _WIDTH)
    return f"{'#' * done}{'.' * (_WIDTH - done)} {progress.share:4.0%}  {text}"


class _Terminal:
    def __init__(self) -> None:
        self._began = time.monotonic()

    def __call__(self, progress: Progress) -> None:
        sys.stderr.write(f"\r\x1b[K{_line(progress, time.monotonic() - self._began)}")
        sys.stderr.flush()

    def end(self) -> None:
        sys.stderr.write("\r\x1b[K")
        sys.stderr.flush()


class _Notebook:
    def __init__(self) -> None:
        self._began = time.monotonic()
        self._shown: Any = None

    def __call__(self, progress: Progress) -> None:
        from IPython.display import HTML, display

        line = html.escape(_line(progress, time.monotonic() - self._began))
        page = HTML(f"<pre>{line}</pre>")
        if self._shown is None:
            self._shown = display(page, display_id=True)
        else:
            self._shown.update(page)

    def end(self) -> None:
        pass


def _is_notebook() -> bool:
    module = sys.modules.get("IPython")
    shell = module.get_ipython() if module is not None else None
    return type(shell).__name__ == "ZMQInteractiveShell"


class Watcher:
    """What is told how far a load is; None for nobody."""

    def __init__(self, option: ProgressOption) -> None:
        self._bar: Union[_Terminal, _Notebook, None] = None
        self._tell: Optional[Callable[[Progress], object]] = None
        if callable(option):
            self._tell = option
        elif option or option is None:
            if _is_notebook():
                self._bar = _Notebook()
            elif sys.stderr is not None and sys.stderr.isatty():
                self._bar = _Terminal()
            self._tell = self._bar

    @property
    def callback(self) -> Optional[Callable[[int, int, int, int], None]]:
        """What the native part calls."""
        tell = self._tell
        if tell is None:
            return None
        return lambda *numbers: (tell(Progress(*numbers)), None)[1]

    def end(self) -> None:
        """The load has ended: takes a bar off the terminal."""
        if self._bar is not None:
            self._bar.end()
