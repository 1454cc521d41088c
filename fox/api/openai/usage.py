"""What an answer cost, in tokens and in time."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from fox import __version__
from fox.generation import Finish, ModelInfo, Usage


def usage_fields(
    finishes: Sequence[Finish], reasoning_tokens: int = 0, *, prompts: int = 1
) -> dict[str, Any]:
    """A prompt counts once, however many answers it has; so does what was found of it. The answers to each of
    `prompts` follow each other."""
    usages = [finish.usage or Usage(0, 0) for finish in finishes]
    each = len(usages) // prompts
    groups = [usages[at : at + each] for at in range(0, len(usages), each)]
    generated = sum(usage.completion_tokens for usage in usages)
    read = sum(group[0].prompt_tokens for group in groups)
    cached = sum(min(usage.cached_tokens for usage in group) for group in groups)
    return {
        "prompt_tokens": read,
        "completion_tokens": generated,
        "total_tokens": read + generated,
        "prompt_tokens_details": {"cached_tokens": cached},
        "completion_tokens_details": {"reasoning_tokens": reasoning_tokens},
    }


class Stopwatch:
    """llama.cpp's `timings`, as a client of this server sees them. Begins when it is made."""

    def __init__(self) -> None:
        self._began = time.perf_counter()
        self._first: float | None = None
        self._tokens = 0

    def heard(self, tokens: int) -> None:
        """So many tokens came just now."""
        self._tokens += tokens
        if self._first is None and tokens:
            self._first = time.perf_counter()

    def timings(self, usage: Usage | None = None) -> dict[str, Any]:
        now = time.perf_counter()
        first = self._first or now
        fields = _pace("predicted", self._tokens, now - first)
        if usage:
            computed = usage.prompt_tokens - usage.cached_tokens
            fields = {
                "cache_n": usage.cached_tokens,
                **_pace("prompt", computed, first - self._began),
                **fields,
            }
        return fields


def _pace(name: str, tokens: int, seconds: float) -> dict[str, Any]:
    return {
        f"{name}_n": tokens,
        f"{name}_ms": seconds * 1e3,
        f"{name}_per_token_ms": seconds * 1e3 / tokens if tokens else 0.0,
        f"{name}_per_second": tokens / seconds if seconds else 0.0,
    }


@lru_cache(maxsize=64)
def fingerprint(name: str, info: ModelInfo) -> str:
    """Changes with fox and with the model: equal seeds need not give equal answers under another."""
    what = f"{__version__} {name} {info.architecture} {info.parameters} {info.weights_bytes}"
    return f"fp_{hashlib.sha256(what.encode()).hexdigest()[:12]}"
