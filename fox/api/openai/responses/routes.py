"""The routes of responses, and of what is kept of them."""

from __future__ import annotations

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from fox.api.answer import Answer
from fox.api.door import Door, priority
from fox.api.json_text import json_response
from fox.api.openai.parse import parse
from fox.api.openai.responses.question import ResponsesQuestion
from fox.api.openai.responses.schema import ResponsesRequest, check
from fox.api.openai.responses.store import Kept, Store
from fox.api.operation import Operation
from fox.errors import RequestNotFound


class Responses:
    def __init__(self, door: Door) -> None:
        self._door = door
        self._store = Store()

    def operations(self) -> list[Operation]:
        kept = "/v1/responses/{id}"
        return [
            Operation("POST", "/v1/responses", self.respond, "an answer in items", ResponsesRequest, True),
            Operation("POST", "/v1/responses/compact", self.compact, "not here: clients compact themselves"),
            Operation("GET", kept, self.kept, "an answer that is kept"),
            Operation("DELETE", kept, self.drop, "keep it no longer"),
            Operation("GET", f"{kept}/input_items", self.items, "what it answers"),
        ]

    async def respond(self, request: Request) -> Answer:
        with self._door.opens():
            body = await self._door.body(request)
            asked = parse(ResponsesRequest, body)
            check(asked)
            question = ResponsesQuestion(asked, self._door, self._store, priority(request), len(body))
        return self._door.answer(question)

    async def compact(self, request: Request) -> Response:
        """Clients take a 404 for what it is; the 405 of a kept response's route would say that it exists."""
        raise HTTPException(404)

    async def kept(self, request: Request) -> Response:
        return json_response(self._find(request).response)

    async def drop(self, request: Request) -> Response:
        id_ = self._find(request).response["id"]
        self._store.drop(id_)
        return json_response({"id": id_, "object": "response", "deleted": True})

    async def items(self, request: Request) -> Response:
        """The newest first, unless `order=asc`, as OpenAI does."""
        items = [*self._find(request).input]
        if request.query_params.get("order") != "asc":
            items.reverse()
        ends = {"first_id": items[0]["id"], "last_id": items[-1]["id"]}
        return json_response({"object": "list", "data": items, **ends, "has_more": False})

    def _find(self, request: Request) -> Kept:
        kept = self._store.find(request.path_params["id"])
        if kept is None:
            raise RequestNotFound(request.path_params["id"])
        return kept
