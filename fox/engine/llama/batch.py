"""Tokens as llama_decode takes them."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

from fox.engine.llama.bindings import lib
from fox.scheduler import Chunk


class Batch:
    """A llama_batch over arrays of our own: one slice assignment a column instead of one store a cell."""

    def __init__(self, room: int) -> None:
        self.room = room
        self._token = (lib.llama_token * room)()
        self._pos = (lib.llama_pos * room)()
        self._seq = (lib.llama_seq_id * room)()
        self._logits = (ctypes.c_int8 * room)()
        ones = (ctypes.c_int32 * room)(*[1] * room)
        pointers = (ctypes.POINTER(lib.llama_seq_id) * room)()
        size = ctypes.sizeof(lib.llama_seq_id)
        for i in range(room):
            pointers[i] = ctypes.cast(
                ctypes.addressof(self._seq) + i * size, ctypes.POINTER(lib.llama_seq_id)
            )
        logits = ctypes.cast(self._logits, ctypes.POINTER(ctypes.c_int8))
        self._keep = (ones, pointers)
        self.struct = lib.llama_batch(0, self._token, None, self._pos, ones, pointers, logits)

    def fill(self, chunks: Sequence[Chunk]) -> list[int]:
        """Lay the chunks down one after the other; returns the row of each one's first wanted token."""
        at, rows = 0, []
        for chunk in chunks:
            end = at + (count := len(chunk.tokens))
            self._token[at:end] = chunk.tokens
            self._pos[at:end] = range(chunk.start, chunk.start + count)
            self._seq[at:end] = [chunk.seq] * count
            self._logits[at:end] = [*[0] * (count - chunk.wanted), *[1] * chunk.wanted]
            rows.append(end - chunk.wanted)
            at = end
        self.struct.n_tokens = at
        return rows
