"""POST /api/create: a new model from another one, or from files that were sent before."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

import orjson

from fox.api.ollama.schema import CreateRequest
from fox.chat.go_template import GoTemplate
from fox.engine.quantizing import quantization_named, quantize
from fox.errors import FoxError, InvalidRequest, ModelNotFound
from fox.registry import ModelEntry, Registry
from fox.registry.gguf import GGUFError, Header, read_header
from fox.registry.names import ModelName
from fox.registry.parameters import typed
from fox.registry.recipe import ROLES
from fox.registry.store import Layer, Store, checked
from fox.registry.writing import Writer, described

T = TypeVar("T")
Step = dict[str, Any]
NOT_GGUF = "supplied file was not in GGUF format"
TENSORS = (".safetensors", ".bin", ".pth")
WHOLE = ("F32", "F16", "BF16")


@dataclass
class Image:
    """A model that is being made."""

    layers: list[Layer] = field(default_factory=list)
    config: dict[str, Any] = field(default_factory=dict)
    header: Header | None = None

    def replace(self, kind: str, layers: list[Layer]) -> None:
        self.layers = [layer for layer in self.layers if layer.kind != kind] + layers


async def create(asked: CreateRequest, registry: Registry) -> AsyncIterator[Step]:
    """The steps of it. Raises InvalidRequest, ModelNotFound, StoreError; the store is as it was then."""
    name = named(asked.asked)
    store = registry.catalog.store
    if store is None:
        raise InvalidRequest("there is no folder for models", "model")
    checks(asked)
    image, writer = Image(), Writer(store)
    if asked.base:
        async for step in _from_model(asked.base, registry, writer, image):
            yield step
    elif asked.files:
        async for step in _from_files(asked.files, store, image):
            yield step
    else:
        raise InvalidRequest("neither 'from' or 'files' was specified", "from")
    async for step in _adapters(asked.adapters, store, image):
        yield step
    if kind := asked.quantize or asked.quantization:
        async for step in _quantized(kind, writer, image):
            yield step
    for layer, new in await asyncio.to_thread(_texts, asked, writer, image):
        yield {"status": f"{'creating new' if new else 'using existing'} layer {layer.digest}"}
    yield {"status": "writing manifest"}
    await asyncio.to_thread(writer.write, name, _config(asked, image), image.layers)
    if entry := registry.catalog.exact(name.shortest):
        registry.forget(entry.name)
    yield {"status": "success"}


def named(text: str) -> ModelName:
    """A name for a new model. Raises InvalidRequest."""
    if not text:
        raise InvalidRequest("model is required", "model")
    return ModelName.parse(text)


def checks(asked: CreateRequest) -> None:
    """What makes no sense is refused before anything is written."""
    if asked.template:
        GoTemplate(asked.template, ())
    for at, message in enumerate(asked.messages or ()):
        if message.role not in ROLES:
            said = 'message role must be one of "system", "user", or "assistant"'
            raise InvalidRequest(said, f"messages[{at}].role")
    for parameter, value in asked.parameters.items():
        typed(parameter, value)
    if len(asked.adapters) > 1:
        raise InvalidRequest("only one adapter is currently supported", "adapters")
    if (kind := asked.quantize or asked.quantization) and quantization_named(kind) is None:
        raise InvalidRequest(f"unsupported quantization type {kind[:32].upper()}", "quantize")
    for path, digest in {**asked.files, **asked.adapters}.items():
        if PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts or "\\" in path or not path:
            raise InvalidRequest("file path must be relative", "files")
        checked(digest)


async def _from_model(base: str, registry: Registry, writer: Writer, image: Image) -> AsyncIterator[Step]:
    entry = _base(base, registry)
    if entry.manifest and entry.store:
        origin = entry.name
        if entry.store.root != writer.store.root:
            for layer in (*entry.manifest.layers,):
                await asyncio.to_thread(writer.adopt, entry.store.blob(layer.digest), layer.kind)
        image.layers = [
            replace(layer, origin=origin) if layer.kind == "model" else layer
            for layer in entry.manifest.layers
        ]
        for layer in image.layers:
            _present(writer.store, layer.digest)
        image.config = await asyncio.to_thread(_old_config, entry)
        for layer in image.layers:
            yield {"status": f"using existing layer {layer.digest}"}
        return
    assert entry.path is not None
    yield {"status": "parsing GGUF"}
    image.header = await _header(entry.path)
    layer, new = await asyncio.to_thread(writer.adopt, entry.path, "model")
    image.layers = [replace(layer, origin=entry.tagged)]
    yield {"status": f"{'creating new' if new else 'using existing'} layer {layer.digest}"}


def _base(base: str, registry: Registry) -> ModelEntry:
    try:
        entry = registry.catalog.find(base)
    except ModelNotFound:
        ModelName.parse(base)
        raise
    if entry.path is None:
        raise InvalidRequest(f"`{entry.name}` has no weights to build on", "from")
    return entry


def _old_config(entry: ModelEntry) -> dict[str, Any]:
    assert entry.store
    assert entry.manifest
    try:
        config = entry.store.json(entry.manifest.config)
    except FoxError:
        return {}
    return dict(config) if isinstance(config, dict) else {}


async def _from_files(files: dict[str, str], store: Store, image: Image) -> AsyncIterator[Step]:
    ggufs = [path for path in files if not path.endswith((*TENSORS, ".json", ".jinja", ".model", ".txt"))]
    if not ggufs and any(path.endswith(TENSORS) for path in files):
        said = "safetensors and other formats are not converted here: give the model as a GGUF"
        raise InvalidRequest(said, "files")
    if not ggufs:
        raise InvalidRequest("no files provided to convert", "files")
    yield {"status": "parsing GGUF"}
    for path in sorted(ggufs):
        blob, digest = _present(store, files[path]), checked(files[path])
        header = await _header(blob)
        kind = "projector" if header.architecture == "clip" else "model"
        if header.metadata.get("general.type") == "adapter":
            kind = "adapter"
        if kind == "model":
            if image.header:
                raise InvalidRequest("only one model can be made of the files", "files")
            image.header = header
        image.layers.append(Layer(kind, digest, blob.stat().st_size))
        yield {"status": f"using existing layer {digest}"}
    if image.header is None:
        raise InvalidRequest("no files provided to convert", "files")


async def _adapters(adapters: dict[str, str], store: Store, image: Image) -> AsyncIterator[Step]:
    for digest in adapters.values():
        blob = _present(store, digest)
        header = await _header(blob)
        if header.metadata.get("general.type") != "adapter":
            raise InvalidRequest("the adapter is no LoRA in GGUF format", "adapters")
        image.replace("adapter", [Layer("adapter", checked(digest), blob.stat().st_size)])
        yield {"status": f"using existing layer {checked(digest)}"}


async def _quantized(wanted: str, writer: Writer, image: Image) -> AsyncIterator[Step]:
    kind = quantization_named(wanted)
    assert kind
    model = next(layer for layer in image.layers if layer.kind == "model")
    source = writer.store.blob(model.digest)
    header = await _header(source)
    if header.quantization == kind:
        return
    if header.quantization not in WHOLE:
        raise InvalidRequest("quantization is only supported for F16, BF16 and F32 models", "quantize")
    total = source.stat().st_size
    told = {"status": f"quantizing {header.quantization} model to {kind}", "digest": "0000000000000000000"}
    yield {**told, "total": total, "completed": 0}
    target = source.with_name(f".fox-{os.getpid()}-{id(image)}")
    try:
        await quantize(source, target, kind)
        layer, _ = await asyncio.to_thread(writer.adopt, target, "model")
        image.header = await _header(target)
    finally:
        target.unlink(missing_ok=True)
    yield {**told, "total": total, "completed": total}
    image.layers = [
        replace(layer, origin=model.origin) if one.kind == "model" else one for one in image.layers
    ]
    for name in ("model_type", "file_type"):
        image.config.pop(name, None)


def _texts(asked: CreateRequest, writer: Writer, image: Image) -> list[tuple[Layer, bool]]:
    """The layers that were given anew take the place of the model's."""
    made: list[tuple[Layer, bool]] = []

    def put(kind: str, *texts: bytes) -> None:
        layers = [writer.add(text, kind) for text in texts]
        image.replace(kind, [layer for layer, _ in layers])
        made.extend(layers)

    if asked.template is not None:
        put("template", *_given(asked.template))
    if asked.system is not None:
        put("system", *_given(asked.system))
    if licenses := _licenses(asked.license):
        put("license", *(text.encode() for text in licenses))
    if asked.parameters:
        old = _json_of(writer.store, image, "params") or {}
        new = {name: typed(name, value) for name, value in asked.parameters.items()}
        put(
            "params",
            orjson.dumps({**old, **{name: value for name, value in new.items() if value is not None}}),
        )
    if asked.messages is not None:
        told = [{"role": one.role, "content": one.content} for one in asked.messages]
        put("messages", *([orjson.dumps(told)] if told else []))
    return made


def _given(text: str) -> list[bytes]:
    return [text.encode()] if text else []


def _licenses(given: Any) -> list[str]:
    texts = [given] if isinstance(given, str) else given or []
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise InvalidRequest("unknown type", "license")
    return [text for text in texts if text]


def _json_of(store: Store, image: Image, kind: str) -> dict[str, Any] | None:
    found = [store.json(layer) for layer in image.layers if layer.kind == kind]
    return found[-1] if found and isinstance(found[-1], dict) else None


def _config(asked: CreateRequest, image: Image) -> dict[str, Any]:
    config = described(image.header) | image.config if image.header else dict(image.config)
    given = {"renderer": asked.renderer, "parser": asked.parser, "requires": asked.requires}
    config |= {name: value for name, value in given.items() if value}
    return config | {"rootfs": {"type": "layers", "diff_ids": [layer.digest for layer in image.layers]}}


def _present(store: Store, digest: str) -> Path:
    blob = store.blob(digest)
    if not blob.is_file():
        raise InvalidRequest(f'blob "{checked(digest)}" not found', "files")
    return blob


async def _header(path: Path) -> Header:
    try:
        return await asyncio.to_thread(read_header, path)
    except (GGUFError, OSError):
        raise InvalidRequest(NOT_GGUF, "files") from None
