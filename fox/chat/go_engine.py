"""A Go template in the hands of gotpl, an interpreter of text/template in Python, and within bounds.

A template comes from whoever published the model, so what it can reach and spend is limited: fields of the values it
was given, calls, loops, nesting and the text it makes. gotpl 0.1.0 departs from Go in a few places that are mended
here: `break` and `continue` left their blocks open, nil could not be compared, and printing knew no Stringers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from gotpl import ExecutionBudget, SandboxPolicy, TemplateError, TemplateExecutionError
from gotpl.compile.compiler import _Compiler
from gotpl.compile.instructions import OpCode, Program
from gotpl.parse.nodes import (
    ActionNode,
    CommandNode,
    IdentifierNode,
    IfNode,
    ListNode,
    ParsedTemplate,
    PipeNode,
    RangeNode,
    WithNode,
)
from gotpl.parse.parser import parse_template
from gotpl.runtime.sync_vm import _builtin_functions, format_value, render_program
from gotpl.runtime.values import INVALID, UNTYPED_NIL

from fox.chat.fence import CLOSE, OPEN, Fence, unfenced
from fox.chat.go_values import Printed, marshal, typescript
from fox.errors import InvalidRequest

MAX_SOURCE_CHARS, MAX_MADE_CHARS = 1_000_000, 16_000_000
_BUDGET = (
    ExecutionBudget(  # about three seconds at worst; a conversation of 2000 turns takes a tenth of the calls
        max_output_chars=16_000_000,
        max_iterations=500_000,
        max_template_depth=100,
        max_function_calls=200_000,
    )
)
_SANDBOX = SandboxPolicy(allow_custom_lookup=True)
_SHOW, _STEP = "show value", "enter template"  # no template can spell a name with a space
_OLLAMAS = ("json", "currentDate", "yesterdayDate", "toTypeScriptType")
_made_chars: ContextVar[int] = ContextVar("_made_chars")
Function = Callable[..., Any]
_BUILTINS: Mapping[str, Function] = _builtin_functions("go")


def parsed(source: str) -> ParsedTemplate:
    """Raises InvalidRequest where the source is no Go template, or calls what Ollama does not offer."""
    try:
        if len(source) > MAX_SOURCE_CHARS:
            raise TemplateError(f"longer than {MAX_SOURCE_CHARS} characters")
        return parse_template(source, functions=_OLLAMAS)
    except (TemplateError, ValueError, IndexError, RecursionError) as error:
        raise InvalidRequest(f"template error: {error}", "template") from error


class Executable:
    """A parsed template, compiled. Called with the data, it gives the text; what fails is an exception.

    `source` is for the lines in its messages.
    """

    def __init__(self, tree: ParsedTemplate, fence: Fence, source: str) -> None:
        step = ActionNode(PipeNode((), False, (_call(_STEP),), 0, 0), 0, 0)
        definitions = tuple(
            Program(_compiled(ListNode((step, *node.body.nodes))), name=node.name, source=source)
            for node in tree.definitions
        )
        self._program = Program(_compiled(tree.root), definitions=definitions, source=source)
        self._functions = _functions(fence)

    def __call__(self, data: dict[str, Any]) -> str:
        _made_chars.set(0)
        try:
            return render_program(
                self._program,
                data,
                functions=self._functions,
                missing_key="zero",
                budget=_BUDGET,
                sandbox=_SANDBOX,
            )
        except TemplateExecutionError as error:
            raise ValueError(f"line {error.line}: {error.message}") from error


def _compiled(root: ListNode) -> Any:
    return _GoCompiler().compile_list(root)


def _call(name: str) -> CommandNode:
    return CommandNode((IdentifierNode(name, 0, 0),), 0, 0)


class _GoCompiler(_Compiler):
    """gotpl's own, but that what an action writes is shown as Go shows it, and a jump closes the blocks it leaves."""

    def __init__(self) -> None:
        super().__init__()
        self._left: list[IfNode | WithNode] = []

    def emit_action(self, node: ActionNode) -> None:
        if not node.pipeline.declarations:
            shown = (*node.pipeline.commands, _call(_SHOW))
            node = replace(node, pipeline=replace(node.pipeline, commands=shown))
        super().emit_action(node)

    def emit_if(self, node: IfNode) -> None:
        self._left.append(node)
        super().emit_if(node)
        self._left.pop()

    def emit_with(self, node: WithNode) -> None:
        self._left.append(node)
        super().emit_with(node)
        self._left.pop()

    def emit_range(self, node: RangeNode) -> None:
        outer, self._left = self._left, []
        super().emit_range(node)
        self._left = outer

    def emit_loop_jump(self, source_start: int, *, is_break: bool) -> None:
        for node in reversed(self._left):
            if isinstance(node, WithNode) and not _within(node.else_body, source_start):
                self.emit(OpCode.EXIT_WITH, None, source_start)
            self.emit(OpCode.POP_SCOPE, None, source_start)
        super().emit_loop_jump(source_start, is_break=is_break)


def _within(nodes: ListNode | None, position: int) -> bool:
    return bool(nodes and nodes.nodes) and nodes.nodes[0].start <= position  # type: ignore[union-attr]


def _functions(fence: Fence) -> dict[str, Function]:
    printers: dict[str, Function] = {name: _printer(name) for name in ("print", "println")}
    escapers: dict[str, Function] = {name: _escaper(name) for name in ("html", "js", "urlquery")}
    return {
        _SHOW: _show,
        _STEP: lambda: "",
        "json": lambda value: _spent(marshal(None if _is_nil(value) else value)),
        "currentDate": lambda *_: datetime.now().astimezone().strftime("%Y-%m-%d"),
        "yesterdayDate": lambda *_: (datetime.now().astimezone() - timedelta(days=1)).strftime("%Y-%m-%d"),
        "toTypeScriptType": typescript,
        "eq": lambda first, second, *others: any(_equal(first, other) for other in (second, *others)),
        "ne": lambda first, second: not _equal(first, second),
        "len": lambda value: _BUILTINS["len"](unfenced(value) if isinstance(value, str) else value),
        "slice": lambda value, *indexes: _slice(fence, value, *indexes),
        "printf": _printf,
        **printers,
        **escapers,
    }


def _spent(text: str, expected: int = 0) -> str:
    """The text, with its length taken from what one rendering may make."""
    made = _made_chars.get(0) + max(len(text), expected)
    if made > MAX_MADE_CHARS:
        raise ValueError("the template makes too much text")
    _made_chars.set(made)
    return text


def _is_nil(value: Any) -> bool:
    return value is None or value is INVALID or value is UNTYPED_NIL


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, Printed) else value


def _printable(value: Any) -> Any:
    """As `print` and its kin take it: gotpl knows no Stringers, no verbs for lists, and one nil too many."""
    value = UNTYPED_NIL if _is_nil(value) else _plain(value)
    return format_value(value) if isinstance(value, list | dict) else value


def _show(*value: Any) -> str:
    return format_value(_plain(value[0])) if value else "<no value>"


def _equal(left: Any, right: Any) -> bool:
    if _is_nil(left) or _is_nil(right):
        return _is_nil(left) and _is_nil(right)
    return bool(_BUILTINS["eq"](left, right))


def _slice(fence: Fence, value: Any, *indexes: int) -> Any:
    """A string is cut as its user wrote it, and fenced again: fences have no place in Go's counting."""
    if isinstance(value, str):
        return fence.around(_BUILTINS["slice"](unfenced(value), *indexes))
    part = _BUILTINS["slice"](value, *indexes)
    _spent("", len(part) // 4)
    return type(value)(part)


def _printer(name: str) -> Function:
    return lambda *values: _spent(_BUILTINS[name](*map(_printable, values)))


def _escaper(name: str) -> Function:
    """An escaping function that leaves fences as they are."""

    def escaped(*values: Any) -> str:
        text = _spent(_BUILTINS["print"](*map(_plain, values)))
        pieces = text.replace(CLOSE, OPEN).split(OPEN)
        posts = [character for character in text if character in (OPEN, CLOSE)]
        written = [_BUILTINS[name](piece) for piece in pieces]
        return _spent("".join(a + b for a, b in zip(written, [*posts, ""], strict=True)))

    return escaped


def _printf(form: str, *values: Any) -> str:
    """Go's, but for widths that are arguments or large: they make text out of nothing."""
    digits = "".join(c if c.isdigit() else " " for c in form).split()
    if "*" in form or any(len(width) > 3 for width in digits):
        raise ValueError("printf: the width is too large")
    plain = [_printable(value) for value in values]
    longest = max((len(value) for value in plain if isinstance(value, str)), default=0)
    _spent("", len(form) + form.count("%") * (longest + 1000))
    text = _spent(str(_BUILTINS["printf"](form, *plain)))
    # %q spells a fence out, and a fence that is no more protects nobody
    return text.replace("\\ufdd0", OPEN).replace("\\ufdd1", CLOSE)
