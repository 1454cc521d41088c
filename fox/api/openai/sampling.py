"""The wishes of a request as what its engine is asked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from fox.api.openai.wishes import Wishes
from fox.generation import GenerationRequest, PromptPart, Sampling

SEED_MASK = 0xFFFFFFFF
# fields that Sampling names as the request does
SAME = (
    *("temperature", "top_p", "min_p", "typical_p", "top_n_sigma", "presence_penalty", "frequency_penalty"),
    *("dynatemp_range", "dynatemp_exponent", "xtc_probability", "xtc_threshold"),
    *("mirostat", "mirostat_tau", "mirostat_eta", "dry_multiplier", "dry_base", "dry_allowed_length"),
)
GREEDY_BELOW = 1e-6  # logits divided by less than this overflow 32-bit floats


def generation(
    asked: Wishes, id_: str, prompt: tuple[PromptPart, ...], context_tokens: int, priority: int
) -> GenerationRequest:
    """What every request for text asks of an engine of such a context. `priority`: unless it has one of its own."""
    return GenerationRequest(
        id=asked.id or id_,
        prompt=prompt,
        sampling=sampling(asked, context_tokens),
        max_tokens=_at_most(asked.limit, context_tokens),
        min_tokens=min(asked.min_tokens or 0, context_tokens),
        ignore_eos=bool(asked.ignore_eos),
        stop=_stops(asked.wish("stop")),
        stop_tokens=tuple(asked.stop_token_ids or ()),
        priority=priority if asked.priority is None else asked.priority,
        cache_prompt=asked.cache_prompt is not False,
        shift=asked.shift,
        truncate=asked.truncate,
    )


def siblings(first: GenerationRequest, count: int) -> list[GenerationRequest]:
    """`count` requests for the same prompt, whose tokens are drawn from seeds of their own."""
    return [first, *(_sibling(first, choice) for choice in range(1, count))]


def _sibling(first: GenerationRequest, choice: int) -> GenerationRequest:
    seed = first.sampling.seed
    own = replace(first.sampling, seed=None if seed is None else (seed + choice) & SEED_MASK)
    return replace(first, id=f"{first.id}#{choice}", sampling=own)


def sampling(asked: Wishes, context_tokens: int) -> Sampling:
    """The request's own wishes over the defaults of Sampling."""
    wishes = dict(_wishes(asked, context_tokens))
    return Sampling(**{name: value for name, value in wishes.items() if value is not None})


def _wishes(asked: Wishes, context_tokens: int) -> Iterator[tuple[str, Any]]:
    wish = asked.wish
    yield from ((name, wish(name)) for name in SAME)
    temperature = wish("temperature")
    if temperature is not None and temperature < GREEDY_BELOW:
        yield "temperature", 0.0
    penalty = wish("repeat_penalty")
    yield "repeat_penalty", asked.repetition_penalty if penalty is None else penalty
    yield "dry_penalty_last_n", _at_most(wish("dry_penalty_last_n"), context_tokens)
    breakers = wish("dry_sequence_breakers")
    yield "dry_sequence_breakers", None if breakers is None else tuple(filter(None, breakers))
    yield "repeat_last_n", _at_most(wish("repeat_last_n"), context_tokens)
    yield "top_k", _at_most(wish("top_k"), SEED_MASK >> 1)
    seed = wish("seed")
    yield "seed", None if seed in (None, -1) else seed & SEED_MASK
    yield "logit_bias", tuple((int(token), bias) for token, bias in (asked.logit_bias or {}).items())


def _at_most(value: int | None, most: int) -> int | None:
    return None if value is None else min(value, most)


def _stops(stop: str | list[str] | None) -> tuple[str, ...]:
    """An empty stop would end every answer before its first character: it means none."""
    stops = [stop] if isinstance(stop, str) else stop or []
    return tuple(text for text in stops if text)
