"""KV states on disk: found again after a restart, never loaded where they do not fit or are damaged."""

from __future__ import annotations

import ctypes
import logging
from pathlib import Path
from typing import Any

import pytest

from fox.engine.llama.states import StateStore, identity
from fox.engine.messages import Close
from tests.model.desk import Desk

PROMPT = "The quick brown fox jumps over the lazy dog while the sun sets behind the hills and rivers. " * 3


def state(content: bytes) -> Any:
    return (ctypes.c_uint8 * len(content)).from_buffer_copy(content)


def store(folder: Path, whose: bytes = b"model") -> StateStore:
    return StateStore(folder, whose)


def spilled(folder: Path, content: bytes = b"state") -> Path:
    made = store(folder)
    made.put(1, state(content))
    made.spill(1, [7, 8, 9])
    made.flush()
    (path,) = folder.glob("*.foxkv")
    return path


def test_a_spilled_state_is_found_again_with_its_tokens(tmp_path: Path) -> None:
    path = spilled(tmp_path)
    again = store(tmp_path)
    assert again.found() == [(path, [7, 8, 9], 5)]
    again.bind(4, path)
    assert bytes(again.get(4)) == b"state"
    again.forget(4)
    assert not path.exists()


def test_another_models_states_are_not_found(tmp_path: Path) -> None:
    spilled(tmp_path)
    assert store(tmp_path, b"other").found() == []


@pytest.mark.parametrize(
    "spoil", [lambda d: d[:-1], lambda d: d + b"x", lambda d: b"X" + d[1:], lambda d: d[:9], lambda d: b""]
)
def test_what_is_no_whole_state_is_ignored_with_a_warning(
    tmp_path: Path, spoil: Any, caplog: pytest.LogCaptureFixture
) -> None:
    path = spilled(tmp_path)
    path.write_bytes(spoil(path.read_bytes()))
    with caplog.at_level(logging.WARNING):
        assert store(tmp_path).found() == []
    assert "ignored" in caplog.text
    assert path.exists(), "what fox cannot read it does not delete"


def test_a_damaged_state_is_never_loaded(tmp_path: Path) -> None:
    path = spilled(tmp_path)
    path.write_bytes(path.read_bytes()[:-2] + b"??")
    again = store(tmp_path)
    again.bind(4, path)
    assert again.get(4) is None


def test_a_state_forgotten_while_it_is_written_leaves_no_file(tmp_path: Path) -> None:
    made = store(tmp_path)
    made.put(1, state(b"x" * (8 << 20)))
    made.spill(1, [1])
    made.forget(1)
    made.flush()
    assert list(tmp_path.iterdir()) == []


def test_the_identity_is_of_the_file_and_the_settings(tmp_path: Path) -> None:
    one, same, other = (tmp_path / name for name in ("one", "same", "other"))
    one.write_bytes(b"a" * 100)
    same.write_bytes(b"a" * 100)
    other.write_bytes(b"a" * 99 + b"b")
    assert identity(one, "f16") == identity(same, "f16")
    assert len({identity(one, "f16"), identity(one, "q8_0"), identity(other, "f16")}) == 3


def closed(desk: Desk) -> None:
    desk.inbox.put(Close())
    desk.loop.run()


@pytest.mark.model
def test_a_prefix_outlives_the_process_and_gives_the_same_answer(tmp_path: Path, starter_path: Path) -> None:
    def desk(**more: Any) -> Desk:
        return Desk.open(starter_path, threads=2, max_context_len=512, kv_dir=tmp_path, **more)

    first = desk()
    said = first.say(PROMPT, 8)
    closed(first)
    second = desk()
    again = second.say(PROMPT, 8)
    assert again.text == said.text
    assert again.cached > 30
    assert second.loop._tally.stats().hit_tokens == {"disk": again.cached}
    assert desk(type_kv="q8_0").say(PROMPT, 8).cached == 0, "other KV types are another state"


@pytest.mark.model
def test_a_state_that_turns_out_damaged_is_computed_again(tmp_path: Path, starter_path: Path) -> None:
    first = Desk.open(starter_path, threads=2, max_context_len=512, kv_dir=tmp_path)
    said = first.say(PROMPT, 8)
    closed(first)
    (path,) = tmp_path.glob("*.foxkv")
    content = bytearray(path.read_bytes())
    content[-1000:] = bytes(1000)
    path.write_bytes(content)
    second = Desk.open(starter_path, threads=2, max_context_len=512, kv_dir=tmp_path)
    again = second.say(PROMPT, 8)
    assert (again.text, again.cached) == (said.text, 0)
    second.loop._scheduler.check()
