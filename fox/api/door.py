"""What all routes of this dialect share: bodies are read and checked at the door, and what is refused is counted."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

from starlette.requests import Request
from starlette.responses import Response

from fox.api import answer
from fox.api.body import read_body
from fox.api.errand import Errand
from fox.api.failures import Refusal, openai_response
from fox.api.options import ApiOptions
from fox.api.templates import Templates
from fox.engine import Engine
from fox.errors import Draining, FoxError, InvalidRequest
from fox.metrics import Metrics
from fox.registry import Registry, Terms

MIDDLE_PRIORITY, HIGHEST_PRIORITY, PRIORITY_DIGITS = 128, 255, 3


class Door:
    def __init__(self, registry: Registry, metrics: Metrics, options: ApiOptions) -> None:
        self.registry = registry
        self.options = options
        self.templates = Templates(registry, options)
        self._metrics = metrics

    @contextmanager
    def opens(self) -> Iterator[None]:
        """What is refused in here is counted."""
        try:
            yield
        except FoxError as error:
            self._metrics.rejected("", error.code)
            raise

    async def body(self, request: Request) -> bytes:
        """Raises Draining, BodyTooLarge."""
        if request.app.state.draining:
            raise Draining
        return await read_body(request, self.options.max_body_mb)

    def answer(self, question: answer.Question) -> answer.Answer:
        return answer.Answer(question, self.registry, self._metrics, answer.PING_S)

    def errand(
        self,
        model: str | None,
        work: Callable[[Engine], Awaitable[Response]],
        *,
        terms: Terms = Terms(),  # noqa: B008 - it cannot change
        refused: Callable[[Refusal], Response] = openai_response,
    ) -> Errand:
        """`refused`: how the dialect tells an error."""
        return Errand(model, work, self.registry, self._metrics, terms, refused)


def priority(request: Request) -> int:
    """The header's priority; the body's own goes before it. Raises InvalidRequest."""
    given = request.headers.get("x-fox-priority") or str(MIDDLE_PRIORITY)
    digits = given.isascii() and given.isdecimal() and len(given) <= PRIORITY_DIGITS
    if not (digits and int(given) <= HIGHEST_PRIORITY):
        raise InvalidRequest(
            "`x-fox-priority`: input should be a whole number from 0 to 255", "x-fox-priority"
        )
    return int(given)
