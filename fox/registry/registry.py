"""Running engines by model name: loaded once however many wait, kept for a while, loaded anew after a death."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

from fox.engine import Engine, EngineOptions, EngineSpec
from fox.errors import Draining, FoxError, ModelLoadFailed
from fox.registry.catalog import Catalog, ModelEntry
from fox.registry.compat import refuse_foreign
from fox.registry.eviction import longest_idle
from fox.registry.recipe import PLAIN, Recipe, read_recipe
from fox.registry.resident import FOREVER, Resident, Terms

log = logging.getLogger("fox.registry")

NO_TERMS = Terms()
UNTAKEN_S = 5.0  # so long a model is kept for whoever had it loaded


@dataclass(frozen=True)
class RegistryOptions:
    """`keep_alive_secs`: how long a model stays that nobody uses (`math.inf`: for ever). `max_models` in memory at once
    (0: no bound). `context_len`: the context that a model is loaded with, where a request asks for no more (None: all
    it may have)."""

    keep_alive_secs: float = FOREVER
    max_models: int = 0
    context_len: int | None = None


class Registry:
    """Owned by the event loop. `lease` is the only way to an engine."""

    def __init__(
        self, catalog: Catalog, engine_options: EngineOptions, options: RegistryOptions | None = None
    ) -> None:
        self.catalog = catalog
        self.loads: Counter[tuple[str, str]] = Counter()
        """How often a model was loaded, by its name and why: `first`, `context`."""
        self._engine_options = engine_options
        self._options = options or RegistryOptions()
        self._residents: dict[str, Resident] = {}
        self._loading: dict[str, asyncio.Task[Resident]] = {}
        self._leaving: set[asyncio.Task[None]] = set()
        self._retired: set[Resident] = set()
        self._starting = 0
        self._freed = asyncio.Event()
        self._closed = False

    @asynccontextmanager
    async def lease(self, name: str, terms: Terms = NO_TERMS) -> AsyncIterator[Engine]:
        """A running engine for `name`. Raises ModelNotFound, ModelLoadFailed, and Draining once the registry is closed.

        A caller that stops waiting does not stop a load that others may wait for.
        """
        while (resident := await self._resident(name, terms)).retired:
            pass  # it went between its load and now
        resident.take(terms.keep_alive_s)
        try:
            yield resident.engine
        finally:
            resident.put_back()
            self._settle(resident)

    def running(self) -> list[Engine]:
        """The engines that can answer now."""
        return [resident.engine for resident in self.residents()]

    def residents(self) -> list[Resident]:
        """The models in memory."""
        return [one for one in self._residents.values() if one.engine.alive]

    def recipe(self, engine: Engine) -> Recipe:
        """How the model of a running engine is served."""
        known = [one for one in (*self._residents.values(), *self._retired) if one.engine is engine]
        return known[0].recipe if known else PLAIN

    async def unload(self, name: str) -> bool:
        """Take a model out of memory, now if nobody uses it, else when the last one is done. Whether it was there."""
        resident = self._residents.get(name)
        if resident is None or not resident.engine.alive:
            return False
        resident.keep_alive_s = 0
        if resident.idle:
            await self._remove(resident)
        return True

    def forget(self, name: str) -> None:
        """What its name stands for has changed: who asks from now on gets a new engine."""
        if resident := self._residents.pop(name, None):
            resident.retire()
            self._retired.add(resident)
            self._settle(resident)

    async def close(self) -> None:
        """End every child, also those that still load. Idempotent."""
        self._closed = True
        self._freed.set()
        for task in self._loading.values():
            task.cancel()
        await asyncio.gather(*self._loading.values(), return_exceptions=True)
        leaving = [self._close(one) for one in (*self._residents.values(), *self._retired)]
        self._residents.clear()
        await asyncio.gather(*leaving, *self._leaving)

    # who is there

    async def _resident(self, name: str, terms: Terms) -> Resident:
        if self._closed:
            raise Draining
        resident = self._alive(name)
        if resident is None:
            entry = self.catalog.find(name)
            resident = self._alive(entry.name) or await self._load_once(entry, terms.context_tokens, "first")
        if (more := self._more(resident, terms.context_tokens)) is None:
            return resident
        try:
            return await self._load_once(resident.entry, more, "context")
        except ModelLoadFailed:
            return resident

    def _alive(self, name: str) -> Resident | None:
        resident = self._residents.get(name)
        return resident if resident is not None and resident.engine.alive else None

    def _more(self, resident: Resident, wanted: int | None) -> int | None:
        """The context to load it with again, where it could have more than it has and somebody needs that."""
        if resident.asked_tokens is None or wanted is None:
            return None
        info = resident.engine.info
        most = min(info.trained_context_tokens, self._engine_options.max_context_len or wanted)
        more = min(wanted, most)
        return more if more > max(info.context_tokens, resident.asked_tokens) else None

    # loading

    async def _load_once(self, entry: ModelEntry, context_tokens: int | None, why: str) -> Resident:
        task = self._loading.get(entry.name)
        if task is None:
            task = asyncio.get_running_loop().create_task(self._load(entry, context_tokens, why))
            self._loading[entry.name] = task
            task.add_done_callback(lambda done: self._loaded(entry.name, done))
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if task.cancelled():
                raise Draining from None
            raise

    async def _load(self, entry: ModelEntry, context_tokens: int | None, why: str) -> Resident:
        recipe = recipe_of(entry)
        refuse_foreign(entry)
        asked = self._asked(recipe, context_tokens)
        if why != "context":
            await self._make_room()
        self._starting += 1
        began = time.perf_counter()
        try:
            resident = await self._start(entry, recipe, asked)
        finally:
            self._starting -= 1
            self._freed.set()
        if before := self._residents.pop(entry.name, None):
            before.retire()
            self._retired.add(before)
            resident.keep_alive_s = before.keep_alive_s
            self._settle(before)
        self._residents[entry.name] = resident
        self.loads[entry.name, why] += 1
        took, context = time.perf_counter() - began, resident.engine.info.context_tokens
        log.info("model ready: %s, context %d, %.2f s", entry.name, context, took)
        asyncio.get_running_loop().call_later(UNTAKEN_S, self._release, resident)
        return resident

    def _asked(self, recipe: Recipe, context_tokens: int | None) -> int | None:
        """The context to load a model with; None: all it may have."""
        base = self._options.context_len
        named = recipe.parameters.get("num_ctx")
        if isinstance(named, int) and named > 0:
            base = named
        if base is None:
            return None
        most = self._engine_options.max_context_len
        asked = max(base, context_tokens or 0)
        return asked if most is None else min(asked, most)

    async def _start(self, entry: ModelEntry, recipe: Recipe, asked: int | None) -> Resident:
        options = self._engine_options
        if asked is not None:
            options = replace(options, max_context_len=asked)
        spec = EngineSpec(entry.name, entry.kind, entry.path, options, recipe.adapters)
        resident = Resident(entry, await Engine.start(spec), self._options.keep_alive_secs, asked)
        resident.recipe = recipe
        return resident

    async def _make_room(self) -> None:
        """Until one more may come: who has been idle longest goes, or somebody is waited for."""
        while 0 < self._options.max_models <= len(self._residents) + self._starting:
            self._freed.clear()
            if out := longest_idle(self._residents.values()):
                await self._remove(out)
            else:
                await self._freed.wait()
            if self._closed:
                raise Draining

    def _loaded(self, name: str, task: asyncio.Task[Resident]) -> None:
        del self._loading[name]
        if not task.cancelled() and (error := task.exception()):
            log.error("%s", error)

    # leaving

    def _settle(self, resident: Resident) -> None:
        """Somebody has put it back, or it was retired: it goes, or its clock runs."""
        if not resident.idle or self._closed:
            return
        if resident.retired or not resident.engine.alive or resident.keep_alive_s <= 0:
            self._leave(resident)
        else:
            resident.start_clock(lambda: self._leave(resident))
        self._freed.set()

    def _release(self, resident: Resident) -> None:
        """Whoever it was loaded for does not come any more."""
        if resident.promised:
            resident.promised = False
            self._settle(resident)

    def _leave(self, resident: Resident) -> None:
        if resident.idle:
            task = asyncio.get_running_loop().create_task(self._remove(resident))
            self._leaving.add(task)
            task.add_done_callback(self._leaving.discard)

    async def _remove(self, resident: Resident) -> None:
        if self._residents.get(resident.entry.name) is resident:
            del self._residents[resident.entry.name]
        resident.retire()
        self._retired.discard(resident)
        await self._close(resident)
        self._freed.set()

    @staticmethod
    async def _close(resident: Resident) -> None:
        await resident.engine.close()


def recipe_of(entry: ModelEntry) -> Recipe:
    """How a model is to be served. Raises ModelLoadFailed where a part of it is missing or makes no sense."""
    if entry.manifest is None or entry.store is None:
        return PLAIN
    try:
        if entry.path is None:
            raise ModelLoadFailed(entry.name, "its manifest names no weights in GGUF form")
        entry.store.blob(entry.manifest.of("model")[0].digest)
        recipe = read_recipe(entry.store, entry.manifest)
    except ModelLoadFailed:
        raise
    except FoxError as error:
        raise ModelLoadFailed(entry.name, str(error)) from None
    if not entry.path.is_file():
        missing = entry.path.name.replace("-", ":", 1)[:19]
        raise ModelLoadFailed(entry.name, f"blob {missing} is missing: create or pull the model again")
    return recipe
