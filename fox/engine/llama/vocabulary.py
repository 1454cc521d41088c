"""Text to token ids and back."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

from fox.engine.llama.bindings import lib
from fox.errors import EngineFailed
from fox.generation import PromptPart


class Vocabulary:
    """Text to token ids and back, for one loaded model."""

    def __init__(self, model: Any) -> None:
        self.handle = lib.llama_model_get_vocab(model)
        self.size: int = lib.llama_vocab_n_tokens(self.handle)
        self.bos: int = lib.llama_vocab_bos(self.handle)
        self.eos: int = lib.llama_vocab_eos(self.handle)
        self.end_tokens = frozenset(t for t in range(self.size) if lib.llama_vocab_is_eog(self.handle, t))
        self._adds_eos = lib.llama_vocab_get_add_eos(self.handle)
        self._pieces: dict[int, bytes] = {}

    def tokenize(self, prompt: Sequence[PromptPart]) -> list[int]:
        tokens: list[int] = []
        for i, part in enumerate(prompt):
            tokens += self._tokenize(part.text.encode(errors="replace"), i == 0, part.special)
        if tokens[:2] == [self.bos, self.bos]:  # the template wrote one already
            return tokens[1:]
        return tokens

    def piece(self, token: int) -> bytes:
        if (piece := self._pieces.get(token)) is None:
            piece = self._pieces[token] = self._render(token)
        return piece

    def name(self, token: int) -> bytes:
        """What a token prints, or how a control token is spelled."""
        return self.piece(token) or self.text(token).encode()

    def text(self, token: int) -> str:
        """How the vocabulary spells a token; "" for one it does not have."""
        raw = lib.llama_vocab_get_text(self.handle, token) if 0 <= token < self.size else b""
        return (raw or b"").decode(errors="replace")

    def control_tokens(self) -> tuple[str, ...]:
        """Every token that text only becomes when special tokens are parsed."""
        mask = lib.LLAMA_TOKEN_ATTR_CONTROL | lib.LLAMA_TOKEN_ATTR_UNKNOWN
        return tuple(
            self.text(t) for t in range(self.size) if lib.llama_vocab_get_attr(self.handle, t) & mask
        )

    def _tokenize(self, text: bytes, first: bool, special: bool) -> list[int]:
        room = len(text) + 8
        buffer = (ctypes.c_int32 * room)()
        count = lib.llama_tokenize(self.handle, text, len(text), buffer, room, first, special)
        if count < 0:
            raise EngineFailed(f"tokenizing failed: {-count} tokens do not fit {room}")
        tokens = buffer[:count]
        if first and self._adds_eos and tokens[-1:] == [self.eos]:
            tokens.pop()
        return tokens

    def _render(self, token: int) -> bytes:
        buffer = ctypes.create_string_buffer(256)
        count = lib.llama_token_to_piece(self.handle, token, buffer, len(buffer), 0, False)
        if count < 0:
            buffer = ctypes.create_string_buffer(-count)
            count = lib.llama_token_to_piece(self.handle, token, buffer, len(buffer), 0, False)
        return buffer.raw[:count]
