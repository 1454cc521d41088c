import json
from collections.abc import Sequence
from typing import Any

import pytest

from fox.chat import Ask, ChatModel
from fox.chat.forms import json_form
from fox.errors import InvalidRequest
from fox.generation import Budget, ModelInfo, PromptPart

SAY = "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}"
TOOLS_SAID = "{% if tools %}<tools>{{ tools | tojson }}</tools>{% endif %}"
BEGIN = "{% if add_generation_prompt %}[assistant]{% endif %}"
HERMES = f"{TOOLS_SAID}{{# <tool_call> #}}{SAY}{BEGIN}"
OPENING = f"{SAY}[assistant]<think>\n{{# </think> #}}"
SWITCHED = f"{SAY}[assistant]{{% if enable_thinking is false %}}<think>\n\n</think>\n\n{{% endif %}}"
HARMONY = f"{TOOLS_SAID}{SAY}<|start|>assistant{{# <|channel|><|message|> #}}"
BARE_THINKER = f"{SAY}[assistant]{{# drops <think> and </think> of earlier turns #}}"

ASKED: list[dict[str, Any]] = [{"role": "user", "content": "Hi"}]
WEATHER = {
    "type": "function",
    "function": {"name": "weather", "parameters": {"type": "object", "properties": {}}},
}
JSON = json_form({"type": "object"}, "response_format", strict=True)


def model(template: str | None, controls: Sequence[str] = (), parser: str | None = None) -> ChatModel:
    return ChatModel(
        ModelInfo(
            name="m",
            architecture="fake",
            context_tokens=100,
            trained_context_tokens=100,
            parallel=1,
            vocab_tokens=50,
            parameters=1,
            weights_bytes=1,
            chat_template=template,
            bos="",
            eos="</s>",
            control_tokens=("</s>", *controls),
            control_ids=tuple(range(1 + len(controls))),
        ),
        parser,
    )


def text(prompt: Sequence[PromptPart]) -> str:
    return "".join(part.text for part in prompt)


def test_a_thought_that_the_prompt_opens_is_read_as_one() -> None:
    turn = model(OPENING).prepare(Ask(ASKED))
    assert turn.reader().feed("Hm</think>Yes")[0].text == "Hm"  # type: ignore[union-attr]


def test_where_no_thought_is_wished_one_that_the_prompt_opens_is_ended() -> None:
    turn = model(OPENING).prepare(Ask(ASKED, thinking=False))
    assert text(turn.prompt) == "[user]Hi[assistant]<think>\n\n</think>\n\n"
    assert turn.reader().feed("Yes")[0].text == "Yes"  # type: ignore[union-attr]


def test_where_no_thought_is_wished_a_template_with_a_switch_sees_to_it() -> None:
    turn = model(SWITCHED).prepare(Ask(ASKED, thinking=False))
    assert text(turn.prompt) == "[user]Hi[assistant]<think>\n\n</think>\n\n"
    assert text(model(SWITCHED).prepare(Ask(ASKED)).prompt) == "[user]Hi[assistant]"


def test_where_no_thought_is_wished_a_model_without_a_switch_is_given_an_empty_one() -> None:
    turn = model(BARE_THINKER).prepare(Ask(ASKED, thinking=False))
    assert text(turn.prompt) == "[user]Hi[assistant]<think>\n</think>\n\n"


def test_a_model_that_knows_no_thoughts_is_left_alone() -> None:
    turn = model(SAY + BEGIN).prepare(Ask(ASKED, thinking=False, budget=5, form=JSON))
    assert text(turn.prompt) == "[user]Hi[assistant]"
    assert turn.budget is None
    assert turn.grammar == JSON
    assert model(SAY).prepare(Ask(ASKED)).reader().feed("<think>a")[0].text == "<think>a"  # type: ignore[union-attr]


def test_an_effort_reaches_the_template() -> None:
    turn = model("{{ reasoning_effort }}").prepare(Ask(ASKED, effort="high"))
    assert text(turn.prompt) == "high"


def test_the_requests_own_variables_go_before_all_others() -> None:
    asked = Ask(ASKED, thinking=True, kwargs={"enable_thinking": False, "mood": "</s>"})
    turn = model("{{ enable_thinking }} {{ mood }}").prepare(asked)
    assert text(turn.prompt) == "False </s>"
    assert PromptPart("</s>", special=False) in turn.prompt


def test_a_budget_counts_from_where_the_thought_begins() -> None:
    assert model(OPENING).prepare(Ask(ASKED, budget=9)).budget == Budget(
        9, "</think>", "\n</think>\n\n", None
    )
    assert model(SWITCHED + "</think>").prepare(Ask(ASKED, budget=9)).budget == Budget(
        9, "</think>", "\n</think>\n\n", "<think>"
    )


def test_a_form_is_in_force_after_the_thought() -> None:
    opened = model(OPENING).prepare(Ask(ASKED, form=JSON)).grammar
    assert opened
    assert (opened.starts, opened.opens) == (("</think>",), None)
    free = model(SWITCHED).prepare(Ask(ASKED, form=JSON)).grammar
    assert free
    assert (free.starts, free.opens) == (("</think>",), "<think>")
    assert model(SWITCHED).prepare(Ask(ASKED, form=JSON, thinking=False)).grammar == JSON


def test_in_harmony_a_form_is_in_force_in_the_final_message() -> None:
    grammar = model(HARMONY).prepare(Ask(ASKED, form=JSON, thinking=False)).grammar
    assert grammar
    assert (grammar.starts[0], grammar.opens) == ("<|channel|>final<|message|>", None)


def test_tools_are_told_by_the_template_that_knows_them() -> None:
    turn = model(HERMES).prepare(Ask(ASKED, [WEATHER]))
    assert text(turn.prompt).startswith(f"<tools>{json.dumps([WEATHER])}</tools>[user]Hi")
    assert turn.grammar
    assert (turn.grammar.starts, turn.grammar.ends) == (("<tool_call>",), False)


def test_tools_are_hidden_where_none_may_be_called() -> None:
    turn = model(HERMES).prepare(Ask(ASKED, [WEATHER], choice="none"))
    assert (text(turn.prompt), turn.grammar) == ("[user]Hi[assistant]", None)


def test_a_model_whose_template_knows_no_tools_is_told_of_them_in_words() -> None:
    called = {"id": "1", "type": "function", "function": {"name": "weather", "arguments": '{"a": 1}'}}
    messages = [
        {"role": "system", "content": "Be brief."},
        *ASKED,
        {"role": "assistant", "content": "", "tool_calls": [called]},
        {"role": "tool", "content": "21", "tool_call_id": "1"},
    ]
    turn = model(SAY + BEGIN).prepare(Ask(messages, [WEATHER]))
    said = text(turn.prompt)
    assert said.startswith("[system]Be brief.\n\nYou may call")
    assert json.dumps(WEATHER) in said
    assert '[assistant]<tool_call>\n{"name": "weather", "arguments": {"a": 1}}\n</tool_call>' in said
    assert "[user]<tool_response>\n21\n</tool_response>[assistant]" in said
    called_again = turn.reader().feed('<tool_call>{"name": "weather", "arguments": {}}</tool_call>')
    assert len(called_again) == 2


def test_a_call_that_is_required_binds_the_answer_from_its_start() -> None:
    grammar = model(HERMES).prepare(Ask(ASKED, [WEATHER], choice="required")).grammar
    assert grammar
    assert (grammar.kind, grammar.starts) == ("lark", ())
    only = Ask(ASKED, [WEATHER, {**WEATHER, "function": {"name": "time"}}], "required", frozenset(["time"]))
    bound = model(HERMES).prepare(only).grammar
    assert bound
    assert "time" in bound.source
    assert "weather" not in bound.source


def test_where_a_family_cannot_be_made_to_call_that_is_said() -> None:
    with pytest.raises(InvalidRequest, match="`gemma4` cannot be made to call"):
        model(HERMES, parser="gemma4").prepare(Ask(ASKED, [WEATHER], choice="required"))


def test_the_parser_can_be_named() -> None:
    assert model(HERMES, parser="mistral").family.name == "mistral"
    with pytest.raises(InvalidRequest, match="there is no family `x`"):
        model(HERMES, parser="x")


def test_a_model_without_a_template_gets_its_familys() -> None:
    turn = model(None, ["<|im_start|>", "<|im_end|>"]).prepare(Ask(ASKED))
    assert text(turn.prompt) == "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
    plain = model(None).prepare(Ask(ASKED))
    assert "Hi" in text(plain.prompt)


def test_an_answer_that_is_begun_already_is_gone_on_with() -> None:
    messages = [*ASKED, {"role": "assistant", "content": "It is"}]
    turn = model(SAY + "[end]" + BEGIN).prepare(Ask(messages, continues=True))
    assert text(turn.prompt) == "[user]Hi[assistant]It is"


@pytest.mark.parametrize(
    ("template", "parallel"), [("{{ tools }}<tool_call>", True), ("{{ messages }}", False)]
)
def test_models_that_were_not_made_for_tools_call_one_at_a_time(template: str, parallel: bool) -> None:
    tools = [{"type": "function", "function": {"name": "f", "parameters": {}}}]

    def source(**more: Any) -> str:
        grammar = model(template).prepare(Ask(ASKED, tools=tools, choice="required", **more)).grammar
        assert grammar
        return grammar.source

    assert source() == source(parallel=parallel) != source(parallel=not parallel)
