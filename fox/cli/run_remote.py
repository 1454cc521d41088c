"""`fox run` with a server that has the model."""

from __future__ import annotations

import json
from dataclasses import dataclass

import click

from fox.cli.client import Client, Fields, NotOurs, Refused
from fox.cli.list_ import tags
from fox.cli.refusal import Refusal
from fox.cli.remote import Remote, embed
from fox.cli.show import asked as show
from fox.cli.terminal import Terminal
from fox.cli.wishes import Wishes

ABSENT = (400, 404)  # a name that the server does not take may be one of this machine's


@dataclass(frozen=True)
class Found:
    """A model of the server, what it says of it, and the words after its name."""

    model: str
    shown: Fields
    prompt: str


def find(client: Client, words: tuple[str, ...], *, stays: bool) -> Found | None:
    """The model that the first word names, or without one the server's first. None where it has none; with `stays` a
    server that does not speak the dialect is refused. Raises Refusal.
    """
    try:
        if words and len(words[0].split()) == 1:
            return Found(words[0], show(client, words[0]), " ".join(words[1:]))
        models = tags(client)
        if not models:
            return None
        name = str(models[0]["name"])
        return Found(name, show(client, name), " ".join(words))
    except Refused as error:
        if error.status not in ABSENT:
            raise
    except NotOurs:
        if stays:
            raise
    return None


def run(client: Client, found: Found, prompt: str, asked: Wishes) -> None:
    """Ask once, or chat where there is no prompt; an embedding model gives the prompt's vector."""
    can = found.shown.get("capabilities") or ()
    if "embedding" in can and "completion" not in can:
        _print_vector(client, found.model, prompt, asked)
        return
    talk = Remote(
        client,
        found.model,
        found.shown,
        system=asked.system,
        options=asked.options,
        format=asked.form,
        think=asked.think,
        keep_alive=asked.keep_alive,
        hide_thinking=asked.hide_thinking,
        verbose=asked.verbose,
        once=bool(prompt),
    )
    terminal = Terminal(talk)
    terminal.answer(prompt) if prompt else terminal.chat()


def _print_vector(client: Client, model: str, prompt: str, asked: Wishes) -> None:
    if not prompt:
        raise Refusal(f"model '{model}' turns text into vectors", f"`fox run {model} TEXT` prints one")
    kept = {} if asked.keep_alive is None else {"keep_alive": asked.keep_alive}
    vector = embed(client, model, prompt, {**asked.vector, **kept})
    click.echo(json.dumps(vector, separators=(",", ":")))
