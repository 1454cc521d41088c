"""A conversation with a model of a server: what was said, and the next answer as it comes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import click

from fox.cli.attachments import take
from fox.cli.client import Client, Fields
from fox.cli.refusal import Refusal
from fox.cli.remote_commands import HELP, Commands
from fox.cli.took import Took

Show = Callable[[str], None]

THINKING, DONE_THINKING = "Thinking...\n", "...done thinking.\n\n"


@dataclass
class Remote:
    """Messages so far, and how answers are asked for. `shown`: what `/api/show` says of the model.

    `once`: a prompt is completed by itself, and no conversation follows.
    """

    client: Client
    model: str
    shown: Fields
    system: str = ""
    options: Fields = field(default_factory=dict)
    format: Any = None
    think: bool | str | None = None
    keep_alive: str | float | None = None
    hide_thinking: bool = False
    verbose: bool = False
    once: bool = False
    messages: list[Fields] = field(default_factory=list)
    help = HELP

    def load(self) -> None:
        """Have the model ready, and tell what its Modelfile lets the conversation begin with."""
        self._settle_thinking()
        for _ in self.client.stream("/api/generate", self._asked(prompt="")):
            pass
        for message in self.shown.get("messages") or ():
            mark = "> " if message.get("role") == "user" else ""
            if message.get("role") in ("user", "assistant"):
                click.echo(f"{mark}{message.get('content', '')}", err=True)

    def clear(self) -> None:
        self.messages.clear()

    def ask(self, text: str, show: Show) -> Took:
        """Question and answer are remembered, also an answer that was stopped or broke off midway; one of which not a
        word came is forgotten with its question."""
        if self.once:
            return self._generate(text, show)
        turn = self._turn(text)
        said: Fields = {"role": "assistant", "content": ""}
        asked = self._asked(messages=[*self._begin(), *self.messages, turn])
        try:
            return self._tell("/api/chat", asked, show, said)
        finally:
            if said["content"]:
                self.messages += [turn, said]

    def command(self, words: list[str], rest: str) -> bool:
        return Commands(self).obey(words, rest)

    @property
    def can_think(self) -> bool:
        return "thinking" in (self.shown.get("capabilities") or ())

    def _settle_thinking(self) -> None:
        """Models that can think do, unless it is said otherwise; one that cannot is not asked to."""
        if self.think is None and self.can_think:
            self.think = True
        elif self.think and not self.can_think and self.shown.get("capabilities") is not None:
            click.echo(f'warning: model "{self.model}" does not support thinking output', err=True)

    def _generate(self, prompt: str, show: Show) -> Took:
        self._settle_thinking()
        turn = self._turn(prompt)
        asked = self._asked(prompt=turn["content"], **_given(images=turn.get("images")))
        return self._tell("/api/generate", asked | _given(system=self.system), show, {"content": ""})

    def _begin(self) -> list[Fields]:
        return [{"role": "system", "content": self.system}] if self.system else []

    def _turn(self, text: str) -> Fields:
        """The question, with the files that it names where the model can use them."""
        can = set(self.shown.get("capabilities") or ())
        sees = can & {"vision", "audio"} or self.shown.get("projector_info")
        words, files = take(text) if sees else (text, [])
        return {"role": "user", "content": words, **_given(images=files)}

    def _asked(self, **fields: Any) -> Fields:
        own = {"model": self.model, **fields, "options": self.options}
        return own | _given(format=self.format, think=self.think, keep_alive=self.keep_alive)

    def _tell(self, path: str, asked: Fields, show: Show, said: Fields) -> Took:
        """Show the answer as it comes, and gather it in `said`."""
        thoughts = Thoughts(show, hidden=self.hide_thinking)
        lines = self.client.stream(path, asked)
        try:
            for line in lines:
                message = line.get("message") or {"content": line.get("response"), **line}
                if thought := message.get("thinking"):
                    thoughts.hear(str(thought))
                    said["thinking"] = said.get("thinking", "") + thought
                if piece := message.get("content"):
                    thoughts.end()
                    said["content"] += piece
                    show(str(piece))
                if calls := message.get("tool_calls"):
                    said.setdefault("tool_calls", []).extend(calls)
                if line.get("done"):
                    thoughts.end()
                    return Took(line)
        finally:
            _close(lines)
        raise Refusal("the answer ended without its last line")


class Thoughts:
    """Shows what a model thinks between two lines of its own, unless that is hidden."""

    def __init__(self, show: Show, *, hidden: bool) -> None:
        self._show = show
        self._hidden = hidden
        self._open = False
        self._at_line_start = True

    def hear(self, text: str) -> None:
        if self._hidden:
            return
        if not self._open:
            self._show(THINKING)
        self._open = True
        self._at_line_start = text.endswith("\n")
        self._show(text)

    def end(self) -> None:
        if self._open:
            self._show(DONE_THINKING if self._at_line_start else "\n" + DONE_THINKING)
        self._open = False


def embed(client: Client, model: str, text: str, wishes: Fields) -> list[float]:
    """The vector of a text. Raises Refusal."""
    vectors = client.post("/api/embed", {"model": model, "input": text, **wishes}).get("embeddings")
    if not isinstance(vectors, list) or not vectors or not isinstance(vectors[0], list):
        raise Refusal(f"model '{model}' gave no vector")
    return vectors[0]


def _given(**fields: Any) -> Fields:
    return {name: value for name, value in fields.items() if value not in (None, "", [])}


def _close(lines: Iterator[Fields]) -> None:
    """Whoever still answers stops."""
    close = getattr(lines, "close", None)
    if close:
        close()
