"""What a file's header says of itself, without a server and without loading the model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fox.cli import table
from fox.cli.refusal import Refusal
from fox.registry import Catalog
from fox.registry.gguf import GGUFError, Header, read_header


def named_file(model: str, folder: Path | None) -> Path | None:
    """The GGUF that `model` is the path of, or the name of in `folder`. None where it is neither.

    Raises ModelNotFound where there is a folder.
    """
    given = Path(model).expanduser()
    if given.suffix == ".gguf" and given.exists():
        return given
    if folder is None:
        return None
    entry = Catalog(folder, starter=False).find(model)
    if entry.path is None:
        raise Refusal(f"`{model}` names no weights in GGUF form")
    return entry.path


def facts(file: Path) -> dict[str, Any]:
    """Raises Refusal where it cannot be read."""
    try:
        return _facts(read_header(file), file)
    except (GGUFError, OSError) as error:
        reason = str(error.strerror).lower() if isinstance(error, OSError) else str(error)
        raise Refusal(
            f"cannot read `{file}`: {reason}", "the file may be damaged or only partly downloaded"
        ) from None


def text(facts: dict[str, Any]) -> str:
    shown = {
        **facts,
        "parameters": table.number(facts["parameters"]),
        "size": table.size(facts["size_bytes"]),
        "chat_template": None,
    }
    del shown["size_bytes"]
    lines = [f"{name.replace('_', ' '):18}{value}" for name, value in shown.items() if value is not None]
    template = facts["chat_template"] or "none: ChatML is used"
    return "\n".join([*lines, "chat template", *(f"  {line}" for line in template.splitlines())])


def _facts(header: Header, file: Path) -> dict[str, Any]:
    return {
        "name": header.metadata.get("general.name"),
        "architecture": header.architecture,
        "parameters": header.parameters,
        "quantization": header.quantization,
        "context_length": header.of_architecture("context_length"),
        "embedding_length": header.of_architecture("embedding_length"),
        "layers": header.of_architecture("block_count"),
        "license": header.metadata.get("general.license"),
        "size_bytes": file.stat().st_size,
        "path": str(file),
        "chat_template": header.chat_template,
    }
