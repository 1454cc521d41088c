"""Which attention a context gets, and that cells of every type answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fox.engine.llama.attention import AUTO, OFF, ON, flash_attention, kv_type
from fox.engine.options import EngineOptions
from tests.model.desk import Desk


@pytest.mark.parametrize(
    ("options", "cpu", "gpu"),
    [
        ({}, OFF, AUTO),
        ({"flash_attn": "on"}, ON, ON),
        ({"flash_attn": "off"}, OFF, OFF),
        ({"type_kv": "q8_0"}, ON, AUTO),
        ({"type_k": "q8_0"}, OFF, AUTO),
        ({"type_v": "q4_0"}, ON, AUTO),
        ({"type_kv": "bf16"}, OFF, AUTO),
    ],
)
def test_flash_attention_is_left_to_gpus_and_to_quantized_cells(
    options: dict[str, Any], cpu: int, gpu: int
) -> None:
    made = EngineOptions(**options)
    assert flash_attention(made, on_gpu=False) == cpu
    assert flash_attention(made, on_gpu=True) == gpu


@pytest.mark.model
@pytest.mark.parametrize("name", ["f32", "f16", "bf16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl"])
def test_cells_of_every_type_answer(name: str, starter_path: Path) -> None:
    assert kv_type(name) >= 0
    desk = Desk.open(starter_path, type_kv=name)
    assert desk.say("The capital of France is", 4).usage.completion_tokens == 4
