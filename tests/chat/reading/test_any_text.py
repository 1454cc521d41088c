"""Whatever a model writes, and however it is cut: a reader never raises, and the cuts change nothing."""

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from fox.chat.reading import FAMILIES, Family
from tests.chat.reading.reader import TOOLS, heard

WORDS = st.sampled_from(
    [
        *(
            "weather",
            "note",
            "time",
            "stranger",
            "city",
            "text",
            "name",
            "arguments",
            "parameters",
            "function",
        ),
        *(
            '"',
            "'",
            "{",
            "}",
            "[",
            "]",
            "(",
            ")",
            ":",
            ",",
            "=",
            "\\",
            "/",
            "<",
            ">",
            "|",
            " ",
            "\n",
            "\t",
            "1",
            "é",
        ),
        *(
            '{"name": "weather", "arguments": ',
            '{"city": "Berlin"}',
            "{}",
            "null",
            "true",
            'name="weather"',
            ">>>",
            "all",
        ),
    ]
)
FAMILY = st.sampled_from(FAMILIES)


def marks(family: Family) -> list[str]:
    syntax = family.call
    spelled = [syntax.trigger, syntax.begin.replace("{name}", "weather"), syntax.end] if syntax else []
    return [mark for mark in (*family.shown, *(family.thought or ()), *spelled) if mark]


@st.composite
def written(draw: st.DrawFn) -> tuple[Family, str]:
    family = draw(FAMILY)
    words = st.one_of(WORDS, st.sampled_from(marks(family)), st.text(max_size=5)) if marks(family) else WORDS
    return family, "".join(draw(st.lists(words, max_size=30)))


@settings(max_examples=500, deadline=None)
@given(written(), st.lists(st.integers(1, 9), min_size=1), st.booleans(), st.booleans())
def test_no_text_makes_a_reader_raise_and_no_cut_changes_what_it_reads(
    case: tuple[Family, str], sizes: list[int], opened: bool, truncated: bool
) -> None:
    family, text = case
    chunks, at = [], 0
    while at < len(text):
        size = sizes[len(chunks) % len(sizes)]
        chunks.append(text[at : at + size])
        at += size
    whole = heard(family, [text], opened=opened, truncated=truncated)
    cut = heard(family, chunks, opened=opened, truncated=truncated)
    assert (whole.content, whole.thought, whole.calls) == (cut.content, cut.thought, cut.calls)
    names = {tool.name for tool in TOOLS}
    assert all(name in names for name, _ in whole.calls)


@settings(max_examples=400, deadline=None)
@given(FAMILY, st.text(alphabet="abcdefg .,!?\n"))
def test_text_without_marks_is_left_as_it_is(family: Family, text: str) -> None:
    assert heard(family, list(text), tools=(), thinks=False).content == text


@settings(max_examples=400, deadline=None)
@given(
    st.dictionaries(st.text(), st.recursive(st.none() | st.integers() | st.text(), st.lists)),
    st.integers(1, 7),
)
def test_any_arguments_arrive_as_they_were_written(arguments: dict[str, object], size: int) -> None:
    text = f"<tool_call>{json.dumps({'name': 'note', 'arguments': arguments})}</tool_call>"
    told = heard("hermes", [text[at : at + size] for at in range(0, len(text), size)])
    assert told.objects == [("note", arguments)]
