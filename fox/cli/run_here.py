"""`fox run` without a server: the engine is a child of this process."""

from __future__ import annotations

import asyncio

from fox.cli import logs
from fox.cli.conversation import Conversation, Local
from fox.cli.terminal import Terminal
from fox.cli.wishes import Wishes
from fox.config import Settings
from fox.generation import Sampling
from fox.registry import Catalog, Registry

DEFAULT_TOKENS = 512


def run(settings: Settings, models: Catalog, model: str, prompt: str, asked: Wishes) -> None:
    """Ask once, or chat where there is no prompt."""
    logs.silence() if not asked.verbose else logs.set_up(settings.log_level, as_json=settings.json_logs)
    registry = Registry(models, settings.engine_options(), settings.registry_options())
    sampling = Sampling(**asked.sampling)
    conversation = Conversation(registry, model, sampling, asked.max_tokens or DEFAULT_TOKENS, asked.system)
    with asyncio.Runner() as runner:
        terminal = Terminal(Local(runner, conversation, verbose=asked.verbose))
        try:
            terminal.answer(prompt) if prompt else terminal.chat()
        finally:
            runner.run(registry.close())
