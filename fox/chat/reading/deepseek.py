"""DeepSeek R1, V3 and V3.1: a section of calls between control tokens."""

from __future__ import annotations

from fox.chat.reading.answer import Answer, marked
from fox.chat.reading.source import Reading

CALLS, CALLS_END = "<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"
CALL, CALL_END, SEPARATOR = "<｜tool▁call▁begin｜>", "<｜tool▁call▁end｜>", "<｜tool▁sep｜>"


def deepseek(answer: Answer) -> Reading[None]:
    yield from marked(answer, {CALLS: _section})


def _section(answer: Answer) -> Reading[None]:
    source = answer.source
    while True:
        yield from source.space()
        if (mark := (yield from source.ahead(CALL, CALLS_END))) != CALL:
            break
        if not (yield from _call(answer)):
            break
        source.mark()
    if mark is None:
        source.give_back()


def _call(answer: Answer) -> Reading[bool]:
    """`name<sep>{...}`, and before V3.1 `function<sep>name`, then JSON in a fence."""
    source = answer.source
    name = yield from source.name()
    yield from source.ahead(SEPARATOR)
    call = answer.call(name)
    yield from source.space()
    if (yield from source.next()) != "{":
        call = answer.call((yield from source.name()))
        yield from source.space()
        yield from source.ahead("```json", "```")
        yield from source.space()
    if call.may_be and (yield from source.json(call.tell)) and call.done():
        yield from source.space()
        yield from source.ahead("```")
        yield from source.ahead(CALL_END)
        return True
    if not call.is_told:
        source.give_back()
    return False
