"""A request's `options` over those of its model, as what an engine is asked."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fox.generation import Sampling
from fox.registry.parameters import DEPRECATED, KNOWN, typed

log = logging.getLogger("fox.api")

SEED_MASK = 0xFFFFFFFF
GREEDY_BELOW = 1e-6  # logits divided by less than this overflow 32-bit floats
LEAST_CONTEXT, MOST_TOKENS = 4, 1 << 30
STOPS, STOP_CHARS = 64, 1024
HOT = 100.0
RANGES = {  # what lies outside has no meaning, and is taken for the nearest that has
    "temperature": (0.0, HOT),
    "top_p": (1e-6, 1.0),
    "min_p": (0.0, 1.0),
    "typical_p": (1e-6, 1.0),
    "repeat_penalty": (1e-3, HOT),
    "presence_penalty": (-HOT, HOT),
    "frequency_penalty": (-HOT, HOT),
    "top_k": (0, SEED_MASK >> 1),
    "repeat_last_n": (-1, MOST_TOKENS),
}


@dataclass(frozen=True)
class Options:
    """By Ollama's names, of their types; those that are not set are absent."""

    values: Mapping[str, Any]

    @classmethod
    def of(cls, given: Mapping[str, Any], beneath: Mapping[str, Any] | None = None) -> Options:
        """`beneath`: the model's own. Raises InvalidRequest for a value of another type."""
        values = {**(beneath or {}), **{name: value for name, value in given.items() if value is not None}}
        if unknown := sorted(name for name in given if name not in KNOWN and name not in DEPRECATED):
            log.debug("passed over options that are not known: %s", ", ".join(unknown)[:200])
        read = {name: typed(name, value) for name, value in values.items()}
        return cls({name: value for name, value in read.items() if value is not None})

    @property
    def context_tokens(self) -> int | None:
        """`num_ctx`, where it is one."""
        asked = self.values.get("num_ctx", 0)
        return min(max(asked, LEAST_CONTEXT), MOST_TOKENS) if asked > 0 else None

    @property
    def keep(self) -> int | None:
        kept = self.values.get("num_keep")
        return None if kept is None or kept < 0 else min(kept, MOST_TOKENS)

    @property
    def limit(self) -> int | None:
        """Tokens at most; None: as many as the context allows. 0 is none at all."""
        tokens = self.values.get("num_predict", -1)
        return None if tokens < 0 else min(tokens, MOST_TOKENS)

    @property
    def stop(self) -> tuple[str, ...]:
        return tuple(text for text in self.values.get("stop", ()) if 0 < len(text) <= STOP_CHARS)[:STOPS]

    @property
    def sampling(self) -> Sampling:
        values = {
            name: min(max(self.values[name], least), most)
            for name, (least, most) in RANGES.items()
            if name in self.values
        }
        if values.get("temperature", 1) < GREEDY_BELOW:
            values["temperature"] = 0.0
        seed = self.values.get("seed", -1)
        return Sampling(**values, seed=None if seed == -1 else seed & SEED_MASK)
