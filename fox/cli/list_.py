"""`fox list`: the models on this machine."""

from __future__ import annotations

import time
from pathlib import Path

import click

from fox import config
from fox.cli import table
from fox.registry import Catalog

STEPS = (("year", 365 * 86400), ("month", 30 * 86400), ("week", 7 * 86400), ("day", 86400), ("hour", 3600))


@click.command("list")
@click.option(
    "--path", type=click.Path(path_type=Path), help="Folder to look in [default: the models' folder]."
)
def command(path: Path | None) -> None:
    """List the models on this machine."""
    entries = Catalog(path or config.load({}).models_dir, starter=path is None).entries()
    rows = [(e.name, table.size(e.size_bytes), _ago(time.time() - e.modified_at)) for e in entries]
    table.show([("NAME", "SIZE", "MODIFIED"), *rows])
    if not rows:
        click.echo("hint: put a GGUF there, or name one with `--model-path`", err=True)


def _ago(seconds: float) -> str:
    """`3 days ago`."""
    for name, length in (*STEPS, ("minute", 60)):
        if (count := int(seconds // length)) >= 1:
            return f"{count} {name}{'s' if count > 1 else ''} ago"
    return "just now"
