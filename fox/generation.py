"""The shared words: what is asked of an engine and what comes back. Frozen structs that cross the child's socket."""

from __future__ import annotations

from typing import Literal

import msgspec

from fox import errors


class Struct(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Base of everything that crosses the border: an array on the wire, immutable in memory."""


class PromptPart(Struct, frozen=True):
    """A stretch of prompt text. `special`: control tokens spelled in it are parsed as such.

    Text that a user wrote carries `special=False`, so that nobody can forge a turn of the conversation.
    """

    text: str
    special: bool


class Sampling(Struct, frozen=True):
    """How the next token is chosen. Temperature 0 is greedy, whatever the rest says.

    `repeat_penalty` looks at the last `repeat_last_n` tokens of prompt and answer (-1: all, 0: none); presence and
    frequency penalties look at the answer only. `logit_bias` adds to a token's logit, ids inside the vocabulary.
    `dynatemp_range` lets the temperature move that far both ways with the entropy; `mirostat` 1 or 2 replaces all
    truncation; `dry_multiplier` 0 switches DRY off. Each in the sense of llama.cpp's sampler of that name.
    """

    temperature: float = 0.8
    top_k: int = 40
    top_p: float = 0.9
    min_p: float = 0.0
    seed: int | None = None
    repeat_penalty: float = 1.0
    repeat_last_n: int = 64
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    logit_bias: tuple[tuple[int, float], ...] = ()
    dynatemp_range: float = 0.0
    dynatemp_exponent: float = 1.0
    typical_p: float = 1.0
    xtc_probability: float = 0.0
    xtc_threshold: float = 0.1
    top_n_sigma: float = -1.0
    mirostat: int = 0
    mirostat_tau: float = 5.0
    mirostat_eta: float = 0.1
    dry_multiplier: float = 0.0
    dry_base: float = 1.75
    dry_allowed_length: int = 2
    dry_penalty_last_n: int = -1
    dry_sequence_breakers: tuple[str, ...] = ("\n", ":", '"', "*")


class Grammar(Struct, frozen=True):
    """What the answer's text must be like: a JSON schema, a regex, or a grammar in llguidance's Lark dialect or GBNF.

    `param` is the request's field that asked for it. `lenient`: keywords of a schema that cannot be honoured are passed
    over with a warning.

    `starts`: it is in force from where the text has come to end with one of these; empty: from the first token on. With
    `opens`, a text that begins with that token first goes free until it ends with one of `starts`. `ends`: the answer
    ends where the grammar does; else the text goes on free, and may start it again.
    """

    kind: Literal["json", "regex", "lark", "gbnf"]
    source: str
    param: str
    lenient: bool = False
    starts: tuple[str, ...] = ()
    opens: str | None = None
    ends: bool = True


class Budget(Struct, frozen=True):
    """A thought of so many `tokens` is cut off: `says` is said in the answer's stead, unless `closes` has ended it
    before. It begins with the answer, or, with `opens`, where the text does so."""

    tokens: int
    closes: str
    says: str
    opens: str | None = None


class GenerationRequest(Struct, frozen=True):
    """One answer asked of one engine. `max_tokens=None`: to the end of the context.

    `tokens`, where there are any, are the prompt in `prompt`'s stead. `stop_tokens` end the answer like the
    vocabulary's own EOG tokens. Control tokens spelled as in `shown` come out as text. `prediction`: what the answer
    may well repeat.
    `window`: the request's own, shorter context in tokens; `keep`: first tokens that are never cut away.
    `priority` 0 to 255, the higher the sooner. `cache_prompt=False` computes the prompt from scratch. `shift`: roll the
    context's window where it ends; `truncate`: cut a prompt that is too long; None for both: as the server is set.
    `logprobs`: report each token's log probability and this many of its rivals'. `progress`: tell how far the prompt is
    read, after each piece of it.
    """

    id: str
    prompt: tuple[PromptPart, ...]
    sampling: Sampling = Sampling()
    max_tokens: int | None = None
    min_tokens: int = 0
    ignore_eos: bool = False
    stop: tuple[str, ...] = ()
    priority: int = 128
    cache_prompt: bool = True
    shift: bool | None = None
    truncate: bool | None = None
    logprobs: int | None = None
    stop_tokens: tuple[int, ...] = ()
    shown: tuple[str, ...] = ()
    grammar: Grammar | None = None
    budget: Budget | None = None
    prediction: str = ""
    tokens: tuple[int, ...] = ()
    progress: bool = False
    window: int | None = None
    keep: int | None = None


class Usage(Struct, frozen=True):
    """Tokens of one generation. `cached_tokens` of the prompt were not computed again."""

    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int = 0


class Failure(Struct, frozen=True):
    """An error on its way across the border; `errors.from_wire(*failure)` raises it again."""

    name: str
    args: tuple[str | int | float | None, ...]

    def to_error(self) -> errors.FoxError:
        return errors.from_wire(self.name, self.args)


class Finish(Struct, frozen=True):
    """How a generation ended. Every request ends in exactly one."""

    reason: Literal["stop", "length", "cancelled", "failed"]
    usage: Usage | None = None
    failure: Failure | None = None


class TokenLogprob(Struct, frozen=True):
    """One chosen token: its bytes, its natural log probability as the model left it, before any sampler, and the
    likeliest tokens at its place, best first."""

    piece: bytes
    logprob: float
    top: tuple[tuple[bytes, float], ...] = ()


class Progress(Struct, frozen=True):
    """How far a prompt is read, in tokens: all it has, those that were found, those that are known by now."""

    total: int
    cached: int
    processed: int


class Delta(Struct, frozen=True):
    """What one step added to one generation: printable text, how many tokens made it, and the end if it is the end.

    `text` may be empty while a character or a possible stop string is incomplete. `logprobs`, where they were asked
    for, are of the tokens that begin in what has been told by now.
    """

    id: str
    text: str
    tokens: int
    finish: Finish | None = None
    logprobs: tuple[TokenLogprob, ...] = ()
    progress: Progress | None = None


class ModelInfo(Struct, frozen=True):
    """What a loaded model is and can do. Sizes in bytes and tokens; `chat_template` is the GGUF's own, or None.
    `control_ids` are the ids of `control_tokens`, `fim` the tokens before the text in front of a gap, before the text
    behind it, and before what fills it. Embeddings: `pooling` is `mean`, `cls`, `last` or `rank`, vectors have
    `embedding_width` numbers, inputs up to `embedding_tokens`. An encoder does nothing else: it never `generates`."""

    name: str
    architecture: str
    context_tokens: int
    trained_context_tokens: int
    parallel: int
    vocab_tokens: int
    parameters: int
    weights_bytes: int
    chat_template: str | None
    bos: str
    eos: str
    control_tokens: tuple[str, ...]
    control_ids: tuple[int, ...] = ()
    end_tokens: tuple[str, ...] = ()
    can_trim: bool = True
    layout: str = "pool"
    generates: bool = True
    pooling: str = "mean"
    embedding_width: int = 0
    embedding_tokens: int = 0
    fim: tuple[str, str, str] | None = None
