"""Which KV memory is opened, and what happens where there is less room than was thought."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fox.engine.llama import geometry
from fox.engine.llama import model as model_room
from fox.engine.llama.devices import Memory
from fox.engine.llama.geometry import StateSizes
from fox.engine.options import EngineOptions
from fox.errors import ModelLoadFailed
from tests.model.desk import Desk

TOKEN = StateSizes(token=1000, window_token=0, fixed=0)
MIB = 1 << 20


def choose(budget: int, trained: int = 8192, **options: Any) -> geometry.Layout:
    return geometry.choose(TOKEN, trained, EngineOptions(**options), budget, budget)


def test_lanes_are_taken_where_every_sequence_may_have_a_whole_context() -> None:
    layout = choose(64_000_000, max_context_len=1000, max_batch_size=64)
    assert (layout.lanes, layout.cells, layout.slots) == (True, 64_000, 64)


def test_else_one_pool_in_which_any_request_may_use_a_whole_context() -> None:
    layout = choose(63_000_000, max_context_len=1000, max_batch_size=64)
    assert (layout.lanes, layout.cells, layout.context_tokens, layout.parallel) == (False, 63_000, 1000, 64)


def test_a_context_that_was_asked_for_is_never_shortened() -> None:
    assert choose(1, max_context_len=5000).context_tokens == 5000


def test_a_recurrent_state_bounds_the_sequences_instead() -> None:
    sizes = StateSizes(token=0, window_token=0, fixed=10 * MIB)
    assert geometry.choose(sizes, 8192, EngineOptions(), 80 * MIB, 80 * MIB).parallel == 8


def test_gpu_memory_is_the_budget_where_there_is_a_gpu() -> None:
    options = EngineOptions(gpu_memory_fraction=0.5)
    assert geometry.budget_bytes(options, Memory(free_bytes=80 << 30, total_bytes=90 << 30)) == 40 << 30


def test_a_cpus_memory_is_for_lanes_where_they_fit_and_for_a_smaller_pool_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(geometry, "gpu_memory", lambda: None)
    monkeypatch.setattr(geometry.machine, "total_memory_bytes", lambda: 32 << 30)
    monkeypatch.setattr(geometry.machine, "available_memory_bytes", lambda: 20 << 30)
    kib = StateSizes(token=1024, window_token=0, fixed=0)
    lanes, pool = (
        next(geometry.layouts(kib, 1 << 20, EngineOptions(max_context_len=context, max_batch_size=64)))
        for context in (1 << 16, 1 << 17)
    )
    assert (lanes.lanes, lanes.cells) == (True, 4 << 20)
    assert (pool.lanes, pool.cells) == (False, 1 << 20)


def test_the_host_tier_may_be_a_part_of_the_gpus_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(geometry, "gpu_memory", lambda: Memory(1 << 30, 8 << 30))
    assert geometry.host_bytes(EngineOptions(swap_fraction=0.25)) == 2 << 30
    assert geometry.host_bytes(EngineOptions(swap_fraction=0.25, kv_host_mb=1)) == MIB
    assert geometry.host_bytes(EngineOptions(swap_fraction=0.0)) == 0


class Grudging:
    """llama.cpp, whose first `fails` contexts of serving size cannot be allocated."""

    def __init__(self, lib: Any, fails: int) -> None:
        self._lib = lib
        self.fails = fails
        self.cells: list[int] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._lib, name)

    def llama_init_from_model(self, model: Any, params: Any) -> Any:
        if params.n_ctx != geometry.PROBE_TOKENS:
            self.cells.append(params.n_ctx)
            if len(self.cells) <= self.fails:
                return None
        return self._lib.llama_init_from_model(model, params)


@pytest.mark.model
def test_a_smaller_memory_is_opened_where_the_first_cannot_be(
    starter_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    grudging = Grudging(model_room.lib, fails=2)
    monkeypatch.setattr(model_room, "lib", grudging)
    desk = Desk.open(starter_path, max_context_len=None, max_batch_size=32)
    assert sorted(grudging.cells, reverse=True) == grudging.cells
    assert len(set(grudging.cells)) == 3
    assert desk.say("hello", 2).text


@pytest.mark.model
def test_a_context_that_was_asked_for_and_finds_no_room_is_an_error(
    starter_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_room, "lib", Grudging(model_room.lib, fails=100))
    with pytest.raises(ModelLoadFailed):
        Desk.open(starter_path, max_context_len=1000)
