"""When an answer was asked for, when it could begin, and what it took, in Ollama's words."""

from __future__ import annotations

import time
from typing import Any

from fox.generation import Finish

NS = 1_000_000_000


def now() -> str:
    """RFC 3339 with nanoseconds, in UTC."""
    return stamp(time.time_ns())


def stamp(at_ns: int) -> str:
    seconds, rest = divmod(at_ns, NS)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(seconds))}.{rest:09d}Z"


class Clock:
    """Runs from when it is made."""

    def __init__(self) -> None:
        self._began = time.perf_counter_ns()
        self._loaded = self._first = self._began

    def loaded(self) -> None:
        """The model is there."""
        self._loaded = self._first = time.perf_counter_ns()

    def heard(self) -> None:
        """A token has come."""
        if self._first == self._loaded:
            self._first = time.perf_counter_ns()

    @property
    def load_ns(self) -> int:
        return self._loaded - self._began

    @property
    def total_ns(self) -> int:
        return time.perf_counter_ns() - self._began

    def stats(self, finish: Finish) -> dict[str, Any]:
        """Those that are nothing are left out. The count of a prompt's tokens is that of all of them."""
        end, usage = time.perf_counter_ns(), finish.usage
        counts = {
            "total_duration": end - self._began,
            "load_duration": self.load_ns,
            "prompt_eval_count": usage.prompt_tokens if usage else 0,
            "prompt_eval_duration": self._first - self._loaded,
            "eval_count": usage.completion_tokens if usage else 0,
            "eval_duration": end - self._first,
        }
        stats = {name: count for name, count in counts.items() if count}
        return {**stats, "prompt_eval_cached_count": usage.cached_tokens} if usage else stats
