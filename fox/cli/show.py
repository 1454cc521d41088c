"""`fox show`: what a model's header says of it, without loading the model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from fox import config
from fox.cli import table
from fox.cli.refusal import Refusal
from fox.registry import Catalog
from fox.registry.gguf import GGUFError, Header, read_header


@click.command("show")
@click.argument("model")
@click.option(
    "--path", type=click.Path(path_type=Path), help="Folder to look in [default: the models' folder]."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(model: str, path: Path | None, as_json: bool) -> None:
    """Show a model's architecture, size, quantization, context and template."""
    file = _file(model, path)
    try:
        facts = _facts(read_header(file), file)
    except (GGUFError, OSError) as error:
        reason = str(error.strerror).lower() if isinstance(error, OSError) else str(error)
        raise Refusal(
            f"cannot read `{file}`: {reason}", "the file may be damaged or only partly downloaded"
        ) from None
    click.echo(json.dumps(facts, indent=2, ensure_ascii=False) if as_json else _text(facts))


def _file(model: str, folder: Path | None) -> Path:
    """`model` is a name, or the path of a GGUF."""
    given = Path(model).expanduser()
    if given.suffix == ".gguf" and given.exists():
        return given
    entry = Catalog(folder or config.load({}).models_dir, starter=folder is None).find(model)
    assert entry.path is not None
    return entry.path


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


def _text(facts: dict[str, Any]) -> str:
    shown = {
        **facts,
        "parameters": _count(facts["parameters"]),
        "size": table.size(facts["size_bytes"]),
        "chat_template": None,
    }
    del shown["size_bytes"]
    lines = [f"{name.replace('_', ' '):18}{value}" for name, value in shown.items() if value is not None]
    template = facts["chat_template"] or "none: ChatML is used"
    return "\n".join([*lines, "chat template", *(f"  {line}" for line in template.splitlines())])


def _count(parameters: int) -> str:
    return f"{parameters / 1e9:.2f}B" if parameters >= 1e9 else f"{parameters / 1e6:.1f}M"
