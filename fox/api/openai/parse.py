"""A body becomes a checked request, or an InvalidRequest that names the field."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from fox.api.openai.schema import ChatRequest
from fox.api.openai.shapes import Shape
from fox.api.openai.wishes import Wishes
from fox.errors import InvalidRequest

FIELD = re.compile(r"[A-Za-z_]\w{0,63}", re.ASCII)

Check = tuple[str, str, Callable[[ChatRequest], bool]]

# What cannot be honoured is refused: an answer that ignores it would be taken for one that does not.
REFUSED: tuple[Check, ...] = (
    ("functions", "it has given way to `tools`", lambda r: bool(r.functions)),
    ("modalities", "the model writes nothing but `text`", lambda r: not set(r.modalities or ()) <= {"text"}),
)


S = TypeVar("S", bound=Shape)
W = TypeVar("W", bound=Wishes)


def read(shape: type[S], body: bytes) -> S:
    """The body in this shape. Raises InvalidRequest."""
    try:
        return shape.model_validate_json(body)
    except ValidationError as error:
        raise _refusal(error.errors(include_url=False, include_input=False)[0]) from None


def parse(shape: type[W], body: bytes) -> W:
    """A request for text, with whatever its fields say of each other. Raises InvalidRequest."""
    return _checked(read(shape, body))


def parse_fields(shape: type[W], fields: dict[str, Any]) -> W:
    """The same, of a body that was made here. Raises InvalidRequest."""
    try:
        return _checked(shape.model_validate(fields))
    except ValidationError as error:
        raise _refusal(error.errors(include_url=False, include_input=False)[0]) from None


def _checked(request: W) -> W:
    if request.limit is not None and (request.min_tokens or 0) > request.limit:
        raise InvalidRequest("`min_tokens`: input should not be more than the most tokens", "min_tokens")
    if isinstance(request, ChatRequest):
        _check_chat(request)
    return request


def _check_chat(request: ChatRequest) -> None:
    for param, why, asked in REFUSED:
        if asked(request):
            raise InvalidRequest(f"`{param}`: {why}", param)
    _check_tools(request)
    _check_results(request)
    if request.continue_final_message and request.messages[-1].role != "assistant":
        raise InvalidRequest(
            "`continue_final_message`: the last message is not from the assistant", "continue_final_message"
        )
    if request.top_logprobs and not request.logprobs:
        raise InvalidRequest("`top_logprobs`: `logprobs` must be true beside it", "top_logprobs")


def _check_tools(request: ChatRequest) -> None:
    names = [tool.function.name for tool in request.tools or ()]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise InvalidRequest(f"`tools`: two of them are named `{twice}`", "tools")
    if not names and request.tool_choice not in (None, "none", "auto"):
        raise InvalidRequest("`tool_choice`: there are no `tools` to choose from", "tool_choice")


def _check_results(request: ChatRequest) -> None:
    """A result that has an id is that of a call before it."""
    called: set[str] = set()
    for at, message in enumerate(request.messages):
        called |= {call.id for call in message.tool_calls or () if call.id}
        if message.role == "tool" and message.tool_call_id and message.tool_call_id not in called:
            field = f"messages[{at}].tool_call_id"
            raise InvalidRequest(
                f"`{field}`: no call before it has the id `{message.tool_call_id[:64]}`", field
            )


def _refusal(error: ErrorDetails) -> InvalidRequest:
    says = error["msg"][:1].lower() + error["msg"][1:]
    if error["type"] == "json_invalid":
        return InvalidRequest(f"the body is not valid JSON: {says.removeprefix('invalid JSON: ')}", None)
    path = _path(error["loc"])
    if path is None:
        return InvalidRequest("the body must be a JSON object", None)
    if error["type"] == "missing":
        return InvalidRequest(f"`{path}` is required", path)
    return InvalidRequest(f"`{path}`: {says}", path)


def _path(loc: tuple[int | str, ...]) -> str | None:
    """`("messages", 0, "content", "<list>", 1, "type")` -> `messages[0].content[1].type`.

    Parts that are no field names are left out: tags of unions, and keys that the client made up.
    """
    path = ""
    for part in loc[:-2] if loc[-1:] == ("[key]",) else loc:
        if isinstance(part, int):
            path += f"[{part}]"
        elif FIELD.fullmatch(part):
            path += f".{part}"
    return path.removeprefix(".") or None
