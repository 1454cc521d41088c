"""Writes into Ollama's store: blobs first, each whole or not at all, then the manifest that names them."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import orjson

from fox.errors import FoxError
from fox.registry.gguf import Header
from fox.registry.names import ModelName
from fox.registry.store import (
    CONFIG_MEDIA,
    DigestMismatchError,
    Layer,
    Manifest,
    Store,
    StoreError,
    checked,
    reason,
    written,
)

CHUNK_BYTES = 1 << 20
FICLONE = 0x40049409  # Linux: share the blocks of another file


class Incoming:
    """A file on its way into the store: nothing, unless it is put in its place. Its methods may run on any thread, one
    at a time."""

    def __init__(self, folder: Path, store: Store) -> None:
        self._store = store
        self._hash = hashlib.sha256()
        with _told(store):
            folder.mkdir(parents=True, exist_ok=True)
            self._file = tempfile.NamedTemporaryFile(dir=folder, prefix=".fox-", delete=False)  # noqa: SIM115

    def write(self, data: bytes) -> None:
        with _told(self._store):
            self._hash.update(data)
            self._file.write(data)

    def become_blob(self, expected: str | None = None) -> str:
        """Its digest. Raises DigestMismatchError where that is not the one expected; nothing is kept then."""
        digest = f"sha256:{self._hash.hexdigest()}"
        if expected is not None and digest != checked(expected):
            raise DigestMismatchError(checked(expected), digest)
        self.put(self._store.blob(digest))
        return digest

    def put(self, path: Path) -> None:
        """On disk before it has its name, and its name on disk before we go on."""
        with _told(self._store):
            self._file.flush()
            os.fsync(self._file.fileno())
            temporary = Path(self._file.name)
            temporary.chmod(0o644)
            temporary.replace(path)
            _sync(path.parent)

    def close(self) -> None:
        """What has no place yet is gone. Idempotent."""
        with suppress(OSError):
            self._file.close()
        Path(self._file.name).unlink(missing_ok=True)


class Writer:
    """Every failure leaves the store as it was. Raises StoreError where the disk refuses."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._blobs = store.root / "blobs"

    @contextmanager
    def receive(self) -> Iterator[Incoming]:
        """A blob to be."""
        incoming = Incoming(self._blobs, self.store)
        try:
            yield incoming
        finally:
            incoming.close()

    def add(self, data: bytes, kind: str) -> tuple[Layer, bool]:
        """A layer of these bytes, and whether it is new."""
        layer = Layer(kind, f"sha256:{hashlib.sha256(data).hexdigest()}", len(data))
        if self.store.blob(layer.digest).is_file():
            return layer, False
        with self.receive() as incoming:
            incoming.write(data)
            incoming.become_blob(layer.digest)
        return layer, True

    def adopt(self, file: Path, kind: str) -> tuple[Layer, bool]:
        """A layer of an existing file, linked where the disk can do that, and whether it is new."""
        with _told(self.store):
            digest, size = hash_of(file), file.stat().st_size
        layer = Layer(kind, digest, size, str(file))
        blob = self.store.blob(digest)
        if blob.is_file():
            return layer, False
        with _told(self.store):
            self._blobs.mkdir(parents=True, exist_ok=True)
            _link(file, blob)
        return layer, True

    def write(self, name: ModelName, config: Mapping[str, Any], layers: Iterable[Layer]) -> None:
        """The model's manifest, last. One that has the name in another case is written over."""
        described, _ = self.add(orjson.dumps(config), CONFIG_MEDIA)
        self._put(name, written(described, tuple(layers)))

    def copy(self, source: Manifest, name: ModelName) -> None:
        with _told(self.store):
            data = source.path.read_bytes()
        self._put(name, data)

    def delete(self, manifest: Manifest) -> None:
        """The manifest, and those of its blobs that no other manifest names."""
        with _told(self.store):
            manifest.path.unlink()
            for folder in list(manifest.path.parents)[:3]:
                with suppress(OSError):
                    folder.rmdir()
        if (others := self._named()) is None:
            return
        for digest in manifest.digests - others:
            with suppress(OSError, StoreError):
                self.store.blob(digest).unlink()

    def _named(self) -> set[str] | None:
        """Blobs that some manifest names; None where one of them cannot be read."""
        files = sum(1 for path in (self.store.root / "manifests").rglob("*") if path.is_file())
        manifests = self.store.manifests()
        if len(manifests) != files:
            return None
        return {digest for manifest in manifests for digest in manifest.digests}

    def _put(self, name: ModelName, data: bytes) -> None:
        known = self.store.find(name)
        path = known.path if known else self.store.root.joinpath("manifests", *name.parts)
        incoming = Incoming(path.parent, self.store)
        try:
            incoming.write(data)
            incoming.put(path)
        finally:
            incoming.close()


def described(header: Header) -> dict[str, Any]:
    """What an image's config says of a model."""
    return {
        "model_format": "gguf",
        "model_family": header.architecture,
        "model_families": [header.architecture],
        "model_type": header.size_name,
        "file_type": header.quantization,
        "architecture": "amd64",
        "os": "linux",
    }


def hash_of(file: Path) -> str:
    """`sha256:<hex>` of a file's bytes. Raises OSError."""
    with file.open("rb") as opened:
        return f"sha256:{hashlib.file_digest(opened, 'sha256').hexdigest()}"


def _sync(folder: Path) -> None:
    with suppress(OSError):
        fd = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def _link(file: Path, blob: Path) -> None:
    """The same bytes under another name, without copying them where the disk can do that."""
    real = Path(os.path.realpath(file))
    try:
        blob.hardlink_to(real)
        return
    except OSError:
        pass
    temporary = blob.with_name(f".fox-{os.getpid()}-{blob.name}")
    try:
        with real.open("rb") as source, temporary.open("wb") as target:
            if not _reflinked(source, target):
                shutil.copyfileobj(source, target, CHUNK_BYTES)
            target.flush()
            os.fsync(target.fileno())
        temporary.replace(blob)
        _sync(blob.parent)
    finally:
        temporary.unlink(missing_ok=True)


def _reflinked(source: IO[bytes], target: IO[bytes]) -> bool:
    try:
        import fcntl

        fcntl.ioctl(target.fileno(), FICLONE, source.fileno())
    except (ImportError, OSError):
        return False
    return True


@contextmanager
def _told(store: Store) -> Iterator[None]:
    """The disk's refusals in one sentence."""
    try:
        yield
    except FoxError:
        raise
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        why = "the disk is full" if full else reason(error)
        raise StoreError(f"cannot write to `{store.root}`: {why}") from error
