"""The app: the routes of every dialect, and what all requests have in common."""

from __future__ import annotations

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from fox.api.description import Description
from fox.api.door import Door
from fox.api.failures import http_refusal, openai_response, refusal
from fox.api.journal import Journal
from fox.api.ollama.desk import Desk
from fox.api.ollama.keeping import Keeping
from fox.api.ollama.routes import Ollama
from fox.api.openai.beside import Beside
from fox.api.openai.responses.routes import Responses
from fox.api.openai.routes import OpenAI
from fox.api.ops import Ops, readings
from fox.api.options import ApiOptions
from fox.api.visitors import Visitors
from fox.errors import FoxError
from fox.metrics import Metrics
from fox.registry import Registry

GIN = {404: "404 page not found", 405: "405 method not allowed"}  # what Ollama's clients are used to


def create_app(registry: Registry, options: ApiOptions) -> Starlette:
    """An ASGI app over the engines of `registry`. Set its `state.draining`, and new answers are refused.

    No BaseHTTPMiddleware may come into its stack: answers would no longer learn that their client has left.
    """
    metrics = Metrics(lambda: readings(registry), lambda: registry.loads)
    door = Door(registry, metrics, options)
    desk = Desk(registry)
    openai = (OpenAI(door), Responses(door), Beside(door))
    rooms = (Ops(registry, metrics, options), *openai, Ollama(door, desk), Keeping(door, desk))
    operations = Description([one for room in rooms for one in room.operations()]).operations
    app = Starlette(
        routes=[one.route() for one in operations],
        middleware=[Middleware(Journal), Middleware(Visitors, options.cors_origins)],
        exception_handlers={FoxError: _refuse, HTTPException: _refuse_route},
    )
    app.router.redirect_slashes = False
    app.state.draining = False
    return app


async def _refuse(request: Request, error: Exception) -> Response:
    return openai_response(refusal(error))


async def _refuse_route(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if request.scope["path"].startswith("/api/") and (said := GIN.get(error.status_code)):
        return PlainTextResponse(said, error.status_code, error.headers)
    response = openai_response(http_refusal(error, request.method, request.scope["path"]))
    response.headers.update(error.headers or {})
    return response
