"""Ollama's options: which there are, of which type, and how Go reads and prints them.

Source: ollama/ollama, api/types.go (Options, FromMap, FormatParams) and Go's strconv.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from types import MappingProxyType
from typing import Any, Literal

from fox.errors import InvalidRequest

Kind = Literal["integer", "float32", "boolean", "array"]
Typed = int | float | bool | list[str] | None

_INTEGERS = (
    "num_ctx num_batch num_gpu main_gpu num_thread draft_num_predict"
    " num_keep seed num_predict top_k repeat_last_n"
)
_FLOATS = "top_p min_p typical_p temperature repeat_penalty presence_penalty frequency_penalty"

KNOWN: Mapping[str, Kind] = MappingProxyType(
    {
        **dict.fromkeys(_INTEGERS.split(), "integer"),
        **dict.fromkeys(_FLOATS.split(), "float32"),
        "use_mmap": "boolean",
        "stop": "array",
    }
)

_LEGACY = (
    "penalize_newline low_vram f16_kv logits_all vocab_only use_mlock mirostat mirostat_tau mirostat_eta"
    " tfs_z numa num_gqa rope_frequency_base rope_frequency_scale"
)
DEPRECATED = frozenset(_LEGACY.split())  # models and clients still carry them, nothing reads them

TEXTS = "array of strings"
LARGEST_FLOAT32 = 3.4028234663852886e38
_INTEGER = re.compile(
    r"[+-]?[0-9]{1,19}"
)  # of thousands of digits Python refuses to read, with its own error
_FLOAT = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
_BOOLEANS = {
    **dict.fromkeys(("1", "t", "T", "true", "TRUE", "True"), True),
    **dict.fromkeys(("0", "f", "F", "false", "FALSE", "False"), False),
}
_WORDS = {"integer": "int", "float32": "float", "boolean": "bool"}
_ESCAPES = {
    '"': r"\"",
    "\\": r"\\",
    "\a": r"\a",
    "\b": r"\b",
    "\f": r"\f",
    "\n": r"\n",
    "\r": r"\r",
    "\t": r"\t",
    "\v": r"\v",
}
_UNPAIRED = range(0xD800, 0xE000)  # surrogates: no text of Go's holds one


class WrongType(InvalidRequest):
    """An option's value is of another type. `args`: the option, the type it is of."""

    code = "invalid_option"

    @property
    def param(self) -> str:
        return "options"

    def __str__(self) -> str:
        name, kind = map(str, self.args)
        return f"option {go_quote(name)} must be of {'an ' if kind == TEXTS else 'type '}{kind}"


def typed(name: str, value: object) -> Typed:
    """A JSON value by its option's type: a float is cut to an integer, one text for `stop` is a list of one.

    None where nothing is set: for null, and for a name that is not in KNOWN. Raises WrongType, also for what is no
    number (NaN, infinity) or too large for the type.
    """
    kind = KNOWN.get(name)
    if kind is None or value is None:
        return None
    found: Typed
    if kind == "boolean":
        found = value if isinstance(value, bool) else None
    elif kind == "array":
        found = _list_of_texts(name, value)
    else:
        found = _integer(value) if kind == "integer" else _float(value)
    if found is None:
        raise WrongType(name, kind)
    return found


def parsed(name: str, texts: Sequence[str]) -> Typed:
    """An option's value from a Modelfile: all texts for a list, else the first.

    None for a DEPRECATED name. Raises InvalidRequest for an unknown name, and for what does not read as its type.
    """
    kind = KNOWN.get(name)
    if kind is None and name not in DEPRECATED:
        raise InvalidRequest(f"unknown parameter '{name}'", "parameters")
    if kind is None or kind == "array":
        return list(texts) if kind else None
    found = _read(kind, texts[0] if texts else "")
    if found is None:
        raise InvalidRequest(f"invalid {_WORDS[kind]} value [{' '.join(texts)}]", "parameters")
    return found


def printed(value: object) -> list[str]:
    """The texts that `parsed` reads back: one, for a list one an item, for None none. Numbers as Go's %v."""
    if isinstance(value, list | tuple):
        return [text for item in value for text in printed(item)]
    if value is None:
        return []
    if isinstance(value, bool):
        return [str(value).lower()]
    return [_go_float(value) if isinstance(value, float) else str(value)]


def shown(parameters: Mapping[str, Any]) -> str:
    """The `parameters` of /api/show: a line for each value, its name padded to 30 columns, texts quoted."""
    return "\n".join(
        f"{name:<30} {go_quote(item) if isinstance(item, str) else printed(item)[0]}"
        for name, value in parameters.items()
        for item in _items(value)
    )


def go_quote(text: str) -> str:
    """`text` as Go's strconv.Quote writes it."""
    return '"' + "".join(map(_escaped, text)) + '"'


def _items(value: object) -> Iterable[object]:
    items = value if isinstance(value, list | tuple) else [value]
    return (item for item in items if printed(item))


def _list_of_texts(name: str, value: object) -> list[str] | None:
    if isinstance(value, str):
        return [value]
    if not isinstance(value, list | tuple):
        return None
    if not all(isinstance(item, str) for item in value):
        raise WrongType(name, TEXTS)
    return list(value)


def _integer(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not _is_finite(value):
        return None
    whole = int(value)
    return whole if -(1 << 63) <= whole < 1 << 63 else None


def _float(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not _is_finite(value):
        return None
    return float(value) if abs(value) <= LARGEST_FLOAT32 else None


def _is_finite(value: float) -> bool:
    return isinstance(value, int) or math.isfinite(value)


def _read(kind: Kind, text: str) -> int | float | bool | None:
    if kind == "boolean":
        return _BOOLEANS.get(text)
    if kind == "float32":
        return _float(float(text)) if _FLOAT.fullmatch(text) else None
    return _integer(int(text)) if _INTEGER.fullmatch(text) else None


def _go_float(value: float) -> str:
    """The shortest digits that read back as `value`; an exponent from 1e+06 and below 1e-04."""
    if not math.isfinite(value):
        return {math.inf: "+Inf", -math.inf: "-Inf"}.get(value, "NaN")
    digits = Decimal(repr(value)).normalize()
    if value and not -4 <= digits.adjusted() < 6:
        return f"{value:.{len(digits.as_tuple().digits) - 1}e}"
    return format(digits, "f")


def _escaped(char: str) -> str:
    if char in _ESCAPES:
        return _ESCAPES[char]
    point = ord(char)
    if char.isprintable():
        return char
    if point in _UNPAIRED:
        return "\\ufffd"
    if point < 0x80:
        return f"\\x{point:02x}"
    return f"\\u{point:04x}" if point < 0x10000 else f"\\U{point:08x}"
