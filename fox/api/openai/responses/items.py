"""Items of a conversation as the messages of a chat."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from fox.api.openai.responses.schema import Call, Hosted, Item, Message, Part, Result, Thought
from fox.errors import InvalidRequest


def messages(items: Iterable[tuple[str, Item]], instructions: str | None) -> list[dict[str, Any]]:
    """`items` with the field that each came in. Instructions and what the system says before all else are one message:
    many templates know but one. Raises InvalidRequest where a result has no call."""
    writer = _Writer()
    for field, item in items:
        writer.write(field, item)
    told = writer.messages
    heads = []
    while told and told[0]["role"] in ("system", "developer"):
        heads.append(told.pop(0)["content"])
    if head := "\n\n".join(filter(None, [instructions, *heads])):
        told.insert(0, {"role": "system", "content": head})
    return told


class _Writer:
    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []
        self._thought = ""
        self._called: set[str] = set()

    def write(self, field: str, item: Item) -> None:
        match item:
            case Thought():
                parts = item.content or item.summary
                self._thought += text(parts or [])
            case Message(role="assistant"):
                self._speak()["content"] += text(item.content)
            case Message():
                self._hear(item.role, item.content)
            case Call():
                function = {"name": item.name, "arguments": item.arguments}
                self._called.add(item.call_id)
                self._speak().setdefault("tool_calls", []).append(
                    {"id": item.call_id, "type": "function", "function": function}
                )
            case Result():
                if item.call_id not in self._called:
                    said = f"`{field}.call_id`: no call before it has the id `{item.call_id[:64]}`"
                    raise InvalidRequest(said, f"{field}.call_id")
                self._hear("tool", item.output, tool_call_id=item.call_id)

    def _hear(self, role: str, content: str | list[Part], **more: str) -> None:
        self._thought = ""
        self.messages.append({"role": role, "content": text(content), **more})

    def _speak(self) -> dict[str, Any]:
        """The assistant's turn: what it thinks, says and calls without a break is one message."""
        if not self.messages or self.messages[-1]["role"] != "assistant":
            self.messages.append({"role": "assistant", "content": ""})
        turn = self.messages[-1]
        if self._thought:
            turn["reasoning_content"] = turn.get("reasoning_content", "") + self._thought
            self._thought = ""
        return turn


def text(content: str | list[Part]) -> str:
    if isinstance(content, str):
        return content
    return "".join(part.text or part.refusal or "" for part in content)


def skipped(items: Iterable[Item]) -> list[str]:
    """The types of what the model is not told of."""
    return sorted({item.type for item in items if isinstance(item, Hosted)})
