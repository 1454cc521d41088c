from typing import Any

import pytest

from fox.chat.reading import FAMILIES, family_named, family_of
from fox.errors import InvalidRequest
from tests.chat.reading.reader import Heard, heard

BERLIN: tuple[str, Any] = ("weather", {"city": "Berlin"})
NOW: tuple[str, Any] = ("time", {})
SECTION, SECTION_END = "<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"
CALL, CALL_END, SEP = "<｜tool▁call▁begin｜>", "<｜tool▁call▁end｜>", "<｜tool▁sep｜>"

# family, what the model wrote, content, thought, calls
WRITTEN: list[tuple[str, str, str, str, list[tuple[str, Any]]]] = [
    ("hermes", "Just text.\n", "Just text.\n", "", []),
    ("hermes", "<think>\nHm.\n</think>\n\nFine.", "Fine.", "Hm.", []),
    (
        "hermes",
        'I look.\n<tool_call>\n{"name": "weather", "arguments": {"city": "Berlin"}}\n</tool_call>',
        "I look.",
        "",
        [BERLIN],
    ),
    (
        "hermes",
        '<think>two</think>\n<tool_call>\n{"name": "weather", "arguments": {"city": "Berlin"}}\n</tool_call>\n'
        '<tool_call>\n{"name": "time", "arguments": {}}\n</tool_call>',
        "",
        "two",
        [BERLIN, NOW],
    ),
    (
        "hermes",
        '<tool_call>{"arguments": {"city": "Berlin"}, "name": "weather"}</tool_call>',
        "",
        "",
        [BERLIN],
    ),
    ("hermes", '<tool_call>{"name": "nobody", "arguments": {}}</tool_call>', None, "", []),  # type: ignore[list-item]
    (
        "qwen3-coder",
        "<tool_call>\n<function=weather>\n<parameter=city>\nBerlin\n</parameter>\n<parameter=days>\n3\n</parameter>\n"
        "</function>\n</tool_call>",
        "",
        "",
        [("weather", {"city": "Berlin", "days": 3})],
    ),
    (
        "seed-oss",
        "<seed:think>Hm.</seed:think><seed:tool_call>\n<function=note>\n<parameter=text>a\n<b>\n</parameter>\n"
        "<parameter=tags>[1, 2]</parameter>\n</function>\n</seed:tool_call>",
        "",
        "Hm.",
        [("note", {"text": "a\n<b>\n", "tags": [1, 2]})],
    ),
    ("llama3", '{"name": "weather", "parameters": {"city": "Berlin"}}', "", "", [BERLIN]),
    (
        "llama3",
        '<|python_tag|>{"name": "weather", "parameters": {"city": "Berlin"}}; {"name": "time", "parameters": {}}',
        "",
        "",
        [BERLIN, NOW],
    ),
    ("llama3", '{"name": "Ada", "age": 36}', '{"name": "Ada", "age": 36}', "", []),
    ("llama4", "[weather(city='Berlin'), time()]", "", "", [BERLIN, NOW]),
    ("llama4", "[1, 2] is a list.", "[1, 2] is a list.", "", []),
    ("mistral", '[TOOL_CALLS]weather[ARGS]{"city": "Berlin"}[TOOL_CALLS]time[ARGS]{}', "", "", [BERLIN, NOW]),
    ("mistral", "[THINK]Hm.[/THINK]So.[TOOL_CALLS]time[ARGS]{}", "So.", "Hm.", [NOW]),
    ("mistral-v3", '[TOOL_CALLS] [{"name": "weather", "arguments": {"city": "Berlin"}}]', "", "", [BERLIN]),
    (
        "deepseek-v3",
        f'Yes.{SECTION}{CALL}function{SEP}weather\n```json\n{{"city": "Berlin"}}\n```{CALL_END}\n'
        f"{CALL}function{SEP}time\n```json\n{{}}\n```{CALL_END}{SECTION_END}",
        "Yes.",
        "",
        [BERLIN, NOW],
    ),
    (
        "deepseek-v3.1",
        f'{SECTION}{CALL}weather{SEP}{{"city": "Berlin"}}{CALL_END}{CALL}time{SEP}{{}}{CALL_END}{SECTION_END}',
        "",
        "",
        [BERLIN, NOW],
    ),
    (
        "deepseek-v3.2",
        '<｜DSML｜function_calls>\n<｜DSML｜invoke name="weather">\n'
        '<｜DSML｜parameter name="city" string="true">Berlin</｜DSML｜parameter>\n'
        '<｜DSML｜parameter name="days" string="false">3</｜DSML｜parameter>\n'
        "</｜DSML｜invoke>\n</｜DSML｜function_calls>",
        "",
        "",
        [("weather", {"city": "Berlin", "days": 3})],
    ),
    (
        "gpt-oss",
        "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>Hello.<|return|>",
        "Hello.",
        "Hm.",
        [],
    ),
    (
        "gpt-oss",
        "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>commentary to=functions.weather "
        '<|constrain|>json<|message|>{"city": "Berlin"}<|call|>',
        "",
        "Hm.",
        [BERLIN],
    ),
    (
        "kimi-k2",
        "Right.<|tool_calls_section_begin|><|tool_call_begin|>functions.weather:0<|tool_call_argument_begin|>"
        '{"city": "Berlin"}<|tool_call_end|><|tool_calls_section_end|>',
        "Right.",
        "",
        [BERLIN],
    ),
    (
        "kimi-k3",
        '<|open|>response<|sep|>Hi.<|close|>response<|sep|><|open|>tools<|sep|><|open|>call tool="weather"<|sep|>'
        '<|open|>argument key="city" type="string"<|sep|>Berlin<|close|>argument<|sep|><|close|>call<|sep|>',
        "Hi.",
        "",
        [BERLIN],
    ),
    (
        "glm",
        "<think>Hm.</think>\n<tool_call>weather\n<arg_key>city</arg_key>\n<arg_value>Berlin</arg_value>\n"
        "<arg_key>days</arg_key>\n<arg_value>3</arg_value>\n</tool_call>",
        "",
        "Hm.",
        [("weather", {"city": "Berlin", "days": 3})],
    ),
    (
        "minimax",
        '<minimax:tool_call>\n<invoke name="weather">\n<parameter name="city">Berlin</parameter>\n</invoke>\n'
        '<invoke name="time">\n</invoke>\n</minimax:tool_call>',
        "",
        "",
        [BERLIN, NOW],
    ),
    ("granite", '<|tool_call|>[{"name": "weather", "arguments": {"city": "Berlin"}}]', "", "", [BERLIN]),
    ("phi-4", '<|tool_call|>[{"name": "time", "arguments": {}}]<|/tool_call|>', "", "", [NOW]),
    ("phi-4", 'functools[{"name": "time", "arguments": {}}]', "", "", [NOW]),
    (
        "command-r",
        "<|START_THINKING|>Hm.<|END_THINKING|><|START_ACTION|>[\n"
        '    {"tool_call_id": "0", "tool_name": "weather", "parameters": {"city": "Berlin"}}\n]<|END_ACTION|>',
        "",
        "Hm.",
        [BERLIN],
    ),
    ("command-r", "<|START_RESPONSE|>Hello.<|END_RESPONSE|>", "Hello.", "", []),
    (
        "gemma4",
        '<|tool_call>call:weather{city:<|"|>Berlin<|"|>,days:3}<tool_call|>',
        "",
        "",
        [("weather", {"city": "Berlin", "days": 3})],
    ),
    ("gemma4", "<|channel>thought\nHm.\n<channel|>Hello.", "Hello.", "Hm.", []),
    ("functionary", 'all\nI look.>>>weather\n{"city": "Berlin"}', "I look.", "", [BERLIN]),
    ("functionary", '<function=weather>{"city": "Berlin"}</function>', "", "", [BERLIN]),
    ("generic", '{"name": "weather", "arguments": {"city": "Berlin"}}', "", "", [BERLIN]),
    ("generic", '{"function": {"name": "weather", "arguments": {"city": "Berlin"}}}', "", "", [BERLIN]),
    ("generic", '[{"name": "time", "arguments": {}}, {"name": "time"}]', "", "", [NOW, NOW]),
]


@pytest.mark.parametrize(("family", "text", "content", "thought", "calls"), WRITTEN)
@pytest.mark.parametrize("size", [1, 3, 10_000])
def test_each_family_is_read_the_same_however_its_text_is_cut(
    family: str, text: str, content: str | None, thought: str, calls: list[tuple[str, Any]], size: int
) -> None:
    told = heard(family, [text[at : at + size] for at in range(0, len(text), size)])
    expected = text if content is None else content
    assert (told.content, told.thought, told.objects) == (expected, thought, calls)


def test_every_family_has_an_example() -> None:
    shown = {family for family, *_ in WRITTEN}
    assert {family.name for family in FAMILIES} - shown == {"deepseek-v4.1"}


# family, text of a call that is none after all
NOT_CALLS = [
    ("hermes", '<tool_call>{"name": "weather"'),
    ("hermes", "<tool_call>\n{'name': 'weather'}\n</tool_call>"),
    ("hermes", '<tool_call>{"name": "weather", "arguments": [1]}</tool_call>'),
    ("qwen3-coder", "The tag <function=weather is open"),
    ("mistral", "[TOOL_CALLS] are the words"),
    ("mistral", '[TOOL_CALLS]stranger[ARGS]{"a": 1}'),
    ("deepseek-v3.1", f"{SECTION}no call"),
    ("kimi-k2", "<|tool_call_begin|>functions.stranger:0<|tool_call_argument_begin|>{}"),
    ("glm", "<tool_call>stranger\n</tool_call>"),
    ("minimax", '<minimax:tool_call><invoke name="stranger">'),
    ("gemma4", "<|tool_call>call:stranger{}<tool_call|>"),
    ("granite", '<|tool_call|>[{"name": "stranger", "arguments": {}}]'),
    ("llama4", "[weather('Berlin')]"),
    ("generic", '{"name": "weather", "arguments": "Berlin"}'),
]


@pytest.mark.parametrize(("family", "text"), NOT_CALLS)
@pytest.mark.parametrize("size", [1, 10_000])
def test_text_that_turns_out_to_be_no_call_comes_out_as_text(family: str, text: str, size: int) -> None:
    told = heard(family, [text[at : at + size] for at in range(0, len(text), size)])
    assert (told.content, told.calls) == (text, [])


def test_a_call_that_was_cut_short_is_nothing() -> None:
    told = heard("hermes", ['Well. <tool_call>{"name": "weather", "argum'], truncated=True)
    assert (told.content, told.calls) == ("Well.", [])


def test_a_thought_that_the_prompt_has_opened_needs_no_opening_mark() -> None:
    told = heard("hermes", ["Hm", "</thi", "nk>\n\nYes."], opened=True)
    assert (told.thought, told.content) == ("Hm", "Yes.")


def test_thoughts_stay_in_the_text_where_they_are_not_to_be_told_apart() -> None:
    text = "<think>Hm.</think>Yes."
    assert heard("hermes", [text], thinks=False) == Heard(content=text)


def test_without_tools_no_text_is_a_call() -> None:
    text = '<tool_call>{"name": "weather", "arguments": {}}</tool_call>'
    assert heard("hermes", [text], tools=()) == Heard(content=text)


def test_long_arguments_are_told_while_they_come() -> None:
    text = '<tool_call>{"name": "note", "arguments": {"text": "' + "word " * 100 + '"}}</tool_call>'
    told = heard("hermes", list(text))
    assert told.objects == [("note", {"text": "word " * 100})]
    assert told.first_calls_pieces > 300


def test_text_is_told_as_soon_as_it_can_be_nothing_else() -> None:
    reader = family_named("hermes").reader((), None)
    assert [len(reader.feed(char)) for char in "a <b> <tool"] == [1] * 11
    reader = family_named("hermes").reader(heard_tools(), None)
    assert "".join(piece.text for char in "1 < 2 <b" for piece in reader.feed(char)) == "1 < 2 <b"  # type: ignore[union-attr]


def heard_tools() -> tuple[Any, ...]:
    from tests.chat.reading.reader import TOOLS

    return TOOLS


def test_the_models_own_ids_are_kept() -> None:
    text = "<|tool_call_begin|>functions.time:7<|tool_call_argument_begin|>{}<|tool_call_end|>"
    assert heard("kimi-k2", [text]).ids == ["functions.time:7"]
    assert heard("hermes", ['<tool_call>{"name": "time"}</tool_call>']).ids == [None]


TEMPLATES = [
    ("<tool_call>\n{name}\n</tool_call>", "hermes"),
    ("<tool_call>\n<function=x>\n<parameter=y>", "qwen3-coder"),
    ("<|start|><|channel|>analysis<|message|>", "gpt-oss"),
    ("[TOOL_CALLS]x[ARGS]{}", "mistral"),
    ("[TOOL_CALLS] [", "mistral-v3"),
    ("<|tool_call_begin|>functions.x:0", "kimi-k2"),
    ("<arg_key>a</arg_key><arg_value>", "glm"),
    ("<|python_tag|>", "llama3"),
    ("<|python_start|>", "llama4"),
    ("<|start_of_role|>assistant<|tool_call|>", "granite"),
    ("{{ messages }}", "generic"),
]


@pytest.mark.parametrize(("template", "name"), TEMPLATES)
def test_a_family_is_known_by_its_template(template: str, name: str) -> None:
    assert family_of(template).name == name


def test_an_unknown_family_is_refused_with_the_names_there_are() -> None:
    with pytest.raises(InvalidRequest, match="there is no family `nope` of tool calls; there are gpt-oss,"):
        family_named("nope")
