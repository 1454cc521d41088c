"""Llama 3: a bare `{"name": ..., "parameters": ...}`, perhaps after `<|python_tag|>`; other models write so too.
Llama 4: a list of Python calls, `[f(a=1), g()]`."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from fox.chat.reading.answer import Answer, Script, marked, think
from fox.chat.reading.calling import text_of
from fox.chat.reading.hermes import object_call
from fox.chat.reading.lists import call_list
from fox.chat.reading.source import Reading

TAG = "<|python_tag|>"
LIST, LIST_END = "<|python_start|>", "<|python_end|>"


def bare_json(marks: Mapping[str, Script], tag: str = TAG) -> Script:
    """Answers whose calls are bare objects, or a list of them, where an answer begins so. `marks` begin calls too."""

    def script(answer: Answer) -> Reading[None]:
        source = answer.source
        yield from think(answer)
        source.mark()
        yield from source.space()
        yield from source.ahead(tag)
        yield from source.space()
        first = yield from source.next()
        if first == "[":
            yield from call_list(answer)
        elif first == "{":
            yield from _objects(answer)
        else:
            source.give_back()
        yield from marked(answer, marks)

    return script


def tagged(answer: Answer) -> Reading[None]:
    """Objects after a tag in the middle of an answer."""
    yield from answer.source.space()
    yield from _objects(answer)


def _objects(answer: Answer) -> Reading[None]:
    """One after the other; `;` or a new line may stand between them."""
    source = answer.source
    while (yield from object_call(answer)):
        source.mark()
        yield from source.space()
        yield from source.ahead(";", ",")
        yield from source.space()
        if (yield from source.next()) != "{":
            source.give_back()
            return


def pythonic(answer: Answer) -> Reading[None]:
    source = answer.source
    yield from think(answer)
    source.mark()
    yield from source.space()
    yield from source.ahead(LIST)
    yield from _list(answer)
    yield from marked(answer, {LIST: _list})


def _list(answer: Answer) -> Reading[None]:
    source, parts = answer.source, ["["]
    if (yield from source.ahead("[")):
        yield from source.space()
        parts.append((yield from source.name()))
        known = parts[1] in answer.names and (yield from source.next()) == "("
        if known and (yield from source.python(parts.append, "[")) and _told(answer, "".join(parts)):
            source.keep()
            yield from source.ahead(LIST_END)
            return
    source.give_back()


def _told(answer: Answer, text: str) -> bool:
    try:
        calls = [_call(element) for element in ast.parse(text, mode="eval").body.elts]  # type: ignore[attr-defined]
    except (AttributeError, SyntaxError, TypeError, ValueError, RecursionError, MemoryError):
        return False
    if not all(name in answer.names for name, _ in calls):
        return False
    for name, arguments in calls:
        call = answer.call(name)
        call.tell(arguments)
        call.done()
    return True


def _call(element: ast.Call) -> tuple[str, str]:
    if element.args:
        raise ValueError("only named arguments can be told")
    arguments = {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in element.keywords}
    return ast.unparse(element.func), text_of(arguments)
