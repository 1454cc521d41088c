"""What a checked request for a response asks of the engine that will answer it: a chat's next message."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import TypeAdapter
from starlette.responses import Response

from fox.api.door import Door
from fox.api.failures import Refusal, openai_response, renamed
from fox.api.openai.parse import parse_fields
from fox.api.openai.question import ChatQuestion
from fox.api.openai.responses.chat import NAMES, chat_body, renaming
from fox.api.openai.responses.items import skipped
from fox.api.openai.responses.resource import item_fields, resource
from fox.api.openai.responses.schema import Function, Item, Message, Reference, ResponsesRequest
from fox.api.openai.responses.store import MOST_BYTES, Kept, Store
from fox.api.openai.responses.voice import ResponsesVoice
from fox.api.openai.schema import ChatRequest
from fox.engine import Engine
from fox.errors import InvalidRequest
from fox.generation import GenerationRequest

MOST_NAMED = 20
ITEM: TypeAdapter[Item] = TypeAdapter(Item)


class ResponsesQuestion:
    """The dialect's side of one Answer. `size`: of the body, in bytes."""

    def __init__(self, asked: ResponsesRequest, door: Door, store: Store, priority: int, size: int) -> None:
        self.model = asked.model
        self.stream = bool(asked.stream)
        self._asked = asked
        self._store = store
        self._size = size
        self._before: tuple[dict[str, Any], ...] = ()
        if asked.previous_response_id is not None:
            previous = self._previous(asked.previous_response_id)
            self._before = previous.conversation
            self._size += previous.size
        self._input = [*self._items()]
        past = [("previous_response_id", ITEM.validate_python(item)) for item in self._before]
        new = [(f"input[{at}]", item) for at, item in enumerate(self._input)]
        with renaming():
            chat = parse_fields(ChatRequest, chat_body(asked, [*past, *new]))
            self._chat = ChatQuestion(chat, door.templates, door.options, priority)
        self.terms = self._chat.terms
        self._voice: ResponsesVoice

    async def requests(self, engine: Engine) -> list[GenerationRequest]:
        return await self._chat.requests(engine)

    def voice(self, engine: Engine, request: GenerationRequest) -> ResponsesVoice:
        reasoning = self._asked.reasoning
        self._voice = ResponsesVoice(
            resource(self._asked, request.id, engine),
            self._chat.reader(),
            self._keep,
            self._headers(),
            summarized=bool(reasoning and (reasoning.summary or reasoning.generate_summary)),
        )
        return self._voice

    def refused(self, told: Refusal) -> Response:
        return openai_response(renamed(told, NAMES))

    def broken(self, told: Refusal) -> bytes:
        return self._voice.broken(renamed(told, NAMES))

    def _previous(self, id_: str) -> Kept:
        if kept := self._store.find(id_):
            return kept
        said = f"`previous_response_id`: there is no response '{id_[:64]}', or not any more"
        raise InvalidRequest(said, "previous_response_id")

    def _items(self) -> Iterator[Item]:
        given = self._asked.input
        if isinstance(given, str):
            yield Message(role="user", content=given)
            return
        for at, item in enumerate(given):
            if not isinstance(item, Reference):
                yield item
            elif found := self._store.item(item.id):
                self._refer(found[1])
                yield ITEM.validate_python(found[0])
            else:
                param = f"input[{at}].id"
                said = f"`{param}`: there is no item '{item.id[:64]}', or not any more"
                raise InvalidRequest(said, param)

    def _refer(self, size: int) -> None:
        """A few bytes stand for many: all that they stand for is to be no larger than what is kept."""
        self._size += size
        if self._size > MOST_BYTES:
            raise InvalidRequest("`input`: the items that it refers to are too large together", "input")

    def _keep(self, response: dict[str, Any]) -> None:
        if self._asked.store is not False:
            given = tuple(item_fields(item) for item in self._input)
            size = self._size + len(str(response["output"]))
            self._store.keep(Kept(response, self._before, given, size))

    def _headers(self) -> dict[str, str]:
        """Nothing that was sent is passed over in silence."""
        tools = {tool.type for tool in self._asked.tools or () if not isinstance(tool, Function)}
        passed = [*sorted(tools), *skipped(self._input)]
        said = f"not told to the model: {', '.join(passed[:MOST_NAMED])}"
        return {"x-fox-warning": said.encode("ascii", "replace").decode()} if passed else {}
