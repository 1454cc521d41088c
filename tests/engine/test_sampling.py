from __future__ import annotations

from fox.engine.sampling import Stage, runs_in_graph, stages
from fox.generation import Sampling


def names(sampling: Sampling) -> list[str]:
    return [stage.name for stage in stages(sampling, 100, 64)]


def test_temperature_zero_is_greedy_whatever_else_is_asked() -> None:
    assert names(Sampling(temperature=0, top_k=5, top_p=0.1, min_p=0.2, seed=3)) == ["greedy"]


def test_the_order_is_penalties_truncation_temperature_draw() -> None:
    sampling = Sampling(min_p=0.1, repeat_penalty=1.1, presence_penalty=0.5)
    assert names(sampling) == ["penalties", "penalties", "top_k", "top_p", "min_p", "temp", "dist"]


def test_what_is_switched_off_is_not_in_the_chain() -> None:
    assert names(Sampling(top_k=0, top_p=1.0, min_p=0.0)) == ["temp", "dist"]


def test_the_repeat_penalty_sees_the_prompt_and_the_others_do_not() -> None:
    chain = stages(
        Sampling(temperature=0, repeat_penalty=1.2, repeat_last_n=-1, frequency_penalty=0.3), 100, 64
    )
    assert chain[0] == Stage("penalties", (100, 64, 1.2, 0.0, 0.0), sees_prompt=True)
    assert chain[1] == Stage("penalties", (100, 64, 1.0, 0.3, 0.0))


def test_a_seed_is_kept_in_32_bits_and_none_means_a_new_one_each_time() -> None:
    assert stages(Sampling(seed=(1 << 32) + 5), 100, 64)[-1] == Stage("dist", (5,))
    drawn = {stages(Sampling(), 100, 64)[-1].args for _ in range(5)}
    assert len(drawn) > 1


def test_every_sampler_has_its_place_in_the_order() -> None:
    sampling = Sampling(
        min_p=0.1,
        typical_p=0.9,
        top_n_sigma=1.0,
        xtc_probability=0.5,
        dry_multiplier=0.8,
        dynatemp_range=0.5,
        seed=1,
    )
    assert names(sampling) == [
        "dry",
        "top_n_sigma",
        "top_k",
        "typical",
        "top_p",
        "min_p",
        "xtc",
        "temp_ext",
        "dist",
    ]


def test_mirostat_replaces_all_truncation() -> None:
    assert names(Sampling(mirostat=1, min_p=0.1)) == ["temp", "mirostat"]
    assert names(Sampling(mirostat=2)) == ["temp", "mirostat_v2"]


def test_chains_that_differ_inside_the_graph_stay_outside() -> None:
    def inside(sampling: Sampling, biased: bool = False) -> bool:
        return runs_in_graph(stages(sampling, 100, 64), biased=biased)

    assert inside(Sampling())
    assert inside(Sampling(temperature=0, repeat_penalty=1.2), biased=True)
    assert inside(Sampling(top_k=0, top_p=1.0))
    assert not inside(Sampling(top_k=0))
    assert not inside(Sampling(repeat_penalty=1.2))
    assert not inside(Sampling(), biased=True)
    assert not inside(Sampling(mirostat=2))
    assert not inside(Sampling(dynatemp_range=0.3))
