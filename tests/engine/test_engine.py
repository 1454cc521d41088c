"""The parent's handle against a real child with the echo model."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import psutil
import pytest

from fox.engine import Engine, EngineOptions, EngineSpec
from fox.errors import ContextExceeded, EngineFailed, FoxError, InvalidRequest, ModelLoadFailed, QueueFull
from fox.generation import Delta, Finish, GenerationRequest, PromptPart, Sampling

pytestmark = pytest.mark.anyio


def request(id_: str, text: str, **more: object) -> GenerationRequest:
    return GenerationRequest(id_, (PromptPart(text, special=False),), **more)  # type: ignore[arg-type]


@asynccontextmanager
async def running(name: str = "echo", **options: object) -> AsyncIterator[Engine]:
    engine = await Engine.start(EngineSpec(name, "echo", None, EngineOptions(**options)))  # type: ignore[arg-type]
    try:
        yield engine
    finally:
        await engine.close()


async def collect(engine: Engine, req: GenerationRequest) -> tuple[str, Finish]:
    deltas = [delta async for delta in await engine.submit(req)]
    assert [d.finish for d in deltas[:-1]] == [None] * (len(deltas) - 1), "exactly one finish, and it is last"
    assert deltas[-1].finish is not None
    return "".join(d.text for d in deltas), deltas[-1].finish


async def test_an_answer_streams_to_its_end_with_exact_usage() -> None:
    async with running() as engine:
        text, finish = await collect(engine, request("a", "one two three"))
    assert text == "one two three"
    assert finish.reason == "stop"
    assert finish.usage is not None
    assert (finish.usage.prompt_tokens, finish.usage.completion_tokens) == (4, 4)


async def test_max_tokens_ends_with_length_after_exactly_that_many() -> None:
    async with running() as engine:
        text, finish = await collect(engine, request("a", "one two three", max_tokens=2))
    assert (text, finish.reason) == ("one two", "length")
    assert finish.usage is not None
    assert finish.usage.completion_tokens == 2


async def test_the_end_of_the_context_ends_with_length() -> None:
    async with running(max_context_len=8) as engine:
        text, finish = await collect(engine, request("a", "a b c", ignore_eos=True))
    assert (text, finish.reason) == ("a b ca", "length")


async def test_min_tokens_keeps_an_answer_going() -> None:
    async with running() as engine:
        text, _ = await collect(engine, request("a", "a b", min_tokens=3))
    assert text == "a ba"


async def test_a_stop_string_over_words_is_never_sent() -> None:
    async with running() as engine:
        text, finish = await collect(engine, request("a", "one two three four", stop=("o thr",)))
    assert (text, finish.reason) == ("one tw", "stop")


async def test_many_requests_decode_side_by_side_and_each_gets_its_own_words() -> None:
    async with running(max_batch_size=3, max_context_len=64, max_prefill_chunk=7) as engine:
        prompts = [" ".join(f"w{i}.{j}" for j in range(i + 1)) for i in range(20)]
        answers = await asyncio.gather(*(collect(engine, request(str(i), p)) for i, p in enumerate(prompts)))
    assert [text for text, _ in answers] == prompts


async def test_a_cancelled_generation_ends_within_a_step_in_one_finish() -> None:
    async with running("echo-slow") as engine:
        generation = await engine.submit(request("a", "word " * 500))
        seen = [await anext(generation)]
        generation.cancel()
        generation.cancel()
        seen += [delta async for delta in generation]
        generation.cancel()
        assert [d.finish.reason for d in seen if d.finish] == ["cancelled"]
        assert len(seen) < 10
        assert engine.open_ids == ()
        assert engine.stats.running == 0
        assert (await collect(engine, request("a", "again")))[0] == "again"


async def test_a_caller_that_stops_waiting_at_the_door_cancels_its_request() -> None:
    async with running("echo-slow", max_batch_size=1) as engine:
        first = await engine.submit(request("a", "word " * 50))
        waiting = asyncio.ensure_future(engine.submit(request("b", "never")))
        await anext(first)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        first.cancel()
        assert [d async for d in first][-1].finish is not None
        assert (await collect(engine, request("c", "next")))[0] == "next"


@pytest.mark.parametrize(
    ("prompt", "more", "error", "param"),
    [
        ("", {}, InvalidRequest, "prompt"),
        ("w " * 99, {}, ContextExceeded, "prompt"),
        ("w", {"max_tokens": 0}, InvalidRequest, "max_tokens"),
        ("w", {"sampling": Sampling(logit_bias=((-1, 1.0),))}, InvalidRequest, "logit_bias"),
        ("w", {"sampling": Sampling(logit_bias=((1 << 30, 1.0),))}, InvalidRequest, "logit_bias"),
    ],
)
async def test_impossible_requests_are_refused_at_the_door(
    prompt: str, more: dict[str, object], error: type[InvalidRequest], param: str
) -> None:
    async with running(max_context_len=32) as engine:
        with pytest.raises(error) as refusal:
            await engine.submit(request("a", prompt, **more))
        assert refusal.value.param == param
        assert (await collect(engine, request("a", "fine")))[0] == "fine"


async def test_a_full_queue_refuses() -> None:
    async with running("echo-slow", max_batch_size=1, max_queue_depth=1) as engine:
        open_ = [await engine.submit(request(str(i), "word " * 50)) for i in range(2)]
        with pytest.raises(QueueFull):
            await engine.submit(request("c", "word"))
        for generation in open_:
            generation.cancel()


async def test_two_open_requests_cannot_share_an_id() -> None:
    async with running("echo-slow") as engine:
        first = await engine.submit(request("a", "word " * 50))
        with pytest.raises(InvalidRequest):
            await engine.submit(request("a", "word"))
        first.cancel()


async def test_a_model_that_fails_to_load_says_why_and_leaves_no_child() -> None:
    with pytest.raises(ModelLoadFailed, match="always fails to load"):
        await Engine.start(EngineSpec("echo-fails", "echo", None, EngineOptions()))
    assert psutil.Process().children() == []


async def test_a_killed_child_fails_its_generations_and_later_requests() -> None:
    async with running("echo-slow") as engine:
        generation = await engine.submit(request("a", "word " * 500))
        seen = [await anext(generation)]
        os.kill(engine.pid, signal.SIGKILL)
        seen += [delta async for delta in generation]
        failure = seen[-1].finish and seen[-1].finish.failure
        assert failure
        assert "killed by SIGKILL" in str(failure.to_error())
        assert not engine.alive
        with pytest.raises(EngineFailed):
            await engine.submit(request("b", "word"))


async def test_a_step_that_fails_ends_its_request_and_not_the_engine() -> None:
    async with running() as engine:
        text, finish = await collect(engine, request("a", "one @fail two"))
        assert (text, finish.reason) == ("one", "failed")
        assert (await collect(engine, request("b", "alive")))[0] == "alive"


async def test_death_in_mid_answer_comes_as_a_failure_after_what_was_said() -> None:
    async with running() as engine:
        text, finish = await collect(engine, request("a", "one two @die"))
    assert text == "one two"
    assert finish.reason == "failed"


async def test_closing_fails_what_is_open_and_ends_the_child() -> None:
    engine = await Engine.start(EngineSpec("echo-slow", "echo", None, EngineOptions()))
    generation = await engine.submit(request("a", "word " * 500))
    await engine.close()
    await engine.close()
    deltas: list[Delta] = [delta async for delta in generation]
    assert deltas[-1].finish
    assert deltas[-1].finish.reason == "failed"
    assert not psutil.pid_exists(engine.pid)


async def test_terminal_signals_do_not_end_a_child() -> None:
    async with running() as engine:
        os.kill(engine.pid, signal.SIGINT)
        os.kill(engine.pid, signal.SIGTERM)
        assert (await collect(engine, request("a", "still here")))[0] == "still here"


async def test_errors_cross_the_border_as_themselves() -> None:
    errors: list[FoxError] = [InvalidRequest("no", "field"), ContextExceeded("no", "f", 1, 2), QueueFull(3)]
    from fox.errors import from_wire, to_wire

    for error in errors:
        back = from_wire(*to_wire(error))
        assert (type(back), back.args, str(back)) == (type(error), error.args, str(error))
    assert str(from_wire(*to_wire(ValueError("odd")))) == "ValueError: odd"
