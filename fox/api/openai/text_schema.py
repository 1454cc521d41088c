"""The body of POST /v1/completions."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from fox.api.openai.inputs import Prompts, each
from fox.api.openai.wishes import MOST_CHOICES, Wishes
from fox.errors import InvalidRequest

MOST_ANSWERS = 512
"""Of all prompts together."""


class CompletionRequest(Wishes):
    prompt: Prompts
    suffix: str | None = None
    echo: bool | None = None
    best_of: Annotated[int, Field(ge=1, le=MOST_CHOICES)] | None = None
    logprobs: Annotated[int, Field(ge=0, le=20)] | None = None

    @property
    def made(self) -> int:
        """Answers to each prompt, of which `wanted` are told."""
        return self.best_of or self.wanted

    @property
    def wanted(self) -> int:
        return self.n or 1


def check(asked: CompletionRequest) -> None:
    """What its fields say of each other. Raises InvalidRequest."""
    if asked.made < asked.wanted:
        raise InvalidRequest("`best_of`: input should be at least `n`", "best_of")
    if asked.made > asked.wanted and asked.stream:
        raise InvalidRequest("`best_of`: which are the best is not known while they stream", "best_of")
    if asked.echo and asked.logprobs is not None:
        raise InvalidRequest(
            "`logprobs`: those of the prompt, which `echo` repeats, are not known", "logprobs"
        )
    prompts = each(asked.prompt)
    if len(prompts) * asked.made > MOST_ANSWERS:
        raise InvalidRequest(f"`prompt`: more than {MOST_ANSWERS} answers in one request", "prompt")
    if asked.suffix and not all(isinstance(prompt, str) for prompt in prompts):
        raise InvalidRequest("`suffix`: a `prompt` in token ids has its own", "suffix")
