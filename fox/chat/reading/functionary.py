"""Functionary: `>>>name` and a newline before text or arguments, `<function=name>{...}</function>` in its 3.1."""

from __future__ import annotations

from fox.chat.reading.answer import Answer, marked
from fox.chat.reading.source import Reading

RECIPIENT, FUNCTION, FUNCTION_END = ">>>", "<function=", "</function>"


def functionary(answer: Answer) -> Reading[None]:
    """The prompt of 3.2 ends with the first `>>>`: the answer begins with `all`, for text, or a tool's name."""
    source = answer.source
    source.mark()
    yield from _recipient(answer)
    yield from marked(answer, {RECIPIENT: _recipient, FUNCTION: _function})


def _recipient(answer: Answer) -> Reading[None]:
    source = answer.source
    name = yield from source.name()
    if name in ("all", *answer.names) and (yield from source.ahead("\n")):
        if name == "all":
            source.keep()
        else:
            yield from _arguments(answer, name)
        return
    source.give_back()


def _function(answer: Answer) -> Reading[None]:
    source = answer.source
    name = yield from source.name()
    if (yield from source.ahead(">")) and (yield from _arguments(answer, name)):
        yield from source.space()
        yield from source.ahead(FUNCTION_END)


def _arguments(answer: Answer, name: str) -> Reading[bool]:
    source, call = answer.source, answer.call(name)
    yield from source.space()
    if call.may_be and (yield from source.json(call.tell)) and call.done():
        return True
    if not call.is_told:
        source.give_back()
    return False
