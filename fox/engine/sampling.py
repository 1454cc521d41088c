"""The sampling chain as data: which llama.cpp samplers, with what arguments, in what order.

Order: logit bias, repeat penalty (prompt and answer), presence and frequency penalties (answer), then greedy at
temperature 0, else top-k, top-p, min-p, temperature, and a draw from what is left.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass

from fox.generation import Sampling

SEED_MASK = 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class Stage:
    """One sampler: `name` as in `llama_sampler_init_<name>`. `sees_prompt`: it is shown the prompt's tokens first."""

    name: str
    args: tuple[float | int, ...] = ()
    sees_prompt: bool = False


def stages(sampling: Sampling, vocab_tokens: int, context_tokens: int) -> list[Stage]:
    """The chain for `sampling`, without its logit biases. No seed given: one is drawn, so that every answer differs."""
    chain = [*_penalties(sampling, vocab_tokens, context_tokens)]
    if sampling.temperature <= 0:
        return [*chain, Stage("greedy")]
    return [
        *chain,
        *_truncations(sampling),
        Stage("temp", (sampling.temperature,)),
        Stage("dist", (_seed(sampling),)),
    ]


def _penalties(sampling: Sampling, vocab_tokens: int, context_tokens: int) -> list[Stage]:
    chain = []
    last_n = sampling.repeat_last_n if sampling.repeat_last_n >= 0 else context_tokens
    if sampling.repeat_penalty != 1.0 and last_n:
        args = (vocab_tokens, min(last_n, context_tokens), sampling.repeat_penalty, 0.0, 0.0)
        chain.append(Stage("penalties", args, sees_prompt=True))
    if sampling.presence_penalty or sampling.frequency_penalty:
        args = (vocab_tokens, context_tokens, 1.0, sampling.frequency_penalty, sampling.presence_penalty)
        chain.append(Stage("penalties", args))
    return chain


def _truncations(sampling: Sampling) -> list[Stage]:
    chain = []
    if sampling.top_k > 0:
        chain.append(Stage("top_k", (sampling.top_k,)))
    if sampling.top_p < 1:
        chain.append(Stage("top_p", (sampling.top_p, 1)))
    if sampling.min_p > 0:
        chain.append(Stage("min_p", (sampling.min_p, 1)))
    return chain


def _seed(sampling: Sampling) -> int:
    return secrets.randbits(32) if sampling.seed is None else sampling.seed & SEED_MASK
