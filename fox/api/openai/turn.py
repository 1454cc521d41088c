"""A checked chat request as the turn that its model is to take."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fox.api.openai.forms import form
from fox.api.openai.schema import ChatRequest, Choice, Message
from fox.api.openai.shapes import UNLIMITED
from fox.chat import Ask
from fox.errors import InvalidRequest

NO_BOUND = 1 << 31  # tokens, more than any context has
ROLES = {"developer": "system", "function": "tool"}  # as the templates call them
SWITCHES = ("enable_thinking", "thinking")
EFFORTS = {
    "none": "low",
    "minimal": "low",
    "xhigh": "high",
    "max": "high",
}  # as the templates call the others


def ask(asked: ChatRequest, *, separate: bool) -> Ask:
    """Raises InvalidRequest where fields contradict each other."""
    level = _level(asked)
    choice, only = _choice(asked)
    return Ask(
        messages=[_turn(message) for message in asked.messages],
        tools=[tool.model_dump(exclude_none=True) for tool in asked.tools or ()],
        choice=choice,
        only=only,
        parallel=asked.parallel_tool_calls,
        form=form(asked),
        thinking=_thinking(asked, level),
        effort=None if level is None else EFFORTS.get(level, level),
        budget=_budget(asked.reasoning_budget),
        separate=separate,
        documents=asked.documents,
        kwargs=asked.chat_template_kwargs or {},
        continues=bool(asked.continue_final_message),
        generation_prompt=asked.add_generation_prompt is not False,
    )


def _budget(tokens: int | None) -> int | None:
    return None if tokens is None or tokens == UNLIMITED else min(tokens, NO_BOUND)


def _turn(message: Message) -> dict[str, Any]:
    """A message as templates know it. Absent fields are absent: templates ask whether they are defined."""
    turn = {"content": "", **message.model_dump(exclude_none=True)}
    turn["role"] = ROLES.get(message.role, message.role)
    if isinstance(turn["content"], list):
        turn["content"] = [
            {"type": "text", "text": p.get("text") or p.get("refusal", "")} for p in turn["content"]
        ]
    if thought := turn.pop("reasoning", None):
        turn.setdefault("reasoning_content", thought)
    return turn


def _choice(asked: ChatRequest) -> tuple[Any, frozenset[str] | None]:
    """How far tools are to be called, and which."""
    chosen = asked.tool_choice
    if not isinstance(chosen, Choice):
        return chosen or "auto", None
    if chosen.type == "function":
        return "required", _known(asked, [chosen.function.name] if chosen.function else [])
    allowed = chosen.allowed_tools
    if allowed is None:
        raise InvalidRequest("`tool_choice.allowed_tools` is required", "tool_choice.allowed_tools")
    return allowed.mode, _known(asked, [_name(tool) for tool in allowed.tools])


def _name(tool: Mapping[str, Any]) -> str:
    function = tool.get("function")
    return str(function.get("name") if isinstance(function, Mapping) else tool.get("name"))


def _known(asked: ChatRequest, names: list[str]) -> frozenset[str]:
    known = {tool.function.name for tool in asked.tools or ()}
    for name in names:
        if name not in known:
            raise InvalidRequest(f"`tool_choice`: there is no tool `{name}`", "tool_choice")
    if not names:
        raise InvalidRequest("`tool_choice`: it names no tool", "tool_choice")
    return frozenset(names)


def _level(asked: ChatRequest) -> str | None:
    effort = asked.reasoning.effort if asked.reasoning else None
    return asked.reasoning_effort or effort or (asked.think if isinstance(asked.think, str) else None)


def _thinking(asked: ChatRequest, level: str | None) -> bool | None:
    """Whether to think, as far as anything says so; what is told to the template itself goes before the rest."""
    kwargs = asked.chat_template_kwargs or {}
    for switch in SWITCHES:
        if isinstance(kwargs.get(switch), bool):
            return bool(kwargs[switch])
    if isinstance(asked.think, bool):
        return asked.think
    if asked.reasoning_budget == 0:
        return False
    return None if level is None else level != "none"
