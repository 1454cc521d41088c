"""`fox rm`: delete models."""

from __future__ import annotations

import sys
from contextlib import closing

import click

from fox import config
from fox.cli.client import Client, Refused, connect, in_process
from fox.cli.refusal import Refusal
from fox.cli.stop import unload


@click.command("rm")
@click.argument("models", nargs=-1, required=True, metavar="MODEL...")
@click.option("-y", "--yes", is_flag=True, help="Ask nothing, which is the default.")
@click.option("-i", "--interactive", is_flag=True, help="Ask before each.")
@click.option("--url", metavar="URL", help="Server to ask [default: FOX_HOST, or http://127.0.0.1:8080].")
def command(models: tuple[str, ...], yes: bool, interactive: bool, url: str | None) -> None:
    """Delete models, and what of them no other model needs. One that runs is stopped first."""
    settings = config.load({})
    server = connect(url, settings)
    with closing(server or in_process(settings)) as client:
        for model in models:
            if interactive and not yes and not _agreed(model):
                continue
            if server:
                _stop(server, model)
            client.delete("/api/delete", {"model": model})
            click.echo(f"deleted '{model}'")


def _stop(client: Client, model: str) -> None:
    try:
        unload(client, model)
    except Refusal as error:
        known = isinstance(error, Refused) and error.status and error.status < 500
        if not known:  # what is wrong with the name is told by the deletion
            click.echo(f"warning: unable to stop model '{model}': {error.message}", err=True)


def _agreed(model: str) -> bool:
    return not sys.stdin.isatty() or click.confirm(f"delete '{model}'?", err=True)
