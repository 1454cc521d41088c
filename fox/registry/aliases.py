"""Other names of models: a TOML file whose table `[aliases]` reads `name = "the model's own name"`."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path

log = logging.getLogger("fox.registry")


class Aliases:
    """Called, it gives what the file says now; one that cannot be read gives none, and is told of once a change."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._mark = 0
        self._read: Mapping[str, str] = {}

    def __call__(self) -> Mapping[str, str]:
        try:
            mark = self._path.stat().st_mtime_ns
        except OSError:
            mark = 0
        if mark != self._mark:
            self._mark, self._read = mark, self._parsed() if mark else {}
        return self._read

    def _parsed(self) -> Mapping[str, str]:
        import tomli

        try:
            table = tomli.loads(self._path.read_text("utf-8")).get("aliases", {})
            return {str(name): model for name, model in table.items() if isinstance(model, str)}
        except (OSError, ValueError, AttributeError) as error:
            log.warning("passed over the aliases in `%s`: %s", self._path, error)
            return {}
