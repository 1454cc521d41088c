from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from fox.errors import InvalidRequest
from fox.generation import Budget, Grammar, Sampling
from tests.model.desk import Desk

pytestmark = pytest.mark.model

PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 12},
        "age": {"type": "integer"},
        "color": {"enum": ["red", "green", "blue"]},
    },
    "required": ["name", "age", "color"],
    "additionalProperties": False,
}
CHAINS = [
    Sampling(temperature=0),
    Sampling(temperature=0, repeat_penalty=1.3),
    Sampling(seed=1),
    Sampling(seed=1, presence_penalty=1.5),
    Sampling(seed=1, mirostat=2),
    Sampling(seed=1, dry_multiplier=0.8, xtc_probability=0.5),
]
PROMPT = "<|im_start|>user\nA person, please.<|im_end|>\n<|im_start|>assistant\n"


def schema(of: Any, **more: Any) -> Grammar:
    return Grammar("json", json.dumps(of), "response_format", **more)


@pytest.fixture(scope="module")
def desk(starter_path: Path) -> Desk:
    return Desk.open(starter_path, max_context_len=512)


def said(desk: Desk, grammar: Grammar, max_tokens: int = 100, **more: Any) -> str:
    return desk.say(PROMPT, max_tokens, grammar=grammar, **{"ignore_eos": False, **more}).text


@pytest.mark.parametrize("sampling", CHAINS)
def test_a_schema_is_kept_whatever_the_sampling(desk: Desk, sampling: Sampling) -> None:
    answer = desk.say(PROMPT, 120, grammar=schema(PERSON), sampling=sampling, ignore_eos=False)
    person = json.loads(answer.text)
    assert list(person) == ["name", "age", "color"]
    assert answer.finish is not None
    assert answer.finish.reason == "stop"


def test_side_by_side_each_keeps_its_own_grammar(desk: Desk) -> None:
    grammars = [
        schema(PERSON),
        Grammar("regex", r"[0-9]{5}", "guided_regex"),
        schema({"enum": ["yes", "no"]}),
    ]
    ids = [desk.ask(PROMPT, 120, grammar=grammar, ignore_eos=False) for grammar in grammars]
    free = desk.ask(PROMPT, 20)
    person, digits, word, _ = (answer.text for answer in desk.finish([*ids, free]))
    assert json.loads(person)["color"] in ("red", "green", "blue")
    assert re.fullmatch(r"[0-9]{5}", digits)
    assert json.loads(word) in ("yes", "no")
    assert desk.said[free].text == desk.say(PROMPT, 20).text


def test_tokens_without_a_choice_cost_no_step_of_their_own(desk: Desk) -> None:
    steps = 0
    id_ = desk.ask(PROMPT, 60, grammar=Grammar("regex", "one two three four five six seven", "guided_regex"))
    while not desk.said[id_].finishes:
        desk.step()
        steps += 1
    answer = desk.said[id_]
    assert answer.text == "one two three four five six seven"
    assert steps < answer.usage.completion_tokens


def test_the_tokens_without_a_choice_are_in_the_memory_as_if_they_had_been_sampled(desk: Desk) -> None:
    start = "one two three four five six seven"
    forced = desk.say(PROMPT, 30, grammar=Grammar("regex", f"{start}(.|\n)*", "guided_regex")).text
    assert forced == start + desk.say(PROMPT + start, 30 - len(desk.model.tokenize(desk.parts(start)))).text


@pytest.mark.parametrize("limit", [1, 2, 3, 7])
def test_the_limit_holds_among_tokens_without_a_choice(desk: Desk, limit: int) -> None:
    answer = desk.say(PROMPT, limit, grammar=Grammar("regex", "one two three four five six seven", "x"))
    assert answer.finish is not None
    assert (answer.finish.reason, answer.usage.completion_tokens) == ("length", limit) or limit == 7


def test_a_stop_string_among_them_ends_the_answer(desk: Desk) -> None:
    assert said(desk, Grammar("regex", "one two three four five", "x"), stop=("three",)) == "one two "


def test_log_probabilities_are_of_every_token_of_a_bound_answer(desk: Desk) -> None:
    answer = desk.say(PROMPT, 100, grammar=schema(PERSON), logprobs=2, ignore_eos=False)
    assert b"".join(token.piece for token in answer.logprobs).decode() == answer.text
    assert all(token.logprob <= 0 for token in answer.logprobs)


def test_a_choice_and_a_grammar_of_each_kind(desk: Desk) -> None:
    assert said(desk, Grammar("lark", 'start: "ja" | "nein"', "guided_choice")) in ("ja", "nein")
    assert said(desk, Grammar("gbnf", 'root ::= "ja" | "nein"', "grammar")) in ("ja", "nein")


def test_it_comes_into_force_where_the_thought_ends(desk: Desk) -> None:
    grammar = schema({"enum": ["yes"]}, starts=("</think>",))
    text = desk.say(PROMPT + "Yes", 60, grammar=grammar, budget=Budget(5, "</think>", "</think>")).text
    thought, _, answer = text.partition("</think>")
    assert len(desk.model.tokenize(desk.parts(thought))) == 5
    assert answer == '"yes"'


def test_outside_its_force_text_is_free_and_it_may_start_again(desk: Desk) -> None:
    grammar = Grammar("lark", 'start: "[" /[0-9]/ "]"', "tools", starts=("<<",), ends=False)
    plain = desk.say(PROMPT, 20).text
    assert desk.say(PROMPT, 20, grammar=grammar).text == plain
    called = desk.say(PROMPT + "<", 30, grammar=grammar, budget=Budget(0, "###", "<<")).text
    assert re.match(r"<<\[[0-9]\]", called)


def test_a_thought_within_its_time_is_left_alone(desk: Desk) -> None:
    plain = desk.say(PROMPT, 30).text
    assert desk.say(PROMPT, 30, budget=Budget(30, "</think>", "</think>")).text == plain
    assert desk.say(PROMPT, 30, budget=Budget(3, "</think>", "</think>", opens="<think>")).text == plain


BAD = [
    schema({"type": "strnig"}),
    schema({"type": "object", "properties": {"a": {"$ref": "#/nowhere"}}}),
    schema([1]),
    schema({"type": "object", "if": {"required": ["a"]}, "then": {"required": ["b"]}}),
    Grammar("json", "{", "response_format"),
    Grammar("regex", "(", "response_format"),
    Grammar("lark", "start: nothing", "response_format"),
    Grammar("gbnf", "root ::= (", "response_format"),
]


@pytest.mark.parametrize("grammar", BAD)
def test_what_cannot_be_honoured_is_refused_by_its_field(desk: Desk, grammar: Grammar) -> None:
    with pytest.raises(InvalidRequest) as refused:
        desk.model.compile(grammar)
    assert refused.value.args[1] == "response_format"


def test_a_keyword_is_passed_over_with_a_warning_where_that_was_asked_for(desk: Desk) -> None:
    loose = schema({"type": "object", "if": {"required": ["a"]}, "then": {"required": ["b"]}}, lenient=True)
    assert desk.model.compile(loose).warnings
