"""A registry and engines without children: what they are told is recorded, what they say is set by the test."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Self

import msgspec
import numpy as np

from fox.engine import EngineStats, Tokens, Vectors
from fox.errors import FoxError, ModelNotFound
from fox.generation import (
    Delta,
    Failure,
    Finish,
    GenerationRequest,
    ModelInfo,
    PromptPart,
    TokenLogprob,
    Usage,
)
from fox.registry import ModelEntry, Terms
from fox.registry.recipe import Recipe

NO_TERMS = Terms()

TEMPLATE = (
    "{% if tools %}{{ tools | tojson }}\n{% endif %}"
    "{% for m in messages %}{{ m.role }}:{{ m.content }}\n{% endfor %}"
)
INFO = ModelInfo(
    name="tiny",
    architecture="fake",
    context_tokens=100,
    trained_context_tokens=100,
    parallel=4,
    vocab_tokens=50,
    parameters=134_515_008,
    weights_bytes=144_000_000,
    chat_template=TEMPLATE,
    bos="",
    eos="</s>",
    control_tokens=("</s>",),
)
STOP = Finish("stop", Usage(7, 3, 2))
DEAD = Finish("failed", failure=Failure("EngineFailed", ("the engine of 'tiny' was killed by SIGKILL",)))


class FakeGeneration:
    """Says what is put into it. Knows how often it was cancelled."""

    def __init__(self, request: GenerationRequest) -> None:
        self.id = request.id
        self.prompt_tokens = 7
        self.truncated = 0
        self.warnings: tuple[str, ...] = ()
        self.logprobs: tuple[TokenLogprob, ...] = ()
        self.cancels = 0
        self.cancelled = asyncio.Event()
        self.waiting = asyncio.Event()
        self._deltas: asyncio.Queue[Delta | Exception | None] = asyncio.Queue()

    def say(self, *texts: str, finish: Finish | None = None) -> None:
        for text in texts:
            self._deltas.put_nowait(Delta(self.id, text, 1, None, self.logprobs))
        if finish:
            self._deltas.put_nowait(Delta(self.id, "", 0, finish))

    def say_last(self, text: str, finish: Finish) -> None:
        self._deltas.put_nowait(Delta(self.id, text, 1, finish))

    def end_without_a_finish(self) -> None:
        self._deltas.put_nowait(None)

    def crash(self, error: Exception) -> None:
        self._deltas.put_nowait(error)

    def cancel(self) -> None:
        self.cancels += 1
        self.cancelled.set()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Delta:
        self.waiting.set()
        delta = await self._deltas.get()
        if delta is None:
            raise StopAsyncIteration
        if isinstance(delta, Exception):
            raise delta
        return delta


class FakeEngine:
    """Accepts what comes, unless `refusal` is set or `accepts` is cleared. Says `says` at once, if that is not None."""

    def __init__(
        self, name: str = "tiny", says: Sequence[str] | None = ("Hel", "lo"), finish: Finish = STOP
    ) -> None:
        self.name = name
        self.info = msgspec.structs.replace(INFO, name=name)
        self.stats = EngineStats()
        self.alive = True
        self.says = says
        self.finish = finish
        self.refusal: Exception | None = None
        self.logprobs: tuple[TokenLogprob, ...] = ()
        self.truncates = 0
        self.warnings: tuple[str, ...] = ()
        self.accepts = asyncio.Event()
        self.accepts.set()
        self.asked = asyncio.Event()
        self.abandoned = asyncio.Event()
        self.requests: list[GenerationRequest] = []
        self.errands: list[dict[str, Any]] = []
        self.cancelled: list[str] = []
        self.spec: Any = None
        self._open: dict[str, FakeGeneration] = {}
        self.generations: asyncio.Queue[FakeGeneration] = asyncio.Queue()

    async def submit(self, request: GenerationRequest) -> FakeGeneration:
        self.requests.append(request)
        await self._taken()
        generation = FakeGeneration(request)
        generation.logprobs = self.logprobs
        generation.truncated = self.truncates
        generation.warnings = self.warnings
        if self.says is not None:
            generation.say(*self.says, finish=self.finish)
        self.generations.put_nowait(generation)
        self._open[request.id] = generation
        return generation

    @property
    def open_ids(self) -> tuple[str, ...]:
        return tuple(self._open)

    def cancel(self, id_: str) -> bool:
        self.cancelled.append(id_)
        if generation := self._open.pop(id_, None):
            generation.say(finish=Finish("cancelled"))
        return generation is not None

    async def embed(self, inputs: Sequence[str | tuple[int, ...]], **how: Any) -> Vectors:
        """Of each text its length and its place; with a query, the place."""
        await self._errand({"inputs": list(inputs), **how})
        asked = how.get("query") is not None
        width = 1 if asked else how.get("dimensions") or 2
        rows = [[at] if asked else [len(text), at][:width] for at, text in enumerate(inputs)]
        return Vectors("v", np.array(rows, "<f4").tobytes(), width, tuple(map(len, inputs)))

    async def tokenize(self, prompt: Sequence[PromptPart], *, begins: bool) -> Tokens:
        """A token a character."""
        await self._errand({"prompt": tuple(prompt), "begins": begins})
        text = "".join(part.text for part in prompt).encode()
        return Tokens("t", tuple(text), tuple(bytes([byte]) for byte in text))

    async def detokenize(self, tokens: Sequence[int]) -> Tokens:
        await self._errand({"tokens": list(tokens)})
        return Tokens("t", tuple(tokens), tuple(bytes([token]) for token in tokens))

    async def _errand(self, asked: dict[str, Any]) -> None:
        self.errands.append(asked)
        await self._taken()

    async def _taken(self) -> None:
        self.asked.set()
        try:
            await self.accepts.wait()
        except asyncio.CancelledError:
            self.abandoned.set()
            raise
        if self.refusal:
            raise self.refusal


class FakeCatalog:
    def __init__(self, names: Sequence[str]) -> None:
        self._entries = [ModelEntry(name, "echo", None, 5, 1_700_000_000.9) for name in names]

    store = None

    def entries(self) -> list[ModelEntry]:
        return self._entries

    def exact(self, name: str) -> ModelEntry | None:
        return next((entry for entry in self._entries if entry.name == name), None)

    def find(self, name: str) -> ModelEntry:
        for entry in self._entries:
            if name in (entry.name, f"{entry.name}:latest"):
                return entry
        raise ModelNotFound(name)


class FakeRegistry:
    """Leases `engines`. A lease is granted once `loaded` is set; `refusal` is raised then."""

    def __init__(self, *engines: FakeEngine) -> None:
        self.engines = {engine.name: engine for engine in engines}
        self.catalog = FakeCatalog([*self.engines])
        self.refusal: FoxError | None = None
        self.loaded = asyncio.Event()
        self.loaded.set()
        self.asked = asyncio.Event()
        self.abandoned = asyncio.Event()
        self.leases = 0
        self.terms: list[Terms] = []
        self.recipes: dict[str, Recipe] = {}
        self.unloaded: list[str] = []
        self.loads: dict[tuple[str, str], int] = {}

    @asynccontextmanager
    async def lease(self, name: str, terms: Terms = NO_TERMS) -> AsyncIterator[FakeEngine]:
        engine = self.engines[self.catalog.find(name).name]
        self.terms.append(terms)
        self.asked.set()
        try:
            await self.loaded.wait()
        except asyncio.CancelledError:
            self.abandoned.set()
            raise
        if self.refusal:
            raise self.refusal
        self.leases += 1
        try:
            yield engine
        finally:
            self.leases -= 1

    def recipe(self, engine: FakeEngine) -> Recipe:
        return self.recipes.get(engine.name, Recipe())

    def residents(self) -> list[Any]:
        return []

    async def unload(self, name: str) -> bool:
        self.unloaded.append(name)
        return name in self.engines

    def forget(self, name: str) -> None:
        self.unloaded.append(name)

    def running(self) -> list[FakeEngine]:
        return [engine for engine in self.engines.values() if engine.alive]
