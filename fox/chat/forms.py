"""The forms that a text may be bound to, as grammars for the engine."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from fox.generation import Grammar

ANY_OBJECT: Mapping[str, Any] = {"type": "object"}
_LARK = re.compile(r"^\s*(start\s*:|%llguidance)", re.MULTILINE)


def json_form(schema: Mapping[str, Any], param: str, *, strict: bool) -> Grammar:
    """JSON of this schema. `strict`: a keyword that cannot be honoured is refused, else told with a warning."""
    return Grammar("json", json.dumps(schema, ensure_ascii=False), param, lenient=not strict)


def choice_form(choices: Sequence[str], param: str) -> Grammar:
    """One of these texts."""
    return Grammar("lark", "start: " + " | ".join(map(quoted, choices)), param)


def regex_form(regex: str, param: str) -> Grammar:
    return Grammar("regex", regex, param)


def written_form(source: str, param: str) -> Grammar:
    """A grammar in llguidance's Lark dialect, where it has a rule `start`, else in GBNF."""
    return Grammar("lark" if _LARK.search(source) else "gbnf", source, param)


def quoted(text: str) -> str:
    """A text as a literal of Lark; the empty one matches nothing in particular."""
    return json.dumps(text, ensure_ascii=False)
