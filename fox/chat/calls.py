"""Tool calls as a grammar: what a model must write to call one of these tools with arguments of its schema."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fox.chat.forms import quoted
from fox.chat.reading import CallSyntax
from fox.chat.tools import Tool
from fox.generation import Grammar

PARAM = "tools"
ANY_TEXT = r"/(.|\n)*/"
_FORMAT = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}
_OPENING = frozenset(("additionalProperties", "patternProperties", "unevaluatedProperties", "propertyNames"))
_OPENING |= {"$ref", "allOf", "anyOf", "oneOf", "if", "dependentSchemas"}
_SHARED = ("$defs", "definitions")


class CallGrammar:
    """The grammars of one model's calls of `tools`. `controls`: its control tokens' ids by their spelling."""

    def __init__(self, syntax: CallSyntax, tools: Sequence[Tool], controls: Mapping[str, int]) -> None:
        self._syntax = syntax
        self._tools = tools
        self._controls = controls
        longest_first = sorted(filter(None, controls), key=len, reverse=True)
        self._control = re.compile("|".join(map(re.escape, longest_first)) or r"(?!)")

    def after_trigger(self, *, parallel: bool) -> Grammar:
        """What must follow where the text has come to the trigger. Elsewhere it goes free."""
        syntax = self._syntax
        rules = self._rules(first=len(syntax.trigger), more=parallel and bool(syntax.opens))
        return Grammar("lark", "\n".join(rules), PARAM, starts=(syntax.trigger,), ends=not parallel)

    def required(
        self, *, parallel: bool, instead: Grammar | None = None, after: tuple[str, str] | None = None
    ) -> Grammar:
        """A call, or several. `instead`: JSON of this form may stand for them. `after`: the marks around what may be
        written before them."""
        start, *rules = self._rules(first=0, more=parallel)
        if instead is not None:
            start = start.replace("start: ", "start: answer | ", 1)
            rules.append(f"answer: %json {_json(json.loads(instead.source), strict=not instead.lenient)}")
        if after is not None:
            start = start.replace("start: ", "start: thought? ", 1)
            rules.append(f"thought: {self._spelled(after[0])} thoughts")
            rules += self._text_until("thoughts", after[1])
        return Grammar("lark", "\n".join([start, *rules]), PARAM)

    def _rules(self, *, first: int, more: bool) -> list[str]:
        """`first` characters of the first call's text are there already."""
        syntax, calls = self._syntax, range(len(self._tools))
        rest = f" ({self._spelled(syntax.separator)} ({_any('call', calls)}))*" if more else ""
        rules = [f"start: ({_any('first', calls)}){rest} {self._spelled(syntax.closes)}"]
        for at, tool in enumerate(self._tools):
            begin, end = syntax.begin.replace("{name}", tool.name), self._spelled(syntax.end)
            rules += [
                f"first{at}: {self._spelled((syntax.opens + begin)[first:])} args{at} {end}",
                f"call{at}: {self._spelled(begin)} args{at} {end}",
                *self._arguments(f"args{at}", tool),
            ]
        return rules

    def _arguments(self, rule: str, tool: Tool) -> Iterator[str]:
        """Their rules: one JSON object, or one after the other in the schema's order."""
        if self._syntax.argument is None:
            yield f"{rule}: %json {_json(_closed(tool.parameters), strict=tool.strict)}"
            return
        properties: Mapping[str, Any] = tool.parameters.get("properties") or {}
        required = tool.parameters.get("required") or ()
        names = [f"{rule}_{at}{'' if key in required else '?'}" for at, key in enumerate(properties)]
        yield f"{rule}: {' '.join(names) or quoted('')}"
        for at, (key, schema) in enumerate(properties.items()):
            yield from self._argument(f"{rule}_{at}", key, schema, tool)

    def _argument(self, rule: str, key: str, schema: Any, tool: Tool) -> Iterator[str]:
        assert self._syntax.argument is not None
        begin, end = self._syntax.argument
        types = tool.types(key)
        is_text = types == {"string"} or not types
        begin = begin.replace("{key}", key).replace("{is_text}", json.dumps(is_text))
        yield f"{rule}: {self._spelled(begin)} {rule}v"
        if is_text and isinstance(schema, Mapping) and _all_texts(schema.get("enum")):
            yield f"{rule}v: ({' | '.join(map(quoted, schema['enum']))}) {self._spelled(end)}"
        elif is_text or "string" in types:
            yield from self._text_until(f"{rule}v", end)
        else:
            shared = {name: tool.parameters[name] for name in _SHARED if name in tool.parameters}
            yield f"{rule}v: {rule}j {self._spelled(end)}"
            yield f"{rule}j: %json {_json({**shared, **schema}, strict=tool.strict, any_type=True)}"

    def _text_until(self, rule: str, end: str) -> Iterator[str]:
        """Any text, and the mark that ends it."""
        if self._control.match(end):
            yield f"{rule}: {rule}t {self._spelled(end)}"
            yield f"{rule}t: {ANY_TEXT}"
        else:
            yield f"{rule}[suffix={quoted(end)}]: {ANY_TEXT}"

    def _spelled(self, text: str) -> str:
        return " ".join(self._terms(text)) or '""'

    def _terms(self, text: str) -> Iterator[str]:
        at = 0
        for found in self._control.finditer(text):
            if plain := text[at : found.start()]:
                yield quoted(plain)
            yield f"<[{self._controls[found[0]]}]>"
            at = found.end()
        if plain := text[at:]:
            yield quoted(plain)


def _any(rule: str, numbers: Sequence[int]) -> str:
    return " | ".join(f"{rule}{number}" for number in numbers)


def _all_texts(values: Any) -> bool:
    return isinstance(values, list) and bool(values) and all(isinstance(value, str) for value in values)


def _closed(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """No arguments but those that are described, unless the schema says how there may be others."""
    described = "properties" in schema or not schema
    return {**schema, "additionalProperties": False} if described and not _OPENING & {*schema} else schema


def _json(schema: Mapping[str, Any], *, strict: bool, any_type: bool = False) -> str:
    shaped = schema if any_type or "type" in schema or "$ref" in schema else {"type": "object", **schema}
    return json.dumps({"x-guidance": {**_FORMAT, "lenient": not strict}, **shaped}, ensure_ascii=False)
