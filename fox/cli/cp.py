"""`fox cp`: another name for a model; its bytes are not copied."""

from __future__ import annotations

from contextlib import closing

import click

from fox.cli.client import reach


@click.command("cp")
@click.argument("source")
@click.argument("destination")
@click.option("--url", metavar="URL", help="Server to ask [default: FOX_HOST, or http://127.0.0.1:8080].")
def command(source: str, destination: str, url: str | None) -> None:
    """Give a model another name. Its bytes are not copied."""
    with closing(reach(url)) as client:
        client.post("/api/copy", {"source": source, "destination": destination})
    click.echo(f"copied '{source}' to '{destination}'")
