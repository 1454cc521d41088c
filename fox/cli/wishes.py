"""What a person wants of an answer, read from the flags of `fox run`."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fox.cli.refusal import Misuse

LEVELS = ("low", "medium", "high", "max")
SWITCHES = {"true": True, "false": False}


@dataclass(frozen=True)
class Wishes:
    """`sampling` by Ollama's names, only what was given. `vector`: of an embedding model's answer."""

    sampling: Mapping[str, Any] = field(default_factory=dict)
    max_tokens: int | None = None
    context_tokens: int | None = None
    system: str = ""
    form: Any = None
    think: bool | str | None = None
    hide_thinking: bool = False
    keep_alive: float | None = None
    verbose: bool = False
    vector: Mapping[str, Any] = field(default_factory=dict)

    @property
    def of_the_dialect(self) -> bool:
        """Whether only the routes of Ollama's dialect can do it."""
        return self.form is not None or self.think is not None or bool(self.vector) or self.hide_thinking

    @property
    def options(self) -> dict[str, Any]:
        counts = {"num_predict": self.max_tokens, "num_ctx": self.context_tokens}
        return {**self.sampling, **{name: value for name, value in counts.items() if value is not None}}


def read(flags: Mapping[str, Any]) -> Wishes:
    """Raises Misuse."""
    sampling = ("temperature", "top_p", "top_k", "repeat_penalty", "seed")
    return Wishes(
        _given(flags, sampling),
        flags["max_tokens"],
        flags["context_tokens"],
        flags["system"],
        _form(flags["form"]),
        _think(flags["think"]),
        flags["hide_thinking"],
        _keep_alive(flags["keep_alive"]),
        flags["verbose"],
        _given(flags, ("dimensions", "truncate")),
    )


def _given(flags: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: flags[name] for name in names if flags[name] is not None}


def _form(text: str | None) -> Any:
    if not text or text == "json":
        return text or None
    try:
        schema = json.loads(text)
    except ValueError:
        schema = None
    if not isinstance(schema, dict):
        raise Misuse(f"`--format` cannot be `{text[:60]}`", "give `json`, or a JSON schema")
    return schema


def _think(text: str | None) -> bool | str | None:
    if text is None or text in LEVELS:
        return text
    if text not in SWITCHES:
        raise Misuse(f"`--think` cannot be `{text}`", "give `true`, `false`, `low`, `medium` or `high`")
    return SWITCHES[text]


def _keep_alive(text: str | None) -> float | None:
    """Seconds as the wire has them: below zero is for ever."""
    if not text:
        return None
    from fox.errors import InvalidRequest
    from fox.registry.keep_alive import seconds

    try:
        found = seconds(text)
    except InvalidRequest:
        raise Misuse(
            f"`--keepalive` cannot be `{text}`", "give a time such as `5m`, or -1 for ever"
        ) from None
    if found is None or math.isinf(found):
        return None if found is None else -1
    return int(found) if found == int(found) else found
