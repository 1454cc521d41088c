"""Running engines by model name: loaded once however many wait, loaded anew after a death."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fox.engine import Engine, EngineOptions, EngineSpec
from fox.errors import Draining
from fox.registry.catalog import Catalog, ModelEntry

log = logging.getLogger("fox.registry")


class Registry:
    """Owned by the event loop. `lease` is the only way to an engine."""

    def __init__(self, catalog: Catalog, engine_options: EngineOptions) -> None:
        self.catalog = catalog
        self._options = engine_options
        self._engines: dict[str, Engine] = {}
        self._loading: dict[str, asyncio.Task[Engine]] = {}
        self._closed = False

    @asynccontextmanager
    async def lease(self, name: str) -> AsyncIterator[Engine]:
        """A running engine for `name`. Raises ModelNotFound, ModelLoadFailed, and Draining once the registry is closed.

        A caller that stops waiting does not stop a load that others may wait for.
        """
        if self._closed:
            raise Draining
        engine = self._alive(name)
        if engine is None:
            engine = await self._load_once(self.catalog.find(name))
        yield engine

    def running(self) -> list[Engine]:
        """The engines that can answer now."""
        return [engine for engine in self._engines.values() if engine.alive]

    async def close(self) -> None:
        """End every child, also those that still load. Idempotent."""
        self._closed = True
        for task in self._loading.values():
            task.cancel()
        await asyncio.gather(*self._loading.values(), return_exceptions=True)
        await asyncio.gather(*(engine.close() for engine in self._engines.values()))
        self._engines.clear()

    def _alive(self, name: str) -> Engine | None:
        engine = self._engines.get(name)
        return engine if engine is not None and engine.alive else None

    async def _load_once(self, entry: ModelEntry) -> Engine:
        if engine := self._alive(entry.name):
            return engine
        task = self._loading.get(entry.name)
        if task is None:
            task = asyncio.get_running_loop().create_task(self._load(entry))
            self._loading[entry.name] = task
            task.add_done_callback(lambda done: self._loaded(entry.name, done))
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if task.cancelled():
                raise Draining from None
            raise

    async def _load(self, entry: ModelEntry) -> Engine:
        began = time.perf_counter()
        engine = await Engine.start(EngineSpec(entry.name, entry.kind, entry.path, self._options))
        self._engines[entry.name] = engine
        log.info(
            "model ready: %s, context %d, %.2f s",
            entry.name,
            engine.info.context_tokens,
            time.perf_counter() - began,
        )
        return engine

    def _loaded(self, name: str, task: asyncio.Task[Engine]) -> None:
        del self._loading[name]
        if not task.cancelled() and (error := task.exception()):
            log.error("%s", error)
