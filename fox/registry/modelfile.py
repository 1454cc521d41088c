'''Modelfiles, read and written.

    # A comment, only where a command may start.
    FROM llama3.2                   a command in any case, white space, and its value: to the end of the line, or
    PARAMETER temperature 0.7       to a quote (or three) that ends a line. There are no escapes.
    SYSTEM """You are
    a pirate."""

Source: ollama/ollama, parser/parser.go. Unlike there, a value keeps its unprintable characters (the joiners of emoji
are such), PARAMETER and MESSAGE may be followed by more than one blank, and `\\r\\n` counts as one line.
'''

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from fox.errors import InvalidRequest
from fox.registry.parameters import DEPRECATED, go_quote, parsed, printed

ROLES = ("system", "user", "assistant")
EOF = "unexpected EOF"
NO_FROM = "no FROM line"
BAD_COMMAND = (
    'command must be one of "from", "license", "template", "system", "adapter", "draft", "renderer", "parser",'
    ' "parameter", "message", or "requires"'
)
COMMANDS = tuple(re.findall(r'"(\w+)"', BAD_COMMAND))
BAD_ROLE = 'message role must be one of "system", "user", or "assistant"'
BAD_REQUIRES = "requires must be a valid semver (e.g. 0.14.0)"

# What Go's strings.TrimSpace takes away; ends of lines are apart, for they end a value.
_BLANK = " \t\v\f\x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
_SKIPPED = re.compile(r"(?:[ \t\r\n]++|#[^\r\n]*+)*+")
_COMMAND = re.compile(r"[^ \t\r\n#][A-Za-z]*")
_LINE_END = re.compile(r"\r\n|\r|\n")
_SPACES = re.compile(r"[ \t]+")
_WORDS = {"parameter": re.compile(r"[A-Za-z0-9_]*"), "message": re.compile(r"[A-Za-z]*")}
_LEAD = re.compile(f"[{_BLANK}]*")
_PLAIN = re.compile(r"[^\r\n]*")
_CLOSED = {mark: re.compile(f"{mark}[{_BLANK}]*(?=[\r\n]|\\Z)") for mark in ('"""', '"')}
_SEMVER = re.compile(
    r"(0|[1-9]\d*)(\.(0|[1-9]\d*)(\.(0|[1-9]\d*)"
    r"(-(0|[1-9]\d*|\d*[a-z-][0-9a-z-]*)(\.(0|[1-9]\d*|\d*[a-z-][0-9a-z-]*))*)?(\+[0-9a-z-]+(\.[0-9a-z-]+)*)?)?)?",
    re.ASCII | re.IGNORECASE,
)


class ModelfileError(InvalidRequest):
    """A text is no Modelfile, or a model cannot be written as one. `args`: message, line from 1 (or None)."""

    code = "invalid_modelfile"

    @property
    def param(self) -> str:
        return "modelfile"

    def __str__(self) -> str:
        line = self.args[1] if len(self.args) > 1 else None
        return f"(line {line}): {self.args[0]}" if line else str(self.args[0])


@dataclass(frozen=True)
class Modelfile:
    """How to make a model. `bases` are names or paths of files: the model, then projectors. `parameters` by name, of
    their types. `messages` are (role, text). `deprecated` names parameters that were there and mean nothing now."""

    bases: tuple[str, ...]
    adapters: tuple[str, ...] = ()
    drafts: tuple[str, ...] = ()
    licenses: tuple[str, ...] = ()
    template: str | None = None
    system: str | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict, hash=False)
    messages: tuple[tuple[str, str], ...] = ()
    renderer: str | None = None
    parser: str | None = None
    requires: str | None = None
    deprecated: tuple[str, ...] = ()

    @property
    def base(self) -> str:
        return self.bases[0]


class _Command(NamedTuple):
    """`word` is a parameter's name or a message's role."""

    name: str
    word: str
    value: str


def read(data: bytes | str) -> Modelfile:
    """The Modelfile in `data`: UTF-8, or UTF-16 where it says so; what is not valid there reads as U+FFFD.

    Of FROM, ADAPTER, DRAFT, LICENSE, MESSAGE and the parameter `stop` all count, of others the last. Raises
    ModelfileError.
    """
    commands = list(_commands(_decoded(data)))
    found: dict[str, list[str]] = {name: [c.value for c in commands if c.name == name] for name in COMMANDS}
    if not found["from"] or "" in found["from"]:
        raise ModelfileError(NO_FROM)
    parameters = [c for c in commands if c.name == "parameter"]
    last = {name: values[-1] for name, values in found.items() if values}
    return Modelfile(
        tuple(found["from"]),
        tuple(found["adapter"]),
        tuple(found["draft"]),
        tuple(found["license"]),
        last.get("template"),
        last.get("system"),
        _parameters(parameters),
        tuple((c.word, c.value) for c in commands if c.name == "message"),
        last.get("renderer"),
        last.get("parser"),
        _version(last["requires"]) if "requires" in last else None,
        tuple(dict.fromkeys(c.word for c in parameters if c.word in DEPRECATED)),
    )


def written(modelfile: Modelfile, head: str = "") -> str:
    """`head`, then a text that `read` reads back to the same, but for deprecated parameters.

    Raises ModelfileError for what no Modelfile can say: a text with a line that ends in three quotes, no FROM.
    """
    if not modelfile.bases or "" in modelfile.bases:
        raise ModelfileError(NO_FROM)
    if any(role not in ROLES for role, _ in modelfile.messages):
        raise ModelfileError(BAD_ROLE)
    for name in modelfile.parameters:
        if not name or not _WORDS["parameter"].fullmatch(name):
            raise ModelfileError(f"a parameter cannot be named {go_quote(name)}")
    return head + "".join(f"{start} {_quoted(start, text)}\n" for start, text in _lines(modelfile))


def _lines(modelfile: Modelfile) -> Iterator[tuple[str, str]]:
    for name, values in (
        ("FROM", modelfile.bases),
        ("ADAPTER", modelfile.adapters),
        ("DRAFT", modelfile.drafts),
        ("TEMPLATE", (modelfile.template,)),
        ("SYSTEM", (modelfile.system,)),
        ("RENDERER", (modelfile.renderer,)),
        ("PARSER", (modelfile.parser,)),
        ("REQUIRES", (modelfile.requires,)),
    ):
        yield from ((name, value) for value in values if value is not None)
    for name, value in modelfile.parameters.items():
        yield from ((f"PARAMETER {name}", text) for text in printed(value))
    yield from (("LICENSE", text) for text in modelfile.licenses)
    yield from ((f"MESSAGE {role}", text) for role, text in modelfile.messages)


def _quoted(start: str, text: str) -> str:
    """Ollama's own choice of quotes, and the next where that would not read back to `text`."""
    plain = text and not ("\n" in text or text[0] == " " or text[-1] == " ")
    marks = ("",) if plain else () if '"' in text else ('"',)
    for mark in (*marks, '"""'):
        form = f"{mark}{text}{mark}"
        if _scanned(form, 0) == (text, len(form)):
            return form
    raise ModelfileError(f'{start} cannot be written: a line of its text ends with `"""`')


def _decoded(data: bytes | str) -> str:
    if isinstance(data, str):
        return data.removeprefix("\ufeff")
    for mark, encoding in (
        (codecs.BOM_UTF8, "utf-8"),
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
    ):
        if data.startswith(mark):
            return data[len(mark) :].decode(encoding, "replace")
    return data.decode("utf-8", "replace")


def _commands(text: str) -> Iterator[_Command]:
    at = _end(_SKIPPED, text, 0)
    while at < len(text):
        start, word = at, ""
        name, at = _command(text, at)
        if name in _WORDS:
            word, at = _word(text, at, _WORDS[name])
            if name == "message" and word not in ROLES:
                raise ModelfileError(BAD_ROLE, _line(text, start))
        value, at = _value(text, at)
        yield _Command(name, word, value)
        at = _end(_SKIPPED, text, at)


def _command(text: str, at: int) -> tuple[str, int]:
    end = _end(_COMMAND, text, at)
    name = text[at:end].lower()
    if end == len(text):
        raise ModelfileError(EOF)
    if name not in COMMANDS or text[end] not in " \t":
        raise ModelfileError(BAD_COMMAND, _line(text, at))
    return name, end


def _word(text: str, at: int, form: re.Pattern[str]) -> tuple[str, int]:
    start = _end(_SPACES, text, at)
    end = _end(form, text, start)
    if end == len(text):
        raise ModelfileError(EOF)
    if text[end] not in " \t":
        raise ModelfileError(f"{EOF}: {text[start:end]}")
    return text[start:end], end


def _value(text: str, at: int) -> tuple[str, int]:
    found = _scanned(text, at)
    if not found:
        raise ModelfileError(EOF)
    return found


def _scanned(text: str, at: int) -> tuple[str, int] | None:
    """A value and where it ends, None without its closing quote. Quotes close only at the end of a line."""
    start = _end(_LEAD, text, at)
    for mark, closing in _CLOSED.items():
        if text.startswith(mark, start):
            found = closing.search(text, start + len(mark))
            return (text[start + len(mark) : found.start()], found.end()) if found else None
    end = _end(_PLAIN, text, start)
    return text[start:end].rstrip(_BLANK), end


def _end(form: re.Pattern[str], text: str, at: int) -> int:
    found = form.match(text, at)
    return found.end() if found else at


def _line(text: str, at: int) -> int:
    return 1 + sum(1 for _ in _LINE_END.finditer(text, 0, at))


def _parameters(commands: list[_Command]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for _, name, text in commands:
        try:
            value = parsed(name, [text])
        except InvalidRequest as error:
            raise ModelfileError(str(error)) from None
        if isinstance(value, list):
            found[name] = [*found.get(name, ()), *value]
        elif value is not None:
            found[name] = value
    return found


def _version(text: str) -> str:
    version = text.removeprefix("v")
    if not _SEMVER.fullmatch(version):
        raise ModelfileError(BAD_REQUIRES)
    return version
