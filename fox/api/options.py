"""The API room's options."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ApiOptions:
    """`system_prompt` is said first in a conversation that has no system message ("": nothing is). `ollama_version` is
    what `/api/version` reports; clients refuse to work below floors of their own. `max_body_mb`: the
    largest body that is read, in MiB. `reasoning_format`: `separate` tells thoughts beside the text, `none` leaves
    them in it as the model wrote them. `tool_call_parser`: the family of all calls ("": each by its template).
    `go_template`: whether a model's Go template is used; `auto`: unless a request needs what only the GGUF's own has.
    `cors_origins`: web origins that may ask beside local ones."""

    system_prompt: str = ""
    ollama_version: str = "0.35.0"
    max_body_mb: int = 8
    reasoning_format: str = "separate"
    tool_call_parser: str = ""
    go_template: str = "auto"
    cors_origins: str = ""
