"""llama.cpp behind the Model protocol. The only file that knows ctypes; it uses the low-level bindings alone."""

from __future__ import annotations

import ctypes
import importlib.util
import math
import sys
import types
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fox.engine import machine
from fox.engine.llama_log import LogTail
from fox.engine.model import NoRoom
from fox.engine.options import EngineOptions
from fox.engine.sampling import Stage, stages
from fox.errors import EngineFailed, ModelLoadFailed
from fox.generation import ModelInfo, PromptPart, Sampling
from fox.kvcache import Drop, Move
from fox.scheduler import Chunk

KV_BUDGET_BYTES = 1 << 29  # clearing it takes 0.1 to 0.3 s of a load
SMALLEST_CONTEXT_TOKENS = 256
F16_BYTES = 2
LONGEST_BATCH_TOKENS = 2048


def _bindings() -> Any:
    """`llama_cpp.llama_cpp` without the package's `__init__`, which would import the whole high-level API (0.2 s)."""
    if "llama_cpp" not in sys.modules:
        spec = importlib.util.find_spec("llama_cpp")
        if spec is None:
            raise ModuleNotFoundError("llama_cpp")
        package = types.ModuleType("llama_cpp")
        package.__path__ = spec.submodule_search_locations or []
        sys.modules["llama_cpp"] = package
    return importlib.import_module("llama_cpp.llama_cpp")


lib = _bindings()


class LlamaModel:
    """One GGUF in memory, with one context whose KV cells form a single pool."""

    def __init__(self, name: str, path: Path, options: EngineOptions) -> None:
        self._log = LogTail(lib)
        self._model = self._load(name, path)
        self._refuse_non_decoders(name)
        self.vocab = Vocabulary(self._model)
        self._ctx, context_tokens, self.pool_tokens = self._open_context(name, options)
        self._memory = lib.llama_get_memory(self._ctx)
        self._batch = Batch(lib.llama_n_batch(self._ctx))
        self.info = self._describe(name, context_tokens, options)

    def tokenize(self, prompt: Sequence[PromptPart]) -> list[int]:
        return self.vocab.tokenize(prompt)

    def piece(self, token: int) -> bytes:
        return self.vocab.piece(token)

    def is_end(self, token: int) -> bool:
        return token in self.vocab.end_tokens

    def apply(self, moves: Sequence[Move]) -> None:
        for move in moves:
            match move:
                case Drop(seq):
                    lib.llama_memory_seq_rm(self._memory, seq, -1, -1)

    def decode(self, chunks: Sequence[Chunk]) -> list[int]:
        rows = self._batch.fill(chunks)
        status = lib.llama_decode(self._ctx, self._batch.struct)
        if status == 1:
            raise NoRoom
        if status != 0:
            raise EngineFailed(f"llama_decode failed with status {status}: {self._log.reason()}")
        return rows

    def sampler(self, sampling: Sampling, prompt: Sequence[int]) -> LlamaSampler:
        return LlamaSampler(self, sampling, prompt)

    def sample_row(self, chain: int, row: int, may_end: bool) -> int:
        """The token that `chain` chooses from the logits of batch row `row`."""
        if not may_end:
            logits = lib.llama_get_logits_ith(self._ctx, row)
            for end in self.vocab.end_tokens:
                logits[end] = -math.inf
        token: int = lib.llama_sampler_sample(chain, self._ctx, row)
        return token

    def _load(self, name: str, path: Path) -> Any:
        if path.is_dir():
            raise ModelLoadFailed(name, "it is a directory, not a GGUF file")
        lib.llama_backend_init()
        model = lib.llama_model_load_from_file(str(path).encode(), lib.llama_model_default_params())
        if not model:
            raise ModelLoadFailed(name, self._log.reason())
        return model

    def _refuse_non_decoders(self, name: str) -> None:
        if lib.llama_model_has_encoder(self._model) or not lib.llama_model_has_decoder(self._model):
            raise ModelLoadFailed(name, "an encoder model cannot generate text token by token")
        if lib.llama_vocab_type(lib.llama_model_get_vocab(self._model)) == 0:
            raise ModelLoadFailed(name, "it has no vocabulary")

    def _open_context(self, name: str, options: EngineOptions) -> tuple[Any, int, int]:
        """`(context, context tokens, pool tokens)`. Without an explicit length, halves it until the memory suffices."""
        context = options.max_context_len or min(self._trained_tokens(), self._affordable_tokens())
        while True:
            pool = max(context, min(options.max_batch_size * context, self._affordable_tokens()))
            if ctx := lib.llama_init_from_model(self._model, self._context_params(pool, options)):
                return ctx, context, lib.llama_n_ctx(ctx)
            if options.max_context_len or context // 2 < SMALLEST_CONTEXT_TOKENS:
                raise ModelLoadFailed(name, self._log.reason())
            context //= 2

    def _context_params(self, pool_tokens: int, options: EngineOptions) -> Any:
        params = lib.llama_context_default_params()
        params.n_ctx = pool_tokens
        params.n_seq_max = options.max_batch_size
        params.n_batch = max(LONGEST_BATCH_TOKENS, options.max_prefill_chunk) + options.max_batch_size
        params.n_ubatch = 512
        params.n_threads = params.n_threads_batch = options.threads or machine.physical_cores()
        params.kv_unified = True
        params.no_perf = True
        return params

    def _trained_tokens(self) -> int:
        return lib.llama_model_n_ctx_train(self._model) or SMALLEST_CONTEXT_TOKENS

    def _affordable_tokens(self) -> int:
        """How many tokens of f16 KV fit the budget: half a GiB, or an eighth of what the machine has free."""
        heads = lib.llama_model_n_head_kv(self._model)
        width = lib.llama_model_n_embd(self._model) // max(1, lib.llama_model_n_head(self._model))
        token_bytes = 2 * F16_BYTES * lib.llama_model_n_layer(self._model) * max(1, heads) * width
        budget = min(KV_BUDGET_BYTES, machine.available_memory_bytes() // 8)
        return int(max(SMALLEST_CONTEXT_TOKENS, budget // token_bytes))

    def _describe(self, name: str, context_tokens: int, options: EngineOptions) -> ModelInfo:
        template = lib.llama_model_chat_template(self._model, None)
        recurrent = lib.llama_model_is_recurrent(self._model) or lib.llama_model_is_hybrid(self._model)
        return ModelInfo(
            name=name,
            architecture=self._metadata("general.architecture"),
            context_tokens=context_tokens,
            trained_context_tokens=self._trained_tokens(),
            parallel=options.max_batch_size,
            vocab_tokens=self.vocab.size,
            parameters=lib.llama_model_n_params(self._model),
            weights_bytes=lib.llama_model_size(self._model),
            chat_template=template.decode(errors="replace") if template else None,
            bos=self.vocab.text(self.vocab.bos),
            eos=self.vocab.text(self.vocab.eos),
            control_tokens=self.vocab.control_tokens(),
            end_tokens=tuple(self.vocab.text(t) for t in sorted(self.vocab.end_tokens)),
            can_trim=not recurrent,
        )

    def _metadata(self, key: str) -> str:
        buffer = ctypes.create_string_buffer(256)
        found = lib.llama_model_meta_val_str(self._model, key.encode(), buffer, len(buffer))
        return buffer.value.decode(errors="replace") if found >= 0 else ""


class Vocabulary:
    """Text to token ids and back, for one loaded model."""

    def __init__(self, model: Any) -> None:
        self._vocab = lib.llama_model_get_vocab(model)
        self.size: int = lib.llama_vocab_n_tokens(self._vocab)
        self.bos: int = lib.llama_vocab_bos(self._vocab)
        self.eos: int = lib.llama_vocab_eos(self._vocab)
        self.end_tokens = frozenset(t for t in range(self.size) if lib.llama_vocab_is_eog(self._vocab, t))
        self._adds_eos = lib.llama_vocab_get_add_eos(self._vocab)
        self._pieces: dict[int, bytes] = {}

    def tokenize(self, prompt: Sequence[PromptPart]) -> list[int]:
        tokens: list[int] = []
        for i, part in enumerate(prompt):
            tokens += self._tokenize(part.text.encode(errors="replace"), i == 0, part.special)
        if tokens[:2] == [self.bos, self.bos]:  # the template wrote one already
            return tokens[1:]
        return tokens

    def piece(self, token: int) -> bytes:
        if (piece := self._pieces.get(token)) is None:
            piece = self._pieces[token] = self._render(token)
        return piece

    def text(self, token: int) -> str:
        """How the vocabulary spells a token; "" for one it does not have."""
        raw = lib.llama_vocab_get_text(self._vocab, token) if 0 <= token < self.size else b""
        return (raw or b"").decode(errors="replace")

    def control_tokens(self) -> tuple[str, ...]:
        """Every token that text only becomes when special tokens are parsed."""
        mask = lib.LLAMA_TOKEN_ATTR_CONTROL | lib.LLAMA_TOKEN_ATTR_UNKNOWN
        return tuple(
            self.text(t) for t in range(self.size) if lib.llama_vocab_get_attr(self._vocab, t) & mask
        )

    def _tokenize(self, text: bytes, first: bool, special: bool) -> list[int]:
        room = len(text) + 8
        buffer = (ctypes.c_int32 * room)()
        count = lib.llama_tokenize(self._vocab, text, len(text), buffer, room, first, special)
        if count < 0:
            raise EngineFailed(f"tokenizing failed: {-count} tokens do not fit {room}")
        tokens = buffer[:count]
        if first and self._adds_eos and tokens[-1:] == [self.eos]:
            tokens.pop()
        return tokens

    def _render(self, token: int) -> bytes:
        buffer = ctypes.create_string_buffer(256)
        count = lib.llama_token_to_piece(self._vocab, token, buffer, len(buffer), 0, False)
        if count < 0:
            buffer = ctypes.create_string_buffer(-count)
            count = lib.llama_token_to_piece(self._vocab, token, buffer, len(buffer), 0, False)
        return buffer.raw[:count]


class Batch:
    """A llama_batch over arrays of our own: one slice assignment a column instead of one store a cell."""

    def __init__(self, room: int) -> None:
        self._token = (lib.llama_token * room)()
        self._pos = (lib.llama_pos * room)()
        self._seq = (lib.llama_seq_id * room)()
        self._logits = (ctypes.c_int8 * room)()
        ones = (ctypes.c_int32 * room)(*[1] * room)
        pointers = (ctypes.POINTER(lib.llama_seq_id) * room)()
        size = ctypes.sizeof(lib.llama_seq_id)
        for i in range(room):
            pointers[i] = ctypes.cast(
                ctypes.addressof(self._seq) + i * size, ctypes.POINTER(lib.llama_seq_id)
            )
        self._keep = (ones, pointers)
        self.struct = lib.llama_batch(
            0,
            self._token,
            None,
            self._pos,
            ones,
            pointers,
            ctypes.cast(self._logits, ctypes.POINTER(ctypes.c_int8)),
        )

    def fill(self, chunks: Sequence[Chunk]) -> list[int]:
        """Lay the chunks down one after the other; returns the row of each one's last token."""
        at, rows = 0, []
        for chunk in chunks:
            end = at + (count := len(chunk.tokens))
            self._token[at:end] = chunk.tokens
            self._pos[at:end] = range(chunk.start, chunk.start + count)
            self._seq[at:end] = [chunk.seq] * count
            self._logits[at:end] = [*[0] * (count - 1), int(chunk.sample)]
            rows.append(end - 1)
            at = end
        self.struct.n_tokens = at
        return rows


class LlamaSampler:
    """One answer's sampler chain."""

    def __init__(self, model: LlamaModel, sampling: Sampling, prompt: Sequence[int]) -> None:
        self._model = model
        self._chain = lib.llama_sampler_chain_init(lib.llama_sampler_chain_default_params())
        if sampling.logit_bias:
            self._add(_logit_bias(sampling, model.vocab.size))
        for stage in stages(sampling, model.vocab.size, model.info.context_tokens):
            self._add(_init(stage, prompt))

    def sample(self, row: int, *, may_end: bool) -> int:
        return self._model.sample_row(self._chain, row, may_end)

    def close(self) -> None:
        if self._chain:
            lib.llama_sampler_free(self._chain)
            self._chain = None

    def _add(self, sampler: Any) -> None:
        lib.llama_sampler_chain_add(self._chain, sampler)


def _init(stage: Stage, prompt: Sequence[int]) -> Any:
    sampler = getattr(lib, f"llama_sampler_init_{stage.name}")(*stage.args)
    if stage.sees_prompt:
        for token in prompt[-int(stage.args[1]) :]:
            lib.llama_sampler_accept(sampler, token)
    return sampler


def _logit_bias(sampling: Sampling, vocab_tokens: int) -> Any:
    biases = (lib.llama_logit_bias * len(sampling.logit_bias))(*sampling.logit_bias)
    return lib.llama_sampler_init_logit_bias(vocab_tokens, len(biases), biases)
