"""The models that the tests of this folder load."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.model import tiny


@pytest.fixture(scope="session")
def gguf(tmp_path_factory: pytest.TempPathFactory, starter_path: Path) -> Any:
    folder = tmp_path_factory.mktemp("tiny")

    def path(kind: str) -> Path:
        if kind == "starter":
            return starter_path
        made = folder / f"{kind}.gguf"
        return made if made.exists() else tiny.make(kind, made)

    return path
