"""The border between parent and child: 4-byte big-endian length, then one msgpack message.

Down: Start once, then Submit, Cancel and tasks. Up: Ready or LoadFailed once, then one Stepped a step for all sequences
and one Result a task.
"""

from __future__ import annotations

import struct

import msgspec

from fox.engine.options import EngineOptions
from fox.generation import Delta, Failure, GenerationRequest, ModelInfo, PromptPart, Struct

_LENGTH = struct.Struct("!I")
HEADER_BYTES = _LENGTH.size


class Start(Struct, frozen=True, tag=True):
    name: str
    kind: str
    path: str | None
    options: EngineOptions
    adapters: tuple[str, ...] = ()


class Submit(Struct, frozen=True, tag=True):
    request: GenerationRequest


class Cancel(Struct, frozen=True, tag=True):
    id: str


class Embed(Struct, frozen=True, tag=True):
    """Vectors of texts or token lists. `dimensions`: of each only so many numbers. `truncate`: inputs that are too long
    are cut, else refused. With a `query` the inputs are texts to score against it."""

    id: str
    inputs: tuple[str | tuple[int, ...], ...]
    dimensions: int | None = None
    truncate: bool = False
    query: str | None = None


class Tokenize(Struct, frozen=True, tag=True):
    """`begins`: with the tokens that a text begins with."""

    id: str
    prompt: tuple[PromptPart, ...]
    begins: bool


class Detokenize(Struct, frozen=True, tag=True):
    id: str
    tokens: tuple[int, ...]


class Close(Struct, frozen=True, tag=True):
    """The end is near: save what is worth finding again, then exit."""


class Ready(Struct, frozen=True, tag=True):
    info: ModelInfo


class LoadFailed(Struct, frozen=True, tag=True):
    reason: str


class Vectors(Struct, frozen=True, tag=True):
    """`data`: rows of `width` 32-bit floats, little endian, one an input, which had so many `tokens`. A row is of unit
    length, or a score."""

    id: str
    data: bytes
    width: int
    tokens: tuple[int, ...]


class Tokens(Struct, frozen=True, tag=True):
    """`pieces`: what each token prints, or how it is spelled where it is a control token."""

    id: str
    tokens: tuple[int, ...]
    pieces: tuple[bytes, ...]


class Failed(Struct, frozen=True, tag=True):
    """What was asked for cannot be had."""

    id: str
    failure: Failure


class Accepted(Struct, frozen=True):
    """The request is queued; its prompt has this many tokens, `truncated` more were cut from it. `warnings`: what of
    its grammar is not honoured."""

    id: str
    prompt_tokens: int
    truncated: int = 0
    warnings: tuple[str, ...] = ()


class Refused(Struct, frozen=True):
    """The request was turned down at the door."""

    id: str
    failure: Failure


class EngineStats(Struct, frozen=True):
    """What the child knows of itself. First what is true now (`kv_usage` is the part of the pool that running requests
    hold, 0 to 1; parked ones are in `blocks_held` too), then totals since the start."""

    running: int = 0
    waiting: int = 0
    kv_usage: float = 0.0
    blocks_total: int = 0
    blocks_held: int = 0
    host_bytes: int = 0
    disk_bytes: int = 0
    preemptions: int = 0
    swaps: int = 0
    spec_proposed: int = 0
    spec_accepted: int = 0
    prompt_tokens: int = 0
    hits: int = 0
    misses: int = 0
    hit_tokens: dict[str, int] = msgspec.field(default_factory=dict)
    step_seconds: dict[str, float] = msgspec.field(default_factory=dict)


class Stepped(Struct, frozen=True, tag=True):
    """All that one step brought, for all sequences."""

    accepted: tuple[Accepted, ...]
    refused: tuple[Refused, ...]
    deltas: tuple[Delta, ...]
    stats: EngineStats


Task = Embed | Tokenize | Detokenize
Result = Vectors | Tokens | Failed
ToChild = Start | Submit | Task | Cancel | Close
ToParent = Ready | LoadFailed | Stepped | Result

_encoder = msgspec.msgpack.Encoder(enc_hook=str)  # paths


def frame(message: ToChild | ToParent) -> bytes:
    """The message as it goes over the socket, length first."""
    body = _encoder.encode(message)
    return _LENGTH.pack(len(body)) + body


def body_bytes(header: bytes | bytearray | memoryview) -> int:
    """The length of the body that follows this header."""
    length: int = _LENGTH.unpack_from(header)[0]
    return length


decode_to_child = msgspec.msgpack.Decoder(ToChild, dec_hook=lambda kind, value: kind(value)).decode
decode_to_parent = msgspec.msgpack.Decoder(ToParent).decode
