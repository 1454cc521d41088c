from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fox.engine.text import TextStream


def say(pieces: list[bytes], stop: list[str] | None = None) -> list[str]:
    stream = TextStream(stop or [])
    return [*(stream.push(p) for p in pieces), stream.flush()]


def test_a_character_split_over_tokens_comes_out_whole() -> None:
    assert say([b"a\xf0\x9f", b"\xa6", b"\x8a!"]) == ["a", "", "\U0001f98a!", ""]


def test_bytes_that_are_no_utf8_come_out_as_replacement_characters() -> None:
    assert "".join(say([b"a\xff", b"\xe2\x82"])) == "a\ufffd\ufffd"


def test_a_stop_string_over_a_token_border_is_never_sent() -> None:
    assert say([b"one ST", b"O", b"P two"], ["STOP"]) == ["one ", "", "", ""]


def test_a_beginning_of_a_stop_string_that_goes_on_otherwise_is_sent() -> None:
    assert say([b"ST", b"OMP"], ["STOP"]) == ["", "STOMP", ""]


def test_what_was_held_back_is_sent_at_the_end() -> None:
    assert say([b"a ST"], ["STOP"]) == ["a ", "ST"]


@pytest.mark.parametrize(
    ("text", "stop", "shown"),
    [
        ("xabc", ["abc", "b"], "xa"),  # the one that completes first wins
        ("xabc", ["abc", "bc"], "x"),  # the longer one, where both complete together
        ("aab", ["ab"], "a"),
        ("abab!", ["ababc", "b!"], "aba"),
        ("plain", [""], "plain"),
        ("end\n\n", ["\n\n"], "end"),
    ],
)
def test_the_stop_string_that_completes_first_cuts_the_text(text: str, stop: list[str], shown: str) -> None:
    assert "".join(say([text.encode()], stop)) == shown
    assert "".join(say([c.encode() for c in text], stop)) == shown


@given(
    text=st.text(alphabet="ab\u00e9\U0001f98a", max_size=30),
    stop=st.lists(st.text(alphabet="ab\u00e9", max_size=4), max_size=3),
    cuts=st.lists(st.integers(0, 60), max_size=20),
)
def test_how_bytes_are_cut_never_changes_the_text(text: str, stop: list[str], cuts: list[int]) -> None:
    data = text.encode()
    edges = sorted({0, len(data), *(c for c in cuts if c < len(data))})
    pieces = [data[a:b] for a, b in pairwise(edges)]
    shown = "".join(say(pieces, stop))
    assert shown == "".join(say([data], stop))
    assert not any(s and s in shown for s in stop)
    assert text.startswith(shown)
