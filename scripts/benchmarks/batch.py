"""Eight streams together against one alone, Q8_0."""

from __future__ import annotations

import asyncio

from scripts.benchmarks import rig

TOKENS, STREAMS, ROUNDS = 128, 8, 5


def run() -> None:
    path = rig.q8_0()
    one, many = [], []
    with rig.serving("--model-path", str(path), "--threads", str(rig.THREADS)) as server:
        asyncio.run(_rate(server.port, path.stem, 1))
        for _ in range(ROUNDS):
            one.append(asyncio.run(_rate(server.port, path.stem, 1)))
            many.append(asyncio.run(_rate(server.port, path.stem, STREAMS)))
    ratios = [m / o for m, o in zip(many, one, strict=True)]
    print(f"{STREAMS} streams: {rig.median(many):.1f} tok/s, one: {rig.median(one):.1f} tok/s")
    print(
        f"ratio {rig.median(ratios):.2f} (min {min(ratios):.2f}, max {max(ratios):.2f}; asked: at least 2.5)"
    )


async def _rate(port: int, model: str, count: int) -> float:
    """Tokens per second from the moment the last stream has its first token to the first stream's end."""
    asks = [
        rig.chat(port, model, f"Tell me about the number {i}.", TOKENS, temperature=0, ignore_eos=True)
        for i in range(count)
    ]
    streams = await asyncio.gather(*asks)
    begin = max(s.times[0] for s in streams)
    end = min(s.times[-1] for s in streams)
    return sum(begin <= t <= end for s in streams for t in s.times) / (end - begin)
