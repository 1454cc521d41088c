"""Qwen3-Coder, Qwen3.5, Seed-OSS: `<function=name><parameter=key>value</parameter></function>` in a tag."""

from __future__ import annotations

from fox.chat.reading.answer import Answer, Script, marked
from fox.chat.reading.calling import Calling
from fox.chat.reading.parameters import Parameters
from fox.chat.reading.source import Reading

FUNCTION, FUNCTION_END = "<function=", "</function>"
PARAMETER, PARAMETER_END = "<parameter=", "</parameter>"


def xml_calls(tag: str = "tool_call") -> Script:
    """Answers whose calls are in elements `tag`. Models forget the opening one; a call ends a thought."""
    opens, closes = f"<{tag}>", f"</{tag}>"

    def tagged(answer: Answer) -> Reading[None]:
        yield from answer.source.space()
        if (yield from answer.source.ahead(FUNCTION)) is None:
            answer.source.give_back()
            return
        yield from bare(answer)

    def bare(answer: Answer) -> Reading[None]:
        if (yield from function_call(answer)):
            yield from answer.source.space()
            yield from answer.source.ahead(closes)

    def script(answer: Answer) -> Reading[None]:
        whole = f"{opens}\n{FUNCTION}"
        marks = {opens: tagged, whole: bare, FUNCTION: bare}
        yield from marked(answer, marks, within_thought=(whole,))

    return script


def function_call(answer: Answer) -> Reading[bool]:
    """After `<function=`. Whether it was a call."""
    source = answer.source
    call = answer.call((yield from source.name()))
    if call.may_be and (yield from source.ahead(">")) and (yield from _parameters(answer, call)):
        return True
    if not call.is_told:
        source.give_back()
    return False


def _parameters(answer: Answer, call: Calling) -> Reading[bool]:
    source, parameters = answer.source, Parameters(call, answer.tools)
    yield from source.space()
    mark = yield from source.ahead(PARAMETER, FUNCTION_END)
    while mark and mark.strip() == PARAMETER:
        name, _ = yield from source.word(">")
        mark = yield from _value(answer, parameters, name)
    return mark is not None and parameters.end()


def _value(answer: Answer, parameters: Parameters, name: str) -> Reading[str | None]:
    """One value, and the mark after it. A value that begins on a line of its own ends before a line that begins with a
    mark; within its lines the marks are text. The closing one may be missing."""
    source, value = answer.source, parameters.begin(name)
    line = "\n" if (yield from source.next()) == "\n" else ""
    first = True

    def tell(text: str) -> None:
        nonlocal first
        value.tell(text.removeprefix(line) if first else text)
        first = first and not text

    ends = [line + mark for mark in (PARAMETER_END, PARAMETER, FUNCTION_END)]
    mark = yield from source.until(ends, tell)
    if mark is None:
        return None
    value.end()
    if mark != line + PARAMETER_END:
        return mark
    yield from source.space()
    return (yield from source.ahead(PARAMETER, FUNCTION_END))
