"""Kimi K3: elements `<|open|>tag key="value"<|sep|>...<|close|>tag<|sep|>` for thought, text and calls."""

from __future__ import annotations

import re
from html import unescape

from fox.chat.reading.answer import Answer
from fox.chat.reading.parameters import Parameters
from fox.chat.reading.source import Reading, Tell

OPEN, CLOSE, SEPARATOR = "<|open|>", "<|close|>", "<|sep|>"
_ATTRIBUTE = re.compile(r'([\w-]+)="([^"]*)"')


def kimi3(answer: Answer) -> Reading[None]:
    source = answer.source
    tell: Tell = source.thought.tell if answer.opened else source.content.tell
    while mark := (yield from source.until((OPEN, CLOSE), tell)):
        source.mark(mark)
        head, _ = yield from source.word(SEPARATOR)
        tag = head.split(" ", 1)[0]
        thinks = mark == OPEN and tag == "think" and answer.thought is not None
        tell = source.thought.tell if thinks else source.content.tell
        if mark == OPEN and tag == "call" and not (yield from _call(answer, head)):
            source.give_back()
        source.keep()


def _call(answer: Answer, head: str) -> Reading[bool]:
    """False where it is none, and nothing has been told of it."""
    source, call = answer.source, answer.call(_attributes(head).get("tool", ""))
    if not call.may_be:
        return False
    parameters = Parameters(call, answer.tools)
    while True:
        yield from source.space()
        mark = yield from source.ahead(OPEN, CLOSE)
        head, separator = yield from source.word(SEPARATOR)
        if mark != OPEN:
            return (mark == CLOSE and separator is not None and parameters.end()) or call.is_told
        attributes = _attributes(head)
        kind = attributes.get("type")
        value = parameters.begin(
            attributes.get("key", ""), is_text=None if kind is None else kind == "string"
        )
        if (yield from source.until((f"{CLOSE}argument{SEPARATOR}",), value.tell)) is None:
            return call.is_told
        value.end()


def _attributes(head: str) -> dict[str, str]:
    return {key: unescape(value) for key, value in _ATTRIBUTE.findall(head)}
