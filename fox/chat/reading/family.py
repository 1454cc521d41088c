"""How a family of models writes thoughts and calls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from fox.chat.pieces import Piece
from fox.chat.reading.answer import Answer, Script, ScriptReader, marked
from fox.chat.reading.source import Reading, Source
from fox.chat.tools import Tool

THINK = ("<think>", "</think>")


class Reader(Protocol):
    """Reads one answer as it comes."""

    def feed(self, text: str) -> list[Piece]:
        """What the next text adds."""

    def finish(self, truncated: bool = False) -> list[Piece]:
        """The rest. `truncated`: the model was cut off; half a call is nothing then, and text otherwise."""


@dataclass(frozen=True)
class CallSyntax:
    """How calls are spelled: `{name}` in `begin` is the tool's, its arguments follow as JSON. Several are `separator`
    apart, and all of them between `opens` and `closes`. Text that comes to `trigger` is nothing but a call ("": that
    is never sure). `argument`: what stands around each argument, `{key}` being its name, where they come one by one.
    """

    trigger: str
    begin: str
    end: str
    separator: str = ""
    opens: str = ""
    closes: str = ""
    argument: tuple[str, str] | None = None


@dataclass(frozen=True)
class Family:
    """`template`: a chat template of such a model has all the marks of one of these. `shown`: control tokens that the
    reader must see spelled. `thought`: the marks around a thought.

    `answers`: what begins the text, where that is not simply the end of a thought.
    """

    name: str
    script: Script
    template: tuple[tuple[str, ...], ...] = ()
    shown: tuple[str, ...] = ()
    thought: tuple[str, str] | None = THINK
    call: CallSyntax | None = None
    answers: tuple[str, ...] = ()

    def reader(
        self, tools: Sequence[Tool], thought: tuple[str, str] | None, *, opened: bool = False
    ) -> Reader:
        """For an answer to a prompt that offered these tools. `thought`: the marks around one, where thoughts are to be
        told apart; `opened`: the prompt ended inside one."""
        script = self.script if tools or self.answers else _text
        return ScriptReader(script, Answer(Source(), tools, thought, opened and thought is not None))


def _text(answer: Answer) -> Reading[None]:
    yield from marked(answer, {})
