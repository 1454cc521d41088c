"""One answer's sampler chain, run inside the decode graph where llama.cpp can (backend sampling), else after it."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fox.engine.llama.bindings import lib
from fox.engine.llama.vocabulary import Vocabulary
from fox.engine.model import Filter
from fox.engine.sampling import Stage, runs_in_graph, stages
from fox.generation import Sampling, TokenLogprob

REMEMBERS = {"penalties", "dry", "mirostat", "mirostat_v2"}
"""Samplers to which a token that was drawn and not taken makes a difference."""


class LlamaSampler:
    """Chooses one answer's tokens. `attach` hands the chain to the context for the sequence that the answer runs as."""

    def __init__(
        self, ctx: Any, vocab: Vocabulary, context_tokens: int, sampling: Sampling, prompt: Sequence[int]
    ) -> None:
        self._ctx = ctx
        self._vocab = vocab
        self._seq: int | None = None
        self._chain = lib.llama_sampler_chain_init(lib.llama_sampler_chain_default_params())
        chain = stages(sampling, vocab.size, context_tokens)
        self._can_be = runs_in_graph(chain, biased=bool(sampling.logit_bias))
        self._forgets = not {stage.name for stage in chain} & REMEMBERS
        if sampling.logit_bias:
            self._add(_logit_bias(sampling, vocab.size))
        for stage in chain:
            self._add(_init(stage, vocab, prompt))

    @property
    def in_graph(self) -> bool:
        return self._seq is not None

    def attach(self, seq: int, *, alone: bool) -> None:
        """Run inside the graph for sequence `seq` while that is possible: with one token a step, any allowed."""
        wanted = seq if alone and self._can_be else None
        if wanted == self._seq:
            return
        self.detach()
        if wanted is not None and lib.llama_set_sampler(self._ctx, wanted, self._chain):
            self._seq = wanted
        elif wanted is not None:
            self._can_be = False

    def detach(self) -> None:
        """Go on outside the graph: as a clone, for a chain that has been inside does nothing outside."""
        if self._seq is not None:
            lib.llama_set_sampler(self._ctx, self._seq, None)
            self._seq = None
            spent, self._chain = self._chain, lib.llama_sampler_clone(self._chain)
            lib.llama_sampler_free(spent)

    def sample(self, row: int, *, may_end: bool, only: Filter | None = None) -> int:
        """The next token from batch row `row`."""
        if only is not None:
            if self._forgets and only.allows(token := self._draw(row)) and (may_end or not self._ends(token)):
                return token
            self._bar(row, only.barred())
        if not may_end:
            self._bar(row, list(self._vocab.end_tokens))
        return self._draw(row)

    def accept(self, token: int) -> None:
        lib.llama_sampler_accept(self._chain, token)

    def logits(self, row: int) -> NDArray[np.float32]:
        """A copy of what the model left for batch row `row`; shape (vocabulary,)."""
        return self._logits(row).copy()

    def logprobs(self, logits: NDArray[np.float32], token: int, rivals: int) -> TokenLogprob:
        """The softmax of `logits`, in float32."""
        peak = logits.max()
        total = float(peak + np.log(np.exp(logits - peak).sum()))
        best = np.argpartition(logits, -rivals)[-rivals:] if rivals else logits[:0].astype(int)
        best = best[np.argsort(-logits[best], kind="stable")]
        name = self._vocab.name
        top = tuple((name(int(rival)), float(logits[rival]) - total) for rival in best)
        return TokenLogprob(name(token), float(logits[token]) - total, top)

    def _draw(self, row: int) -> int:
        return int(lib.llama_sampler_sample(self._chain, self._ctx, row))

    def _ends(self, token: int) -> bool:
        return token in self._vocab.end_tokens

    def _logits(self, row: int) -> NDArray[np.float32]:
        return np.ctypeslib.as_array(lib.llama_get_logits_ith(self._ctx, row), (self._vocab.size,))

    def _bar(self, row: int, tokens: NDArray[np.bool_] | list[int]) -> None:
        """Tokens that may not come; where that leaves none, they may."""
        logits = self._logits(row)
        before = logits[tokens]
        logits[tokens] = -math.inf
        if logits.max() == -math.inf:
            logits[tokens] = before

    def close(self) -> None:
        if self._chain:
            self.detach()
            lib.llama_sampler_free(self._chain)
            self._chain = None

    def _add(self, sampler: Any) -> None:
        lib.llama_sampler_chain_add(self._chain, sampler)


def _init(stage: Stage, vocab: Vocabulary, prompt: Sequence[int]) -> Any:
    if stage.name == "dry":
        return _dry(stage, vocab, prompt)
    sampler = getattr(lib, f"llama_sampler_init_{stage.name}")(*stage.args)
    return _shown(sampler, prompt[-int(stage.args[1]) :] if stage.sees_prompt else ())


def _dry(stage: Stage, vocab: Vocabulary, prompt: Sequence[int]) -> Any:
    breakers = (ctypes.c_char_p * len(stage.words))(*(word.encode() for word in stage.words))
    sampler = lib.llama_sampler_init_dry(vocab.handle, *stage.args, breakers, len(stage.words))
    return _shown(sampler, prompt[-int(stage.args[3]) :])


def _shown(sampler: Any, tokens: Sequence[int]) -> Any:
    for token in tokens:
        lib.llama_sampler_accept(sampler, token)
    return sampler


def _logit_bias(sampling: Sampling, vocab_tokens: int) -> Any:
    biases = (lib.llama_logit_bias * len(sampling.logit_bias))(*sampling.logit_bias)
    return lib.llama_sampler_init_logit_bias(vocab_tokens, len(biases), biases)
