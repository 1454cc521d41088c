"""Speculation: more tokens a step, the same text.

The text is compared on a model of floats: where weights are quantized, batches of another shape give other last bits.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fox.generation import Sampling
from tests.model.desk import GREEDY, Desk

pytestmark = pytest.mark.model

COPY = "one two three four five six seven eight nine ten "
STORY = "Tell me a story of a fox and of what it found at the river that runs to the sea. "
SAMPLINGS = [
    GREEDY,
    Sampling(temperature=0.7, seed=3),
    Sampling(temperature=0.7, seed=3, repeat_penalty=1.02),
]


def texts(desk: Desk, sampling: Sampling) -> list[str]:
    ids = [desk.ask(text, 40, sampling=sampling) for text in (COPY * 3, STORY)]
    return [said.text for said in desk.finish(ids)]


@pytest.fixture(scope="module")
def plain(gguf: Any) -> Desk:
    return Desk.open(gguf("plain"), max_context_len=512)


@pytest.mark.parametrize("sampling", SAMPLINGS, ids=["greedy", "seeded", "penalised"])
def test_a_lookup_changes_no_text(gguf: Any, plain: Desk, sampling: Sampling) -> None:
    guessing = Desk.open(gguf("plain"), max_context_len=512, speculative=True, spec_ngram=1)
    assert texts(guessing, sampling) == texts(plain, sampling)
    assert guessing.loop._scheduler.speculation.proposed > 0


@pytest.mark.parametrize("sampling", SAMPLINGS, ids=["greedy", "seeded", "penalised"])
def test_a_draft_model_changes_no_text(gguf: Any, plain: Desk, sampling: Sampling) -> None:
    guessing = Desk.open(gguf("plain"), max_context_len=512, draft_model=gguf("plain"))
    assert texts(guessing, sampling) == texts(plain, sampling)
    assert guessing.loop._scheduler.speculation.proposed > 0


def test_a_model_that_drafts_for_itself_is_nearly_always_right(starter_path: Path) -> None:
    desk = Desk.open(starter_path, max_context_len=512, draft_model=starter_path)
    desk.say(STORY, 64)
    done = desk.loop._scheduler.speculation
    assert done.accepted > 0.8 * done.proposed > 20


def test_a_draft_model_follows_more_texts_than_it_has_sequences(gguf: Any, plain: Desk) -> None:
    desk = Desk.open(gguf("plain"), max_context_len=512, draft_model=gguf("plain"), max_batch_size=4)
    asked = [f"{STORY}{number} foxes" for number in range(6)]
    assert [desk.say(text, 12).text for text in asked] == [plain.say(text, 12).text for text in asked]
    assert [desk.say(text, 12).text for text in asked] == [plain.say(text, 12).text for text in asked]
