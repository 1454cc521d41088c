"""How a model is served: what its layers say beside its weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fox.registry.store import Manifest, Store

ROLES = ("system", "user", "assistant")


@dataclass(frozen=True)
class Recipe:
    """`template` is Go's text/template, None for the GGUF's own. `parameters` by Ollama's names, of their types.
    `messages` stand before every conversation. `config` is the image's own description."""

    template: str | None = None
    system: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    messages: tuple[Mapping[str, str], ...] = ()
    licenses: tuple[str, ...] = ()
    adapters: tuple[Path, ...] = ()
    projectors: tuple[Path, ...] = ()
    config: Mapping[str, Any] = field(default_factory=dict)


PLAIN = Recipe()


def read_recipe(store: Store, manifest: Manifest) -> Recipe:
    """Raises StoreError where a layer is missing or makes no sense."""
    texts = {
        kind: [store.text(layer) for layer in manifest.of(kind)] for kind in ("template", "system", "license")
    }
    parameters = [store.json(layer) for layer in manifest.of("params")]
    messages = [one for layer in manifest.of("messages") for one in _list(store.json(layer))]
    return Recipe(
        template=texts["template"][-1] if texts["template"] else None,
        system=texts["system"][-1] if texts["system"] else "",
        parameters=_object(parameters[-1]) if parameters else {},
        messages=tuple(
            {"role": one["role"], "content": str(one.get("content") or "")}
            for one in messages
            if isinstance(one, dict) and one.get("role") in ROLES
        ),
        licenses=tuple(texts["license"]),
        adapters=tuple(store.blob(layer.digest) for layer in manifest.of("adapter")),
        projectors=tuple(store.blob(layer.digest) for layer in manifest.of("projector")),
        config=read_config(store, manifest),
    )


def read_config(store: Store, manifest: Manifest) -> Mapping[str, Any]:
    """Raises StoreError."""
    return _object(store.json(manifest.config))


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
