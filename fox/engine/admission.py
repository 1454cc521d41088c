"""Whether a request can be answered, and how much room its prompt and answer have."""

from __future__ import annotations

from fox import errors
from fox.engine.options import EngineOptions
from fox.generation import GenerationRequest, ModelInfo

RUNAWAY_CONTEXTS = (
    10  # an answer without a limit of its own, on a rolling window, ends after so many contexts
)


class Room:
    """A context of `context_tokens`, and what may be done where it ends."""

    def __init__(self, context_tokens: int, options: EngineOptions) -> None:
        self._context = context_tokens
        self._options = options

    def keep(self, request: GenerationRequest) -> int:
        """Tokens that a rolling window never loses."""
        keep = self._options.context_keep if request.keep is None else request.keep
        return min(keep, self._window(request) // 2)

    def fit(self, request: GenerationRequest, tokens: list[int]) -> tuple[list[int], int]:
        """The prompt, cut in its middle where it is too long and may be cut; and how many tokens that cost.

        Raises ContextExceeded where a window of its own is too short.
        """
        may = request.truncate if request.truncate is not None else self._options.context_shift
        window = self._window(request)
        if len(tokens) < window:
            return tokens, 0
        if not may:
            if window < self._context:
                message = f"the prompt has {len(tokens)} tokens, its window holds {window} with the answer"
                raise errors.ContextExceeded(message, "prompt", len(tokens), window)
            return tokens, 0
        keep = self.keep(request)
        kept = max(keep + 1, window - max((window - keep) // 2, 1))
        return tokens[:keep] + tokens[len(tokens) - (kept - keep) :], len(tokens) - kept

    def limit(self, request: GenerationRequest, prompt_tokens: int) -> int:
        """Tokens that the answer has at most."""
        shifts = self._options.context_shift if request.shift is None else request.shift
        window = self._window(request)
        room = RUNAWAY_CONTEXTS * window if shifts else window - prompt_tokens
        return room if request.max_tokens is None else min(room, request.max_tokens)

    def _window(self, request: GenerationRequest) -> int:
        return self._context if request.window is None else min(request.window, self._context)


def refuse_impossible(request: GenerationRequest, info: ModelInfo) -> None:
    """Raises InvalidRequest."""
    if not info.generates:
        raise errors.InvalidRequest(f"`{info.name}` is an encoder: it makes no text", "model")
    if request.max_tokens is not None and request.max_tokens < 1:
        raise errors.InvalidRequest("`max_tokens` must be at least 1", "max_tokens")
    named = [("logit_bias", token) for token, _ in request.sampling.logit_bias]
    for param, token in [*named, *(("prompt", token) for token in request.tokens)]:
        if not 0 <= token < info.vocab_tokens:
            said = f"token {token} is not in the vocabulary of {info.vocab_tokens}"
            raise errors.InvalidRequest(said, param)
