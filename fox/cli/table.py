"""Plain tables, sizes and times, as people read them; to the letter as `ollama` prints them."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Sequence

import click

GAP = "    "
HOUR_S = 3600.0
FOREVER_YEARS = 20  # how far ahead Ollama's dialect puts an expiry that never comes
ID_CHARS = 12


def show(rows: Sequence[Sequence[str]]) -> None:
    """Aligned columns on stdout; the first row holds their names."""
    for line in lines(rows):
        click.echo(line)


def lines(rows: Sequence[Sequence[str]]) -> list[str]:
    """Aligned columns. Rows may end early."""
    count = max(map(len, rows), default=0)
    widths = [max(len(row[at]) for row in rows if at < len(row)) for at in range(count)]
    return [
        GAP.join(cell.ljust(width) for cell, width in zip(row, widths, strict=False)).rstrip() for row in rows
    ]


def size(size_bytes: float) -> str:
    """`1.3 GB`, `145 MB`: decimal units, one digit after the point below 10."""
    if size_bytes < 1000:
        return f"{size_bytes:.0f} B"
    for unit in ("KB", "MB", "GB", "TB"):
        size_bytes /= 1000
        if size_bytes < 1000 or unit == "TB":
            break
    if size_bytes >= 10 or size_bytes == int(size_bytes):
        return f"{int(size_bytes)} {unit}"
    return f"{size_bytes:.1f} {unit}"


def number(count: float) -> str:
    """`134.52M`, `7.6B`: how many parameters."""
    if count >= 1e9:
        billions = count / 1e9
        return f"{billions:.0f}B" if count % 1e9 == 0 else f"{billions:.1f}B"
    if count >= 1e6:
        return f"{count / 1e6:.0f}M" if count % 1e6 == 0 else f"{count / 1e6:.2f}M"
    return f"{count / 1e3:.0f}K" if count >= 1e3 else f"{count:.0f}"


def when(moment_s: float | None) -> str:
    """`2 days ago`, `4 minutes from now`, `Forever`; None is `Never`. Seconds since the epoch."""
    if moment_s is None:
        return "Never"
    ago_s = time.time() - moment_s
    if ago_s < -FOREVER_YEARS * 365 * 86400:
        return "Forever"
    return f"{length(-ago_s)} from now" if ago_s < 0 else f"{length(ago_s)} ago"


def length(seconds: float) -> str:
    """`4 minutes`."""
    if seconds < 1:
        return "Less than a second"
    if seconds < 60:
        return _counted(int(seconds), "second")
    if seconds < HOUR_S:
        return "About a minute" if seconds < 120 else f"{int(seconds / 60)} minutes"
    hours = math.floor(seconds / HOUR_S + 0.5)
    if hours == 1:
        return "About an hour"
    for most, unit_hours, unit in (
        (48, 1, "hours"),
        (24 * 14, 24, "days"),
        (24 * 60, 24 * 7, "weeks"),
        (24 * 365 * 2, 24 * 30, "months"),
    ):
        if hours < most:
            return f"{hours // unit_hours} {unit}"
    return f"{int(seconds / HOUR_S) // 24 // 365} years"


def moment(stamp: object) -> float | None:
    """Seconds since the epoch of an RFC 3339 time, or of such seconds; None where there is none, or Go's zero."""
    if isinstance(stamp, float):
        return stamp
    if not isinstance(stamp, str) or not stamp or stamp.startswith("0001-01-01T00:00:00"):
        return None
    from datetime import UTC, datetime

    text = re.sub(r"(\.\d{6})\d+", r"\1", stamp.replace("Z", "+00:00"))
    read = datetime.fromisoformat(text)
    return (read if read.tzinfo else read.replace(tzinfo=UTC)).timestamp()


def short_id(digest: object) -> str:
    return str(digest or "").removeprefix("sha256:")[:ID_CHARS]


def _counted(count: int, unit: str) -> str:
    return f"{count} {unit}{'' if count == 1 else 's'}"
