"""The sampling chain as data: which llama.cpp samplers, with what arguments, in what order.

The order: logit bias, repeat penalty (prompt and answer), presence and frequency penalties (answer), DRY; then greedy
at temperature 0; or temperature and mirostat; or top-n-sigma, top-k, typical-p, top-p, min-p, XTC, temperature (or
dynamic temperature), and a draw from what is left.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass

from fox.generation import Sampling

SEED_MASK = 0xFFFFFFFF
IN_GRAPH = {"top_k", "typical", "top_p", "min_p", "temp", "dist"}
MIROSTAT_CANDIDATES = 100


@dataclass(frozen=True, slots=True)
class Stage:
    """One sampler: `name` as in `llama_sampler_init_<name>`. `sees_prompt`: it is shown the prompt's tokens first."""

    name: str
    args: tuple[float | int, ...] = ()
    sees_prompt: bool = False
    words: tuple[str, ...] = ()


def stages(sampling: Sampling, vocab_tokens: int, context_tokens: int) -> list[Stage]:
    """The chain for `sampling`, without its logit biases. No seed given: one is drawn, so that every answer differs."""
    chain = [*_penalties(sampling, vocab_tokens, context_tokens), *_dry(sampling, context_tokens)]
    if sampling.temperature <= 0:
        return [*chain, Stage("greedy")]
    seed = secrets.randbits(32) if sampling.seed is None else sampling.seed & SEED_MASK
    if sampling.mirostat:
        return [*chain, Stage("temp", (sampling.temperature,)), _mirostat(sampling, seed, vocab_tokens)]
    return [
        *chain,
        *_truncations(sampling, seed, vocab_tokens),
        _temperature(sampling),
        Stage("dist", (seed,)),
    ]


def runs_in_graph(chain: Sequence[Stage], *, biased: bool) -> bool:
    """Whether llama.cpp computes this chain inside the decode graph with exactly the result it has outside.

    Measured: other chains draw from candidates in another order there, and the same seed would give another text.
    """
    names = [stage.name for stage in chain]
    if names[-1] == "greedy":
        return set(names) <= {"penalties", "greedy"}
    if biased:
        return False
    return names == ["temp", "dist"] or (names[0] == "top_k" and set(names) <= IN_GRAPH)


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


def _dry(sampling: Sampling, context_tokens: int) -> list[Stage]:
    if not sampling.dry_multiplier:
        return []
    last_n = sampling.dry_penalty_last_n
    last_n = context_tokens if last_n < 0 else min(last_n, context_tokens)
    args = (sampling.dry_multiplier, sampling.dry_base, sampling.dry_allowed_length, last_n)
    return [Stage("dry", args, sees_prompt=True, words=sampling.dry_sequence_breakers)]


def _truncations(sampling: Sampling, seed: int, vocab_tokens: int) -> list[Stage]:
    """Only those that cut something; llama.cpp aborts on a top-k of more than the vocabulary inside the graph."""
    wanted = {
        "top_n_sigma": (sampling.top_n_sigma > 0, (sampling.top_n_sigma,)),
        "top_k": (0 < sampling.top_k < vocab_tokens, (sampling.top_k,)),
        "typical": (sampling.typical_p < 1, (sampling.typical_p, 1)),
        "top_p": (sampling.top_p < 1, (sampling.top_p, 1)),
        "min_p": (sampling.min_p > 0, (sampling.min_p, 1)),
        "xtc": (sampling.xtc_probability > 0, (sampling.xtc_probability, sampling.xtc_threshold, 1, seed)),
    }
    return [Stage(name, args) for name, (on, args) in wanted.items() if on]


def _temperature(sampling: Sampling) -> Stage:
    if sampling.dynatemp_range > 0:
        return Stage("temp_ext", (sampling.temperature, sampling.dynatemp_range, sampling.dynatemp_exponent))
    return Stage("temp", (sampling.temperature,))


def _mirostat(sampling: Sampling, seed: int, vocab_tokens: int) -> Stage:
    tau, eta = sampling.mirostat_tau, sampling.mirostat_eta
    if sampling.mirostat == 1:
        return Stage("mirostat", (vocab_tokens, seed, tau, eta, MIROSTAT_CANDIDATES))
    return Stage("mirostat_v2", (seed, tau, eta))
