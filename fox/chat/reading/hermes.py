"""Hermes, Qwen: `<tool_call>{"name": ..., "arguments": {...}}</tool_call>`, once a call."""

from __future__ import annotations

from fox.chat.reading.answer import Answer, marked
from fox.chat.reading.calling import read_object
from fox.chat.reading.source import Reading


def hermes(answer: Answer) -> Reading[None]:
    yield from marked(answer, {"<tool_call>": tagged_call})


def tagged_call(answer: Answer) -> Reading[None]:
    """After the opening tag."""
    if (yield from object_call(answer)):
        yield from answer.source.space()
        yield from answer.source.ahead("</tool_call>")


def object_call(answer: Answer) -> Reading[bool]:
    """A JSON object that is a call, or text. Whether it was a call."""
    source, call = answer.source, answer.call()
    yield from source.space()
    if (yield from read_object(source, call)) and call.done():
        return True
    if not call.is_told:
        source.give_back()
    return False
