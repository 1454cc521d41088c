"""Another quantization of a GGUF, made in a child process: it takes memory and time that a server does not have."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from fox.errors import InvalidRequest

# the names that people use -> llama.cpp's file types
TYPES = {
    "F32": 0, "F16": 1, "Q4_0": 2, "Q4_1": 3, "Q8_0": 7, "Q5_0": 8, "Q5_1": 9, "Q2_K": 10, "Q3_K_S": 11,
    "Q3_K_M": 12, "Q3_K_L": 13, "Q4_K_S": 14, "Q4_K_M": 15, "Q5_K_S": 16, "Q5_K_M": 17, "Q6_K": 18, "Q2_K_S": 21,
    "IQ4_NL": 25, "IQ4_XS": 30, "BF16": 32,
}  # fmt: skip
SYNONYMS = {"Q3_K": "Q3_K_M", "Q4_K": "Q4_K_M", "Q5_K": "Q5_K_M"}


def quantization_named(name: str) -> str | None:
    """The name that llama.cpp has for it; None where it has none."""
    upper = SYNONYMS.get(name.strip().upper(), name.strip().upper())
    return upper if upper in TYPES else None


async def quantize(source: Path, target: Path, kind: str) -> None:
    """Write `source` to `target` in the quantization `kind`. Raises InvalidRequest with llama.cpp's reason."""
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "fox.engine.llama.quantize", str(source), str(target), kind),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        _, said = await child.communicate()
    except BaseException:
        child.kill()
        await child.wait()
        raise
    if child.returncode:
        why = said.decode(errors="replace").strip().splitlines()[-1:] or ["it was killed"]
        raise InvalidRequest(f"quantizing to {kind} failed: {why[0]}", "quantize")
