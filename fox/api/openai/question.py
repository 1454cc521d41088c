"""What a checked chat request asks of the engine that will answer it."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace
from starlette.responses import Response

from fox.api.failures import Refusal, openai_response
from fox.api.openai import render
from fox.api.openai.schema import ChatRequest, Message
from fox.api.templates import Templates
from fox.engine import Engine
from fox.generation import GenerationRequest, Sampling

SEED_MASK = 0xFFFFFFFF
MIDDLE_PRIORITY = 128
# fields that Sampling names as the request does
SAME = (
    *("temperature", "top_p", "min_p", "typical_p", "top_n_sigma", "presence_penalty", "frequency_penalty"),
    *("dynatemp_range", "dynatemp_exponent", "xtc_probability", "xtc_threshold"),
    *("mirostat", "mirostat_tau", "mirostat_eta", "dry_multiplier", "dry_base", "dry_allowed_length"),
)
GREEDY_BELOW = 1e-6  # logits divided by less than this overflow 32-bit floats
ROLES = {"developer": "system", "function": "tool"}  # as the templates call them


class ChatQuestion:
    """The dialect's side of one Answer."""

    def __init__(
        self, asked: ChatRequest, templates: Templates, system_prompt: str, priority: int = MIDDLE_PRIORITY
    ) -> None:
        self.model = asked.model
        self.stream = bool(asked.stream)
        self._asked = asked
        self._templates = templates
        self._system_prompt = system_prompt
        self._priority = priority

    def requests(self, engine: Engine) -> list[GenerationRequest]:
        """One generation a choice; the engine computes their prompt once. Each has a seed of its own."""
        first = self._request(engine)
        return [first, *(_sibling(first, choice) for choice in range(1, self._asked.n or 1))]

    def _request(self, engine: Engine) -> GenerationRequest:
        asked, context = self._asked, engine.info.context_tokens
        limit = None if asked.limit is None else min(asked.limit, context)
        return GenerationRequest(
            id=f"chatcmpl-{uuid.uuid4().hex}",
            prompt=self._templates.of(engine).render(self._messages()),
            sampling=sampling(asked, context),
            max_tokens=limit,
            min_tokens=min(asked.min_tokens or 0, context),
            ignore_eos=bool(asked.ignore_eos),
            stop=_stops(asked.stop),
            priority=self._priority if asked.priority is None else asked.priority,
            cache_prompt=asked.cache_prompt is not False,
            shift=asked.shift,
            truncate=asked.truncate,
            logprobs=(asked.top_logprobs or 0) if asked.logprobs else None,
        )

    def voice(self, engine: Engine, request: GenerationRequest) -> render.ChatVoice:
        options = self._asked.stream_options
        usage = bool(options and options.include_usage)
        return render.ChatVoice(request.id, engine, choices=self._asked.n or 1, include_usage=usage)

    def refused(self, told: Refusal) -> Response:
        return openai_response(told)

    def broken(self, told: Refusal) -> bytes:
        return render.broken(told)

    def _messages(self) -> list[dict[str, Any]]:
        turns = [_turn(message) for message in self._asked.messages]
        if self._system_prompt and all(turn["role"] != "system" for turn in turns):
            turns.insert(0, {"role": "system", "content": self._system_prompt})
        return turns


def _sibling(first: GenerationRequest, choice: int) -> GenerationRequest:
    seed = first.sampling.seed
    own = replace(first.sampling, seed=None if seed is None else (seed + choice) & SEED_MASK)
    return replace(first, id=f"{first.id}-{choice}", sampling=own)


def sampling(asked: ChatRequest, context_tokens: int) -> Sampling:
    """The request's own wishes over the defaults of Sampling."""
    wishes = dict(_wishes(asked, context_tokens))
    return Sampling(**{name: value for name, value in wishes.items() if value is not None})


def _wishes(asked: ChatRequest, context_tokens: int) -> Iterator[tuple[str, Any]]:
    yield from ((name, getattr(asked, name)) for name in SAME)
    if asked.temperature is not None and asked.temperature < GREEDY_BELOW:
        yield "temperature", 0.0
    yield "repeat_penalty", asked.repetition_penalty if asked.repeat_penalty is None else asked.repeat_penalty
    yield "dry_penalty_last_n", _at_most(asked.dry_penalty_last_n, context_tokens)
    breakers = asked.dry_sequence_breakers
    yield "dry_sequence_breakers", None if breakers is None else tuple(filter(None, breakers))
    yield "repeat_last_n", _at_most(asked.repeat_last_n, context_tokens)
    yield "top_k", _at_most(asked.top_k, SEED_MASK >> 1)
    yield "seed", None if asked.seed in (None, -1) else asked.seed & SEED_MASK
    yield "logit_bias", tuple((int(token), bias) for token, bias in (asked.logit_bias or {}).items())


def _at_most(value: int | None, most: int) -> int | None:
    return None if value is None else min(value, most)


def _stops(stop: str | list[str] | None) -> tuple[str, ...]:
    """An empty stop would end every answer before its first character: it means none."""
    stops = [stop] if isinstance(stop, str) else stop or []
    return tuple(text for text in stops if text)


def _turn(message: Message) -> dict[str, Any]:
    """A message as templates know it. Absent fields are absent: templates ask whether they are defined."""
    role = ROLES.get(message.role, message.role)
    return {"content": "", **message.model_dump(exclude_none=True), "role": role}
