"""A conversation with one model: what was said, and the next answer as it comes."""

from __future__ import annotations

import time
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

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
