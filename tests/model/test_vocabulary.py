"""Texts that a vocabulary has no tokens for."""

from __future__ import annotations

from typing import Any

import pytest

from fox.errors import InvalidRequest
from fox.generation import PromptPart
from tests.model import tiny
from tests.model.desk import Desk

pytestmark = pytest.mark.model


def plain(text: str) -> PromptPart:
    return PromptPart(text, special=False)


def test_characters_that_a_vocabulary_cannot_write_become_its_unknown_token(gguf: Any) -> None:
    desk = Desk.open(gguf("plain"))
    vocab = desk.model.vocab
    a, b = (vocab.tokenize([plain(text)]) for text in "ab")
    assert vocab.tokenize([plain("a\n\té漢😀\0b")]) == [*a, *[0] * 6, *b[1:]]
    assert vocab.tokenize([PromptPart("a<s>\n", special=True)])[-2:] == [vocab.bos, 0]
    assert vocab.bos not in vocab.tokenize([plain("a<s>\n")])[1:]
    assert desk.say("hé\n漢", 4).usage.completion_tokens == 4


def test_without_an_unknown_token_they_are_refused(gguf: Any) -> None:
    vocab = Desk.open(gguf("plain")).model.vocab
    assert vocab._unwritable is not None
    vocab._unwritable._token = None
    with pytest.raises(InvalidRequest, match=r"cannot write '\\n'"):
        vocab.tokenize([plain("a\nb")])


def test_a_vocabulary_knows_how_it_marks_a_gap(gguf: Any) -> None:
    assert Desk.open(gguf("plain")).model.info.fim is None
    desk = Desk.open(gguf("coder"))
    assert desk.model.info.fim == tiny.GAP
    tokens = desk.model.vocab.tokenize([PromptPart("".join(tiny.GAP), special=True)])
    assert tokens[-3:] == [len(tiny.CHARACTERS) + at for at in range(3)]
