"""An answer's items as they come, and the events that tell of them."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from typing import Any

from fox.chat import Arguments, Call, Content, Piece, Reasoning

Event = dict[str, Any]


class Output:
    """`summarized`: thoughts are told as their own summary, which is what clients show. An item ends where one of
    another kind begins."""

    def __init__(self, *, summarized: bool) -> None:
        self.items: list[dict[str, Any]] = []
        self._summarized = summarized
        self._open = False
        self._part: dict[str, Any] = {}  # of the open item, what its texts go to
        self._texts: list[str] = []
        self._logprobs: list[dict[str, Any]] = []

    def hear(self, pieces: Sequence[Piece], logprobs: Sequence[dict[str, Any]] = ()) -> Iterator[Event]:
        """`logprobs` are of the tokens that these pieces came with; what brought no text is told with the next one."""
        self._logprobs += logprobs
        for piece in pieces:
            match piece:
                case Reasoning(text):
                    self._logprobs = []
                    yield from self._think(text)
                case Content(text):
                    yield from self._say(text)
                case Call(_, name, id_):
                    self._logprobs = []
                    item = {"type": "function_call", "call_id": id_, "name": name, "arguments": ""}
                    yield from self._begin(item, "fc")
                case Arguments(_, text):
                    self._texts.append(text)
                    yield self._event("response.function_call_arguments.delta", delta=text)

    def close(self, status: str = "completed") -> Iterator[Event]:
        """The end of the item that is open, if one is."""
        if not self._open:
            return
        self._open = False
        item, text = self.items[-1], "".join(self._texts)
        item["status"] = status
        self._part["text"] = text
        match item["type"]:
            case "function_call":
                item["arguments"] = text or "{}"
                yield self._event("response.function_call_arguments.done", arguments=item["arguments"])
            case "message":
                logprobs = self._part["logprobs"]
                logprobs += self._logprobs
                yield self._event("response.output_text.done", content_index=0, text=text, logprobs=logprobs)
                yield self._event("response.content_part.done", content_index=0, part=self._part)
            case _ if self._summarized:
                yield self._event("response.reasoning_summary_text.done", summary_index=0, text=text)
                yield self._event("response.reasoning_summary_part.done", summary_index=0, part=self._part)
            case _:
                yield self._event("response.reasoning_text.done", content_index=0, text=text)
                yield self._event("response.content_part.done", content_index=0, part=self._part)
        yield self._event("response.output_item.done", item=item, whole=True)

    def _think(self, text: str) -> Iterator[Event]:
        if not self._is("reasoning"):
            yield from self._begin({"type": "reasoning", "summary": [], "content": []}, "rs")
            if self._summarized:
                self._part = {"type": "summary_text", "text": ""}
                self.items[-1]["summary"].append(self._part)
                yield self._event("response.reasoning_summary_part.added", summary_index=0, part=self._part)
            else:
                self._part = {"type": "reasoning_text", "text": ""}
                self.items[-1]["content"].append(self._part)
                yield self._event("response.content_part.added", content_index=0, part=self._part)
        self._texts.append(text)
        if self._summarized:
            yield self._event("response.reasoning_summary_text.delta", summary_index=0, delta=text)
        else:
            yield self._event("response.reasoning_text.delta", content_index=0, delta=text)

    def _say(self, text: str) -> Iterator[Event]:
        if not self._is("message"):
            yield from self._begin({"type": "message", "role": "assistant", "content": []}, "msg")
            self._part = {"type": "output_text", "text": "", "annotations": [], "logprobs": []}
            self.items[-1]["content"].append(self._part)
            yield self._event("response.content_part.added", content_index=0, part=self._part)
        self._texts.append(text)
        logprobs, self._logprobs = self._logprobs, []
        self._part["logprobs"] += logprobs
        yield self._event("response.output_text.delta", content_index=0, delta=text, logprobs=logprobs)

    def _begin(self, item: dict[str, Any], prefix: str) -> Iterator[Event]:
        yield from self.close()
        self._open, self._part, self._texts = True, {}, []
        self.items.append({"id": f"{prefix}_{uuid.uuid4().hex}", **item, "status": "in_progress"})
        yield self._event("response.output_item.added", item=self.items[-1], whole=True)

    def _is(self, kind: str) -> bool:
        return self._open and self.items[-1]["type"] == kind

    def _event(self, type_: str, *, whole: bool = False, **fields: Any) -> Event:
        """`whole`: the event carries the item itself. To be written down before the next one is made: items grow."""
        named = {} if whole else {"item_id": self.items[-1]["id"]}
        return {"type": type_, "output_index": len(self.items) - 1, **named, **fields}
