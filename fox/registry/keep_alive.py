"""How long a model stays in memory, in all the forms in which clients say so."""

from __future__ import annotations

import math
import re

from fox.errors import InvalidRequest

UNITS_S = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
LONGEST_S = 20 * 365 * 86400.0  # what is said to stay longer stays for ever
_PART = re.compile(r"(\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h)")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)")


def seconds(value: object, param: str = "keep_alive") -> float | None:
    """Seconds, `math.inf` for ever, None for the server's own. A number, also as text, is seconds; text may be a Go
    duration such as `5m` or `1h30m`; below zero is for ever. Raises InvalidRequest.
    """
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise InvalidRequest(f"Unsupported type: '{_go_type(value)}'", param)
    given = _duration(value.strip(), param) if isinstance(value, str) else value
    if math.isnan(given):
        raise InvalidRequest(f"`{param}`: it is no number", param)
    return math.inf if given < 0 or given > LONGEST_S else float(given)


def _duration(text: str, param: str) -> float:
    if _NUMBER.fullmatch(text):
        return float(text)
    sign = -1.0 if text.startswith("-") else 1.0
    rest = text[1:] if text[0] in "+-" else text
    parts = _PART.findall(rest)
    if not parts or "".join(number + unit for number, unit in parts) != rest:
        raise InvalidRequest(f'time: invalid duration "{text[:64]}"', param)
    return sign * sum(float(number) * UNITS_S[unit] for number, unit in parts)


def _go_type(value: object) -> str:
    if isinstance(value, bool):
        return "bool"
    return "[]interface {}" if isinstance(value, list) else "map[string]interface {}"
