"""GLM 4.5 and later: `<tool_call>name<arg_key>k</arg_key><arg_value>v</arg_value></tool_call>`."""

from __future__ import annotations

from fox.chat.reading.answer import Answer, marked
from fox.chat.reading.calling import Calling
from fox.chat.reading.parameters import Parameters, Value
from fox.chat.reading.source import Reading

OPENS, CLOSES = "<tool_call>", "</tool_call>"
KEY, KEY_END, VALUE, VALUE_END = "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>"


def glm(answer: Answer) -> Reading[None]:
    yield from marked(answer, {OPENS: _call})


def _call(answer: Answer) -> Reading[None]:
    source = answer.source
    yield from source.space()
    call = answer.call((yield from source.name()))
    if not (call.may_be and (yield from _arguments(answer, call))) and not call.is_told:
        source.give_back()


def _arguments(answer: Answer, call: Calling) -> Reading[bool]:
    source, parameters = answer.source, Parameters(call, answer.tools)
    while True:
        yield from source.space()
        if (mark := (yield from source.ahead(KEY, CLOSES))) != KEY:
            return mark is not None and parameters.end()
        key, _ = yield from source.word(KEY_END)
        yield from source.space()
        if (yield from source.ahead(VALUE)) is None:
            return False
        value = parameters.begin(key)
        mark = yield from _value(answer, value)
        if mark is None:
            return False
        value.end()
        if mark == CLOSES:
            return parameters.end()


def _value(answer: Answer, value: Value) -> Reading[str | None]:
    """The mark that ended the value: a call's end does where nothing, or another call, follows it."""
    source = answer.source
    while (mark := (yield from source.until((VALUE_END, CLOSES), value.tell))) == CLOSES:
        if (yield from source.next()) in ("", "\n", "<"):
            break
        value.tell(mark)
    return mark
