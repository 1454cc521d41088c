"""A mark, then a JSON list of calls, or one: Mistral before v11, Granite, Phi-4, Command R."""

from __future__ import annotations

from collections.abc import Sequence

from fox.chat.reading.answer import Answer, Script, marked
from fox.chat.reading.hermes import object_call
from fox.chat.reading.source import Reading


def listed(*opens: str, closes: str = "", drops: Sequence[str] = ()) -> Script:
    """Answers whose calls are in a list after one of the marks `opens`. `drops` are marks around text."""

    def section(answer: Answer) -> Reading[None]:
        yield from call_list(answer)
        yield from answer.source.space()
        if closes:
            yield from answer.source.ahead(closes)

    def script(answer: Answer) -> Reading[None]:
        yield from marked(answer, {**dict.fromkeys(opens, section), **dict.fromkeys(drops, _drop)})

    return script


def _drop(answer: Answer) -> Reading[None]:
    answer.source.keep()
    yield from ()


def call_list(answer: Answer) -> Reading[None]:
    """`[{...}, {...}]`, or a single object."""
    source = answer.source
    yield from source.space()
    if (yield from source.ahead("[")) is None:
        yield from object_call(answer)
        return
    while (yield from object_call(answer)):
        yield from source.space()
        source.mark()
        if (yield from source.ahead(",", "]")) != ",":
            source.keep()
            return
