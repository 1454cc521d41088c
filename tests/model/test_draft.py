"""Speculation over the real starter model: more tokens a step, the same text."""

from __future__ import annotations

from pathlib import Path

import pytest

from fox.generation import Sampling
from tests.model.desk import GREEDY, Desk

pytestmark = pytest.mark.model

COPY = "one two three four five six seven eight nine ten\n"
STORY = "<|im_start|>user\nTell me a story of a fox.<|im_end|>\n<|im_start|>assistant\n"
SAMPLINGS = [
    GREEDY,
    Sampling(temperature=0.7, seed=3),
    Sampling(temperature=0.7, seed=3, repeat_penalty=1.02),
]


def texts(desk: Desk, sampling: Sampling) -> list[str]:
    ids = [desk.ask(text, 40, sampling=sampling) for text in (COPY * 3, STORY)]
    return [said.text for said in desk.finish(ids)]


@pytest.fixture(scope="module")
def plain(starter_path: Path) -> Desk:
    return Desk.open(starter_path, max_context_len=512)


@pytest.mark.parametrize("sampling", SAMPLINGS, ids=["greedy", "seeded", "penalised"])
def test_a_lookup_changes_no_text(starter_path: Path, plain: Desk, sampling: Sampling) -> None:
    guessing = Desk.open(starter_path, max_context_len=512, speculative=True)
    assert texts(guessing, sampling) == texts(plain, sampling)
    assert guessing.loop._scheduler.speculation.proposed > 0


@pytest.mark.parametrize("sampling", SAMPLINGS, ids=["greedy", "seeded", "penalised"])
def test_a_draft_model_changes_no_text(starter_path: Path, plain: Desk, sampling: Sampling) -> None:
    guessing = Desk.open(starter_path, max_context_len=512, draft_model=starter_path)
    assert texts(guessing, sampling) == texts(plain, sampling)
    assert guessing.loop._scheduler.speculation.proposed > 0


def test_a_model_that_drafts_for_itself_is_nearly_always_right(starter_path: Path) -> None:
    desk = Desk.open(starter_path, max_context_len=512, draft_model=starter_path)
    desk.say(STORY, 64)
    done = desk.loop._scheduler.speculation
    assert done.accepted > 0.9 * done.proposed > 20


def test_a_draft_model_follows_more_texts_than_it_has_sequences(starter_path: Path, plain: Desk) -> None:
    desk = Desk.open(starter_path, max_context_len=512, draft_model=starter_path, max_batch_size=4)
    asked = [f"{STORY}{number} foxes" for number in range(6)]
    assert [desk.say(text, 12).text for text in asked] == [plain.say(text, 12).text for text in asked]
    assert [desk.say(text, 12).text for text in asked] == [plain.say(text, 12).text for text in asked]
