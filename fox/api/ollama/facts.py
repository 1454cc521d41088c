"""What a model is, from its header and its layers, without loading it. Read once, and again when it changes."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from fox.api.ollama.clock import NS, stamp
from fox.chat import ChatModel
from fox.errors import FoxError, ModelLoadFailed
from fox.generation import ModelInfo
from fox.registry import ModelEntry
from fox.registry.gguf import GGUFError, Header, read_header
from fox.registry.names import ModelName
from fox.registry.recipe import PLAIN, Recipe
from fox.registry.registry import recipe_of

ENCODERS = (
    "bert",
    "nomic-bert",
    "jina-bert",
    "modern-bert",
    "t5encoder",
    "gemma-embedding",
    "neo-bert",
    "eurobert",
)
UNPOOLED = (None, -1, 0xFFFFFFFF)  # llama.cpp's own writer spells "unspecified" out
NO_HEADER = Header({}, ())


@dataclass(frozen=True)
class Facts:
    entry: ModelEntry
    header: Header = NO_HEADER
    recipe: Recipe = PLAIN
    capabilities: tuple[str, ...] = ("completion", "tools")
    problem: str = field(default="", compare=False)
    """Why the model cannot be used; "" where nothing is known."""

    def can(self, capability: str) -> bool:
        return capability in self.capabilities

    @property
    def full_name(self) -> str:
        """As Ollama writes it in its errors."""
        with suppress(FoxError):
            return ModelName.parse(self.entry.name).full
        return self.entry.tagged

    @cached_property
    def listed(self) -> dict[str, Any]:
        """What a list says of it."""
        entry = self.entry
        return {
            "name": entry.tagged,
            "model": entry.tagged,
            "modified_at": stamp(int(entry.modified_at * NS)),
            "size": entry.size_bytes,
            "digest": entry.digest,
            "details": self.details,
            "capabilities": self.capabilities,
        }

    @cached_property
    def details(self) -> dict[str, Any]:
        config, header = self.recipe.config, self.header
        family = str(config.get("model_family") or header.architecture)
        families = config.get("model_families") or ([family] if family else None)
        details = {
            "parent_model": self._parent(),
            "format": str(config.get("model_format") or "gguf"),
            "family": family,
            "families": families,
            "parameter_size": str(config.get("model_type") or header.size_name),
            "quantization_level": str(config.get("file_type") or header.quantization or "unknown"),
        }
        for name in ("context_length", "embedding_length"):
            if isinstance(length := header.of_architecture(name), int):
                details[name] = length
        return details

    def _parent(self) -> str:
        manifest = self.entry.manifest
        origins = [layer.origin for layer in manifest.of("model")] if manifest else []
        return origins[0] if origins and origins[0] and not origins[0].startswith("/") else ""


class Shelf:
    """The facts of every model that was asked about."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[object, Facts]] = {}
        self._headers: dict[Path, tuple[object, Header]] = {}

    def of(self, entry: ModelEntry) -> Facts:
        known = self._known.get(entry.name)
        if known and known[1].entry is entry and not known[1].problem:
            return known[1]
        mark = (entry.path, entry.size_bytes, entry.modified_at, entry.manifest and entry.manifest.digest)
        if known is None or known[0] != mark or known[1].problem:
            known = self._known[entry.name] = (mark, self._read(entry))
        return known[1]

    def _read(self, entry: ModelEntry) -> Facts:
        if entry.kind == "echo" or entry.path is None:
            problem = "" if entry.kind == "echo" else "its manifest names no weights in GGUF form"
            return Facts(entry, problem=problem)
        try:
            recipe, problem = recipe_of(entry), ""
        except ModelLoadFailed as error:
            recipe, problem = PLAIN, str(error.args[1])
        try:
            header = self._header(entry.path)
        except (GGUFError, OSError) as error:
            return Facts(entry, recipe=recipe, problem=problem or str(error))
        return Facts(entry, header, recipe, _capabilities(header, recipe), problem)

    def _header(self, path: Path) -> Header:
        """Many models may share one file."""
        facts = path.stat()
        mark = (facts.st_mtime_ns, facts.st_size, facts.st_ino)
        known = self._headers.get(path)
        if known is None or known[0] != mark:
            known = self._headers[path] = (mark, read_header(path))
        return known[1]


def _capabilities(header: Header, recipe: Recipe) -> tuple[str, ...]:
    if header.of_architecture("pooling_type") not in UNPOOLED or header.architecture in ENCODERS:
        return ("embedding",)
    talks = _talks(header, recipe)
    go = talks.go if talks else None
    found = ["completion", "tools"]
    if header.fim or (go and go.takes_suffix):
        found.append("insert")
    if talks and talks.thinks:
        found.append("thinking")
    return tuple(found)


def _talks(header: Header, recipe: Recipe) -> ChatModel | None:
    """None where the template does not compile: the first request is told so."""
    info = ModelInfo(
        name="", architecture=header.architecture, context_tokens=1, trained_context_tokens=1, parallel=1,
        vocab_tokens=1, parameters=0, weights_bytes=0, chat_template=header.chat_template, bos="", eos="",
        control_tokens=(),
    )  # fmt: skip
    with suppress(FoxError):
        return ChatModel(info, go_source=recipe.template)
    with suppress(FoxError):
        return ChatModel(info)
    return None
