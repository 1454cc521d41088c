"""`fox stop`: take a model out of a running server's memory."""

from __future__ import annotations

import click

from fox.cli.client import Client, Refused, server
from fox.cli.refusal import Refusal


@click.command("stop")
@click.argument("model")
@click.option("--url", metavar="URL", help="Server to ask [default: FOX_HOST, or http://127.0.0.1:8080].")
def command(model: str, url: str | None) -> None:
    """Take a model out of a running server's memory."""
    try:
        unload(server(url), model)
    except Refused as error:
        if "not found" in error.message:
            raise Refusal(f'couldn\'t find model "{model}" to stop', "`fox ps` lists what runs") from None
        raise


def unload(client: Client, model: str) -> None:
    """Raises Refused. A model that runs on another machine is left alone."""
    if not client.post("/api/show", {"model": model}).get("remote_host"):
        for _ in client.stream("/api/generate", {"model": model, "keep_alive": 0}):
            pass
