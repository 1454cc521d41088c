"""A conversation with one model: what was said, and the next answer as it comes."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Protocol

from fox.chat import FALLBACK_TEMPLATE, ChatTemplate
from fox.engine import Engine, Generation
from fox.errors import EngineFailed
from fox.generation import GenerationRequest, ModelInfo, Sampling
from fox.registry import Registry


@dataclass(frozen=True)
class Speed:
    """What an answer took, in seconds. `load_s`: what loading the model took, whenever that was."""

    prompt_tokens: int
    answer_tokens: int
    load_s: float
    first_token_s: float
    decode_s: float

    def __str__(self) -> str:
        rate = max(0, self.answer_tokens - 1) / self.decode_s if self.decode_s else 0.0
        return (
            f"prompt {self.prompt_tokens} tokens, answer {self.answer_tokens} tokens, {rate:.1f} tokens/s, "
            f"first token {self.first_token_s:.2f} s, load {self.load_s:.2f} s"
        )


class Talk(Protocol):
    """A conversation as a terminal drives it."""

    verbose: bool
    """Tell after each answer what it took."""
    help: str
    """Its own commands, a line each."""

    def load(self) -> None:
        """Have the model ready. Raises FoxError, Refusal."""

    def ask(self, text: str, show: Callable[[str], None]) -> object:
        """Say `text`, and pass the answer's pieces to `show`. What it took, as text. Raises FoxError, Refusal;
        KeyboardInterrupt at Ctrl-C, with the answer stopped."""

    def clear(self) -> None: ...

    def command(self, words: list[str], rest: str) -> bool:
        """Obey one of its own commands: its words, and what follows the first two as it was typed. False: it has no
        such command. Raises FoxError, Refusal."""


class Local:
    """A Conversation with an engine of this process. Its loop runs only while an answer comes."""

    help = ""

    def __init__(self, runner: asyncio.Runner, conversation: Conversation, *, verbose: bool) -> None:
        self.verbose = verbose
        self._runner = runner
        self._conversation = conversation

    def load(self) -> None:
        self._runner.run(self._conversation.load())

    def ask(self, text: str, show: Callable[[str], None]) -> Speed:
        return self._runner.run(self._conversation.ask(text, show))

    def clear(self) -> None:
        self._conversation.clear()

    def command(self, words: list[str], rest: str) -> bool:
        return False


@dataclass
class Conversation:
    """Messages so far and how answers are made. A fresh one says the system prompt first, if there is one."""

    registry: Registry
    model: str
    sampling: Sampling
    max_tokens: int
    system_prompt: str = ""
    messages: list[dict[str, str]] = field(default_factory=list)
    _template: tuple[ModelInfo, ChatTemplate] | None = None
    _loaded: tuple[int, float] = (0, 0.0)  # pid of the engine, seconds it took to load

    async def load(self) -> None:
        """Have the model ready. Raises ModelNotFound, ModelLoadFailed."""
        async with self._lease():
            pass

    def clear(self) -> None:
        self.messages.clear()

    async def ask(self, text: str, show: Callable[[str], None]) -> Speed:
        """Say `text` and pass the answer's pieces to `show` as they come.

        Question and answer are remembered, also an answer that was cancelled or broke off midway. One of
        which not a word came is forgotten together with its question. Raises FoxError.
        """
        said: list[str] = []
        turn = {"role": "user", "content": text}

        def hear(piece: str) -> None:
            said.append(piece)
            show(piece)

        try:
            return await self._answer(turn, hear)
        finally:
            if answer := "".join(said):
                self.messages += [turn, {"role": "assistant", "content": answer}]

    async def _answer(self, turn: dict[str, str], show: Callable[[str], None]) -> Speed:
        async with self._lease() as engine:
            began = time.perf_counter()
            generation = await engine.submit(self._request(engine, turn))
            try:
                first, tokens = await _stream(generation, show)
            finally:
                generation.cancel()
        ended = time.perf_counter()
        return Speed(generation.prompt_tokens, tokens, self._loaded[1], first - began, ended - first)

    @asynccontextmanager
    async def _lease(self) -> AsyncIterator[Engine]:
        began = time.perf_counter()
        async with self.registry.lease(self.model) as engine:
            if engine.pid != self._loaded[0]:
                self._loaded = engine.pid, time.perf_counter() - began
            yield engine

    def _request(self, engine: Engine, turn: dict[str, str]) -> GenerationRequest:
        system = [{"role": "system", "content": self.system_prompt}] if self.system_prompt else []
        prompt = self._template_of(engine.info).render([*system, *self.messages, turn])
        return GenerationRequest(uuid.uuid4().hex, prompt, self.sampling, self.max_tokens)

    def _template_of(self, info: ModelInfo) -> ChatTemplate:
        if self._template is None or self._template[0] != info:
            source = FALLBACK_TEMPLATE if info.chat_template is None else info.chat_template
            self._template = info, ChatTemplate(source, info.bos, info.eos, info.control_tokens)
        return self._template[1]


async def _stream(generation: Generation, show: Callable[[str], None]) -> tuple[float, int]:
    """Show every piece. Returns when the first token came (perf_counter seconds), and how many there were."""
    first, tokens = 0.0, 0
    async for delta in generation:
        first = first or time.perf_counter()
        tokens += delta.tokens
        if delta.text:
            show(delta.text)
        if delta.finish and delta.finish.failure:
            raise delta.finish.failure.to_error()
    if not first:
        raise EngineFailed("the answer ended without a finish")
    return first, tokens
