"""What a long command is doing: a bar on a terminal, else a plain line a step. All of it on stderr."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from rich.progress import Progress as Bars

TOLD_CHARS, BAR_CHARS = 44, 24


class Progress:
    """Told a step as often as its caller likes; the same one twice is one line."""

    def __init__(self) -> None:
        self._bars = _bars() if sys.stderr.isatty() else None
        self._last = ""

    def __enter__(self) -> Progress:
        if self._bars:
            self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bars:
            self._bars.stop()

    def step(self, status: str, done: float | None = None, total: float | None = None) -> None:
        """`done` of `total`, where that is known."""
        if self._bars:
            self._show(self._bars, status, done, total)
        elif status != self._last:
            click.echo(status, err=True)
        self._last = status

    def _show(self, bars: Bars, status: str, done: float | None, total: float | None) -> None:
        if status != self._last:
            if self._last:
                bars.update(bars.task_ids[-1], total=1, completed=1)
            bars.add_task(status, total=total)
        bars.update(bars.task_ids[-1], completed=done or 0, total=total)
        if status == "success":
            bars.update(bars.task_ids[-1], total=1, completed=1)


def _bars() -> Bars:
    from rich.console import Console
    from rich.progress import BarColumn, SpinnerColumn, TaskProgressColumn, TextColumn
    from rich.progress import Progress as Bars
    from rich.table import Column

    told = Column(max_width=TOLD_CHARS, no_wrap=True, overflow="ellipsis")
    return Bars(
        SpinnerColumn(finished_text=" "),
        TextColumn("{task.description}", markup=False, table_column=told),
        BarColumn(BAR_CHARS),
        TaskProgressColumn(),
        console=Console(stderr=True),
    )
