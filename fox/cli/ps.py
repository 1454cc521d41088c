"""`fox ps`: the models that a running server holds."""

from __future__ import annotations

import json
import time

import click

from fox.cli import table
from fox.cli.client import Client, Fields, server

HEAD = ("NAME", "ID", "SIZE", "PROCESSOR", "CONTEXT", "UNTIL")


@click.command("ps")
@click.argument("prefix", default="")
@click.option("--url", metavar="URL", help="Server to ask [default: FOX_HOST, or http://127.0.0.1:8080].")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, as `/api/ps` answers.")
def command(prefix: str, url: str | None, as_json: bool) -> None:
    """List the models a running server holds.

    PREFIX: only those whose names begin with it.
    """
    models = [one for one in _running(server(url)) if str(one["name"]).startswith(prefix)]
    if as_json:
        click.echo(json.dumps({"models": models}, indent=2, ensure_ascii=False))
        return
    table.show([HEAD, *map(_row, models)])


def _running(client: Client) -> list[Fields]:
    models = client.get("/api/ps").get("models")
    if not isinstance(models, list) or not all(isinstance(one, dict) and "name" in one for one in models):
        raise client.strange()
    return models


def _row(model: Fields) -> tuple[str, ...]:
    size = model.get("size") or 0
    return (
        str(model["name"]),
        table.short_id(model.get("digest")),
        table.size(size),
        processor(size, model.get("size_vram") or 0),
        str(model.get("context_length") or "-"),
        until(model.get("expires_at")),
    )


def processor(size: int, on_gpu: int) -> str:
    """`48%/52% CPU/GPU`: where the model's bytes are."""
    if on_gpu == 0:
        return "100% CPU"
    if on_gpu == size:
        return "100% GPU"
    if on_gpu > size:
        return "Unknown"
    on_cpu = int((size - on_gpu) / size * 100 + 0.5)
    return f"{on_cpu}%/{100 - on_cpu}% CPU/GPU"


def until(expires_at: object) -> str:
    """When it leaves: `4 minutes from now`, `Forever`, `Stopping...`."""
    moment = table.moment(expires_at)
    if moment is not None and moment < time.time():
        return "Stopping..."
    return table.when(moment)
