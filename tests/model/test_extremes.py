"""The ends of every sampler's range, inside the decode graph and outside: no value may end the engine."""

from __future__ import annotations

from typing import Any

import pytest

from fox.generation import Sampling
from tests.model.desk import Desk

pytestmark = pytest.mark.model

EXTREMES = (
    {"top_k": 97},
    {"top_k": 98},
    {"top_k": 256},
    {"top_k": (1 << 31) - 1},
    {"top_k": 1},
    {"top_p": 1e-9},
    {"min_p": 1.0},
    {"typical_p": 1e-9},
    {"xtc_probability": 1.0, "xtc_threshold": 0.0},
    {"top_n_sigma": 1e-9},
    {"top_n_sigma": 100.0},
    {"temperature": 1e-6},
    {"temperature": 100.0},
    {"temperature": 0.1, "dynatemp_range": 100.0, "dynatemp_exponent": 100.0},
    {"dynatemp_range": 1.0, "dynatemp_exponent": 0.0},
    {"repeat_penalty": 1e-6},
    {"repeat_penalty": 100.0, "repeat_last_n": -1},
    {"presence_penalty": -2.0, "frequency_penalty": 2.0},
    {"logit_bias": tuple((token, -100.0) for token in range(98))},
    {"logit_bias": tuple((token, 100.0) for token in range(98))},
    {"mirostat": 1, "mirostat_tau": 0.0, "mirostat_eta": 100.0},
    {"mirostat": 1, "mirostat_tau": 100.0, "mirostat_eta": 0.0},
    {"mirostat": 2, "mirostat_tau": 0.0, "mirostat_eta": 100.0},
    {"mirostat": 2, "mirostat_tau": 100.0},
    {"dry_multiplier": 100.0, "dry_base": 100.0, "dry_allowed_length": 1},
    {"dry_multiplier": 1.0, "dry_sequence_breakers": ("\x00", "é", "a" * 1024)},
    {"dry_multiplier": 1.0, "dry_sequence_breakers": (), "dry_penalty_last_n": 0},
)


@pytest.fixture(scope="module")
def desk(gguf: Any) -> Desk:
    return Desk.open(gguf("plain"))


@pytest.mark.parametrize("values", EXTREMES, ids=lambda values: "-".join(map(str, values)))
@pytest.mark.parametrize("ignore_eos", [False, True], ids=["in_graph", "outside"])
@pytest.mark.parametrize("top_k", [0, 40])
def test_the_ends_of_a_samplers_range_end_no_engine(
    desk: Desk, values: dict[str, Any], top_k: int, ignore_eos: bool
) -> None:
    assert desk.model.vocab.size == 98
    sampling = Sampling(**{"top_k": top_k, "seed": 1, **values})
    assert desk.say(
        "aaabbbaaabbb", 6, sampling=sampling, ignore_eos=ignore_eos
    ).usage.completion_tokens in range(1, 7)
