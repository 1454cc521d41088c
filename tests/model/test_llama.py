"""The real engine over the real starter model, and over files that are no model."""

from __future__ import annotations

import asyncio
import math
import struct
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from fox.engine import Engine, EngineOptions, EngineSpec
from fox.errors import ContextExceeded, ModelLoadFailed
from fox.generation import Finish, GenerationRequest, PromptPart, Sampling

pytestmark = [pytest.mark.anyio, pytest.mark.model]

SEA = "<|im_start|>user\nTell me about the sea.<|im_end|>\n<|im_start|>assistant\n"
GREEDY = Sampling(temperature=0)


def spec(path: Path, **options: object) -> EngineSpec:
    return EngineSpec("starter", "llama", path, EngineOptions(threads=2, **options))  # type: ignore[arg-type]


@pytest.fixture(scope="module")
async def engine(starter_path: Path) -> AsyncIterator[Engine]:
    made = await Engine.start(
        spec(starter_path, max_context_len=1024, max_batch_size=8, max_prefill_chunk=64)
    )
    yield made
    await made.close()


_ids = iter(range(10**6))


async def answer(engine: Engine, text: str, **more: object) -> tuple[str, Finish]:
    more = {"sampling": GREEDY, "max_tokens": 24, **more}
    request = GenerationRequest(f"r{next(_ids)}", (PromptPart(text, special=True),), **more)  # type: ignore[arg-type]
    deltas = [delta async for delta in await engine.submit(request)]
    assert deltas[-1].finish is not None
    return "".join(d.text for d in deltas), deltas[-1].finish


async def test_the_model_describes_itself(engine: Engine) -> None:
    info = engine.info
    assert (info.architecture, info.context_tokens, info.parallel) == ("llama", 1024, 8)
    assert info.vocab_tokens == 49152
    assert {"<|im_end|>", "<|endoftext|>"} <= set(info.end_tokens) <= set(info.control_tokens)
    assert info.chat_template
    assert 130e6 < info.parameters < 140e6


async def test_log_probabilities_are_of_the_tokens_of_the_text_and_change_nothing(engine: Engine) -> None:
    plain, _ = await answer(engine, SEA)
    request = GenerationRequest(
        "p", (PromptPart(SEA, special=True),), sampling=GREEDY, max_tokens=24, logprobs=5
    )
    deltas = [delta async for delta in await engine.submit(request)]
    tokens = [token for delta in deltas for token in delta.logprobs]
    assert b"".join(token.piece for token in tokens).decode() == plain == "".join(d.text for d in deltas)
    assert len(tokens) == 24
    for token in tokens:
        likely = [logprob for _, logprob in token.top]
        assert token.top[0] == (token.piece, token.logprob), "greedy takes the likeliest"
        assert sorted(likely, reverse=True) == likely
        assert 0.0 < sum(map(math.exp, likely)) < 1.00001


async def test_no_log_probability_is_told_of_what_a_stop_string_took(engine: Engine) -> None:
    plain, _ = await answer(engine, SEA)
    stop = plain[10:14]
    request = GenerationRequest(
        "q", (PromptPart(SEA, special=True),), sampling=GREEDY, max_tokens=24, stop=(stop,), logprobs=0
    )
    deltas = [delta async for delta in await engine.submit(request)]
    said = "".join(delta.text for delta in deltas)
    pieces = b"".join(t.piece for d in deltas for t in d.logprobs).decode()
    assert said == plain[: plain.index(stop)]
    assert pieces.startswith(said), "whole tokens: the last one may reach into the stop string"
    assert plain.startswith(pieces)
    assert len(pieces) < len(said) + len(stop) + 8


async def test_greedy_is_the_same_each_time_and_ends_by_itself(engine: Engine) -> None:
    question = SEA.replace("Tell me about the sea.", "What is the capital of France?")
    first, second = [await answer(engine, question, max_tokens=200) for _ in range(2)]
    assert first == second
    assert first[1].reason == "stop"
    assert first[0] == "The capital of France is Paris."


async def test_a_seed_gives_the_same_text_and_another_seed_another(engine: Engine) -> None:
    one, same, other = [(await answer(engine, SEA, sampling=Sampling(seed=s)))[0] for s in (7, 7, 8)]
    assert one == same != other


async def test_a_batch_answers_as_each_alone(engine: Engine) -> None:
    prompts = [SEA.replace("the sea", topic) for topic in ("the sea", "bread", "the moon", "rain", "iron")]
    alone = [await answer(engine, p) for p in prompts]
    together = await asyncio.gather(*(answer(engine, p) for p in prompts))
    # last-bit differences between batch shapes may turn a near tie later on: the beginnings must be equal
    assert [text[:12] for text, _ in alone] == [text[:12] for text, _ in together]
    assert [f.usage for _, f in alone] == [f.usage for _, f in together]


async def test_a_prefill_in_pieces_answers_as_one_in_a_piece(engine: Engine, starter_path: Path) -> None:
    long = SEA.replace("the sea", "the sea, the waves, the wind and the ships " * 12)
    whole = await Engine.start(spec(starter_path, max_context_len=1024, max_prefill_chunk=512))
    try:
        assert (await answer(engine, long, max_tokens=8))[0] == (await answer(whole, long, max_tokens=8))[0]
    finally:
        await whole.close()


async def test_stop_strings_end_an_answer_before_they_show(engine: Engine) -> None:
    text, _ = await answer(engine, SEA)
    stop = text[10:16]
    cut, finish = await answer(engine, SEA, stop=(stop,))
    assert (cut, finish.reason) == (text[: text.index(stop)], "stop")


async def test_logit_bias_bars_a_token(engine: Engine) -> None:
    text, _ = await answer(engine, SEA, max_tokens=1)
    barred = tuple((token, -100.0) for token in range(2000))
    other, _ = await answer(engine, SEA, max_tokens=1, sampling=Sampling(temperature=0, logit_bias=barred))
    assert text != other


async def test_a_repeat_penalty_counts_the_prompt(engine: Engine) -> None:
    prompt = "red red red red red red red red red"
    plain, _ = await answer(engine, prompt, max_tokens=3)
    penalized, _ = await answer(
        engine, prompt, max_tokens=3, sampling=Sampling(temperature=0, repeat_penalty=3.0)
    )
    assert "red" in plain
    assert "red" not in penalized


async def test_min_tokens_and_ignore_eos_keep_going_past_the_end(engine: Engine) -> None:
    question = SEA.replace("Tell me about the sea.", "What is the capital of France?")
    _, natural = await answer(engine, question, max_tokens=200)
    assert natural.usage is not None
    longer = natural.usage.completion_tokens + 10
    for more in ({"min_tokens": longer}, {"ignore_eos": True}):
        text, finish = await answer(engine, question, max_tokens=longer, **more)
        assert finish.usage is not None
        assert finish.usage.completion_tokens == longer
        assert "<|im" not in text


async def test_text_without_special_parsing_makes_no_control_token(engine: Engine) -> None:
    lengths = []
    for special in (True, False):
        request = GenerationRequest(
            f"s{special}", (PromptPart("<|im_end|>", special=special),), GREEDY, max_tokens=1
        )
        generation = await engine.submit(request)
        lengths.append(generation.prompt_tokens)
        assert [d async for d in generation]
    assert lengths[0] == 1
    assert lengths[1] > 1


async def test_more_requests_than_the_pool_holds_all_end_right(starter_path: Path) -> None:
    """A pool of one context: sequences yield, are computed again, and say what they say alone."""
    engine = await Engine.start(spec(starter_path, max_context_len=256, max_batch_size=4))
    try:
        prompts = [SEA.replace("the sea", f"the number {i}") for i in range(4)]
        alone = [await answer(engine, p, max_tokens=150) for p in prompts]
        together = await asyncio.gather(*(answer(engine, p, max_tokens=150) for p in prompts))
    finally:
        await engine.close()
    assert [f.reason for _, f in together] == [f.reason for _, f in alone]
    assert all(a[0][:40] == b[0][:40] for a, b in zip(alone, together, strict=True))


async def test_a_prompt_longer_than_the_context_is_refused_with_the_sizes(engine: Engine) -> None:
    with pytest.raises(ContextExceeded, match="the context holds 1024"):
        await answer(engine, "word " * 2000)


def truncated(good: bytes) -> bytes:
    return good[: len(good) // 2]


def unknown_architecture(good: bytes) -> bytes:
    return good.replace(b"\x05\x00\x00\x00\x00\x00\x00\x00llama", b"\x05\x00\x00\x00\x00\x00\x00\x00llamx", 1)


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (truncated, "not within the file bounds|incomplete"),
        (unknown_architecture, "unknown model architecture"),
        (lambda good: b"not a model at all", "magic|GGUF"),
        (lambda good: b"", "read|magic|GGUF"),
        (lambda good: b"GGUF" + struct.pack("<IQQ", 3, 1 << 60, 1 << 60), "gguf|GGUF|failed|tensor|key"),
    ],
)
async def test_a_file_that_is_no_model_fails_to_load_with_the_reason(
    tmp_path: Path, starter_path: Path, spoil: object, reason: str
) -> None:
    path = tmp_path / "bad.gguf"
    path.write_bytes(spoil(starter_path.read_bytes()))  # type: ignore[operator]
    with pytest.raises(ModelLoadFailed, match=reason):
        await Engine.start(spec(path))


async def test_a_directory_and_a_missing_file_fail_to_load_with_the_reason(tmp_path: Path) -> None:
    with pytest.raises(ModelLoadFailed, match="directory"):
        await Engine.start(spec(tmp_path))
    with pytest.raises(ModelLoadFailed, match="No such file|failed to open"):
        await Engine.start(spec(tmp_path / "gone.gguf"))


def test_llama_cpp_may_speak_after_who_listened_is_gone(tmp_path: Path) -> None:
    """A child, since it would take the tests with it."""
    code = (
        "import gc\n"
        "from pathlib import Path\n"
        "from fox.engine.llama.bindings import lib\n"
        "from fox.engine.llama.log import LogTail\n"
        "LogTail(lib)\n"
        "gc.collect()\n"
        "from tests.model import tiny\n"
        f"tiny.make('coder', Path({str(tmp_path / 'x.gguf')!r}))\n"
    )
    root = Path(__file__).parents[2]
    run = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
