"""Calls as elements with attributes: DeepSeek's DSML, MiniMax."""

from __future__ import annotations

from html import unescape

from fox.chat.reading.answer import Answer, Script, marked
from fox.chat.reading.calling import Calling
from fox.chat.reading.parameters import Parameters
from fox.chat.reading.source import Reading


def invoking(prefix: str, *sections: str) -> Script:
    """Answers whose calls are `<{prefix}invoke name="...">` with `<{prefix}parameter name="...">` inside one of the
    elements `sections`."""
    invokes = Invokes(prefix)

    def script(answer: Answer) -> Reading[None]:
        yield from marked(answer, {f"<{name}>": invokes.section for name in sections})

    return script


class Invokes:
    """Reads such a section."""

    def __init__(self, prefix: str) -> None:
        self._call = f"<{prefix}invoke"
        self._call_end = f"</{prefix}invoke>"
        self._parameter = f"<{prefix}parameter"
        self._parameter_end = f"</{prefix}parameter>"

    def section(self, answer: Answer) -> Reading[None]:
        source = answer.source
        while True:
            yield from source.space()
            if (yield from source.ahead(self._call)) is None:
                break
            attributes, ends = yield from _attributes(answer)
            call = answer.call(attributes.get("name", ""))
            if not (call.may_be and (ends or (yield from self._read(answer, call)))):
                if not call.is_told:
                    source.give_back()
                return
            if ends:
                Parameters(call, answer.tools).end()
            source.mark()
        if (yield from source.ahead("</")):
            yield from source.word(">")
            source.keep()
        else:
            source.give_back()

    def _read(self, answer: Answer, call: Calling) -> Reading[bool]:
        source, parameters = answer.source, Parameters(call, answer.tools)
        while True:
            yield from source.space()
            mark = yield from source.ahead(self._parameter, self._call_end)
            if mark != self._parameter:
                return mark is not None and parameters.end()
            attributes, _ = yield from _attributes(answer)
            said = attributes.get("string")
            value = parameters.begin(
                attributes.get("name", ""), is_text=None if said is None else said == "true"
            )
            if (yield from source.until((self._parameter_end,), value.tell)) is None:
                return False
            value.end()


def _attributes(answer: Answer) -> Reading[tuple[dict[str, str], bool]]:
    """`name="x" string="true">`, and whether the element ends here (`/>`)."""
    found: dict[str, str] = {}
    while True:
        key, mark = yield from answer.source.word('="', ">")
        if mark != '="':
            return found, key.strip() == "/"
        value, _ = yield from answer.source.word('"')
        found[key.strip()] = unescape(value)
