"""What all families' answers have in common: thoughts, text, and what begins with a mark among the text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from fox.chat.pieces import Piece
from fox.chat.reading.calling import Calling
from fox.chat.reading.source import Reading, Source
from fox.chat.tools import Tool


@dataclass
class Answer:
    """One answer that is being read. `thought`: the marks around a thought, None where none is looked for; `opened`:
    the prompt ended inside one."""

    source: Source
    tools: Sequence[Tool] = ()
    thought: tuple[str, str] | None = None
    opened: bool = False
    names: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        self.names = frozenset(tool.name for tool in self.tools)

    def call(self, name: str = "", id_: str | None = None) -> Calling:
        calling = Calling(self.source, self.names.__contains__)
        calling.name, calling.id = name.strip(), id_
        return calling


Script = Callable[[Answer], Reading[None]]


class ScriptReader:
    """Runs a script over an answer's text as it comes."""

    def __init__(self, script: Script, answer: Answer) -> None:
        self._source = answer.source
        self._reading = script(answer)
        self._done = False

    def feed(self, text: str) -> list[Piece]:
        """What the next text adds."""
        self._source.add(text)
        return self._go_on()

    def finish(self, truncated: bool = False) -> list[Piece]:
        """The rest. `truncated`: the model was cut off; half a call is nothing then, and text otherwise."""
        self._source.end(truncated=truncated)
        return self._go_on()

    def _go_on(self) -> list[Piece]:
        if not self._done:
            self._done = next(self._reading, self) is self
            if self._done and not (self._source.calls or self._source.truncated):
                self._source.content.flush()
        pieces, self._source.pieces[:] = list(self._source.pieces), []
        return pieces


def marked(
    answer: Answer, marks: Mapping[str, Script], *, within_thought: Sequence[str] = ()
) -> Reading[None]:
    """A thought first, if there is one; then text, in which each of `marks` begins what its script reads.

    A thought ends without its closing mark where one of `within_thought` comes.
    """
    source = answer.source
    source.content.holds = bool(marks)
    mark = yield from think(answer, within_thought)
    while True:
        if mark is not None:
            source.mark(mark)
            yield from marks[mark](answer)
        if not marks or (mark := (yield from source.until(marks, source.content.tell))) is None:
            break
    if not marks:
        yield from rest(answer)


def think(answer: Answer, ends: Sequence[str] = ()) -> Reading[str | None]:
    """Read the thought that the answer begins with. The mark among `ends` that ended it, if one did."""
    source = answer.source
    if not answer.thought:
        return None
    (opens, closes), answer.thought = answer.thought, None
    if not answer.opened:
        source.mark()
        yield from source.space()
        if (yield from source.ahead(opens)) is None:
            source.give_back()
            return None
        source.keep()
    found = yield from source.until((closes, *ends), source.thought.tell)
    source.content.strips = True
    return found if found != closes else None


def rest(answer: Answer) -> Reading[None]:
    """All that follows is text."""
    source = answer.source
    while not source.over or (yield from source.next()):
        yield from source.until(("\0never",), source.content.tell)
