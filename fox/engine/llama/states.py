"""Saved states of sequences: in host memory, and as files that survive a restart.

A file is `FOXKV1`, the length of a msgpack header, the header, then the state as llama.cpp gave it. The header names
the model's file, the KV types and the tokens; what does not fit the loaded model, or is damaged, is never loaded.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import logging
import os
import struct
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec

from fox.generation import Struct

log = logging.getLogger("fox.engine")

MAGIC = b"FOXKV1\n\0"
_LENGTH = struct.Struct("<I")
LONGEST_HEADER_BYTES = 64 << 20
IDENTITY_BYTES = 1 << 20


class StateHeader(Struct, frozen=True):
    """What a file holds. `digest` is of the state, `size_bytes` long."""

    identity: bytes
    tokens: list[int]
    size_bytes: int
    digest: bytes


def identity(model: Path, *settings: object) -> bytes:
    """What must be the same for a state to mean the same: the model's file (its size, its first and last MiB) and how
    its KV memory is set up."""
    digest = hashlib.blake2b(repr(settings).encode(), digest_size=32)
    with model.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        digest.update(str(size).encode())
        for at in (0, max(0, size - IDENTITY_BYTES)):
            file.seek(at)
            digest.update(file.read(IDENTITY_BYTES))
    return digest.digest()


class StateStore:
    """States by key. `folder`: where they are spilled to, None for nowhere. A thread of its own writes the files."""

    def __init__(self, folder: Path | None, identity: bytes) -> None:
        self._folder = folder
        self._identity = identity
        self._memory: dict[int, Any] = {}
        self._files: dict[int, Path] = {}
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="spill")
        if folder:
            folder.mkdir(parents=True, exist_ok=True)

    def put(self, key: int, state: Any) -> None:
        """Keep a state, a ctypes byte array, in memory."""
        self._memory[key] = state

    def get(self, key: int) -> Any | None:
        """The state, from wherever it is; None where it is lost."""
        state = self._memory.get(key)
        if state is None and key in self._files:
            state = self._read(self._files[key])
        return state

    def spill(self, key: int, tokens: Sequence[int]) -> None:
        """Write a state to disk, as that of `tokens`; until it is there it stays in memory."""
        if self._folder is not None and key in self._memory:
            self._writer.submit(self._write, key, list(tokens), self._memory[key])

    def forget(self, key: int) -> None:
        self._memory.pop(key, None)
        if path := self._files.pop(key, None):
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)

    def found(self) -> list[tuple[Path, list[int], int]]:
        """`(file, tokens, size of the state in bytes)` of what earlier runs left for this model, newest first."""
        if self._folder is None:
            return []
        paths = sorted(self._folder.glob("*.foxkv"), key=_modified, reverse=True)
        headers = [(path, self._header(path)) for path in paths]
        return [(path, h.tokens, h.size_bytes) for path, h in headers if h and h.identity == self._identity]

    def bind(self, key: int, path: Path) -> None:
        """The state in `path` goes by this key."""
        self._files[key] = path

    def flush(self) -> None:
        """Wait until everything is written."""
        self._writer.shutdown(wait=True)

    def _write(self, key: int, tokens: list[int], state: Any) -> None:
        assert self._folder is not None
        digest = hashlib.blake2b(state, digest_size=16).digest()
        header = msgspec.msgpack.encode(StateHeader(self._identity, tokens, len(state), digest))
        name = hashlib.blake2b(header, digest_size=16).hexdigest()
        path, part = self._folder / f"{name}.foxkv", self._folder / f".{name}.{os.getpid()}.part"
        try:
            with part.open("wb") as file:
                file.write(MAGIC + _LENGTH.pack(len(header)) + header)
                file.write(state)
                file.flush()
                os.fsync(file.fileno())
            part.rename(path)
        except OSError as error:
            log.warning("a KV state could not be written: %s", error.strerror)
            part.unlink(missing_ok=True)
            self._memory.pop(key, None)
            return
        self._files[key] = path
        if self._memory.pop(key, None) is None:  # forgotten meanwhile
            self.forget(key)

    def _header(self, path: Path) -> StateHeader | None:
        """None for what is no such file; it is left alone, with a warning."""
        try:
            with path.open("rb") as file:
                if file.read(len(MAGIC)) != MAGIC:
                    raise ValueError("not a KV state of fox")
                (length,) = _LENGTH.unpack(file.read(_LENGTH.size))
                if length > LONGEST_HEADER_BYTES:
                    raise ValueError("its header is too long")
                header = msgspec.msgpack.decode(file.read(length), type=StateHeader)
                if path.stat().st_size != file.tell() + header.size_bytes:
                    raise ValueError("it is not whole")
        except (OSError, ValueError, struct.error, msgspec.MsgspecError) as error:
            log.warning("ignored `%s`: %s", path.name, error)
            return None
        return header

    def _read(self, path: Path) -> Any | None:
        header = self._header(path)
        if header is None:
            return None
        state = (ctypes.c_uint8 * header.size_bytes)()
        try:
            with path.open("rb") as file:
                file.seek(-header.size_bytes, os.SEEK_END)
                whole = file.readinto(state) == header.size_bytes
        except OSError as error:
            log.warning("ignored `%s`: %s", path.name, error.strerror)
            return None
        if not whole or hashlib.blake2b(state, digest_size=16).digest() != header.digest:
            log.warning("ignored `%s`: it is damaged", path.name)
            return None
        return state


def _modified(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
