"""Which models a command may use, from its settings."""

from __future__ import annotations

from pathlib import Path

from fox.cli.refusal import Refusal
from fox.config import Settings
from fox.config.ollama import DEFAULT_MODELS_DIR
from fox.registry import Catalog
from fox.registry.aliases import Aliases

HINT = "`--model-path` names a GGUF; `fox list` shows the models on this machine"


def catalog(settings: Settings) -> Catalog:
    """The names that can be asked for. Raises Refusal where `--model-path` names no file."""
    path = settings.model_path
    if path is not None and not path.is_file():
        what = "is a directory" if path.is_dir() else "does not exist"
        raise Refusal(f"`{path}` {what}", HINT)
    return Catalog(
        settings.models_dir,
        [path] if path else [],
        echo=settings.engine == "echo",
        stores=[Path(DEFAULT_MODELS_DIR).expanduser()],
        aliases=Aliases(settings.alias_file),
    )
