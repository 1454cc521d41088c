"""What the scheduler keeps to, and what it counts."""

from __future__ import annotations

from dataclasses import dataclass

from fox.errors import ContextExceeded, InvalidRequest, QueueFull


@dataclass(frozen=True)
class Limits:
    """`parallel` sequences at once, `context_tokens` for prompt and answer of one request together, `prefill_chunk`
    prompt tokens a step, `queue_depth` waiting requests (0: no bound), `step_target_s` by which
    prompts may delay a step while somebody is decoding.
    `spec_length` drafted tokens (0: no speculation), by a hint, by lookup of the last `spec_ngram` (0: no lookup), or
    by a model, while at most `spec_parallel` run."""

    parallel: int
    context_tokens: int
    prefill_chunk: int = 512
    queue_depth: int = 512
    step_target_s: float = 0.1
    spec_ngram: int = 2
    spec_length: int = 0
    spec_parallel: int = 4

    def refuse(self, tokens: list[int], open_requests: int) -> None:
        """At the door. Raises InvalidRequest for an empty prompt, ContextExceeded, QueueFull."""
        if not tokens:
            raise InvalidRequest("the prompt is empty", "prompt")
        if len(tokens) >= (limit := self.context_tokens):
            message = f"the prompt has {len(tokens)} tokens, the context holds {limit} with the answer"
            raise ContextExceeded(message, "prompt", len(tokens), limit)
        if self.queue_depth and open_requests >= self.queue_depth + self.parallel:
            raise QueueFull(self.queue_depth)


@dataclass(slots=True)
class Counts:
    """What happened since the start; the engine reports it."""

    preemptions: int = 0
    swaps: int = 0
