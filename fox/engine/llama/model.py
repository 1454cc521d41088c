"""One GGUF in memory with one context: decode, move cells, save and restore states."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from fox.engine.constraint import FORCED_TOKENS
from fox.engine.llama import geometry
from fox.engine.llama.adapters import load_adapters
from fox.engine.llama.attention import flash_attention, k_type, kv_type, v_type
from fox.engine.llama.batch import Batch
from fox.engine.llama.bindings import lib
from fox.engine.llama.devices import gpu_memory
from fox.engine.llama.draft import DraftModel, Unfit
from fox.engine.llama.embedder import Embedder
from fox.engine.llama.grammar import Grammars
from fox.engine.llama.log import LogTail
from fox.engine.llama.sampler import LlamaSampler
from fox.engine.llama.states import StateStore, identity
from fox.engine.llama.vocabulary import Vocabulary
from fox.engine.llama.weights import can_trim, context_params, header_value, load_weights
from fox.engine.model import Lost, Matcher, NoRoom
from fox.engine.options import EngineOptions
from fox.errors import EngineFailed, ModelLoadFailed
from fox.generation import Grammar, ModelInfo, PromptPart, Sampling
from fox.kvcache import Drop, Forget, Move, Restore, Save, Shape, Share, Spill, Trim
from fox.scheduler import Chunk, Guesser

MICRO_BATCH_TOKENS = 512


class LlamaModel:
    """The Model protocol over llama.cpp."""

    def __init__(self, name: str, path: Path, options: EngineOptions, adapters: Sequence[Path] = ()) -> None:
        self._log = LogTail(lib)
        self._name = name
        self._options = options
        self._model = load_weights(name, path, self._log)
        self._adapters = load_adapters(name, self._model, adapters, self._log)
        self.vocab = Vocabulary(self._model)
        self._grammars = Grammars(self.vocab)
        self._flash_attention = flash_attention(options, on_gpu=gpu_memory() is not None)
        self.states = StateStore(options.kv_dir, self._identity(path, adapters))
        self.shape: Shape
        self.embedder = Embedder(self._model, self.vocab, options, self._log, name)
        self.guesser: Guesser | None = None
        if sizes := geometry.measure(self._model, self._params()):
            layout = self._open_context(sizes)
            self._memory = lib.llama_get_memory(self._ctx)
            self._batch = Batch(lib.llama_n_batch(self._ctx))
            self.info = self._describe(layout)
            self.guesser = self._open_draft(layout.context_tokens)
        else:
            self.shape = Shape(slots=1, blocks=1, block_size=self.embedder.context_tokens)
            self.info = self._describe(None)

    def tokenize(self, prompt: Sequence[PromptPart], *, begins: bool = True) -> list[int]:
        return self.vocab.tokenize(prompt, begins=begins)

    def piece(self, token: int) -> bytes:
        return self.vocab.piece(token)

    def name(self, token: int) -> bytes:
        return self.vocab.name(token)

    def control(self, spelling: str) -> int | None:
        return self.vocab.control(spelling)

    def compile(self, grammar: Grammar) -> Matcher:
        return self._grammars.compile(grammar)

    def is_end(self, token: int) -> bool:
        return token in self.vocab.end_tokens

    def apply(self, moves: Sequence[Move]) -> Lost:
        seqs: list[int] = []
        keys: list[int] = []
        for move in moves:
            match move:
                case Drop(seq):
                    lib.llama_memory_seq_rm(self._memory, seq, -1, -1)
                case Trim(seq, upto):
                    if seq not in seqs and not lib.llama_memory_seq_rm(self._memory, seq, upto, -1):
                        seqs.append(seq)
                case Share():
                    self._share(move)
                case Save(seq, key):
                    if not self._save(seq, key):
                        keys.append(key)
                case Restore(key, seq):
                    if not self._restore(key, seq):
                        seqs.append(seq)
                case Forget(key):
                    self.states.forget(key)
                case Spill(key, tokens):
                    self.states.spill(key, tokens)
        return Lost(seqs, keys)

    def decode(self, chunks: Sequence[Chunk]) -> list[int]:
        rows = self._batch.fill(chunks)
        status = lib.llama_decode(self._ctx, self._batch.struct)
        if status == 1:
            raise NoRoom
        if status != 0:
            raise EngineFailed(f"llama_decode failed with status {status}: {self._log.reason()}")
        return rows

    def sampler(self, sampling: Sampling, prompt: Sequence[int], *, may_end: bool) -> LlamaSampler:
        if not may_end:
            barred = tuple((token, -math.inf) for token in sorted(self.vocab.end_tokens))
            sampling = msgspec.structs.replace(sampling, logit_bias=sampling.logit_bias + barred)
        return LlamaSampler(self._ctx, self.vocab, self.info.context_tokens, sampling, prompt)

    # cells and states

    def _identity(self, path: Path, adapters: Sequence[Path]) -> bytes:
        options = self._options
        if options.kv_dir is None:
            return b""
        over = [identity(adapter) for adapter in adapters]
        return identity(
            path, k_type(options), v_type(options), self._flash_attention, options.swa_full, *over
        )

    def _share(self, move: Share) -> None:
        upto = -1 if move.whole or self.shape.by_copy else move.upto
        lib.llama_memory_seq_cp(self._memory, move.src, move.dst, -1, upto)
        if self.shape.by_copy and not move.whole:
            lib.llama_memory_seq_rm(self._memory, move.dst, move.upto, -1)

    def _save(self, seq: int, key: int) -> bool:
        size = lib.llama_state_seq_get_size_ext(self._ctx, seq, 0)
        try:
            buffer = (ctypes.c_uint8 * size)()
        except MemoryError:
            return False
        if lib.llama_state_seq_get_data_ext(self._ctx, buffer, size, seq, 0) != size:
            return False
        self.states.put(key, buffer)
        return True

    def _restore(self, key: int, seq: int) -> bool:
        buffer = self.states.get(key)
        if buffer is None:
            return False
        lib.llama_memory_seq_rm(self._memory, seq, -1, -1)
        size = len(buffer)
        return bool(lib.llama_state_seq_set_data_ext(self._ctx, buffer, size, seq, 0) == size)

    # loading

    def _open_context(self, sizes: geometry.StateSizes) -> geometry.Layout:
        """Opens the largest context that memory has room for. Never a shorter one than was asked for."""
        trained = lib.llama_model_n_ctx_train(self._model) or geometry.SMALLEST_CONTEXT_TOKENS
        for layout in geometry.layouts(sizes, trained, self._options):
            if ctx := lib.llama_init_from_model(self._model, self._params(layout)):
                break
        else:
            raise ModelLoadFailed(self._name, self._log.reason())
        self._ctx = ctx
        self._adapters.apply(ctx)
        trims = can_trim(self._model, swa_full=self._options.swa_full)
        self.shape = geometry.shape(layout, lib.llama_n_ctx(ctx), sizes, self._options, trims)
        return layout

    def _open_draft(self, context_tokens: int) -> Guesser | None:
        """One that does not fit this model is passed over with a warning: the flag is for all models of a server."""
        path, options = self._options.draft_model, self._options
        if path is None:
            return None
        try:
            if not self.shape.can_trim:
                raise Unfit("the model's state cannot take back a wrong guess")
            return DraftModel(path, options, self.vocab, context_tokens, self._log).guess
        except Unfit as error:
            self._log.warn(f"{self._name} runs without the draft model {path.name}: {error}")
            return None
        except ModelLoadFailed as error:
            raise ModelLoadFailed(self._name, f"its draft model: {error.args[1]}") from None

    def _params(self, layout: geometry.Layout | None = None) -> Any:
        params = context_params(self._options)
        params.flash_attn_type = self._flash_attention
        params.type_k, params.type_v = kv_type(k_type(self._options)), kv_type(v_type(self._options))
        params.swa_full = self._options.swa_full
        if layout:
            params.n_ctx, params.n_seq_max = layout.cells, layout.slots
            ahead = max(self._options.spec_draft_len, 0) + FORCED_TOKENS
            params.n_batch = self._options.max_prefill_chunk + layout.parallel * (1 + ahead)
            params.n_ubatch = min(MICRO_BATCH_TOKENS, params.n_batch)
            params.kv_unified = not layout.lanes
        return params

    def _describe(self, layout: geometry.Layout | None) -> ModelInfo:
        """`layout`: None for an encoder."""
        template = lib.llama_model_chat_template(self._model, None)
        return ModelInfo(
            name=self._name,
            architecture=header_value(self._model, "general.architecture"),
            context_tokens=layout.context_tokens if layout else self.embedder.context_tokens,
            trained_context_tokens=lib.llama_model_n_ctx_train(self._model),
            parallel=layout.parallel if layout else 1,
            vocab_tokens=self.vocab.size,
            parameters=lib.llama_model_n_params(self._model),
            weights_bytes=lib.llama_model_size(self._model),
            chat_template=template.decode(errors="replace") if template else None,
            bos=self.vocab.text(self.vocab.bos),
            eos=self.vocab.text(self.vocab.eos),
            control_tokens=tuple(self.vocab.controls),
            control_ids=tuple(self.vocab.controls.values()),
            end_tokens=tuple(self.vocab.text(t) for t in sorted(self.vocab.end_tokens)),
            can_trim=self.shape.can_trim,
            layout="lanes" if layout and layout.lanes else "pool",
            generates=layout is not None,
            pooling=self.embedder.pooling,
            embedding_width=self.embedder.width,
            embedding_tokens=self.embedder.context_tokens,
            fim=self.vocab.fim,
        )
