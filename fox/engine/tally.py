"""What the child counts for /metrics: gauges of now, and totals since the start that the parent only passes on."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

from fox.engine.answer import Answer
from fox.engine.messages import EngineStats
from fox.scheduler import Scheduler


class Tally:
    """Owned by the step thread."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._hit_tokens: Counter[str] = Counter()
        self._prompt_tokens = self._answers = self._hits = 0

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """The time a part of a step takes."""
        began = time.perf_counter()
        yield
        self._seconds[name] += time.perf_counter() - began

    def answered(self, answer: Answer) -> None:
        self._answers += 1
        self._prompt_tokens += answer.prompt_tokens
        if answer.scheduled.tier:
            self._hits += 1
            self._hit_tokens[answer.scheduled.tier] += answer.scheduled.cached

    def stats(self) -> EngineStats:
        scheduler, cache = self._scheduler, self._scheduler.cache
        counts = scheduler.counts
        return EngineStats(
            running=scheduler.running,
            waiting=scheduler.waiting,
            kv_usage=cache.usage,
            blocks_total=cache.shape.blocks,
            blocks_held=cache.held_blocks,
            host_bytes=cache.saved.used_bytes["host"],
            disk_bytes=cache.saved.used_bytes["disk"],
            preemptions=counts.preemptions,
            swaps=counts.swaps,
            spec_proposed=scheduler.speculation.proposed,
            spec_accepted=scheduler.speculation.accepted,
            prompt_tokens=self._prompt_tokens,
            hits=self._hits,
            misses=self._answers - self._hits,
            hit_tokens=dict(self._hit_tokens),
            step_seconds=dict(self._seconds),
        )
