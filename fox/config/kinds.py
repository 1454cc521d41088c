"""What a setting's value may be, as a person writes it: text in flags and environment, TOML values in the file."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Kind:
    """A type of value. `read` takes text or a TOML value, as a person wrote it; ValueError at nonsense."""

    metavar: str
    expects: str
    read: Callable[[object], Any]


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError
    return value


def _word(value: object) -> str:
    if not _text(value).strip():
        raise ValueError
    return _text(value).strip()


def _path(value: object) -> Path:
    return Path(_word(value)).expanduser()


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError
    return float(value)


def _whole(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise ValueError
    return int(value)


def _switch(value: object) -> bool:
    if isinstance(value, bool):
        return value
    word = _word(value).lower()
    if word not in ("1", "0", "true", "false", "yes", "no", "on", "off"):
        raise ValueError
    return word in ("1", "true", "yes", "on")


def _port(value: object) -> int | str:
    if value == "auto":
        return "auto"
    port = _whole(value)
    if not 0 <= port <= 65535:
        raise ValueError
    return port


def _host(value: object) -> str:
    host, _ = split_host(_word(value))
    return host


def _seconds(value: object) -> float:
    seconds = _number(value)
    if not (math.isfinite(seconds) and seconds >= 0):
        raise ValueError
    return seconds


def _keep_alive(value: object) -> float:
    """fox's own 0 is "never by time"; `now` is what 0 means to Ollama."""
    from fox.errors import InvalidRequest
    from fox.registry.keep_alive import seconds

    if value == "now":
        return 0.0
    try:
        found = math.inf if value == "forever" else seconds(value)
    except InvalidRequest:
        raise ValueError from None
    if found is None:
        raise ValueError
    return found or math.inf


def _fraction(value: object) -> float:
    number = _number(value)
    if not 0 < number <= 1:
        raise ValueError
    return number


def _part(value: object) -> float:
    number = _number(value)
    if not 0 <= number <= 1:
        raise ValueError
    return number


def whole_from(least: int) -> Kind:
    def read(value: object) -> int:
        number = _whole(value)
        if not least <= number < 1 << 31:
            raise ValueError
        return number

    return Kind("N", f"a whole number, {least} or more", read)


def one_of(*words: str) -> Kind:
    def read(value: object) -> str:
        word = _word(value).lower()
        if word not in words:
            raise ValueError
        return word

    return Kind("|".join(words), "one of " + ", ".join(f"`{word}`" for word in words), read)


TEXT = Kind("TEXT", "text", _text)
PATH = Kind("PATH", "a path", _path)
HOST = Kind("ADDRESS", "an address such as `127.0.0.1`, or `127.0.0.1:8080`", _host)
PORT = Kind("N|auto", "1 to 65535, or `auto`", _port)
SECONDS = Kind("SECONDS", "seconds, 0 or more", _seconds)
KEEP_ALIVE = Kind("SECONDS", "seconds, a time such as `5m`, `now`, or 0 for never", _keep_alive)
SWITCH = Kind("", "`true` or `false`", _switch)
COUNT = whole_from(1)
FRACTION = Kind("FRACTION", "a number above 0, at most 1", _fraction)
PART = Kind("FRACTION", "a number from 0 to 1", _part)
ON_OFF = Kind("on|off", "`on` or `off`", _switch)
KV_TYPE = one_of("f32", "f16", "bf16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl")
ENGINE = one_of("llama", "echo")
LEVEL = one_of("debug", "info", "warning", "error")


def split_host(address: str) -> tuple[str, str | None]:
    """`10.0.0.1:80` -> (`10.0.0.1`, `80`), `[::1]:80` -> (`::1`, `80`), `::1` -> (`::1`, None)."""
    if address.startswith("["):
        host, _, rest = address[1:].partition("]")
        return host, rest[1:] if rest.startswith(":") else None
    if address.count(":") == 1:
        host, _, port = address.partition(":")
        return host, port
    return address, None
