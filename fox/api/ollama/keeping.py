"""The routes of Ollama's API that change what is on this machine, and those of an account that fox does not have."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from fox.api.door import Door
from fox.api.json_text import json_response
from fox.api.ollama.create import create, named
from fox.api.ollama.desk import Desk
from fox.api.ollama.failures import error_response
from fox.api.ollama.progress import Progress
from fox.api.ollama.routes import told
from fox.api.ollama.schema import CopyRequest, CreateRequest, DeleteRequest
from fox.api.ollama.shapes import read
from fox.api.operation import Operation
from fox.errors import Draining, InvalidRequest, ModelNotFound
from fox.registry import ModelEntry
from fox.registry.gguf import read_header
from fox.registry.names import InvalidName, ModelName
from fox.registry.parameters import go_quote
from fox.registry.store import Layer, Store, checked
from fox.registry.writing import Writer, described


class Keeping:
    def __init__(self, door: Door, desk: Desk) -> None:
        self.door = door
        self._desk = desk

    def operations(self) -> list[Operation]:
        return [
            Operation(
                "POST", "/api/create", self.create, "a model from another, or from files", CreateRequest, True
            ),
            Operation("POST", "/api/copy", self.copy, "a model under another name", CopyRequest),
            Operation("DELETE", "/api/delete", self.delete, "take a model off this machine", DeleteRequest),
            Operation("GET", "/api/blobs/{digest}", self.has_blob, "whether a blob is here (HEAD)"),
            Operation("POST", "/api/blobs/{digest}", self.put_blob, "a blob, for /api/create"),
            Operation("GET", "/api/status", self.status, "whether Ollama's cloud can be reached: it cannot"),
            Operation("POST", "/api/me", self.account, "an account of Ollama's: there is none"),
            Operation("POST", "/api/signout", self.account, "the same"),
            Operation("DELETE", "/api/user/keys/{key}", self.account, "the same"),
            Operation("POST", "/api/experimental/web_search", self.web_search, "a service of Ollama's cloud"),
            Operation("POST", "/api/experimental/web_fetch", self.web_fetch, "a service of Ollama's cloud"),
            Operation(
                "GET", "/api/experimental/model-recommendations", self.recommendations, "models to begin with"
            ),
        ]

    @told
    async def create(self, request: Request) -> Any:
        asked = read(CreateRequest, await self.door.body(request))
        named(asked.asked)
        return Progress(create(asked, self.door.registry), stream=asked.stream)

    @told
    async def copy(self, request: Request) -> Any:
        asked = read(CopyRequest, await self.door.body(request))
        target = _name(asked.destination, f"destination {go_quote(asked.destination)} is invalid")
        source = self.door.registry.catalog.exact(asked.source) if asked.source.strip() else None
        if source is None:
            _name(asked.source, f"source {go_quote(asked.source)} is invalid")
            return error_response(404, f"model {go_quote(asked.source)} not found")
        await asyncio.to_thread(_copy, self._store(), source, target)
        self.door.registry.forget(target.shortest)
        return Response()

    @told
    async def delete(self, request: Request) -> Any:
        asked = read(DeleteRequest, await self.door.body(request))
        registry = self.door.registry
        entry = registry.catalog.exact(asked.asked) if asked.asked else None
        if entry is None:
            _name(asked.asked, f"name {go_quote(asked.asked)} is invalid")
            raise ModelNotFound(asked.asked)
        if not entry.owned or entry.path is None:
            raise InvalidRequest(f"`{entry.name}` is not kept in the models' folder: it stays", "model")
        registry.forget(entry.name)
        await asyncio.to_thread(_delete, entry)
        return Response()

    @told
    async def has_blob(self, request: Request) -> Any:
        digest = request.path_params["digest"]
        if not self._store().blob(digest).is_file():
            return error_response(404, f"blob {go_quote(checked(digest))} not found")
        return Response()

    @told
    async def put_blob(self, request: Request) -> Any:
        """Nothing is kept of what is not what its digest says."""
        if request.app.state.draining:
            raise Draining
        digest, store = request.path_params["digest"], self._store()
        if store.blob(digest).is_file():
            return Response()
        with Writer(store).receive() as incoming:
            async for chunk in request.stream():
                await asyncio.to_thread(incoming.write, chunk)
            await asyncio.to_thread(incoming.become_blob, digest)
        return Response(status_code=201)

    async def status(self, request: Request) -> Response:
        return json_response({"cloud": {"disabled": True, "source": "config"}})

    async def account(self, request: Request) -> Response:
        return Response(b'{"error":"unauthorized","signin_url":""}', 401, media_type="application/json")

    async def web_search(self, request: Request) -> Response:
        return error_response(403, "ollama cloud is disabled: web search is unavailable")

    async def web_fetch(self, request: Request) -> Response:
        return error_response(403, "ollama cloud is disabled: web fetch is unavailable")

    async def recommendations(self, request: Request) -> Response:
        return json_response({"recommendations": []})

    def _store(self) -> Store:
        store = self.door.registry.catalog.store
        if store is None:
            raise InvalidRequest("there is no folder for models", "model")
        return store


def _name(text: str, otherwise: str) -> ModelName:
    try:
        return ModelName.parse(text)
    except InvalidName:
        raise InvalidRequest(otherwise, "model") from None


def _copy(store: Store, source: ModelEntry, target: ModelName) -> None:
    """Into the store that new models go to."""
    writer = Writer(store)
    if source.manifest and source.store:
        for digest in source.manifest.digests if source.store.root != store.root else ():
            writer.adopt(source.store.blob(digest), "model")
        writer.copy(source.manifest, target)
        return
    if source.path is None:
        raise InvalidRequest(f"`{source.name}` cannot be copied", "source")
    layer, _ = writer.adopt(source.path, "model")
    writer.write(
        target,
        described(read_header(source.path)),
        [Layer("model", layer.digest, layer.size_bytes, source.tagged)],
    )


def _delete(entry: ModelEntry) -> None:
    if entry.manifest and entry.store:
        Writer(entry.store).delete(entry.manifest)
    elif entry.path:
        with suppress(FileNotFoundError):
            Path(entry.path).unlink()
