"""What a conversation remembers, against an engine that records what it was asked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest

from fox.cli.conversation import Conversation, Speed
from fox.errors import EngineFailed
from fox.generation import Delta, Failure, Finish, GenerationRequest, ModelInfo, Sampling
from fox.registry import Registry

TEMPLATE = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
INFO = ModelInfo("fake", "fake", 100, 100, 1, 10, 0, 0, TEMPLATE, "", "", ())
STOP = Finish("stop")
FAILED = Finish("failed", failure=Failure("EngineFailed", ("it broke",)))


class FakeGeneration:
    """Yields its deltas; one that has no finish among them waits for ever after the last."""

    prompt_tokens = 3

    def __init__(self, deltas: list[Delta]) -> None:
        self._deltas = deltas
        self.cancelled = False

    async def __aiter__(self) -> AsyncIterator[Delta]:
        for delta in self._deltas:
            yield delta
        if not (self._deltas and self._deltas[-1].finish):
            await asyncio.Event().wait()

    def cancel(self) -> None:
        self.cancelled = True


class FakeRegistry:
    """Leases one engine, itself, whose answers are given beforehand."""

    info, pid = INFO, 7

    def __init__(self, *answers: list[Delta]) -> None:
        self.generations = [FakeGeneration(deltas) for deltas in answers]
        self.requests: list[GenerationRequest] = []

    @asynccontextmanager
    async def lease(self, name: str) -> AsyncIterator[FakeRegistry]:
        yield self

    async def submit(self, request: GenerationRequest) -> FakeGeneration:
        self.requests.append(request)
        return self.generations[len(self.requests) - 1]

    def prompt(self) -> str:
        """The prompt of the last request."""
        return "".join(part.text for part in self.requests[-1].prompt)


def answer(*pieces: str, finish: Finish | None = STOP) -> list[Delta]:
    end = [] if finish is None else [Delta("", "", 0, finish)]
    return [Delta("", piece, 1) for piece in pieces] + end


def conversation(registry: FakeRegistry, **options: Any) -> Conversation:
    return Conversation(cast(Registry, registry), "fake", Sampling(), 16, **options)


def ask(talk: Conversation, text: str, stop_after: str | None = None) -> str:
    """Ask; with `stop_after`, cancel once that piece was shown."""
    shown: list[str] = []

    async def asked() -> None:
        task = asyncio.current_task()
        assert task

        def show(piece: str) -> None:
            shown.append(piece)
            if piece == stop_after:
                task.cancel()

        await talk.ask(text, show)

    asyncio.run(asked())
    return "".join(shown)


def test_question_and_answer_are_part_of_the_next_prompt() -> None:
    registry = FakeRegistry(answer("Good ", "day"), answer("Yes"))
    talk = conversation(registry)
    assert ask(talk, "Hello") == "Good day"
    ask(talk, "Really?")
    assert registry.prompt() == "user: Hello\nassistant: Good day\nuser: Really?\n"


def test_the_system_prompt_is_said_first_every_time() -> None:
    registry = FakeRegistry(answer("a"), answer("b"))
    talk = conversation(registry, system_prompt="Be brief.")
    ask(talk, "1")
    ask(talk, "2")
    assert registry.prompt() == "system: Be brief.\nuser: 1\nassistant: a\nuser: 2\n"


def test_a_cleared_conversation_keeps_its_system_prompt() -> None:
    registry = FakeRegistry(answer("a"), answer("b"))
    talk = conversation(registry, system_prompt="Be brief.")
    ask(talk, "1")
    talk.clear()
    ask(talk, "2")
    assert registry.prompt() == "system: Be brief.\nuser: 2\n"


def test_what_came_of_a_stopped_answer_stays_in_the_conversation() -> None:
    registry = FakeRegistry(answer("Once ", "upon", finish=None), answer("b"))
    talk = conversation(registry)
    with pytest.raises(asyncio.CancelledError):
        ask(talk, "Tell", stop_after="upon")
    assert registry.generations[0].cancelled
    ask(talk, "Go on")
    assert registry.prompt() == "user: Tell\nassistant: Once upon\nuser: Go on\n"


def test_what_came_of_a_failed_answer_stays_in_the_conversation() -> None:
    registry = FakeRegistry(answer("Once ", finish=FAILED), answer("b"))
    talk = conversation(registry)
    with pytest.raises(EngineFailed, match="it broke"):
        ask(talk, "Tell")
    ask(talk, "Go on")
    assert registry.prompt() == "user: Tell\nassistant: Once \nuser: Go on\n"


def test_a_question_that_got_no_word_is_forgotten() -> None:
    registry = FakeRegistry(answer(finish=FAILED), answer("b"))
    talk = conversation(registry)
    with pytest.raises(EngineFailed):
        ask(talk, "Tell")
    ask(talk, "Again")
    assert registry.prompt() == "user: Again\n"


def test_speed_counts_the_tokens_after_the_first() -> None:
    speed = Speed(prompt_tokens=12, answer_tokens=5, load_s=0.5, first_token_s=0.25, decode_s=2.0)
    assert str(speed) == ("prompt 12 tokens, answer 5 tokens, 2.0 tokens/s, first token 0.25 s, load 0.50 s")


def test_an_answer_of_one_token_has_no_speed() -> None:
    assert "0.0 tokens/s" in str(Speed(1, 1, 0.0, 0.1, 0.0))
