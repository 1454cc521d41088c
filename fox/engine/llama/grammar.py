"""Grammars for one vocabulary, through llguidance. Its table of tokens is built at the first grammar, off the step
thread: 0.4 s for 49,000 tokens."""

from __future__ import annotations

import ctypes
from functools import cached_property
from typing import Any

import llguidance
import numpy as np
from llguidance.gbnf_to_lark import gbnf_to_lark
from numpy.typing import NDArray

from fox.engine.llama.bindings import lib
from fox.engine.llama.vocabulary import Vocabulary
from fox.errors import EngineFailed, InvalidRequest
from fox.generation import Grammar

# A schema of 300 properties takes a hundredth of these; a regex or schema that explodes is refused within a second.
LEXER_FUEL, GRAMMAR_ITEMS, LEXER_STATES = 2_000_000, 500_000, 250_000
# As Python writes JSON, and most texts that models learned from: one space, so that it needs no choice.
WHITESPACE = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}
SPECIAL = b"\xff"  # llguidance's mark of a token that no text spells


class Grammars:
    """Compiles grammars for one vocabulary. One thread at a time."""

    def __init__(self, vocab: Vocabulary) -> None:
        self._vocab = vocab

    def compile(self, grammar: Grammar) -> LlamaMatcher:
        """Raises InvalidRequest, naming the grammar's field, where it cannot be honoured."""
        try:
            source = _source(grammar)
        except Exception as error:  # the converters raise what they like
            raise InvalidRequest(f"`{grammar.param}`: {error}", grammar.param) from None
        limits = llguidance.LLParserLimits(
            initial_lexer_fuel=LEXER_FUEL, max_grammar_size=GRAMMAR_ITEMS, max_lexer_states=LEXER_STATES
        )
        matcher = llguidance.LLMatcher(self._table, source, log_level=0, limits=limits)
        if matcher.is_error():
            raise InvalidRequest(f"`{grammar.param}`: {_brief(matcher.get_error())}", grammar.param)
        return LlamaMatcher(self._vocab.size, self._table, matcher)

    @cached_property
    def _table(self) -> Any:
        vocab = self._vocab
        words = [_word(vocab, token) for token in range(vocab.size)]
        tokenize = ctypes.cast(lib._lib.llama_tokenize, ctypes.c_void_p).value
        return llguidance.LLTokenizer.from_llamacpp(  # type: ignore[attr-defined]
            tokens=words,
            vocab_ptr=vocab.handle,
            tokenize_fptr=tokenize,
            eos_token=sorted(vocab.end_tokens) or [vocab.eos],
            slices=llguidance.LLTokenizer.json_slices(),
        )


class LlamaMatcher:
    """One answer's way through a grammar."""

    def __init__(self, vocab_tokens: int, table: Any, matcher: Any) -> None:
        self._table = table
        self._matcher = matcher
        self.warnings: tuple[str, ...] = tuple(matcher.get_grammar_warnings())
        self._bits = np.zeros((vocab_tokens + 31) // 32 * 4, dtype=np.uint8)
        self._vocab_tokens = vocab_tokens

    @property
    def complete(self) -> bool:
        """Nothing but the end may follow."""
        return bool(self._matcher.is_stopped())

    def reset(self) -> None:
        """Back to the grammar's start."""
        self._matcher.reset()

    def fill(self) -> None:
        """Compute which tokens may come next: 60 us, without the GIL."""
        self._matcher.unsafe_compute_mask_ptr(self._bits.ctypes.data, self._bits.nbytes)

    def allows(self, token: int) -> bool:
        """Whether this token may come next; after `fill`."""
        return bool(self._bits[token >> 3] >> (token & 7) & 1)

    def barred(self) -> NDArray[np.bool_]:
        """Shape (vocabulary,): which tokens may not come next; after `fill`."""
        bits = np.unpackbits(self._bits, count=self._vocab_tokens, bitorder="little")
        barred: NDArray[np.bool_] = bits == 0
        return barred

    def take(self, token: int) -> None:
        """This token came. Raises EngineFailed where it was not allowed or the grammar got out of hand."""
        if not self._matcher.consume_token(token):
            raise EngineFailed(f"the grammar cannot go on: {_brief(self._matcher.get_error())}")

    def take_text(self, text: bytes) -> bool:
        """This text came already; False where the grammar does not begin so."""
        tokens = self._table.tokenize_bytes(text)
        return bool(self._matcher.try_consume_tokens(tokens) == len(tokens))

    def forced(self) -> list[int]:
        """The tokens that must come next, as far as there is no choice."""
        return list(self._matcher.compute_ff_tokens())


def _source(grammar: Grammar) -> str:
    matcher = llguidance.LLMatcher
    if grammar.kind == "json":
        options = {**WHITESPACE, "lenient": grammar.lenient}
        return matcher.grammar_from_json_schema(grammar.source, overrides=options)  # type: ignore[arg-type]
    if grammar.kind == "regex":
        return matcher.grammar_from_regex(grammar.source)
    lark = gbnf_to_lark(grammar.source) if grammar.kind == "gbnf" else grammar.source
    return matcher.grammar_from_lark(lark)


def _word(vocab: Vocabulary, token: int) -> bytes:
    return vocab.piece(token) or SPECIAL + vocab.text(token).encode()


def _brief(message: str) -> str:
    """The first line of what llguidance says."""
    return message.strip().splitlines()[0][:400] if message.strip() else "not understood"
