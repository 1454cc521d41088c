"""The oracle: greedy output is the same however the tokens came to be computed, for every memory kind.

Batched kernels differ in their last bits. So texts are compared token by token up to the first place where the
reference's two best logits lie within GAP of each other: there either may win, and what follows is another text.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fox.engine.llama import LlamaModel
from fox.engine.llama.bindings import lib
from fox.engine.messages import Cancel, Close
from fox.engine.options import EngineOptions
from fox.scheduler import Chunk
from fox.scheduler.sequence import State
from tests.model import tiny
from tests.model.desk import Desk, Said

pytestmark = pytest.mark.model

GAP = 1e-2
QUANTIZED_GAP = (
    0.2  # llama.cpp quantizes activations by rows: with nothing reused at all, batches differ by up to 0.09
)
ANSWER = 24
TALE = "the quick brown fox jumps over the lazy dog, and the dog dreams of rivers that run to the sea;"
PROMPTS = [
    f"{TALE} what does {who}" for who in ("it say?", "he think of that?", "she want now?", "a fox eat?")
]
LONG = " ".join(f"{TALE}{n}" for n in range(4))


KINDS = [*tiny.KINDS, "starter"]


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@dataclass
class Reference:
    """What one prompt alone, from scratch, in one chunk, without any cache, is answered with."""

    path: Path

    def __post_init__(self) -> None:
        self.desk = Desk.open(self.path, prefix_cache=False, max_batch_size=1, max_context_len=512)
        self.said: dict[str, Said] = {}
        self.gap = GAP if self.path.stem in tiny.KINDS else QUANTIZED_GAP

    def check(self, prompt: str, said: Said) -> None:
        """`said` answers `prompt` as the reference does, up to a near tie."""
        if prompt not in self.said:
            self.said[prompt] = self.desk.say(prompt, ANSWER, logprobs=2)
        right = self.said[prompt]
        assert said.finishes == 1
        assert said.finish is not None
        assert said.finish.reason == "length"
        told = said.text.encode()
        for token in right.logprobs:
            if not told.startswith(token.piece):
                (_, best), (_, second) = token.top
                assert best - second < self.gap, f"{right.text!r} became {said.text!r}"
                return
            told = told[len(token.piece) :]
        assert not told


_references: dict[str, Reference] = {}


@pytest.fixture
def reference(kind: str, gguf: Any) -> Reference:
    if kind not in _references:
        _references.clear()  # one model more in memory is enough
        _references[kind] = Reference(gguf(kind))
    return _references[kind]


@pytest.fixture
def desk(kind: str, gguf: Any) -> Any:
    def opened(**options: Any) -> Desk:
        return Desk.open(gguf(kind), **{"max_context_len": 512, **options})

    return opened


def running(desk: Desk, id_: str, state: State) -> None:
    """Step until the request is in this state."""
    while (sequence := desk.loop._scheduler._by_id.get(id_)) is None or sequence.state is not state:
        assert not desk.said[id_].finishes, f"it was never {state}"
        desk.step()


def close(desk: Desk) -> None:
    desk.inbox.put(Close())
    desk.loop.run()


def logits(model: LlamaModel, prompt: str) -> Any:
    tokens = model.tokenize(Desk.parts(prompt))
    (row,) = model.decode([Chunk("x", 0, 0, tokens, 1)])
    values = np.ctypeslib.as_array(lib.llama_get_logits_ith(model._ctx, row), (model.vocab.size,)).copy()
    lib.llama_memory_clear(model._memory, ctypes.c_bool(True))
    return values


@pytest.mark.parametrize("made", tiny.KINDS)
def test_a_tiny_model_is_not_deaf_to_its_past(made: str, gguf: Any) -> None:
    model = LlamaModel("m", gguf(made), EngineOptions(threads=1, max_context_len=512))
    tail = "and all of this is said alike"
    one, same, other = (logits(model, f"{head} {tail}") for head in (TALE, TALE, TALE[::-1]))
    assert np.abs(one - same).max() < GAP
    assert np.abs(one - other).max() > 20 * GAP


@pytest.mark.parametrize("layout", ["lanes", "pool"])
@pytest.mark.parametrize("chunk", [512, 17])
def test_alone_in_a_batch_and_on_a_cache_hit_it_says_the_same(
    layout: str, chunk: int, reference: Reference, desk: Any
) -> None:
    opened = desk(kv_layout=layout, max_prefill_chunk=chunk)
    reference.check(PROMPTS[0], opened.say(PROMPTS[0], ANSWER))
    together = [*PROMPTS, LONG]
    for prompt, said in zip(together, opened.finish([opened.ask(p, ANSWER) for p in together]), strict=True):
        reference.check(prompt, said)
    again = opened.say(PROMPTS[0], ANSWER)
    assert again.cached > 0
    reference.check(PROMPTS[0], again)


@pytest.mark.parametrize("layout", ["lanes", "pool"])
def test_the_next_turn_of_a_chat_goes_on_from_the_last(layout: str, reference: Reference, desk: Any) -> None:
    opened = desk(kv_layout=layout)
    prompt = PROMPTS[0]
    before = 0
    for _ in range(3):
        said = opened.say(prompt, ANSWER)
        reference.check(prompt, said)
        assert said.cached >= before // 2, "a turn goes on from the one before"
        before, prompt = said.usage.prompt_tokens, f"{prompt}{said.text} and then, what came of it?"
        opened.say(f"someone else asks: {LONG}"[:150], ANSWER)


@pytest.mark.parametrize("layout", ["lanes", "pool"])
@pytest.mark.parametrize("host_mb", [64, 0])
def test_a_preempted_request_loses_and_repeats_nothing(
    layout: str, host_mb: int, reference: Reference, desk: Any
) -> None:
    opened = desk(kv_layout=layout, kv_host_mb=host_mb)
    ids = [opened.ask(prompt, ANSWER) for prompt in PROMPTS[:3]]
    running(opened, ids[2], State.DECODING)
    opened.step(5)
    for _ in range(2):
        assert opened.loop._scheduler.yield_youngest()
        opened.step(2)
    for prompt, said in zip(PROMPTS, opened.finish(ids), strict=False):
        reference.check(prompt, said)
    assert (opened.loop._scheduler.counts.swaps > 0) is (host_mb > 0)


def test_what_was_evicted_to_the_host_is_restored(reference: Reference, desk: Any) -> None:
    opened = desk(kv_layout="pool", max_batch_size=1, max_context_len=256)
    for prompt in PROMPTS:
        opened.say(f"{prompt[::-1]} {prompt[:40]}", 4)
    first = opened.say(PROMPTS[0], ANSWER)
    for prompt in (LONG[:220], LONG[::-1][:220]):
        opened.say(prompt, 4)
    again = opened.say(PROMPTS[0], ANSWER)
    assert again.cached > 0
    assert opened.loop._tally.stats().hit_tokens.get("host")
    reference.check(PROMPTS[0], first)
    reference.check(PROMPTS[0], again)


def test_what_lies_on_disk_is_restored_after_a_restart(
    reference: Reference, desk: Any, tmp_path: Path
) -> None:
    first = desk(kv_dir=tmp_path)
    first.say(PROMPTS[0], ANSWER)
    close(first)
    second = desk(kv_dir=tmp_path)
    again = second.say(PROMPTS[0], ANSWER)
    assert second.loop._tally.stats().hit_tokens.get("disk") == again.cached > 0
    reference.check(PROMPTS[0], again)


@pytest.mark.parametrize("layout", ["lanes", "pool"])
def test_a_forked_prompt_is_computed_once_and_gives_equal_answers(
    layout: str, reference: Reference, desk: Any
) -> None:
    opened = desk(kv_layout=layout, max_prefill_chunk=17)
    answers = opened.finish([opened.ask(PROMPTS[0], ANSWER) for _ in range(3)])
    for said in answers:
        reference.check(PROMPTS[0], said)
    assert sorted(said.cached > 0 for said in answers) == [False, True, True]


@pytest.mark.parametrize("layout", ["lanes", "pool"])
@pytest.mark.parametrize("state", [State.WAITING, State.PREFILLING, State.DECODING, State.SWAPPED])
def test_who_leaves_disturbs_nobody(layout: str, state: State, reference: Reference, desk: Any) -> None:
    opened = desk(kv_layout=layout, max_prefill_chunk=17, max_batch_size=2, kv_host_mb=64)
    stays = opened.ask(PROMPTS[0], ANSWER)
    running(opened, stays, State.DECODING)
    leaves = opened.ask(TALE[::-1], ANSWER)  # shares nothing, so that its prompt takes several steps
    if state is State.WAITING:
        running(opened, leaves, State.PREFILLING)
        other, leaves = leaves, opened.ask(PROMPTS[1], ANSWER)
        opened.step()
    else:
        running(opened, leaves, State.DECODING if state is State.SWAPPED else state)
        if state is State.SWAPPED:
            opened.loop._scheduler.yield_youngest()
        other = opened.ask(PROMPTS[2], ANSWER)
    assert opened.loop._scheduler._by_id[leaves].state is state
    opened.inbox.put(Cancel(leaves))
    for id_, said in zip((stays, other), opened.finish([stays, other]), strict=True):
        reference.check(opened.prompts[id_], said)
    gone = opened.said[leaves]
    assert gone.finishes == 1
    assert gone.finish is not None
    assert gone.finish.reason == "cancelled"


@pytest.mark.parametrize("kind", ["plain", "mla-moe", "starter"], indirect=True)
def test_guessed_tokens_change_nothing(reference: Reference, desk: Any) -> None:
    opened = desk(speculative=True)
    prompt = f"{TALE} {TALE}"
    reference.check(prompt, opened.say(prompt, ANSWER))
    for asked, said in zip(PROMPTS, opened.finish([opened.ask(p, ANSWER) for p in PROMPTS]), strict=True):
        reference.check(asked, said)
    assert opened.loop._scheduler.speculation.proposed > 0
