"""Lookup drafts on a copy-this-text task: tokens per second with and without, and the same text."""

from __future__ import annotations

import asyncio

from scripts.benchmarks import rig

TEXT = (
    "The quick brown fox jumps over the lazy dog. A journey of a thousand miles begins with a single step. "
    "To be or not to be, that is the question. All that glitters is not gold. "
)
PROMPT = f"Copy this text three times, word for word: {TEXT}\n\n{TEXT}{TEXT}"
TOKENS, ROUNDS = 160, 3


def run() -> None:
    path = rig.q8_0()
    rates: dict[bool, list[float]] = {False: [], True: []}
    texts = set()
    for _ in range(ROUNDS):
        for speculative in (False, True):
            flags = ("--speculative", "--spec-draft-len", "8") if speculative else ()
            with rig.serving("--model-path", str(path), "--threads", str(rig.THREADS), *flags) as server:
                asyncio.run(rig.chat(server.port, path.stem, PROMPT, 4))
                stream = asyncio.run(
                    rig.chat(server.port, path.stem, PROMPT, TOKENS, temperature=0, ignore_eos=True)
                )
                rates[speculative].append((stream.tokens - 1) / stream.decode_s)
                texts.add(stream.text)
    plain, drafted = rig.median(rates[False]), rig.median(rates[True])
    print(f"copying: {plain:.1f} tok/s plain, {drafted:.1f} tok/s with drafts, same text: {len(texts) == 1}")
    print(f"ratio {drafted / plain:.2f} (asked: at least 1.5)")
