"""Gemma 4: `<|tool_call>call:name{key:value}<tool_call|>`, JSON in which text stands between `<|"|>` and keys bare."""

from __future__ import annotations

from fox.chat.reading.answer import Answer, marked
from fox.chat.reading.calling import Calling, text_of
from fox.chat.reading.source import Reading

OPENS, CLOSES, QUOTE = "<|tool_call>", "<tool_call|>", '<|"|>'
THOUGHT, THOUGHT_END = "<|channel>thought", "<channel|>"
DEEPEST = 64


def gemma(answer: Answer) -> Reading[None]:
    yield from marked(answer, {OPENS: _call})


def _call(answer: Answer) -> Reading[None]:
    source = answer.source
    yield from source.ahead("call:")
    call = answer.call((yield from source.name()))
    if call.may_be and (yield from _value(answer, call, 0)) and call.done():
        yield from source.space()
        yield from source.ahead(CLOSES)
    elif not call.is_told:
        source.give_back()


def _value(answer: Answer, call: Calling, depth: int) -> Reading[bool]:
    """One value, told as JSON. Whether it was one."""
    source = answer.source
    yield from source.space()
    opened = yield from source.ahead("{", "[", QUOTE)
    if opened == QUOTE:
        return (yield from _text(answer, call))
    if opened is None:
        parts: list[str] = []
        told = yield from source.json(parts.append)
        call.tell("".join(parts))
        return told
    return depth < DEEPEST and (yield from _members(answer, call, opened, depth))


def _members(answer: Answer, call: Calling, opened: str, depth: int) -> Reading[bool]:
    source, closed = answer.source, "}" if opened == "{" else "]"
    lead = opened
    while True:
        yield from source.space()
        if (yield from source.ahead(closed)):
            call.tell(closed if lead == ", " else lead + closed)
            return True
        call.tell(lead)
        lead = ", "
        if opened == "{" and not (yield from _key(answer, call)):
            return False
        if not (yield from _value(answer, call, depth + 1)):
            return False
        yield from source.space()
        yield from source.ahead(",")


def _key(answer: Answer, call: Calling) -> Reading[bool]:
    source = answer.source
    if (yield from source.ahead(QUOTE)):
        key, _ = yield from source.word(QUOTE)
        yield from source.space()
        mark = yield from source.ahead(":")
    else:
        key, mark = yield from source.word(":", "}", CLOSES)
    call.tell(f"{text_of(key.strip())}: ")
    return mark == ":"


def _text(answer: Answer, call: Calling) -> Reading[bool]:
    call.tell('"')
    mark = yield from answer.source.until((QUOTE,), lambda text: call.tell(text_of(text)[1:-1]))
    call.tell('"')
    return mark is not None
