"""The loads fox is chosen for: shared prompts, many clients, a long prompt beside running streams, long chats.

`--peer URL` runs the same loads on any OpenAI-compatible server, one after the other, and prints both.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from scripts.benchmarks import rig

CLIENTS, SHARED_TOKENS, OWN_TOKENS, LONG_TOKENS, ANSWER_TOKENS = 16, 820, 90, 2000, 64
WORDS = [
    "time",
    "year",
    "people",
    "way",
    "day",
    "man",
    "thing",
    "woman",
    "life",
    "child",
    "world",
    "school",
    "state",
    "family",
    "student",
    "group",
    "country",
]


@dataclass
class Target:
    name: str
    port: int
    model: str
    salt: int = 0

    async def chat(self, content: str, tokens: int, **more: object) -> rig.Stream:
        return await rig.chat(self.port, self.model, content, tokens, temperature=0, ignore_eos=True, **more)

    def fresh(self) -> int:
        """A number no prompt has begun with: nothing is cached of it."""
        self.salt += 1
        return self.salt * 7919


def words(count: int, seed: int) -> str:
    """About `count` tokens: each of these words is one."""
    return " ".join(WORDS[(seed + i * i) % len(WORDS)] for i in range(count))


def run() -> None:
    flags = ("--threads", str(rig.THREADS), "--max-batch-size", str(CLIENTS), "--max-context-len", "4096")
    more = tuple(os.environ.get("FOX_BENCH_FLAGS", "").split())
    path = rig.q8_0()
    with rig.serving("--model-path", str(path), *flags, *more) as server:
        _all(Target("fox", server.port, path.stem))
    if peer := os.environ.get("FOX_BENCH_PEER"):
        _all(Target("peer", int(peer.rpartition(":")[2].strip("/")), path.stem))


def _all(target: Target) -> None:
    loads: tuple[Callable[[Target], Coroutine[Any, Any, None]], ...] = (shared, distinct, beside, turns)
    asyncio.run(target.chat("warm up", 4))
    wanted = os.environ.get("FOX_BENCH_LOADS", "")
    for load in loads:
        if not wanted or load.__name__ in wanted:
            asyncio.run(load(target))


async def shared(target: Target) -> None:
    """16 requests that share an 820-token prefix, together: cold, then warm."""
    prefix = f"{target.fresh()} {words(SHARED_TOKENS - 40, 1)}"
    for state in ("cold", "warm"):
        began = time.perf_counter()
        asks = [target.chat(f"{prefix} Question {state} {i}: {words(8, i)}?", 16) for i in range(CLIENTS)]
        streams = await asyncio.gather(*asks)
        wall = time.perf_counter() - began
        ttft = rig.median([s.ttft_s for s in streams])
        print(f"{target.name} shared {state}: wall {wall:.2f} s, TTFT p50 {ttft:.2f} s", flush=True)


async def distinct(target: Target) -> None:
    """16 different prompts of about 90 tokens, 64 tokens each."""
    began = time.perf_counter()
    asks = [
        target.chat(f"{target.fresh()} {words(OWN_TOKENS - 45, i)}", ANSWER_TOKENS) for i in range(CLIENTS)
    ]
    streams = await asyncio.gather(*asks)
    rate = sum(s.tokens for s in streams) / (time.perf_counter() - began)
    ttft = rig.median([s.ttft_s for s in streams])
    prompt = streams[0].prompt_tokens
    print(
        f"{target.name} distinct ({prompt}-token prompts): TTFT p50 {ttft:.2f} s, {rate:.1f} tok/s",
        flush=True,
    )


async def beside(target: Target) -> None:
    """A 2,000-token prompt that arrives while 4 streams run: their longest gap, and its own TTFT."""
    running = [asyncio.ensure_future(target.chat(f"{target.fresh()} {words(20, i)}", 400)) for i in range(4)]
    await asyncio.sleep(3)
    arrived = time.perf_counter()
    long = await target.chat(f"{target.fresh()} {words(LONG_TOKENS - 40, 5)}", 4)
    streams = await asyncio.gather(*running)
    during = [[t for t in s.times if arrived - 1 <= t <= long.times[0] + 1] for s in streams]
    gaps = [b - a for times in during for a, b in pairwise(times)]
    print(
        f"{target.name} beside: longest gap {max(gaps):.2f} s, p95 {sorted(gaps)[int(len(gaps) * 0.95)]:.2f} s, "
        f"TTFT of the {long.prompt_tokens}-token prompt {long.ttft_s:.2f} s",
        flush=True,
    )


async def turns(target: Target) -> None:
    """Chats of 10 turns, two and then 24 of them in turn: TTFT of turn 10 beside that of turn 2."""
    for chats in (1, 2, 24):
        histories = [f"{target.fresh()} Let us talk about {w}." for w in (WORDS * 2)[:chats]]
        ttft: dict[int, list[float]] = {}
        rounds = 10 if chats < 24 else 4
        for turn in range(1, rounds + 1):
            for i, history in enumerate(histories):
                stream = await target.chat(history, 12)
                ttft.setdefault(turn, []).append(stream.ttft_s)
                histories[i] = f"{history}{stream.text} And then? {words(10, i + turn)}"
        second, last = rig.median(ttft[2]), rig.median(ttft[rounds])
        print(
            f"{target.name} {chats} chats: TTFT turn 2 {second * 1000:.0f} ms, "
            f"turn {rounds} {last * 1000:.0f} ms, ratio {last / second:.2f}",
            flush=True,
        )
