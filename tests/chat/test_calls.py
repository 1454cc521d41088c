"""Calls as grammars, tried on a vocabulary of bytes in which control tokens are spelled as text."""

from typing import Any

import llguidance
import pytest

from fox.chat.calls import CallGrammar
from fox.chat.forms import json_form
from fox.chat.reading import FAMILIES, CallSyntax, Family, family_named
from fox.chat.tools import Tool
from fox.generation import Grammar

BYTES = llguidance.LLTokenizer("byte")
SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}, "unit": {"enum": ["C", "F"]}},
    "required": ["city"],
}
TOOLS = (Tool("weather", SCHEMA), Tool("time"))
SYNTAXES = [family for family in FAMILIES if family.call]


def follows(grammar: Grammar, text: str) -> tuple[bool, bool]:
    """Whether the text goes along with the grammar, and whether it may end there."""
    matcher = llguidance.LLMatcher(BYTES, llguidance.LLMatcher.grammar_from_lark(grammar.source), log_level=0)
    assert not matcher.is_error(), matcher.get_error()
    data = list(text.encode())
    taken = matcher.try_consume_tokens(data)
    return taken == len(data), bool(matcher.is_accepting())


def syntax(family: Family) -> CallSyntax:
    assert family.call
    return family.call


def arguments(syntax: CallSyntax, **values: str) -> str:
    """As this family writes texts."""
    if syntax.argument is None:
        return "{" + ", ".join(f'"{key}": "{value}"' for key, value in values.items()) + "}"
    begin, end = syntax.argument
    told = (
        begin.replace("{key}", key).replace("{is_text}", "true") + value + end
        for key, value in values.items()
    )
    return "".join(told)


def written(syntax: CallSyntax, *calls: tuple[str, dict[str, str]]) -> str:
    told = (
        syntax.begin.replace("{name}", name) + arguments(syntax, **values) + syntax.end
        for name, values in calls
    )
    return syntax.opens + syntax.separator.join(told) + syntax.closes


@pytest.mark.parametrize("family", SYNTAXES, ids=lambda family: family.name)
def test_a_call_as_the_family_writes_it_is_what_must_be_written(family: Family) -> None:
    calls = CallGrammar(syntax(family), TOOLS, {})
    whole = written(syntax(family), ("weather", {"city": "Berlin"}))
    assert follows(calls.required(parallel=False), whole) == (True, True)
    assert follows(calls.required(parallel=False), whole.replace("weather", "stranger"))[0] is False
    assert (
        follows(calls.required(parallel=False), written(syntax(family), ("weather", {"unit": "C"})))[0]
        is False
    )


@pytest.mark.parametrize("family", SYNTAXES, ids=lambda family: family.name)
def test_one_call_is_followed_by_another_only_where_several_may_come(family: Family) -> None:
    calls = CallGrammar(syntax(family), TOOLS, {})
    both = written(syntax(family), ("weather", {"city": "Berlin", "unit": "F"}), ("time", {}))
    assert follows(calls.required(parallel=True), both) == (True, True)
    assert follows(calls.required(parallel=False), both)[0] is False


@pytest.mark.parametrize("family", [f for f in SYNTAXES if syntax(f).trigger], ids=lambda family: family.name)
def test_after_the_trigger_comes_the_rest_of_a_call(family: Family) -> None:
    grammar = CallGrammar(syntax(family), TOOLS, {}).after_trigger(parallel=True)
    whole = written(syntax(family), ("weather", {"city": "Berlin"}))
    assert grammar.starts == (syntax(family).trigger,)
    assert whole.startswith(grammar.starts[0])
    assert follows(grammar, whole.removeprefix(grammar.starts[0])) == (True, True)


def test_an_answer_in_json_may_stand_for_a_call() -> None:
    instead = json_form(
        {"type": "object", "properties": {"a": {"type": "integer"}}}, "response_format", strict=True
    )
    grammar = CallGrammar(syntax(family_named("hermes")), TOOLS, {}).required(parallel=True, instead=instead)
    assert follows(grammar, '{"a": 1}') == (True, True)
    assert follows(grammar, '{"a": "x"}')[0] is False
    assert follows(grammar, '<tool_call>\n{"name": "time", "arguments": {}}\n</tool_call>')[0] is True


def test_a_thought_may_come_before_a_forced_call() -> None:
    oss = family_named("gpt-oss")
    assert oss.thought
    grammar = CallGrammar(syntax(oss), TOOLS, {}).required(parallel=False, after=oss.thought)
    call = "<|channel|>commentary to=functions.time <|constrain|>json<|message|>{}"
    assert follows(grammar, call) == (True, True)
    assert follows(grammar, f"{oss.thought[0]}Hm, 1 < 2.{oss.thought[1]}{call}") == (True, True)
    assert follows(grammar, "<|channel|>final")[0] is False


ARGUMENTS: list[tuple[dict[str, Any], str, bool]] = [
    ({"type": "string"}, "any\ntext", True),
    ({"type": "string", "enum": ["a", "b"]}, "b", True),
    ({"type": "string", "enum": ["a", "b"]}, "c", False),
    ({"type": "integer"}, "12", True),
    ({"type": "integer"}, "twelve", False),
    ({"anyOf": [{"type": "string"}, {"type": "null"}]}, "null", True),
    ({"type": "array", "items": {"type": "integer"}}, "[1, 2]", True),
    ({"type": "array", "items": {"type": "integer"}}, '["a"]', False),
    ({"$ref": "#/$defs/point"}, '{"x": 1}', True),
    ({"$ref": "#/$defs/point"}, '{"x": "a"}', False),
    ({}, "whatever", True),
]


@pytest.mark.parametrize(("schema", "value", "fits"), ARGUMENTS)
def test_arguments_that_come_one_by_one_have_the_types_of_the_schema(
    schema: dict[str, Any], value: str, fits: bool
) -> None:
    point = {"type": "object", "properties": {"x": {"type": "integer"}}}
    tool = Tool(
        "f", {"type": "object", "properties": {"k": schema}, "required": ["k"], "$defs": {"point": point}}
    )
    qwen = syntax(family_named("qwen3-coder"))
    grammar = CallGrammar(qwen, [tool], {}).required(parallel=False)
    assert follows(grammar, written(qwen, ("f", {"k": value})))[0] is fits


def test_control_tokens_are_named_by_their_ids() -> None:
    kimi = syntax(family_named("kimi-k2"))
    controls = {kimi.opens: 7, "<|tool_call_begin|>": 8}
    source = CallGrammar(kimi, TOOLS, controls).required(parallel=False).source
    assert '<[7]> <[8]> "functions.weather:0<|tool_call_argument_begin|>"' in source


HERMES_CALL = syntax(family_named("hermes"))
LOOSE = {"type": "object", "properties": {"a": {"type": "integer"}}}


@pytest.mark.parametrize(
    ("parameters", "given", "may"),
    [
        (LOOSE, '{"a": 1}', True),
        (LOOSE, '{"a": 1, "b": 2}', False),
        ({}, "{}", True),
        ({}, '{"b": 2}', False),
        (LOOSE | {"additionalProperties": True}, '{"a": 1, "b": 2}', True),
        ({"type": "object"}, '{"b": 2}', True),
        ({"$defs": {"x": LOOSE}, "$ref": "#/$defs/x"}, '{"b": 2}', True),
    ],
)
def test_no_arguments_are_made_up(parameters: dict[str, Any], given: str, may: bool) -> None:
    grammar = CallGrammar(HERMES_CALL, [Tool("f", parameters)], {}).required(parallel=False)
    call = HERMES_CALL.opens + HERMES_CALL.begin.replace("{name}", "f") + given + HERMES_CALL.end
    assert follows(grammar, call)[0] is may
