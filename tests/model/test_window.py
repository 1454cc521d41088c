"""Where the context ends: the answer stops, or the window rolls and goes on as a fresh prompt would."""

from __future__ import annotations

from typing import Any

import pytest

from fox.engine.admission import RUNAWAY_CONTEXTS
from tests.model.desk import Desk

pytestmark = pytest.mark.model

CONTEXT = 256
TALE = "the quick brown fox jumps over the lazy dog;"
KINDS = ["plain", "windowed", "recurrent", "hybrid", "mla-moe"]


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_an_answer_ends_where_the_context_does(gguf: Any) -> None:
    desk = Desk.open(gguf("plain"), max_context_len=CONTEXT)
    said = desk.say(TALE, 10_000)
    assert said.finish is not None
    assert said.finish.reason == "length"
    assert said.usage.prompt_tokens + said.usage.completion_tokens == CONTEXT


def test_a_rolled_window_goes_on_as_a_fresh_prompt_of_what_is_left(kind: str, gguf: Any) -> None:
    keep = 20
    options = {"max_context_len": CONTEXT, "prefix_cache": False}
    desk = Desk.open(gguf(kind), context_shift=True, context_keep=keep, **options)
    id_ = desk.ask(TALE, 2 * CONTEXT)
    prompt = desk.model.tokenize(desk.parts(TALE))
    desk.step(2)
    sequence, all_ = desk.loop._scheduler._by_id[id_], [*prompt]
    while not desk.said[id_].finishes:
        before = len(sequence.tokens)
        desk.step()
        if len(sequence.tokens) < before:
            assert sequence.tokens[:keep] == prompt[:keep]
            assert len(sequence.tokens) > CONTEXT // 2
            all_ = [*sequence.tokens]
    assert desk.said[id_].usage.completion_tokens == 2 * CONTEXT
    rolled = [desk.model.vocab.piece(t).decode() for t in sequence.tokens[len(all_) :]]
    fresh = Desk.open(gguf(kind), **options)
    assert fresh.finish([ask_tokens(fresh, all_, len(rolled))])[0].text == "".join(rolled)


def ask_tokens(desk: Desk, tokens: list[int], max_tokens: int) -> str:
    """Ask with these very tokens as the prompt."""
    tokenize = desk.model.tokenize
    desk.model.tokenize = lambda _: tokens  # type: ignore[method-assign]
    try:
        return desk.ask("", max_tokens)
    finally:
        desk.model.tokenize = tokenize  # type: ignore[method-assign]


def test_a_request_decides_for_itself_whether_its_window_rolls(gguf: Any) -> None:
    rolls = Desk.open(gguf("plain"), max_context_len=CONTEXT, context_shift=True)
    assert rolls.say(TALE, 2 * CONTEXT, shift=False).usage.completion_tokens < CONTEXT
    ends = Desk.open(gguf("plain"), max_context_len=CONTEXT)
    assert ends.say(TALE, 2 * CONTEXT, shift=True).usage.completion_tokens == 2 * CONTEXT


def test_an_answer_on_a_rolling_window_is_finite(gguf: Any) -> None:
    desk = Desk.open(gguf("plain"), max_context_len=CONTEXT, context_shift=True)
    assert desk.say(TALE, None).usage.completion_tokens == RUNAWAY_CONTEXTS * CONTEXT


@pytest.mark.parametrize(
    ("shift", "truncate", "fits"), [(True, None, True), (True, False, False), (False, True, True)]
)
def test_a_prompt_that_is_too_long_is_cut_only_where_it_may_be(
    gguf: Any, shift: bool, truncate: bool | None, fits: bool
) -> None:
    desk = Desk.open(gguf("plain"), max_context_len=CONTEXT, context_shift=shift, context_keep=10)
    long = TALE * 10
    id_ = desk.ask(long, 4, truncate=truncate)
    (said,) = desk.finish([id_])
    if not fits:
        assert "the context holds" in desk.refused[id_]
        return
    tokens = desk.model.tokenize(desk.parts(long))
    assert desk.truncated[id_] == len(tokens) - said.usage.prompt_tokens > 0
    assert said.usage.prompt_tokens < CONTEXT
