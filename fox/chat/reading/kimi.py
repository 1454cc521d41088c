"""Kimi K2: a section of calls between control tokens, a call's name inside its id (`functions.name:0`)."""

from __future__ import annotations

from fox.chat.reading.answer import Answer, marked
from fox.chat.reading.source import Reading

CALLS, CALLS_END = "<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"
CALL, CALL_END, ARGUMENTS = "<|tool_call_begin|>", "<|tool_call_end|>", "<|tool_call_argument_begin|>"


def kimi(answer: Answer) -> Reading[None]:
    yield from marked(answer, {CALLS: _section, CALL: _bare}, within_thought=(CALLS,))


def _bare(answer: Answer) -> Reading[None]:
    """A call whose section was not opened."""
    yield from _call(answer)


def _section(answer: Answer) -> Reading[None]:
    source = answer.source
    while True:
        yield from source.space()
        if (mark := (yield from source.ahead(CALL, CALLS_END))) != CALL:
            break
        if not (yield from _call(answer)):
            return
        source.mark()
    if mark is None:
        source.give_back()


def _call(answer: Answer) -> Reading[bool]:
    source = answer.source
    yield from source.space()
    id_ = yield from source.name()
    name = id_.removeprefix("functions.").rpartition(":")[0] or id_
    call = answer.call(name, id_ if ":" in id_ else None)
    yield from source.space()
    if call.may_be and (yield from source.ahead(ARGUMENTS)):
        yield from source.space()
        if (yield from source.json(call.tell)) and call.done():
            yield from source.space()
            yield from source.ahead(CALL_END)
            return True
    if not call.is_told:
        source.give_back()
    return False
