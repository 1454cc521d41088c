"""Mistral: `[TOOL_CALLS]name[ARGS]{...}` a call, `[TOOL_CALLS] [{...}, ...]` before v11."""

from __future__ import annotations

from fox.chat.reading.answer import Answer, marked
from fox.chat.reading.lists import call_list
from fox.chat.reading.source import Reading

CALLS, ARGS, ID = "[TOOL_CALLS]", "[ARGS]", "[CALL_ID]"


def mistral(answer: Answer) -> Reading[None]:
    if answer.thought and not answer.opened and (yield from answer.source.next()) == "<":
        answer.thought = ("<think>", "</think>")
    yield from marked(answer, {CALLS: _calls})


def _calls(answer: Answer) -> Reading[None]:
    source = answer.source
    yield from source.space()
    if (yield from source.next()) in "[{":
        yield from call_list(answer)
        return
    name, id_ = (yield from source.name()), None
    if (yield from source.ahead(ARGS, ID)) == ID:
        id_ = yield from source.name()
        yield from source.ahead(ARGS)
    call = answer.call(name, id_)
    yield from source.space()
    if call.may_be and (yield from source.json(call.tell)) and call.done():
        return
    if not call.is_told:
        source.give_back()
