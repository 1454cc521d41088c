"""Text to token ids and back."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

from fox.engine.llama.bindings import lib
from fox.errors import EngineFailed, InvalidRequest
from fox.generation import PromptPart

SENTENCEPIECE = 1  # enum llama_vocab_type


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
        self._unwritable = Unwritable(self) if _lacks_bytes(self) else None

    def tokenize(self, prompt: Sequence[PromptPart], *, begins: bool = True) -> list[int]:
        tokens: list[int] = []
        for i, part in enumerate(prompt):
            tokens += self._part(part, begins and i == 0)
        if tokens[:2] == [self.bos, self.bos]:  # the template wrote one already
            return tokens[1:]
        return tokens

    def tokenize_input(self, text: str) -> list[int]:
        """A text that is whole, with what the vocabulary begins and ends one with."""
        if self._unwritable is None:
            return self._spell(text.encode(errors="replace"), adds=True, special=False)
        tokens = self._part(PromptPart(text, special=False), first=True)
        return [*tokens, self.eos] if self._adds_eos else tokens

    def tokenize_pair(self, first: str, second: str) -> list[int]:
        """Two texts as one input: BOS first EOS SEP second EOS, as far as the vocabulary has those."""
        ends = [self.eos] if self.eos >= 0 else []
        separator = [sep] if (sep := lib.llama_vocab_sep(self.handle)) >= 0 else []
        bos = [self.bos] if self.bos >= 0 else []
        one, other = (self._part(PromptPart(text, special=False), first=False) for text in (first, second))
        return [*bos, *one, *ends, *separator, *other, *ends]

    @cached_property
    def fim(self) -> tuple[str, str, str] | None:
        """The tokens before the text in front of a gap, before the text behind it, and before what fills it."""
        named = (lib.llama_vocab_fim_pre, lib.llama_vocab_fim_suf, lib.llama_vocab_fim_mid)
        before, behind, gap = (token(self.handle) for token in named)
        return (
            (self.text(before), self.text(behind), self.text(gap)) if min(before, behind, gap) >= 0 else None
        )

    def piece(self, token: int) -> bytes:
        if (piece := self._pieces.get(token)) is None:
            piece = self._pieces[token] = self._render(token)
        return piece

    def name(self, token: int) -> bytes:
        """What a token prints, or how a control token is spelled."""
        return self.piece(token) or self.text(token).encode()

    def control(self, spelling: str) -> int | None:
        """The control token that is spelled so."""
        return self.controls.get(spelling)

    def text(self, token: int) -> str:
        """How the vocabulary spells a token; "" for one it does not have."""
        raw = lib.llama_vocab_get_text(self.handle, token) if 0 <= token < self.size else b""
        return (raw or b"").decode(errors="replace")

    @cached_property
    def controls(self) -> dict[str, int]:
        """Every token that text only becomes when special tokens are parsed, by how it is spelled."""
        mask = lib.LLAMA_TOKEN_ATTR_CONTROL | lib.LLAMA_TOKEN_ATTR_UNKNOWN
        tokens = range(self.size)
        return {self.text(t): t for t in tokens if lib.llama_vocab_get_attr(self.handle, t) & mask}

    def _part(self, part: PromptPart, first: bool) -> list[int]:
        if self._unwritable is None:
            return self._tokenize(part.text.encode(errors="replace"), first, part.special)
        tokens: list[int] = []
        for run in self._unwritable.runs(part):
            tokens += [run] if isinstance(run, int) else self._tokenize(run.encode(), first, part.special)
            first = False
        return tokens

    def _tokenize(self, text: bytes, first: bool, special: bool) -> list[int]:
        tokens = self._spell(text, adds=first, special=special)
        if first and self._adds_eos and tokens[-1:] == [self.eos]:
            tokens.pop()
        return tokens

    def _spell(self, text: bytes, *, adds: bool, special: bool) -> list[int]:
        room = len(text) + 8
        buffer = (ctypes.c_int32 * room)()
        count = lib.llama_tokenize(self.handle, text, len(text), buffer, room, adds, special)
        if count < 0:
            raise EngineFailed(f"tokenizing failed: {-count} tokens do not fit {room}")
        return list(buffer[:count])

    def _render(self, token: int) -> bytes:
        buffer = ctypes.create_string_buffer(256)
        count = lib.llama_token_to_piece(self.handle, token, buffer, len(buffer), 0, False)
        if count < 0:
            buffer = ctypes.create_string_buffer(-count)
            count = lib.llama_token_to_piece(self.handle, token, buffer, len(buffer), 0, False)
        return buffer.raw[:count]


class Unwritable:
    """The characters that a vocabulary neither has nor can spell in bytes: llama.cpp aborts on them. They become its
    unknown token, as in SentencePiece itself."""

    def __init__(self, vocab: Vocabulary) -> None:
        texts = [vocab.text(t) for t in range(vocab.size)]
        known = {text for text in texts if len(text) == 1} | ({" "} if "▁" in texts else set())
        unknown = f"(?P<unknown>[^{''.join(map(re.escape, sorted(known)))}])"
        controls = sorted(filter(None, vocab.controls), key=len, reverse=True)
        self._plain = re.compile(unknown, re.DOTALL)
        self._special = re.compile("|".join([*map(re.escape, controls), unknown]), re.DOTALL)
        attributes = (lib.llama_vocab_get_attr(vocab.handle, t) for t in range(vocab.size))
        self._token = next((t for t, a in enumerate(attributes) if a & lib.LLAMA_TOKEN_ATTR_UNKNOWN), None)

    def runs(self, part: PromptPart) -> Iterator[str | int]:
        """The text in pieces that can be tokenized, and the unknown token. InvalidRequest where there is none."""
        at = 0
        for match in (self._special if part.special else self._plain).finditer(part.text):
            if match["unknown"]:
                if self._token is None:
                    raise InvalidRequest(f"the model's vocabulary cannot write {match[0]!r}", "prompt")
                yield part.text[at : match.start()]
                yield self._token
                at = match.end()
        yield part.text[at:]


def _lacks_bytes(vocab: Vocabulary) -> bool:
    """Byte tokens, where a SentencePiece vocabulary has them, come early."""
    if lib.llama_vocab_type(vocab.handle) != SENTENCEPIECE:
        return False
    early = (lib.llama_vocab_get_attr(vocab.handle, t) for t in range(min(vocab.size, 1000)))
    return sum(bool(a & lib.LLAMA_TOKEN_ATTR_BYTE) for a in early) < 256
