"""Ollama's store: manifests that name blobs by their digest. Read in place, without a byte copied.

manifests/<host>/<namespace>/<model>/<tag>    JSON: a config and layers, each a digest, a size and a media type
blobs/sha256-<64 hex digits>                  what they name
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fox.errors import FoxError
from fox.registry.names import ModelName

log = logging.getLogger("fox.registry")

MEDIA = "application/vnd.ollama.image."
CONFIG_MEDIA = "application/vnd.docker.container.image.v1+json"
MANIFEST_MEDIA = "application/vnd.docker.distribution.manifest.v2+json"
LARGEST_MANIFEST_BYTES = 4 << 20
LARGEST_TEXT_BYTES = 16 << 20  # of a layer that is read whole: a template, a licence
UNSETTLED_NS = 2_000_000_000  # file systems tell times apart by milliseconds, some by two seconds
_DIGEST = re.compile(r"sha256[:-]([0-9a-f]{64})")


class StoreError(FoxError):
    """The store is damaged, or cannot be read or written. `args`: what is wrong."""

    code = "store_error"


class BadDigestError(StoreError):
    """No `sha256:<64 hex digits>`. `args`: what was given."""

    code = "invalid_digest"

    def __str__(self) -> str:
        return "invalid digest format"


class DigestMismatchError(StoreError):
    """What came is not what its digest says. `args`: the digest expected, the one it has."""

    code = "digest_mismatch"

    def __str__(self) -> str:
        return f'digest mismatch, expected "{self.args[0]}", got "{self.args[1]}"'


@dataclass(frozen=True)
class Layer:
    """`kind`: the media type, without Ollama's prefix: model, template, system, params, messages, license, adapter,
    projector. `origin`: the file or model that it was made from."""

    kind: str
    digest: str
    size_bytes: int
    origin: str | None = None

    @classmethod
    def of(cls, fields: Mapping[str, Any]) -> Layer:
        size = fields["size"]
        if not isinstance(size, int) or size < 0:
            raise ValueError("a size is no number of bytes")
        kind = str(fields["mediaType"]).removeprefix(MEDIA)
        return cls(
            "template" if kind == "prompt" else kind, checked(fields["digest"]), size, fields.get("from")
        )

    def fields(self) -> dict[str, Any]:
        media = self.kind if "/" in self.kind else MEDIA + self.kind
        fields = {"mediaType": media, "digest": self.digest, "size": self.size_bytes}
        return fields if self.origin is None else {**fields, "from": self.origin}


@dataclass(frozen=True)
class Manifest:
    """`digest` is the hash of its file's bytes, without `sha256:`: the model's id. Times in seconds since the epoch."""

    name: ModelName
    path: Path
    config: Layer
    layers: tuple[Layer, ...]
    digest: str
    modified_at: float

    @property
    def size_bytes(self) -> int:
        return self.config.size_bytes + sum(layer.size_bytes for layer in self.layers)

    @property
    def digests(self) -> set[str]:
        return {self.config.digest, *(layer.digest for layer in self.layers)}

    def of(self, kind: str) -> list[Layer]:
        return [layer for layer in self.layers if layer.kind == kind]


def checked(digest: object) -> str:
    """`sha256:<hex>` of either spelling. Raises BadDigestError."""
    found = _DIGEST.fullmatch(digest) if isinstance(digest, str) else None
    if not found:
        raise BadDigestError(str(digest)[:80])
    return f"sha256:{found[1]}"


def written(config: Layer, layers: tuple[Layer, ...]) -> bytes:
    """A manifest's bytes."""
    fields = {
        "schemaVersion": 2,
        "mediaType": MANIFEST_MEDIA,
        "config": {"mediaType": CONFIG_MEDIA, "digest": config.digest, "size": config.size_bytes},
        "layers": [layer.fields() for layer in layers],
    }
    return json.dumps(fields, separators=(",", ":")).encode()


class Store:
    """One folder in Ollama's layout. Manifests are read once, and again when their file changes."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._read: dict[str, tuple[tuple[int, int, int], Manifest | None]] = {}
        self._folders = Folders()

    @property
    def exists(self) -> bool:
        return (self.root / "manifests").is_dir()

    def manifests(self) -> list[Manifest]:
        """Every manifest that makes sense; others are passed over, and told of once."""
        base = self.root / "manifests"
        found = (self._manifest(file, base) for file in self._folders.files(str(base), 4))
        return [manifest for manifest in found if manifest]

    def find(self, name: ModelName) -> Manifest | None:
        """The manifest of that name, in any case."""
        file = self.root.joinpath("manifests", *name.parts)
        if file.is_file() and (manifest := self._manifest(str(file), self.root / "manifests")):
            return manifest
        return next((one for one in self.manifests() if one.name.same_as(name)), None)

    def blob(self, digest: str) -> Path:
        """Where a blob lies, or would lie. Raises BadDigestError; StoreError where it is a link out of the store."""
        base = self.root / "blobs"
        path = base / checked(digest).replace(":", "-")
        if path.is_symlink() and not _is_within(path, base):
            raise StoreError(f"blob {digest[:19]} is a link that leaves the store")
        return path

    def text(self, layer: Layer) -> str:
        """A small layer's text. Raises StoreError where it is missing or no text."""
        path = self.blob(layer.digest)
        try:
            with path.open("rb") as file:
                data = file.read(LARGEST_TEXT_BYTES + 1)
        except OSError as error:
            raise StoreError(f"blob {layer.digest[:19]} cannot be read: {reason(error)}") from None
        if len(data) > LARGEST_TEXT_BYTES:
            raise StoreError(f"blob {layer.digest[:19]} is too long for a {layer.kind}")
        return data.decode(errors="replace")

    def json(self, layer: Layer) -> Any:
        """A small layer's JSON. Raises StoreError."""
        try:
            return json.loads(self.text(layer))
        except ValueError:
            raise StoreError(f"blob {layer.digest[:19]} is not valid JSON") from None

    def _manifest(self, file: str, base: Path) -> Manifest | None:
        try:
            facts = os.stat(file)
        except OSError:
            return None
        mark = (facts.st_mtime_ns, facts.st_size, facts.st_ino)
        known = self._read.get(file)
        if known is None or known[0] != mark:
            known = (mark, _told(Path(file), base, facts))
            self._read[file] = known
        return known[1]


def _told(file: Path, base: Path, facts: os.stat_result) -> Manifest | None:
    try:
        return _parsed(file, base, facts)
    except (OSError, ValueError, TypeError, KeyError, AttributeError, FoxError) as error:
        log.warning(
            "passed over the manifest `%s`: %s", file.relative_to(base), error or type(error).__name__
        )
        return None


def _parsed(file: Path, base: Path, facts: os.stat_result) -> Manifest:
    if facts.st_size > LARGEST_MANIFEST_BYTES:
        raise ValueError("it is too long")
    if file.is_symlink() and not _is_within(file, base):
        raise ValueError("it is a link that leaves the store")
    data = file.read_bytes()
    fields = json.loads(data)
    host, namespace, model, tag = file.relative_to(base).parts
    name = ModelName.parse(f"{host}/{namespace}/{model}:{tag}")
    config = Layer.of({"mediaType": CONFIG_MEDIA, **fields["config"]})
    layers = tuple(Layer.of(layer) for layer in fields["layers"] or ())
    return Manifest(name, file, config, layers, hashlib.sha256(data).hexdigest(), facts.st_mtime)


class Folders:
    """What lies in folders. One is read again when its time of change is another, or was too near to be told apart."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[int, list[str], list[str]]] = {}

    def files(self, folder: str, depth: int) -> Iterator[str]:
        """Files exactly `depth` below; hidden ones left out."""
        try:
            files, folders = self._children(folder)
        except OSError:
            return
        if depth == 1:
            yield from files
            return
        for below in folders:
            yield from self.files(below, depth - 1)

    def _children(self, folder: str) -> tuple[list[str], list[str]]:
        changed_ns = os.stat(folder).st_mtime_ns
        known = self._known.get(folder)
        if known and known[0] == changed_ns:
            return known[1:]
        with os.scandir(folder) as found:
            children = sorted((c for c in found if not c.name.startswith(".")), key=lambda child: child.name)
        files = [child.path for child in children if child.is_file()]
        folders = [child.path for child in children if child.is_dir()]
        settled = time.time_ns() - changed_ns > UNSETTLED_NS
        self._known[folder] = (changed_ns if settled else -1, files, folders)
        return files, folders


def _is_within(path: Path, base: Path) -> bool:
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(base))


def reason(error: OSError) -> str:
    return str(error.strerror or error).lower()
