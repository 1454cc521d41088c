"""What an answer took, in Ollama's words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

NS = 1_000_000_000
WIDTH = 22


@dataclass(frozen=True)
class Took:
    """The last line of an answer: durations in nanoseconds, counts of tokens."""

    stats: Mapping[str, Any]

    def __str__(self) -> str:
        rows = [
            (f"{name} duration", duration(spent))
            for name in ("total", "load")
            if (spent := self._number(f"{name}_duration"))
        ]
        rows += self._counted("prompt eval", "prompt_eval")
        rows += self._counted("eval", "eval")
        return "\n".join(f"{name + ':':{WIDTH}}{value}" for name, value in rows)

    def _counted(self, words: str, field: str) -> list[tuple[str, str]]:
        count, spent = self._number(f"{field}_count"), self._number(f"{field}_duration")
        rows = [(f"{words} count", f"{count} token(s)")] if count else []
        if spent:
            rows.append((f"{words} duration", duration(spent)))
            rows.append((f"{words} rate", f"{count / spent * NS:.2f} tokens/s"))
        return rows

    def _number(self, field: str) -> int:
        value = self.stats.get(field)
        return int(value) if isinstance(value, int | float) else 0


def duration(ns: int) -> str:
    """As Go prints it: `1.5s`, `20.3ms`, `1m0.5s`, `1h0m0s`."""
    for unit, length in (("ns", 1), ("µs", 1000), ("ms", 1_000_000)):
        if ns < length * 1000:
            return f"{_decimal(ns, length)}{unit}"
    minutes, rest = divmod(ns, 60 * NS)
    hours, minutes = divmod(minutes, 60)
    seconds = f"{_decimal(rest, NS)}s"
    if hours:
        return f"{hours}h{minutes}m{seconds}"
    return f"{minutes}m{seconds}" if minutes else seconds


def _decimal(ns: int, unit: int) -> str:
    """`ns` in units, with every digit and no idle zero."""
    whole, part = divmod(ns, unit)
    digits = f"{part:0{len(str(unit)) - 1}d}".rstrip("0") if unit > 1 else ""
    return f"{whole}.{digits}" if digits else str(whole)
