"""What `/api/show` answers, as `ollama show` prints it: sections of aligned rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from fox.cli import table

Row = tuple[str, ...]
Fields = Mapping[str, Any]

HEAD_LINES = 2  # of a system prompt or a licence
ARRAY_CHARS = 10


def text(shown: Fields, *, verbose: bool) -> str:
    sections: dict[str, list[Row]] = {
        "Model": _model(shown),
        "Capabilities": [(str(one),) for one in shown.get("capabilities") or ()],
        "Projector": _projector(shown.get("projector_info")),
        "Parameters": [(*line.split(),) for line in _lines(shown.get("parameters"))],
        "Metadata": _metadata(shown.get("model_info")) if verbose else [],
        "Tensors": _tensors(shown.get("tensors")) if verbose else [],
        "System": _head(shown.get("system")),
        "License": _head(shown.get("license")),
    }
    return "\n".join(_section(name, rows) for name, rows in sections.items() if rows)


def _section(name: str, rows: list[Row]) -> str:
    return "\n".join([f"  {name}", *table.lines([("", *row) for row in rows]), ""])


def _model(shown: Fields) -> list[Row]:
    info, details = shown.get("model_info") or {}, shown.get("details") or {}
    architecture = str(info.get("general.architecture") or details.get("family") or "")
    parameters = details.get("parameter_size") or _counted(info.get("general.parameter_count"))
    remote = shown.get("remote_host")
    rows = {
        "Remote model": shown.get("remote_model") if remote else None,
        "Remote URL": remote,
        "architecture": architecture,
        "parameters": parameters,
        "context length": _number(info.get(f"{architecture}.context_length")),
        "embedding length": _number(info.get(f"{architecture}.embedding_length")),
        "quantization": details.get("quantization_level"),
        "requires": shown.get("requires"),
    }
    return [(name, str(value)) for name, value in rows.items() if value]


def _projector(info: Any) -> list[Row]:
    if not isinstance(info, dict):
        return []
    architecture = str(info.get("general.architecture", ""))
    rows = {
        "architecture": architecture,
        "parameters": _counted(info.get("general.parameter_count")),
        "embedding length": _number(info.get(f"{architecture}.vision.embedding_length")),
        "dimensions": _number(info.get(f"{architecture}.vision.projection_dim")),
    }
    return [(name, value) for name, value in rows.items() if value]


def _metadata(info: Any) -> list[Row]:
    return [(str(key), _value(info[key])) for key in sorted(info)] if isinstance(info, dict) else []


def _tensors(tensors: Any) -> list[Row]:
    return [
        (str(one.get("name")), str(one.get("type")), _array(one.get("shape") or [], whole=True))
        for one in tensors or ()
    ]


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return _array(value)
    return f"{value:g}" if isinstance(value, float) else str(value)


def _array(values: list[Any], *, whole: bool = False) -> str:
    """As many of its values as fit into a column, and how many more there are."""
    shown, chars = 0, 1
    for value in values:
        chars += len(str(value)) + (2 if shown else 0)
        if shown and chars > ARRAY_CHARS and not whole:
            break
        shown += 1
    more = [f"...+{len(values) - shown} more"] if shown < len(values) else []
    return "[" + " ".join([*map(str, values[:shown]), *more]) + "]"


def _head(text: Any) -> list[Row]:
    lines = [line.strip() for line in _lines(text)]
    more = ["..."] if len(lines) > HEAD_LINES else []
    return [(line,) for line in [*lines[:HEAD_LINES], *more]]


def _lines(text: Any) -> list[str]:
    return [line for line in str(text or "").splitlines() if line.strip()]


def _number(value: Any) -> str:
    return _as_number(value, lambda count: f"{count:.0f}")


def _counted(value: Any) -> str:
    return _as_number(value, table.number)


def _as_number(value: Any, told: Callable[[float], str]) -> str:
    """What is no number is not shown: a server of another kind may say so."""
    return told(value) if isinstance(value, int | float) and not isinstance(value, bool) else ""
