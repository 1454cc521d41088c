"""What chats and generations have in common: checked at the door, asked of the engine."""

from __future__ import annotations

import uuid
from typing import Any

from starlette.responses import Response

from fox.api.failures import Refusal
from fox.api.ollama.clock import Clock
from fox.api.ollama.facts import Facts
from fox.api.ollama.failures import error_line, ollama_response
from fox.api.ollama.options import Options
from fox.api.ollama.schema import Asking
from fox.chat import Turn
from fox.chat.forms import ANY_OBJECT, json_form
from fox.errors import InvalidRequest
from fox.generation import GenerationRequest, Grammar
from fox.registry import Terms
from fox.registry.keep_alive import seconds
from fox.registry.parameters import go_quote

MOST_TOP_LOGPROBS = 20
EFFORTS = {"low": "low", "medium": "medium", "high": "high", "max": "high"}


class Wanted:
    """One checked request. `terms` are what it asks of the registry. Raises InvalidRequest."""

    def __init__(self, asked: Asking, facts: Facts, priority: int) -> None:
        self.asked = asked
        self.facts = facts
        self.options = Options.of(asked.options, facts.recipe.parameters)
        own = Options.of(asked.options)
        self.terms = Terms(seconds(asked.keep_alive), own.context_tokens)
        self.form = form(asked.format)
        self.thinking, self.effort = thinking(asked.think, facts, asked.asked)
        self.clock = Clock()
        self._priority = priority

    @property
    def silent(self) -> bool:
        """Not one token is wanted."""
        return self.options.limit == 0

    def request(
        self, turn: Turn, *, tokens: tuple[int, ...] = (), keep: int | None = None
    ) -> GenerationRequest:
        """`tokens`: the prompt in the turn's stead. `keep`: tokens at the prompt's beginning that are not to be lost,
        where the options say nothing of it."""
        asked, options = self.asked, self.options
        return GenerationRequest(
            id=f"ollama-{uuid.uuid4().hex}",
            prompt=turn.prompt,
            tokens=tokens,
            sampling=options.sampling,
            max_tokens=None if options.limit is None else max(options.limit, 1),
            stop=options.stop,
            priority=self._priority,
            shift=asked.shift,
            truncate=asked.truncate and asked.shift,
            window=options.context_tokens,
            keep=keep if options.keep is None else options.keep,
            logprobs=asked.top_logprobs if asked.logprobs else None,
            shown=turn.shown,
            grammar=turn.grammar,
            budget=turn.budget,
        )


class Told:
    """How this dialect tells an error, whole or at a stream's end."""

    def refused(self, told: Refusal) -> Response:
        return ollama_response(told)

    def broken(self, told: Refusal) -> bytes:
        return error_line(told)


def form(wanted: Any) -> Grammar | None:
    """What `format` binds the answer to. Raises InvalidRequest."""
    if wanted in (None, ""):
        return None
    if wanted == "json":
        return json_form(ANY_OBJECT, "format", strict=False)
    if isinstance(wanted, dict):
        return json_form(wanted, "format", strict=False)
    said = go_quote(wanted) if isinstance(wanted, str) else str(wanted)
    raise InvalidRequest(
        f'invalid format: {said[:200]}; expected "json" or a valid JSON Schema object', "format"
    )


def thinking(wanted: Any, facts: Facts, model: str) -> tuple[bool | None, str | None]:
    """Whether to think and how hard. What nobody says is yes, for a model that can. Raises InvalidRequest."""
    can = facts.can("thinking")
    if wanted is None:
        return (True, None) if can else (None, None)
    if isinstance(wanted, bool):
        if wanted and not can:
            raise InvalidRequest(f"{go_quote(model)} does not support thinking", "think")
        return wanted if can else None, None
    if wanted not in EFFORTS if isinstance(wanted, str) else True:
        said = go_quote(wanted) if isinstance(wanted, str) else str(wanted)
        words = '"high", "medium", "low", "max", true, or false'
        raise InvalidRequest(f"invalid think value: {said[:80]} (must be {words})", "think")
    if not can:
        raise InvalidRequest(f"{go_quote(model)} does not support thinking", "think")
    return True, EFFORTS[wanted]


def check_top_logprobs(asked: Asking) -> None:
    if not 0 <= asked.top_logprobs <= MOST_TOP_LOGPROBS:
        raise InvalidRequest(f"top_logprobs must be between 0 and {MOST_TOP_LOGPROBS}", "top_logprobs")
