"""Plain tables and sizes, as people read them."""

from __future__ import annotations

from collections.abc import Sequence

import click


def show(rows: Sequence[Sequence[str]]) -> None:
    """Aligned columns on stdout; the first row holds their names."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        click.echo("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def size(size_bytes: float) -> str:
    """`145.3 MB`: decimal units."""
    for unit in ("B", "KB", "MB", "GB"):
        if size_bytes < 1000:
            return f"{size_bytes:.0f} {unit}" if unit == "B" else f"{size_bytes:.1f} {unit}"
        size_bytes /= 1000
    return f"{size_bytes:.1f} TB"
