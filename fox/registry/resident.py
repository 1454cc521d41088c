"""A model in memory: who uses it, and until when it stays."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable
from dataclasses import dataclass

from fox.engine import Engine
from fox.registry.catalog import ModelEntry
from fox.registry.recipe import PLAIN, Recipe

FOREVER = math.inf


@dataclass(frozen=True)
class Terms:
    """What a lease asks beside the model: `keep_alive_s` for how long it stays once nobody uses it (None: as it was
    asked before, `math.inf`: for ever, 0: not at all), and a context of `context_tokens`."""

    keep_alive_s: float | None = None
    context_tokens: int | None = None


class Resident:
    """`asked_tokens`: the context it was loaded with where it could have more, None where it has all there is.
    `expired` is called when its time has come."""

    def __init__(
        self, entry: ModelEntry, engine: Engine, keep_alive_s: float, asked_tokens: int | None = None
    ) -> None:
        self.entry = entry
        self.engine = engine
        self.recipe: Recipe = PLAIN
        self.asked_tokens = asked_tokens
        self.leases = 0
        self.promised = True
        """It was loaded for somebody who has not taken it yet."""
        self.retired = False
        self.used_at = time.time()
        self._default_s = self.keep_alive_s = keep_alive_s
        self._timer: asyncio.TimerHandle | None = None

    @property
    def idle(self) -> bool:
        return self.leases == 0 and not self.promised

    @property
    def expires_at(self) -> float:
        """Seconds since the epoch; `math.inf`: never. While it is used, as if that ended now."""
        return (self.used_at if self.idle else time.time()) + self.keep_alive_s

    def take(self, keep_alive_s: float | None) -> None:
        """One more uses it. Whoever does not say otherwise leaves its time as it is, unless it was about to go."""
        self.leases += 1
        self.promised = False
        if keep_alive_s is not None:
            self.keep_alive_s = keep_alive_s
        elif self.keep_alive_s == 0:
            self.keep_alive_s = self._default_s
        self._stop_clock()

    def put_back(self) -> None:
        self.leases -= 1
        self.used_at = time.time()

    def start_clock(self, expired: Callable[[], None]) -> None:
        """Nobody uses it from now on."""
        self._stop_clock()
        if self.keep_alive_s != FOREVER:
            self._timer = asyncio.get_running_loop().call_later(self.keep_alive_s, expired)

    def retire(self) -> None:
        """It answers no new requests."""
        self.retired = True
        self._stop_clock()

    def _stop_clock(self) -> None:
        if self._timer:
            self._timer.cancel()
            self._timer = None
