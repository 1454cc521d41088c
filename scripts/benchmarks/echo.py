"""The parent's CPU per streamed token: 64 echo streams at once, no neural network."""

from __future__ import annotations

import asyncio

from scripts.benchmarks import rig

STREAMS, WORDS, ROUNDS = 64, 1000, 5


def run() -> None:
    costs = []
    flags = ("--engine", "echo", "--max-batch-size", str(STREAMS), "--max-prefill-chunk", "100000")
    with rig.serving(*flags) as server:
        for _ in range(ROUNDS + 1):
            before = rig.cpu_seconds(server.process.pid)
            tokens = asyncio.run(_load(server.port))
            costs.append((rig.cpu_seconds(server.process.pid) - before) / tokens)
    print(
        f"parent CPU per token at {STREAMS} streams: {rig.median(costs[1:]) * 1e6:.1f} us (asked: under 40)"
    )


async def _load(port: int) -> int:
    streams = await asyncio.gather(*(rig.chat(port, "echo", "word " * WORDS, WORDS) for _ in range(STREAMS)))
    return sum(s.tokens for s in streams)
