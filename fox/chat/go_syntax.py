"""What Ollama asks of a Go template before it runs it: what it mentions, where its answer begins, how it thinks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any

from gotpl.parse.nodes import (
    ActionNode,
    FieldNode,
    IfNode,
    ListNode,
    ParenthesizedNode,
    ParsedTemplate,
    RangeNode,
    TemplateNode,
    TextNode,
    VariableNode,
    WithNode,
)


def mentioned(tree: ParsedTemplate) -> frozenset[str]:
    """The names of all fields that the template reads, in lower case."""
    chained = (n for n in _inside(tree) if isinstance(n, FieldNode | VariableNode | ParenthesizedNode))
    return frozenset(name.lower() for node in chained for name in node.fields)


def until_response(tree: ParsedTemplate) -> ParsedTemplate:
    """The template without all that follows its first `.Response`: a prompt whose answer is still to come."""
    return replace(tree, root=_Cut().list(tree.root))


class _Cut:
    def __init__(self) -> None:
        self.found = False

    def list(self, nodes: ListNode) -> ListNode:
        kept: list[TemplateNode] = []
        for node in nodes.nodes:
            if self.found:
                break
            kept.append(self._node(node))
        return ListNode(tuple(kept))

    def _node(self, node: TemplateNode) -> TemplateNode:
        if isinstance(node, IfNode | WithNode | RangeNode):
            body = self.list(node.body)
            otherwise = None if self.found or node.else_body is None else self.list(node.else_body)
            return replace(node, body=body, else_body=otherwise)
        if isinstance(node, ActionNode):
            self.found = _reads(node, "Response")
        return node


def thinking_tags(tree: ParsedTemplate) -> tuple[str, str] | None:
    """The text around `.Thinking` inside a range over `.Messages`, as Ollama infers it: the last such place counts."""
    tags = ["", ""]
    for place in _thoughts(tree.root, None, None):
        for side, node in ((0, place.nodes[0]), (1, place.nodes[-1])):
            if isinstance(node, TextNode):
                tags[side] = node.text.strip()
    return (tags[0], tags[1]) if all(tags) else None


def _thoughts(node: Any, place: ListNode | None, loop: RangeNode | None) -> Iterator[ListNode]:
    """The innermost list around each `.Thinking` whose innermost loop goes over `.Messages`."""
    if isinstance(node, FieldNode):
        if node.fields[0] == "Thinking" and loop and place and _reads(loop.pipeline, "Messages", first=True):
            yield place
        return
    place = node if isinstance(node, ListNode) else place
    loop = node if isinstance(node, RangeNode) else loop
    for child in _children(node):
        yield from _thoughts(child, place, loop)


def _reads(node: Any, name: str, *, first: bool = False) -> bool:
    found = (n.fields[:1] if first else n.fields for n in _inside(node) if isinstance(n, FieldNode))
    return any(name in names for names in found)


def _inside(node: Any) -> Iterator[Any]:
    waiting = [node]
    while waiting:
        yield (node := waiting.pop())
        waiting.extend(_children(node))


def _children(node: Any) -> Iterator[Any]:
    for field in fields(node):
        value = getattr(node, field.name)
        for item in value if isinstance(value, tuple) else (value,):
            if is_dataclass(item):
                yield item
