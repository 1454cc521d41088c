"""A step loop without a process around it: requests in, answers out, so that tests decide what meets what."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from fox.engine.llama import LlamaModel
from fox.engine.loop import Arrival, Inbox, StepLoop
from fox.engine.messages import Stepped
from fox.engine.options import EngineOptions
from fox.generation import Finish, GenerationRequest, PromptPart, Sampling, TokenLogprob, Usage

GREEDY = Sampling(temperature=0)


@dataclass
class Said:
    text: str = ""
    finish: Finish | None = None
    finishes: int = 0
    logprobs: list[TokenLogprob] = field(default_factory=list)

    @property
    def usage(self) -> Usage:
        assert self.finish is not None
        assert self.finish.usage is not None
        return self.finish.usage

    @property
    def cached(self) -> int:
        return self.usage.cached_tokens


@dataclass
class Desk:
    """One model, one loop."""

    model: LlamaModel
    options: EngineOptions
    said: dict[str, Said] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    prompts: dict[str, str] = field(default_factory=dict)
    truncated: dict[str, int] = field(default_factory=dict)
    _count: int = 0

    def __post_init__(self) -> None:
        self.inbox: Inbox = SimpleQueue()
        self.loop = StepLoop(self.model, self.options, self.inbox, self._hear)

    @classmethod
    def open(cls, path: Path, **options: Any) -> Desk:
        made = EngineOptions(**{"threads": 1, "max_context_len": 256, "max_batch_size": 4, **options})
        return cls(LlamaModel("m", path, made), made)

    @staticmethod
    def parts(text: str) -> tuple[PromptPart, ...]:
        return (PromptPart(text, special=True),)

    def ask(self, text: str, max_tokens: int | None = 16, **more: Any) -> str:
        self._count += 1
        id_ = f"r{self._count}"
        more = {"sampling": GREEDY, "ignore_eos": True, **more}
        self.prompts[id_] = text
        request = GenerationRequest(id_, self.parts(text), max_tokens=max_tokens, **more)
        self.said[id_] = Said()
        matcher = self.model.compile(request.grammar) if request.grammar else None
        self.inbox.put(Arrival(request, self.model.tokenize(request.prompt), matcher))
        return id_

    def step(self, times: int = 1) -> None:
        for _ in range(times):
            self.loop.step()

    def finish(self, ids: Iterable[str]) -> list[Said]:
        """Step until these are over, with the books checked after each step."""
        ids = list(ids)
        while any(not self.said[i].finishes and i not in self.refused for i in ids):
            self.loop.step()
            self.loop._scheduler.check()
        return [self.said[i] for i in ids]

    def say(self, text: str, max_tokens: int = 16, **more: Any) -> Said:
        return self.finish([self.ask(text, max_tokens, **more)])[0]

    def _hear(self, message: Stepped) -> None:
        self.truncated |= {accepted.id: accepted.truncated for accepted in message.accepted}
        for refused in message.refused:
            self.refused[refused.id] = str(refused.failure.to_error())
        for delta in message.deltas:
            said = self.said[delta.id]
            assert not said.finishes, "nothing comes after the finish"
            said.text += delta.text
            said.logprobs += delta.logprobs
            if delta.finish:
                said.finish = delta.finish
                said.finishes += 1
