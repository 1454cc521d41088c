"""A real `fox serve` with real models, and the official client against it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import openai
import pytest

from tests.cli.processes import Fox, fox
from tests.model import tiny

CONTEXT_TOKENS = 1024


@pytest.fixture(scope="module")
def models_dir(tmp_path_factory: pytest.TempPathFactory, starter_path: Path) -> Path:
    """A second name for the starter, and files that are no models."""
    folder = tmp_path_factory.mktemp("models")
    good = starter_path.read_bytes()
    os.symlink(starter_path, folder / "twin-source")
    (folder / "truncated.gguf").write_bytes(good[: len(good) // 2])
    (folder / "noise.gguf").write_bytes(b"not a model at all")
    (folder / "alien.gguf").write_bytes(
        good.replace(b"\x05\0\0\0\0\0\0\0llama", b"\x05\0\0\0\0\0\0\0llamx", 1)
    )
    (folder / "folder.gguf").mkdir()
    tiny.make("coder", folder / "coder.gguf")
    (folder / "twin.gguf").hardlink_to(_copy(starter_path, folder))
    return folder


def _copy(source: Path, folder: Path) -> Path:
    path = folder / "copied"
    path.write_bytes(source.read_bytes())
    return path


@pytest.fixture(scope="module")
def server(models_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fox]:
    flags = ("--threads", "2", "--max-context-len", str(CONTEXT_TOKENS), "--models-dir", str(models_dir))
    home = {"HOME": str(tmp_path_factory.mktemp("home"))}
    with fox("serve", "--port", "auto", *flags, env=home) as process:
        assert process.url
        yield process


@pytest.fixture(scope="module")
def client(server: Fox) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0, timeout=60) as made:
        yield made
