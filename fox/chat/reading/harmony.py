"""gpt-oss: messages `<|channel|>name to=recipient<|message|>...<|end|>` for thought, text and calls."""

from __future__ import annotations

import re

from fox.chat.reading.answer import Answer, rest
from fox.chat.reading.source import Reading

START, CHANNEL, MESSAGE, CONSTRAIN = "<|start|>", "<|channel|>", "<|message|>", "<|constrain|>"
ENDS = ("<|end|>", "<|call|>", "<|return|>")
_RECIPIENT = re.compile(r"to=([\w.:/-]+)")


def harmony(answer: Answer) -> Reading[None]:
    """The prompt ends inside the first message's head."""
    source = answer.source
    source.mark()
    if (yield from source.next()) not in ("<", " ", ""):
        yield from rest(answer)
        return
    while (yield from source.next()):
        source.mark()
        head, mark = yield from source.word(MESSAGE, *ENDS)
        if mark == MESSAGE:
            yield from _message(answer, head)
        elif mark is None:
            source.give_back()
        source.keep()


def _message(answer: Answer, head: str) -> Reading[None]:
    source = answer.source
    channel = head.rpartition(CHANNEL)[2].split(CONSTRAIN)[0].strip().split(" ")[0]
    recipients = _RECIPIENT.findall(head)
    if recipients and recipients[-1] != "assistant":
        yield from _to_tool(answer, recipients[-1])
    elif channel == "analysis":
        source.keep()
        tell = source.thought.tell if answer.thought else source.content.tell
        yield from source.until(ENDS, tell)
    else:
        source.keep()
        yield from source.until(ENDS, source.content.tell)


def _to_tool(answer: Answer, recipient: str) -> Reading[None]:
    """A call; what is meant for a tool of the model's own (`python`, `browser`) is nobody's to read."""
    source = answer.source
    call = answer.call(recipient.removeprefix("functions."))
    yield from source.space()
    if call.may_be and (yield from source.json(call.tell)) and call.done():
        yield from source.until(ENDS, _nowhere)
    elif not call.is_told:
        yield from source.until(ENDS, _nowhere)
        if recipient.startswith("functions."):
            source.give_back()


def _nowhere(text: str) -> None:
    pass
