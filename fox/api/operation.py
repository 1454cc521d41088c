"""One thing that can be asked over HTTP: its route, and what the description of the API says of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel
from starlette.requests import Request
from starlette.routing import Route

Endpoint = Callable[[Request], Awaitable[Any]]  # a Response, or another ASGI app


@dataclass(frozen=True)
class Operation:
    """`body`: the shape of what is sent. `streams`: the answer may come as server-sent events."""

    method: str
    path: str
    endpoint: Endpoint
    summary: str
    body: type[BaseModel] | None = None
    streams: bool = False

    def route(self) -> Route:
        """HEAD answers wherever GET does."""
        return Route(self.path, self.endpoint, methods=[self.method])
