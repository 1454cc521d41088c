"""The bodies of Ollama's routes."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, BeforeValidator, Field
from pydantic_core import PydanticCustomError

from fox.api.ollama.shapes import GoShape

MOST_TOOLS, MOST_INPUTS = 1024, 16_384


def _in_text(value: Any) -> Any:
    """OpenAI's parts become the text they hold."""
    if not isinstance(value, list):
        return value
    if any(not isinstance(part, dict) or part.get("type", "text") != "text" for part in value):
        raise PydanticCustomError("not_text", "the model reads no parts but those of type `text`")
    return "\n".join(str(part.get("text") or "") for part in value)


def _as_object(value: Any) -> Any:
    """OpenAI's clients send arguments as JSON text."""
    import orjson

    if isinstance(value, str):
        try:
            return orjson.loads(value or "{}")
        except ValueError:
            raise PydanticCustomError("arguments", "arguments should be a JSON object") from None
    return value


def _named(tools: list[dict[str, Any]]) -> list[dict[str, Any]]:
    for tool in tools:
        function = tool.get("function")
        if (
            not isinstance(function, dict)
            or not isinstance(function.get("name"), str)
            or not function["name"]
        ):
            raise PydanticCustomError("tool", "each tool needs a `function` with a `name`")
        if not isinstance(function.get("parameters", {}), dict | type(None)):
            raise PydanticCustomError("tool", "the `parameters` of a function should be a JSON schema")
    return tools


Text = Annotated[str, BeforeValidator(_in_text)]
Images = list[str]
Tools = Annotated[list[dict[str, Any]], Field(max_length=MOST_TOOLS), AfterValidator(_named)]


class Named(GoShape):
    """`name` is what `model` was called once."""

    model: str = ""
    name: str = ""

    @property
    def asked(self) -> str:
        return (self.model or self.name).strip()


class Function(GoShape):
    index: int | None = None
    name: str = ""
    arguments: Annotated[dict[str, Any], BeforeValidator(_as_object)] = Field(default_factory=dict)


class ToolCall(GoShape):
    id: str | None = None
    function: Function


class Message(GoShape):
    role: str = ""
    content: Text = ""
    thinking: str = ""
    images: Images = Field(default_factory=list)
    tool_calls: list[ToolCall] = Field(default_factory=list)
    tool_name: str = ""
    tool_call_id: str = ""


class Asking(Named):
    """What chats and generations share."""

    stream: bool = True
    format: Any = None
    keep_alive: Any = None
    options: dict[str, Any] = Field(default_factory=dict)
    think: Any = None
    truncate: bool = True
    shift: bool = True
    logprobs: bool = False
    top_logprobs: int = 0
    debug_render_only: bool = Field(False, alias="_debug_render_only")


class ChatRequest(Asking):
    """`tool_choice` is fox's own, in OpenAI's form."""

    go_types: ClassVar[dict[str, str]] = {"messages": "[]api.Message", "tools": "api.Tools"}
    messages: list[Message] = Field(default_factory=list)
    tools: Tools = Field(default_factory=list)
    tool_choice: Any = None


class GenerateRequest(Asking):
    go_types: ClassVar[dict[str, str]] = {"context": "[]int", "images": "[]api.ImageData"}
    prompt: str = ""
    suffix: str = ""
    system: str = ""
    template: str = ""
    context: list[int] = Field(default_factory=list)
    raw: bool = False
    images: Images = Field(default_factory=list)


class EmbedRequest(Named):
    input: Any = None
    truncate: bool = True
    dimensions: int = 0
    keep_alive: Any = None
    options: dict[str, Any] = Field(default_factory=dict)


class EmbeddingsRequest(Named):
    prompt: str = ""
    keep_alive: Any = None
    options: dict[str, Any] = Field(default_factory=dict)


class ShowRequest(Named):
    system: str = ""
    template: str = ""
    verbose: bool = False
    options: dict[str, Any] = Field(default_factory=dict)


class CreateRequest(Named):
    """`from` is a word of Python's."""

    stream: bool = True
    base: str = Field("", alias="from")
    files: dict[str, str] = Field(default_factory=dict)
    adapters: dict[str, str] = Field(default_factory=dict)
    template: str | None = None
    license: Any = None
    system: str | None = None
    parameters: dict[str, Any] = Field(default_factory=dict)
    messages: list[Message] | None = None
    renderer: str = ""
    parser: str = ""
    requires: str = ""
    quantize: str = ""
    quantization: str = ""
    remote_host: str = ""


class CopyRequest(GoShape):
    source: str = ""
    destination: str = ""


class DeleteRequest(Named):
    pass
