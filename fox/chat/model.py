"""How one model talks: messages and wishes to what its engine is asked, and a reader for what it answers."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from msgspec import structs

from fox.chat.calls import CallGrammar
from fox.chat.fallback import fallback_template
from fox.chat.go_template import GoTemplate
from fox.chat.polyfill import spell_out_tools
from fox.chat.reading import HERMES, Family, Reader, family_named, family_of
from fox.chat.template import ChatTemplate
from fox.chat.tools import Tool
from fox.errors import InvalidRequest
from fox.generation import Budget, Grammar, ModelInfo, PromptPart

_SWITCH = re.compile(r"\b(enable_)?thinking\b")  # variables that templates ask whether to think


@dataclass(frozen=True)
class Ask:
    """A turn that is asked for. `tools` in OpenAI's shape; `only` names those that may be called (None: all).
    `parallel`: several at once (None: where the model was made for tools; others go on and on).

    `thinking`: on, off, or as the template likes; `budget`: the most tokens of a thought. `continues`: the last message
    is the beginning of the answer. `separate=False`: thoughts stay in the text as they were written.
    """

    messages: Sequence[Mapping[str, Any]]
    tools: Sequence[Mapping[str, Any]] = ()
    choice: Literal["none", "auto", "required"] = "auto"
    only: frozenset[str] | None = None
    parallel: bool | None = None
    form: Grammar | None = None
    thinking: bool | None = None
    effort: str | None = None
    budget: int | None = None
    separate: bool = True
    documents: Sequence[Mapping[str, Any]] | None = None
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    continues: bool = False
    generation_prompt: bool = True


@dataclass(frozen=True)
class Turn:
    """What the engine is asked, and a new `reader` for each of the answers."""

    prompt: tuple[PromptPart, ...]
    shown: tuple[str, ...]
    grammar: Grammar | None
    budget: Budget | None
    reader: Callable[[], Reader]


class ChatModel:
    """One loaded model. `go_source`: a template of Ollama's, used unless a turn needs what only the GGUF's own has
    (`go_always`: then too). Raises InvalidRequest if a template does not compile, or there is no such `parser`."""

    def __init__(
        self,
        info: ModelInfo,
        parser: str | None = None,
        go_source: str | None = None,
        *,
        go_always: bool = False,
    ) -> None:
        source = fallback_template(info.control_tokens) if info.chat_template is None else info.chat_template
        self.template = ChatTemplate(source, info.bos, info.eos, info.control_tokens)
        self.go = GoTemplate(go_source, info.control_tokens) if go_source else None
        self._go_always = go_always or info.chat_template is None
        self._controls = dict(zip(info.control_tokens, info.control_ids, strict=False))
        self._jinja_tools = "tools" in source
        self._has_switch = bool(_SWITCH.search(source))
        own = go_source if self.go and self._go_always else source
        self.knows_tools = "tools" in source or bool(self.go and self.go.takes_tools)
        family = family_of(source if self._jinja_tools else go_source or source)
        self.family: Family = (
            family if self.knows_tools else replace(HERMES, thought=family_of(own or "").thought)
        )
        if parser:
            self.family = family_named(parser)
        marks = self.family.thought
        texts = source + (go_source or "")
        known = marks and (marks[1] in texts or marks[1] in self._controls or bool(self.family.answers))
        self._thought = marks if known else None

    @property
    def thinks(self) -> bool:
        """Whether its answers may begin with a thought that can be told apart."""
        return self._thought is not None

    def prepare(self, ask: Ask) -> Turn:
        """Raises InvalidRequest where the template refuses, or the model cannot do what is asked."""
        if ask.parallel is None:
            ask = replace(ask, parallel=self.knows_tools)
        offered = [] if ask.choice == "none" else list(ask.tools)
        prompt, opened = self._settle_thought(ask, self.render(ask, offered))
        tools = [Tool.of(tool) for tool in offered]
        callable_ = [tool for tool in tools if ask.only is None or tool.name in ask.only]
        thought = self._thought if ask.separate else None
        return Turn(
            prompt=prompt,
            shown=self.family.shown,
            grammar=self._grammar(ask, callable_, opened),
            budget=self._budget(ask, opened),
            reader=lambda: self.family.reader(tools, thought, opened=opened),
        )

    def render(self, ask: Ask, offered: Sequence[Mapping[str, Any]]) -> tuple[PromptPart, ...]:
        """The prompt that offers these tools."""
        messages, go = list(ask.messages), self._go_for(ask, offered)
        if not (go.takes_tools if go else self._jinja_tools):
            messages, offered = spell_out_tools(messages, offered), ()
        if go:
            think = ask.effort if ask.effort and ask.thinking else ask.thinking
            return go.render(messages, tools=offered or None, think=think, continues=ask.continues)
        return self.template.render(
            messages,
            tools=offered or None,
            add_generation_prompt=ask.generation_prompt,
            documents=ask.documents,
            continues=ask.continues,
            kwargs={**self._thinking(ask), **ask.kwargs},
        )

    def _go_for(self, ask: Ask, offered: Sequence[Mapping[str, Any]]) -> GoTemplate | None:
        """Ollama's template, where it can say all that this turn is about."""
        go = self.go
        if go is None or self._go_always:
            return go
        lacks_tools = bool(offered) and self._jinja_tools and not go.takes_tools
        lacks_thought = bool(ask.thinking) and self._has_switch and not go.takes_thinking
        return None if lacks_tools or lacks_thought else go

    def _thinking(self, ask: Ask) -> dict[str, Any]:
        """The variables by which templates know whether, and how hard, to think."""
        switch = {} if ask.thinking is None else {"enable_thinking": ask.thinking, "thinking": ask.thinking}
        return switch if ask.effort is None else {**switch, "reasoning_effort": ask.effort}

    def _settle_thought(
        self, ask: Ask, prompt: tuple[PromptPart, ...]
    ) -> tuple[tuple[PromptPart, ...], bool]:
        """The prompt, and whether it has begun a thought. One that may not be is ended before it begins."""
        if not (marks := self._thought) or self.family.answers or not (prompt and ask.generation_prompt):
            return prompt, False
        begun = "".join(part.text for part in prompt[-2:]).rstrip().endswith(marks[0])
        if ask.thinking is not False:
            return prompt, begun
        go = self._go_for(ask, ask.tools)
        switch = go.takes_thinking if go else self._has_switch
        if begun or not (switch or ask.continues):
            return (*prompt, PromptPart(f"{'' if begun else marks[0]}\n{marks[1]}\n\n", special=True)), False
        return prompt, False

    def _grammar(self, ask: Ask, tools: Sequence[Tool], opened: bool) -> Grammar | None:
        syntax = self.family.call
        if tools and syntax:
            calls = CallGrammar(syntax, tools, self._controls)
            if ask.choice == "required":
                return self._required(ask, calls, opened)
            if not ask.form:
                return calls.after_trigger(parallel=bool(ask.parallel)) if syntax.trigger else None
            if ask.form.kind == "json" and not self.family.answers:
                either = calls.required(parallel=bool(ask.parallel), instead=ask.form)
                return self._after_thought(ask, either, opened)
        if tools and ask.choice == "required":
            raise InvalidRequest(
                f"`tool_choice`: models of the family `{self.family.name}` cannot be made to call",
                "tool_choice",
            )
        return self._after_thought(ask, ask.form, opened) if ask.form else None

    def _required(self, ask: Ask, calls: CallGrammar, opened: bool) -> Grammar:
        if self._thought and self.family.answers:
            return calls.required(parallel=bool(ask.parallel), after=self._thought)
        return self._after_thought(ask, calls.required(parallel=bool(ask.parallel)), opened)

    def _after_thought(self, ask: Ask, grammar: Grammar, opened: bool) -> Grammar:
        """In force from where the answer begins."""
        if self.family.answers:
            return structs.replace(grammar, starts=self.family.answers)
        if not (marks := self._thought) or ask.thinking is False:
            return grammar
        return structs.replace(grammar, starts=marks[1:], opens=None if opened else marks[0])

    def _budget(self, ask: Ask, opened: bool) -> Budget | None:
        if ask.budget is None or not (marks := self._thought):
            return None
        return Budget(ask.budget, marks[1], f"\n{marks[1]}\n\n", None if opened else marks[0])
