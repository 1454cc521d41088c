"""`fox list`: the models on this machine, or on the server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from fox import config
from fox.cli import table
from fox.cli.client import Client, Fields, connect
from fox.registry import Catalog

HEAD = ("NAME", "ID", "SIZE", "MODIFIED")


@click.command("list")
@click.argument("prefix", default="")
@click.option(
    "--path", type=click.Path(path_type=Path), help="Folder to look in [default: the models' folder]."
)
@click.option("--url", metavar="URL", help="Server to ask [default: FOX_HOST, or http://127.0.0.1:8080].")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, as `/api/tags` answers.")
def command(prefix: str, path: Path | None, url: str | None, as_json: bool) -> None:
    """List the models a server has, or those on this machine where none runs.

    PREFIX: only those whose names begin with it.
    """
    models = [one for one in _models(path, url) if _begins(one["name"], prefix)]
    if as_json:
        stamped = [{**one, "modified_at": _stamp(one.get("modified_at"))} for one in models]
        click.echo(json.dumps({"models": stamped}, indent=2, ensure_ascii=False))
        return
    table.show([HEAD, *map(row, models)])
    if not models and not prefix:
        click.echo("hint: put a GGUF there, or name one with `--model-path`", err=True)


def _models(path: Path | None, url: str | None) -> list[Fields]:
    if path is not None:
        return listed(Catalog(path, starter=False))
    settings = config.load({})
    if client := connect(url, settings):
        return tags(client)
    from fox.cli.models import catalog

    return listed(catalog(settings))


def tags(client: Client) -> list[Fields]:
    """What the server has. Raises Refusal."""
    models = client.get("/api/tags").get("models")
    if not isinstance(models, list) or not all(isinstance(one, dict) and "name" in one for one in models):
        raise client.strange()
    return models


def listed(catalog: Catalog) -> list[Fields]:
    """The same of this machine's models, as far as it can be told without opening them; the newest first.

    Their `modified_at` is in seconds since the epoch.
    """
    entries = sorted(catalog.entries(), key=lambda entry: entry.modified_at, reverse=True)
    return [
        {
            "name": entry.tagged,
            "model": entry.tagged,
            "modified_at": entry.modified_at,
            "size": entry.size_bytes,
            "digest": entry.digest,
        }
        for entry in entries
    ]


def row(model: Fields) -> tuple[str, str, str, str]:
    size = "-" if model.get("remote_model") else table.size(model.get("size") or 0)
    modified = table.when(table.moment(model.get("modified_at")))
    return str(model["name"]), table.short_id(model.get("digest")), size, modified


def _begins(name: Any, prefix: str) -> bool:
    return str(name).casefold().startswith(prefix.casefold())


def _stamp(moment: object) -> object:
    if not isinstance(moment, float):
        return moment
    from datetime import UTC, datetime

    return datetime.fromtimestamp(moment, UTC).isoformat().replace("+00:00", "Z")
